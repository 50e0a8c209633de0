/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"

/* Step into [name] below dir_fd, made with [mode] if [create]. */
static int enter(int dir_fd, const char *name, mode_t mode, bool create,
                 struct joule_error *err)
{
    int fd;

    if (create && mkdirat(dir_fd, name, mode) < 0 && errno != EEXIST)
        return joule_error_set(err, errno, "cannot make directory %s: %s", name,
                               strerror(errno));
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        /* A symbolic link is ELOOP or, for O_DIRECTORY, ENOTDIR. */
        return joule_error_set(
            err, errno == ELOOP || errno == ENOTDIR ? EPERM : errno,
            "cannot open directory %s: %s", name, strerror(errno));
    if (joule_file_check_owner(fd, S_IFDIR, S_IWGRP | S_IWOTH, name, err) < 0) {
        int saved = errno;

        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

int joule_rundir_open(int root_fd, const char *name, bool create,
                      struct joule_error *err)
{
    const struct {
        const char *name;
        mode_t mode;
    } steps[] = {{"run", 0755}, {"slurm-joule", 0755}, {name, 0700}};
    int fd = root_fd, next, saved;
    size_t i;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        next = enter(fd, steps[i].name, steps[i].mode, create, err);
        saved = errno;
        if (fd != root_fd)
            close(fd);
        errno = saved;
        if (next < 0)
            return -1;
        fd = next;
    }
    return fd;
}

int joule_rundir_boot_id(int root_fd, char boot_id[JOULE_BOOT_ID_MAX],
                         struct joule_error *err)
{
    memset(boot_id, 0, JOULE_BOOT_ID_MAX);
    if (joule_file_read(root_fd, "proc/sys/kernel/random/boot_id", boot_id,
                        JOULE_BOOT_ID_MAX) < 0)
        return joule_error_set(err, errno,
                               "cannot read /proc/sys/kernel/random/boot_id: "
                               "%s",
                               strerror(errno));
    return 0;
}
