/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"
#include "common/base/helper.h"

#define DETACH_MS 200

/* The process that was started goes at once; its child stays. */
static void reap(pid_t pid)
{
    for (int i = 0; i < DETACH_MS && waitpid(pid, NULL, WNOHANG) == 0; i++)
        joule_sleep_ns(JOULE_NS_PER_MS);
}

int joule_keeper_start(const char *program,
                       const struct joule_control_config *control,
                       int64_t period_ns, const char *log,
                       struct joule_error *err)
{
    struct joule_keeper_config config;
    struct joule_helper child;
    ssize_t n;

    memset(&config, 0, sizeof(config));
    config.version = JOULE_KEEPER_VERSION;
    config.size = sizeof(config);
    config.period_ns = period_ns;
    config.control = *control;
    snprintf(config.log, sizeof(config.log), "%s", log);
    joule_helper_init(&child);
    if (joule_helper_start(&child, program, err) < 0)
        return -1;
    n = send(child.fd, &config, sizeof(config), MSG_NOSIGNAL);
    if (n != sizeof(config)) {
        joule_error_set(err, EPIPE, "%s has ended at once", program);
        joule_helper_destroy(&child);
        errno = EPIPE;
        return -1;
    }
    reap(child.pid);
    return child.fd;
}

struct keeper {
    struct joule_control control;
    bool is_unreadable; /* the journal: another try comes to nothing */
    void (*say)(void *arg, const char *text);
    void *arg;
    char said[JOULE_ERROR_MAX];
};

static void say_once(struct keeper *w, const char *text)
{
    if (strcmp(w->said, text) == 0)
        return;
    snprintf(w->said, sizeof(w->said), "%s", text);
    w->say(w->arg, text);
}

/* Whether another look may be of use: something is on record, or may be. */
static bool look(struct keeper *w)
{
    struct joule_control_recovery r;
    struct joule_error err = {""};

    w->is_unreadable = false;
    if (joule_control_recover(&w->control, &r, &err) < 0) {
        w->is_unreadable = errno == EBADMSG || errno == EPERM;
        say_once(w, err.text);
        return !w->is_unreadable;
    }
    if (r.restored > 0) {
        joule_error_set(&err, 0,
                        "put back the CPU frequencies of %u polic%s that steps "
                        "left behind",
                        r.restored, r.restored == 1 ? "y" : "ies");
        w->say(w->arg, err.text);
    }
    err = r.notes.first;
    if (r.failed > 0)
        joule_error_set(&err, 0, "%u polic%s not back yet: %s", r.failed,
                        r.failed == 1 ? "y is" : "ies are", r.notes.first.text);
    if (r.notes.count > 0)
        say_once(w, err.text);
    else
        w->said[0] = '\0';
    return w->control.store.dir_fd >= 0 &&
           joule_journal_file_exists(&w->control.store);
}

void joule_keeper_run(int fd, int root_fd,
                      const struct joule_keeper_config *config,
                      void (*say)(void *arg, const char *text), void *arg)
{
    struct keeper w = {.say = say, .arg = arg};
    bool is_alone = false;

    joule_control_init(&w.control, root_fd, &config->control);
    while (look(&w) || !is_alone) {
        /* Nothing is ever sent: what can be read is the end. */
        struct pollfd end = {.fd = is_alone ? -1 : fd, .events = POLLIN};

        if (poll(&end, 1, (int)(config->period_ns / JOULE_NS_PER_MS)) > 0)
            is_alone = true;
    }
    if (w.is_unreadable)
        say(arg, "slurmd has ended, and nobody can read what CPU frequencies "
                 "were before: they stay as they are");
    joule_control_destroy(&w.control);
}

/* ---- slurmd's log ---- */

int joule_keeper_log_path(const char *pattern, const char *host,
                          const char *node, char *buf, size_t size)
{
    size_t used = 0;

    while (*pattern) {
        const char *piece = pattern;
        size_t len = 1;

        if (pattern[0] == '%' && (pattern[1] == 'h' || pattern[1] == 'n')) {
            piece = pattern[1] == 'h' ? host : node;
            len = strlen(piece);
            pattern++;
        }
        pattern++;
        if (len >= size - used) {
            buf[0] = '\0';
            return -1;
        }
        memcpy(buf + used, piece, len);
        used += len;
    }
    buf[used] = '\0';
    return 0;
}

/* slurmd's own form, LogTimeFormat=iso8601_ms. */
static int format(char *line, size_t size, const char *text)
{
    int64_t ns = joule_clock_wall_ns(&joule_clock_system);
    time_t now = (time_t)(ns / JOULE_NS_PER_S);
    char when[32] = "";
    struct tm tm;

    if (localtime_r(&now, &tm))
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
    return snprintf(line, size, "[%s.%03u] joule_cpufreq: %s\n", when,
                    (unsigned)(ns % JOULE_NS_PER_S / JOULE_NS_PER_MS), text);
}

int joule_keeper_log(int root_fd, const char *path, const char *text,
                     struct joule_error *err)
{
    char line[JOULE_ERROR_MAX + 64];
    int length = format(line, sizeof(line), text);
    int rc = 0;
    int fd;

    if (path[0] != '/')
        return joule_error_set(err, EINVAL, "slurmd has no log file");
    fd = joule_file_open(root_fd, path + strspn(path, "/"),
                         O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK |
                             O_NOCTTY);
    if (fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %m", path);
    if (joule_file_check_owner(fd, S_IFREG, S_IWGRP | S_IWOTH, path, err) < 0)
        rc = -1;
    else if (length <= 0 || (size_t)length >= sizeof(line))
        rc = joule_error_set(err, EINVAL, "the line is too long");
    else if (write(fd, line, (size_t)length) != length)
        rc = joule_error_set(err, EIO, "cannot write %s", path);
    close(fd);
    return rc;
}
