/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/deadline.h"

/* How long to look for the end of a process that has closed its socket, for
 * one that is asked to end (closing a session with a healthy BMC takes a few
 * ms), and for one that was killed. */
#define EXPLAIN_MS 100
#define GOODBYE_MS 40
#define KILLED_MS  100

enum ending { RUNNING, ENDED, NOT_OURS };

void joule_helper_init(struct joule_helper *helper)
{
    memset(helper, 0, sizeof(*helper));
    helper->fd = -1;
}

static enum ending look(pid_t pid, int *ret_status)
{
    pid_t rc;

    do {
        rc = waitpid(pid, ret_status, WNOHANG);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0)
        return RUNNING;
    return rc == pid ? ENDED : NOT_OURS;
}

/* look, again and again for at most [ms]. */
static enum ending look_for(pid_t pid, int *ret_status, int ms)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    enum ending ending;

    while ((ending = look(pid, ret_status)) == RUNNING && ms-- > 0)
        nanosleep(&pause, NULL);
    return ending;
}

/* Only a process that has just been seen to be ours and not reaped is sent a
 * signal: its number cannot have been given to another one. */
static bool kill_ours(pid_t pid)
{
    int status;

    if (look(pid, &status) != RUNNING)
        return false;
    kill(pid, SIGKILL);
    return look(pid, &status) == RUNNING;
}

static void close_socket(struct joule_helper *helper)
{
    if (helper->fd >= 0)
        close(helper->fd);
    helper->fd = -1;
}

void joule_helper_reap(struct joule_helper *helper)
{
    size_t kept = 0;

    for (size_t i = 0; i < helper->lost_count; i++)
        if (kill_ours(helper->lost[i]))
            helper->lost[kept++] = helper->lost[i];
    helper->lost_count = kept;
}

void joule_helper_kill(struct joule_helper *helper)
{
    int saved = errno;

    /* There is room: none is started otherwise. */
    if (helper->pid > 0 && kill_ours(helper->pid))
        helper->lost[helper->lost_count++] = helper->pid;
    helper->pid = 0;
    close_socket(helper);
    errno = saved;
}

/* errno value of the first that fails. */
static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attr,
                   int socket_fd)
{
    sigset_t all, none;
    int rc;

    sigfillset(&all);
    sigemptyset(&none);
    rc = posix_spawn_file_actions_adddup2(actions, socket_fd, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY,
                                              0);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY,
                                              0);
        /* Where the C library cannot, the reader does so itself, first of all.
         */
#if __GLIBC_PREREQ(2, 34)
    if (rc == 0)
        rc = posix_spawn_file_actions_addclosefrom_np(actions, 3);
#endif
#if __GLIBC_PREREQ(2, 29)
    if (rc == 0)
        rc = posix_spawn_file_actions_addchdir_np(actions, "/");
#endif
    if (rc == 0)
        rc = posix_spawnattr_setsigdefault(attr, &all);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(attr, &none);
    if (rc == 0)
        rc = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGDEF |
                                                POSIX_SPAWN_SETSIGMASK |
                                                POSIX_SPAWN_SETSID);
    return rc;
}

/* 0 or an errno value.  posix_spawn and not fork: the host is big, and
 * between a fork and the exec of a process with threads little is safe. */
static int spawn(const char *program, int socket_fd, pid_t *ret_pid)
{
    const char *name = strrchr(program, '/') + 1;
    char *argv[] = {(char *)name, NULL}, *env[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attr);
    if (rc == 0) {
        rc = prepare(&actions, &attr, socket_fd);
        if (rc == 0)
            rc = posix_spawn(ret_pid, program, &actions, &attr, argv, env);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

int joule_helper_start(struct joule_helper *helper, const char *program,
                       struct joule_error *err)
{
    int fds[2], rc, flags;

    joule_helper_reap(helper);
    if (helper->lost_count == JOULE_HELPER_LOST_MAX)
        return joule_error_set(err, EBUSY,
                               "%d processes of %s cannot be ended (they are "
                               "stuck in the kernel): no other is started",
                               JOULE_HELPER_LOST_MAX, program);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return joule_error_set(err, errno, "cannot make a socket pair: %m");
    flags = fcntl(fds[0], F_GETFL);
    if (flags < 0 || fcntl(fds[0], F_SETFL, flags | O_NONBLOCK) < 0)
        rc = errno;
    else
        rc = spawn(program, fds[1], &helper->pid);
    close(fds[1]);
    if (rc != 0) {
        close(fds[0]);
        helper->pid = 0;
        return joule_error_set(err, rc, "cannot start %s: %m%s", program,
                               rc == ENOENT ? " (it is a part of slurm-joule: "
                                              "is all of it installed?)"
                                            : "");
    }
    helper->fd = fds[0];
    helper->program = program;
    return 0;
}

int joule_helper_wait(const struct joule_helper *helper, int interrupt_fd,
                      int64_t deadline_ns)
{
    struct pollfd fds[2] = {{.fd = interrupt_fd, .events = POLLIN},
                            {.fd = helper->fd, .events = POLLIN}};

    for (;;) {
        int64_t left = deadline_ns - joule_clock_mono_ns(&joule_clock_system);
        struct timespec wait = joule_timespec(left > 0 ? left : 0);
        int n;

        n = ppoll(fds, 2, &wait, NULL);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0 && fds[1].revents)
            return 0;
        if (n > 0) {
            errno = ECANCELED;
            return -1;
        }
        if (n == 0 && left <= 0) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

bool joule_helper_is_there(const struct joule_helper *helper)
{
    char byte;
    ssize_t n;

    if (helper->pid == 0)
        return false;
    n = recv(helper->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && errno == EAGAIN);
}

int joule_helper_explain(struct joule_helper *helper, struct joule_error *err)
{
    int status = 0;
    enum ending ending = look_for(helper->pid, &status, EXPLAIN_MS);

    if (ending == RUNNING) {
        joule_helper_kill(helper);
        return joule_error_set(err, EPIPE,
                               "the helper process closed its socket");
    }
    helper->pid = 0;
    close_socket(helper);
    if (ending == NOT_OURS)
        return joule_error_set(err, EPIPE, "the helper process ended");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        return joule_error_set(err, EPIPE,
                               "the helper process was ended because it made a "
                               "system call that it may not make (seccomp, "
                               "SIGSYS; the kernel's log names the call: "
                               "type=1326)");
    if (WIFSIGNALED(status))
        return joule_error_set(err, EPIPE,
                               "the helper process died of signal %d",
                               WTERMSIG(status));
    return joule_error_set(err, EPIPE,
                           "the helper process ended with exit code %d",
                           WEXITSTATUS(status));
}

/* ---- requests and replies ---- */

struct joule_helper_head joule_helper_request(struct joule_helper *helper,
                                              uint32_t type, size_t size)
{
    return (struct joule_helper_head){.version = helper->version,
                                      .type = type,
                                      .size = (uint32_t)size,
                                      .seq = ++helper->seq};
}

int joule_helper_reject(struct joule_helper *helper, const char *what,
                        struct joule_error *err)
{
    joule_helper_kill(helper);
    return joule_error_set(err, EPROTO,
                           "the helper process does not speak as %s should "
                           "(%s): is it of another version?",
                           helper->program, what);
}

static int late(struct joule_helper *helper, int64_t wait_ns,
                struct joule_error *err)
{
    joule_helper_kill(helper);
    return joule_error_set(err, ETIMEDOUT,
                           "%s and the process that reads it gave no answer in "
                           "%.3g s",
                           helper->asks,
                           (double)wait_ns / (double)JOULE_NS_PER_S);
}

int joule_helper_send(struct joule_helper *helper, const struct msghdr *packet,
                      size_t size, int64_t wait_ns, struct joule_error *err)
{
    if (sendmsg(helper->fd, packet, MSG_NOSIGNAL) == (ssize_t)size)
        return 0;
    if (errno == EPIPE || errno == ECONNRESET)
        return joule_helper_explain(helper, err);
    if (errno == EAGAIN)
        return late(helper, wait_ns, err);
    joule_helper_kill(helper);
    return joule_error_set(err, errno, "cannot ask the helper process: %m");
}

/* A packet, whatever it is: its size; 0 if there is none yet; -1 and the
 * process is gone. */
static ssize_t receive(struct joule_helper *helper, void *reply, size_t room,
                       struct joule_error *err)
{
    const struct joule_helper_head *head = reply;
    ssize_t n = recv(helper->fd, reply, room, MSG_TRUNC);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) /* an empty packet is none of ours: as good as the end */
        return joule_helper_explain(helper, err);
    if ((size_t)n < sizeof(*head) || (size_t)n > room ||
        head->size != (uint32_t)n)
        return joule_helper_reject(helper, "a packet of the wrong size", err);
    if (head->version != helper->version)
        return joule_helper_reject(helper, "another version of the protocol",
                                   err);
    return n;
}

/* Errors that have a meaning of their own here are not those of what it asks. */
static int refused(const struct joule_helper *helper,
                   struct joule_helper_head *head, struct joule_error *err)
{
    int errnum = head->error;

    if (errnum < 0 || errnum == EAGAIN || errnum == ECANCELED)
        errnum = EIO;
    head->text[sizeof(head->text) - 1] = '\0';
    errno = errnum;
    if (head->text[0] == '\0')
        return joule_error_set(err, errnum, "%s cannot be read: %m",
                               helper->asks);
    return joule_error_set(err, errnum, "%s", head->text);
}

int joule_helper_reply(struct joule_helper *helper, uint32_t type, size_t size,
                       int64_t wait_ns, int interrupt_fd, void *reply,
                       size_t room, struct joule_error *err)
{
    int64_t deadline_ns = joule_clock_mono_ns(&joule_clock_system) + wait_ns;
    struct joule_helper_head *head = reply;
    ssize_t n;

    do {
        if (joule_helper_wait(helper, interrupt_fd, deadline_ns) < 0) {
            if (errno == ETIMEDOUT)
                return late(helper, wait_ns, err);
            if (errno == ECANCELED)
                return -1;
            joule_helper_kill(helper);
            return joule_error_set(err, errno,
                                   "cannot wait for the helper process: %m");
        }
        n = receive(helper, reply, room, err);
        if (n < 0)
            return -1;
    } while (n == 0 || head->seq != helper->seq);
    if (head->type != type)
        return joule_helper_reject(helper, "an answer to something else", err);
    if (head->error != 0)
        return refused(helper, head, err);
    if ((size_t)n != size)
        return joule_helper_reject(helper, "an answer of the wrong size", err);
    return 0;
}

/* ---- back-off ---- */

bool joule_helper_is_due(const struct joule_helper *helper, int64_t now_ns)
{
    return helper->failures == 0 || now_ns >= helper->retry_ns;
}

void joule_helper_worked(struct joule_helper *helper)
{
    helper->failures = 0;
}

void joule_helper_failed(struct joule_helper *helper, int64_t now_ns)
{
    int64_t s = INT64_C(1) << helper->failures;

    if (s > JOULE_HELPER_BACKOFF_MAX_S)
        s = JOULE_HELPER_BACKOFF_MAX_S;
    else
        helper->failures++;
    helper->retry_ns = now_ns + s * JOULE_NS_PER_S;
}

void joule_helper_destroy(struct joule_helper *helper)
{
    int saved = errno, status;

    close_socket(helper);
    if (helper->pid > 0 &&
        look_for(helper->pid, &status, GOODBYE_MS) == RUNNING)
        joule_helper_kill(helper);
    helper->pid = 0;
    for (size_t i = 0; i < helper->lost_count; i++) {
        kill_ours(helper->lost[i]);
        look_for(helper->lost[i], &status, KILLED_MS);
    }
    helper->lost_count = 0;
    errno = saved;
}
