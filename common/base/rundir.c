/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"

#define DIR_FLAGS (O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* It may be of a version that kept everybody out, or made under a umask. */
static int permit(int fd, const char *name, mode_t mode,
                  struct joule_error *err)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && ((st.st_mode & mode) == mode ||
                                fchmod(fd, (st.st_mode | mode) & 07777) == 0))
        return 0;
    return joule_error_set(err, errno, "cannot give directory %s mode %04o: %s",
                           name, (unsigned)mode, strerror(errno));
}

/* Made with [make_mode], and given what it lacks of [mode]. */
static int enter(int dir_fd, const char *name, mode_t make_mode, mode_t mode,
                 bool create, struct joule_error *err)
{
    int fd;

    if (create && mkdirat(dir_fd, name, make_mode) < 0 && errno != EEXIST)
        return joule_error_set(err, errno, "cannot make directory %s: %s", name,
                               strerror(errno));
    fd = openat(dir_fd, name, O_RDONLY | DIR_FLAGS);
    if (fd < 0 && errno == EACCES && !create)
        fd = openat(dir_fd, name, O_PATH | DIR_FLAGS);
    if (fd < 0)
        /* A symbolic link is ELOOP or, for O_DIRECTORY, ENOTDIR. */
        return joule_error_set(
            err, errno == ELOOP || errno == ENOTDIR ? EPERM : errno,
            "cannot open directory %s: %s", name, strerror(errno));
    if (joule_file_check_owner(fd, S_IFDIR, S_IWGRP | S_IWOTH, name, err) ==
            0 &&
        (!create || permit(fd, name, mode, err) == 0))
        return fd;
    joule_close(fd);
    return -1;
}

int joule_rundir_enter(int dir_fd, const char *name, mode_t mode, bool create,
                       struct joule_error *err)
{
    return enter(dir_fd, name, mode, mode, create, err);
}

int joule_rundir_open(int root_fd, const char *name, mode_t mode, bool create,
                      struct joule_error *err)
{
    int run_fd, top_fd, fd;

    /* /run is not ours to change. */
    run_fd = enter(root_fd, "run", 0755, 0, create, err);
    if (run_fd < 0)
        return -1;
    top_fd = enter(run_fd, "slurm-joule", 0755, 0755, create, err);
    joule_close(run_fd);
    if (top_fd < 0)
        return -1;
    fd = enter(top_fd, name, mode, mode, create, err);
    joule_close(top_fd);
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
