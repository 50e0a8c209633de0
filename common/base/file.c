/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOAD_FIRST 4096 /* bytes; most files of /proc and /sys fit */

void joule_close(int fd)
{
    int saved = errno;

    if (fd >= 0)
        close(fd);
    errno = saved;
}

int joule_file_open(int root_fd, const char *path, int flags)
{
    int fd;

    /* There is no mode parameter: files are not created through here. */
    if (path[0] == '/' || (flags & O_CREAT)) {
        errno = EINVAL;
        return -1;
    }
    do {
        fd = openat(root_fd, path, flags | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

ssize_t joule_file_fill(int fd, void *buf, size_t size)
{
    size_t len = 0;

    while (len < size) {
        ssize_t n = read(fd, (char *)buf + len, size - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

/* Drop one trailing newline, refuse NUL bytes; buf has room for the end. */
static ssize_t finish_text(char *buf, size_t len)
{
    if (len > 0 && buf[len - 1] == '\n')
        len--;
    if (memchr(buf, '\0', len)) {
        errno = EINVAL;
        return -1;
    }
    buf[len] = '\0';
    return (ssize_t)len;
}

ssize_t joule_file_read(int root_fd, const char *path, char *buf, size_t size)
{
    char beyond;
    ssize_t n, more = 0;
    int fd = joule_file_open(root_fd, path, O_RDONLY);

    if (fd < 0)
        return -1;
    n = joule_file_fill(fd, buf, size);
    /* A full buffer still fits when its last byte is the newline. */
    if (n >= 0 && (size_t)n == size)
        more = joule_file_fill(fd, &beyond, 1);
    joule_close(fd);
    if (n < 0 || more < 0)
        return -1;
    if ((size_t)n == size && (more > 0 || n == 0 || buf[n - 1] != '\n')) {
        errno = EFBIG;
        return -1;
    }
    return finish_text(buf, (size_t)n);
}

char *joule_file_load(int root_fd, const char *path, size_t max,
                      size_t *ret_len)
{
    char *buf = NULL, *bigger;
    size_t len = 0, size = 0;
    ssize_t n;
    int saved;
    int fd = joule_file_open(root_fd, path, O_RDONLY);

    if (fd < 0)
        return NULL;
    if (max > (size_t)SSIZE_MAX / 2)
        max = (size_t)SSIZE_MAX / 2;
    do {
        /* One byte above max tells a file of max bytes from a longer one; one
         * more is for the NUL. */
        size = size == 0 ? LOAD_FIRST : size * 2;
        if (size > max + 2)
            size = max + 2;
        bigger = realloc(buf, size);
        if (!bigger)
            goto fail;
        buf = bigger;
        n = joule_file_fill(fd, buf + len, size - 1 - len);
        if (n < 0)
            goto fail;
        len += (size_t)n;
        if (len > max) {
            errno = EFBIG;
            goto fail;
        }
    } while (len == size - 1);
    n = finish_text(buf, len);
    if (n < 0)
        goto fail;
    joule_close(fd);
    if (ret_len)
        *ret_len = (size_t)n;
    return buf;
fail:
    saved = errno;
    close(fd);
    free(buf);
    errno = saved;
    return NULL;
}

int joule_file_check_owner(int fd, mode_t type, mode_t forbidden,
                           const char *what, struct joule_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return joule_error_set(err, errno, "cannot examine %s: %m", what);
    if ((st.st_mode & S_IFMT) != type)
        return joule_error_set(err, EPERM, "%s is not a %s", what,
                               type == S_IFDIR ? "directory" : "regular file");
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return joule_error_set(err, EPERM, "%s belongs to user %u, not to root",
                               what, (unsigned)st.st_uid);
    if (type == S_IFDIR && (st.st_mode & S_ISVTX))
        forbidden &= (mode_t) ~(S_IWGRP | S_IWOTH);
    if (st.st_mode & forbidden & (S_IWGRP | S_IWOTH))
        return joule_error_set(err, EPERM,
                               "%s may be written by others (mode %04o)", what,
                               (unsigned)(st.st_mode & 07777));
    if (st.st_mode & forbidden)
        return joule_error_set(err, EPERM,
                               "%s may be read by others (mode %04o)", what,
                               (unsigned)(st.st_mode & 07777));
    if (type == S_IFREG && st.st_nlink != 1)
        return joule_error_set(err, EPERM, "%s has more than one name", what);
    return 0;
}

/* Open [name] below dir_fd and examine it; the first [shown] bytes of [path]
 * name it. */
static int open_checked(int dir_fd, const char *name, mode_t type,
                        mode_t forbidden, const char *path, size_t shown,
                        struct joule_error *err)
{
    char what[PATH_MAX];
    int fd, flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

    memcpy(what, path, shown);
    what[shown] = '\0';
    if (type == S_IFDIR)
        flags |= O_DIRECTORY;
    fd = joule_file_open(dir_fd, name, flags);
    if (fd < 0) {
        struct stat st;
        int errnum = errno;

        /* A symbolic link is ELOOP or, for O_DIRECTORY, ENOTDIR. */
        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(st.st_mode))
            return joule_error_set(err, EPERM,
                                   "%s is a symbolic link: give the path "
                                   "without it",
                                   what);
        errno = errnum;
        return joule_error_set(err, errnum, "cannot open %s: %m", what);
    }
    if (joule_file_check_owner(fd, type, forbidden, what, err) < 0) {
        joule_close(fd);
        return -1;
    }
    return fd;
}

int joule_file_open_trusted(int root_fd, const char *path, mode_t forbidden,
                            struct joule_error *err)
{
    char name[NAME_MAX + 1];
    const char *at = path;
    int dir_fd = root_fd;

    if (path[0] != '/' || strlen(path) >= PATH_MAX)
        return joule_error_set(err, EINVAL, "%s is not an absolute path",
                               *path ? path : "\"\"");
    for (;;) {
        size_t len;
        bool last;
        int fd;

        at += strspn(at, "/");
        len = strcspn(at, "/");
        last = at[len] == '\0';
        if (len == 0 || len > NAME_MAX || strncmp(at, "..", len) == 0) {
            if (dir_fd != root_fd)
                close(dir_fd);
            return joule_error_set(err, EINVAL,
                                   "%s is not a plain absolute path", path);
        }
        memcpy(name, at, len);
        name[len] = '\0';
        at += len;
        fd = open_checked(dir_fd, name, last ? S_IFREG : S_IFDIR,
                          last ? forbidden : S_IWGRP | S_IWOTH, path,
                          (size_t)(at - path), err);
        if (dir_fd != root_fd)
            joule_close(dir_fd);
        if (fd < 0 || last)
            return fd;
        dir_fd = fd;
    }
}
