/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOAD_FIRST 4096 /* bytes; most files of /proc and /sys fit */

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

static void close_keeping_errno(int fd)
{
    int saved = errno;

    close(fd);
    errno = saved;
}

/* Read until the end of the file or until buf[size] is full. */
static ssize_t read_full(int fd, char *buf, size_t size)
{
    size_t len = 0;

    while (len < size) {
        ssize_t n = read(fd, buf + len, size - len);

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
    n = read_full(fd, buf, size);
    /* A full buffer still fits when its last byte is the newline. */
    if (n >= 0 && (size_t)n == size)
        more = read_full(fd, &beyond, 1);
    close_keeping_errno(fd);
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
        n = read_full(fd, buf + len, size - 1 - len);
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
    close_keeping_errno(fd);
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
