/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/converter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"

/* Descriptors are moved here first: none is then at a place of the helper's. */
#define ABOVE 10

/* How long to look for the end of a process that has answered or was killed. */
#define REAP_MS 200

/* errno value of the first that fails.  [fds]: log, answer, directory. */
static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attr,
                   const int fds[3])
{
    sigset_t all, none;
    int rc;

    sigfillset(&all);
    sigemptyset(&none);
    rc = posix_spawn_file_actions_adddup2(actions, fds[0], JOULE_CONVERTER_LOG);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, fds[1],
                                              JOULE_CONVERTER_ANSWER);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY,
                                              0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(actions, fds[2],
                                              JOULE_CONVERTER_DIR);
    if (rc == 0)
        rc = posix_spawnattr_setsigdefault(attr, &all);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(attr, &none);
    if (rc == 0)
        rc = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGDEF |
                                                POSIX_SPAWN_SETSIGMASK);
    return rc;
}

/* 0 or an errno value.  posix_spawn and not fork: the host has threads. */
static int spawn(const struct joule_converter *h, const int fds[3],
                 pid_t *ret_pid)
{
    const char *name = strrchr(h->program, '/') + 1;
    char uid[16], gid[16];
    char *argv[] = {(char *)name, (char *)h->name, uid, gid, NULL};
    char *env[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int rc;

    snprintf(uid, sizeof(uid), "%u", (unsigned)h->uid);
    snprintf(gid, sizeof(gid), "%u", (unsigned)h->gid);
    rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attr);
    if (rc == 0) {
        rc = prepare(&actions, &attr, fds);
        if (rc == 0)
            rc = posix_spawn(ret_pid, h->program, &actions, &attr, argv, env);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Where its answer can be read, or -1. */
static int start(const struct joule_converter *h, pid_t *ret_pid,
                 struct joule_error *err)
{
    int answer[2], fds[3], rc = 0;

    if (pipe2(answer, O_CLOEXEC) < 0)
        return joule_error_set(err, errno, "cannot make a pipe: %m");
    fds[0] = fcntl(h->log_fd, F_DUPFD_CLOEXEC, ABOVE);
    fds[1] = fcntl(answer[1], F_DUPFD_CLOEXEC, ABOVE);
    fds[2] = fcntl(h->dir_fd, F_DUPFD_CLOEXEC, ABOVE);
    if (fds[0] < 0 || fds[1] < 0 || fds[2] < 0)
        rc = errno;
    close(answer[1]);
    if (rc == 0)
        rc = spawn(h, fds, ret_pid);
    for (int i = 0; i < 3; i++)
        joule_close(fds[i]);
    if (rc == 0)
        return answer[0];
    close(answer[0]);
    return joule_error_set(err, rc, "cannot start %s: %m", h->program);
}

/* Read to the end of the answer.  -1: it takes too long. */
static int read_answer(int fd, char *answer, size_t size, int64_t until_ns)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    size_t used = 0;

    for (;;) {
        int64_t left_ns = joule_deadline_left(until_ns);
        struct timespec left = joule_timespec(left_ns);
        ssize_t n;

        answer[used] = '\0';
        if (left_ns == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        if (ppoll(&pollfd, 1, &left, NULL) <= 0)
            continue;
        n = read(fd, answer + used, size - 1 - used);
        if (n > 0)
            used += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return 0;
    }
}

/* Its status; false: it does not end, or somebody else has taken the status. */
static bool reap(pid_t pid, int *ret_status)
{
    pid_t rc = 0;

    for (int i = 0; i < REAP_MS && rc == 0; i++) {
        rc = waitpid(pid, ret_status, WNOHANG);
        if (rc < 0 && errno == EINTR)
            rc = 0;
        if (rc == 0)
            joule_sleep_ns(JOULE_NS_PER_MS);
    }
    return rc == pid;
}

/* Only a process that was just seen to be ours is sent a signal: its number
 * cannot have been given to another one. */
static void kill_ours(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, WNOHANG) != 0)
        return;
    kill(pid, SIGKILL);
    reap(pid, &status);
}

static int explain(const struct joule_converter *h, pid_t pid, char *answer,
                   struct joule_error *err)
{
    int status;

    if (!reap(pid, &status)) {
        kill_ours(pid);
        status = 0;
    }
    if (strcmp(answer, JOULE_CONVERTER_DONE) == 0)
        return 0;
    answer[strcspn(answer, "\n")] = '\0';
    if (answer[0])
        return joule_error_set(err, EPROTO, "%s", answer);
    if (WIFSIGNALED(status))
        return joule_error_set(err, EPROTO, "%s died of signal %d", h->program,
                               WTERMSIG(status));
    return joule_error_set(err, EPROTO, "%s ended with exit code %d",
                           h->program, WEXITSTATUS(status));
}

int joule_converter_run(const struct joule_converter *h, int64_t until_ns,
                        struct joule_error *err)
{
    char answer[JOULE_ERROR_MAX];
    pid_t pid = -1;
    int fd = start(h, &pid, err), rc;

    if (fd < 0)
        return -1;
    rc = read_answer(fd, answer, sizeof(answer), until_ns);
    close(fd);
    if (rc == 0)
        return explain(h, pid, answer, err);
    kill_ours(pid);
    return joule_error_set(err, ETIMEDOUT, "%s takes too long", h->program);
}
