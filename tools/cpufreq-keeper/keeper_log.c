/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/cpufreq-keeper/keeper_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/file.h"

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
        return joule_error_set(err, errno, "cannot open %s: %s", path,
                               strerror(errno));
    if (joule_file_check_owner(fd, S_IFREG, S_IWGRP | S_IWOTH, path, err) < 0)
        rc = -1;
    else if (length <= 0 || (size_t)length >= sizeof(line))
        rc = joule_error_set(err, EINVAL, "the line is too long");
    else if (write(fd, line, (size_t)length) != length)
        rc = joule_error_set(err, EIO, "cannot write %s", path);
    close(fd);
    return rc;
}
