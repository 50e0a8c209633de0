/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"

/* The directory of [path], open, and its last part. */
static int open_dir(struct joule_outfile *out, const char *path,
                    struct joule_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

    if (!dir)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        free(dir);
        return joule_error_set(err, EISDIR, "%s names no file", path);
    }
    if (strlen(name) + sizeof("..tmp") > sizeof(out->temporary)) {
        free(dir);
        return joule_error_set(err, ENAMETOOLONG, "the name %s is too long",
                               name);
    }
    strcpy(out->name, name);
    sprintf(out->temporary, ".%s.tmp", name);
    out->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->dir_fd < 0)
        joule_error_set(err, errno, "cannot open the directory %s: %m", dir);
    free(dir);
    return out->dir_fd < 0 ? -1 : 0;
}

/* Whether the temporary name still stands for the file that was locked. */
static bool is_current(const struct joule_outfile *out)
{
    struct stat mine, named;

    return fstat(out->fd, &mine) == 0 &&
           fstatat(out->dir_fd, out->temporary, &named, AT_SYMLINK_NOFOLLOW) ==
               0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

static int check_owner(int fd, const char *name, struct joule_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return joule_error_set(err, errno, "cannot examine %s: %m", name);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
        return joule_error_set(
            err, EPERM, "%s is in the way and is not ours: remove it", name);
    return 0;
}

/* A new one is left alone: ext4 writes a file out when it is closed if it was
 * ever emptied, from nothing, too.  When to do that is our affair. */
int joule_outfile_empty(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_size == 0 ? 0 : ftruncate(fd, 0);
}

static int open_temporary(struct joule_outfile *out, struct joule_error *err)
{
    for (int tries = 0; tries < 8; tries++) {
        out->fd = openat(out->dir_fd, out->temporary,
                         O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                         0600);
        if (out->fd < 0)
            return joule_error_set(err, errno, "cannot create %s: %m",
                                   out->temporary);
        if (check_owner(out->fd, out->temporary, err) < 0)
            return -1;
        if (flock(out->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
            return joule_error_set(err, EBUSY, "another program is writing %s",
                                   out->name);
        if (is_current(out)) {
            fchmod(out->fd, 0600); /* one that was left behind */
            if (joule_outfile_empty(out->fd) == 0)
                return 0;
            return joule_error_set(err, errno, "cannot empty %s: %m",
                                   out->temporary);
        }
        close(out->fd); /* its writer has just finished */
        out->fd = -1;
    }
    return joule_error_set(err, EBUSY, "another program is writing %s",
                           out->name);
}

static void close_all(struct joule_outfile *out)
{
    joule_close(out->fd);
    joule_close(out->dir_fd);
    out->fd = out->dir_fd = -1;
}

static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

int joule_outfile_open(struct joule_outfile *out, const char *path,
                       struct joule_error *err)
{
    memset(out, 0, sizeof(*out));
    out->mode = usual_mode();
    out->fd = out->dir_fd = -1;
    if (strcmp(path, "-") == 0) {
        out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        return out->fd >= 0
                   ? 0
                   : joule_error_set(err, errno, "no standard output: %m");
    }
    if (open_dir(out, path, err) < 0)
        return -1;
    if (open_temporary(out, err) == 0)
        return 0;
    close_all(out);
    return -1;
}

void joule_outfile_limit(struct joule_outfile *out, const struct stat *input)
{
    mode_t may = input->st_mode;
    struct stat st;

    /* The members of another group are others there. */
    if (fstat(out->fd, &st) < 0 || st.st_gid != input->st_gid)
        may = (may & ~(mode_t)070) | (may & 07) << 3;
    out->mode &= may | 0600;
}

/* Not each file system has files without names. */
int joule_outfile_scratch(const struct joule_outfile *out,
                          struct joule_error *err)
{
    const int flags = O_TMPFILE | O_RDWR | O_CLOEXEC;
    int fd = openat(out->dir_fd, ".", flags, 0600);

    if (fd < 0)
        fd = open("/tmp", flags, 0600);
    if (fd < 0)
        joule_error_set(err, errno, "cannot create a temporary file: %m");
    return fd;
}

int joule_outfile_commit(struct joule_outfile *out, struct joule_error *err)
{
    if (out->dir_fd < 0) {
        close_all(out);
        return 0;
    }
    /* Where that fails, the file system has no modes, or nobody else reads. */
    if (out->mode != 0600)
        fchmod(out->fd, out->mode);
    if (fsync(out->fd) < 0)
        joule_error_set(err, errno, "cannot write %s: %m", out->name);
    else if (renameat(out->dir_fd, out->temporary, out->dir_fd, out->name) < 0)
        joule_error_set(err, errno, "cannot put %s in its place: %m",
                        out->name);
    /* A file system that cannot sync a directory has nothing to lose. */
    else if (fsync(out->dir_fd) < 0 && errno != EINVAL && errno != EBADF)
        joule_error_set(err, errno, "cannot write the directory of %s: %m",
                        out->name);
    else {
        close_all(out);
        return 0;
    }
    joule_outfile_abandon(out);
    return -1;
}

void joule_outfile_abandon(struct joule_outfile *out)
{
    int saved = errno;

    if (out->fd >= 0 && out->dir_fd >= 0)
        unlinkat(out->dir_fd, out->temporary, 0);
    close_all(out);
    errno = saved;
}
