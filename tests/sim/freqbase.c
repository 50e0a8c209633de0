/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/freqbase.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sim_freqbase {
    int dir_fd;
    char **paths; /* by number; "." is the first */
    size_t count, space;
};

struct sim_freqbase *sim_freqbase_create(int dir_fd)
{
    struct sim_freqbase *base = calloc(1, sizeof(*base));

    if (!base)
        return NULL;
    base->dir_fd = dir_fd;
    base->paths = calloc(16, sizeof(*base->paths));
    if (base->paths)
        base->paths[0] = strdup(".");
    if (!base->paths || !base->paths[0]) {
        base->dir_fd = -1;
        sim_freqbase_destroy(base);
        errno = ENOMEM;
        return NULL;
    }
    base->count = 1;
    base->space = 16;
    return base;
}

void sim_freqbase_destroy(struct sim_freqbase *base)
{
    if (!base)
        return;
    for (size_t i = 0; i < base->count; i++)
        free(base->paths[i]);
    free(base->paths);
    if (base->dir_fd >= 0)
        close(base->dir_fd);
    free(base);
}

static int path_add(struct sim_freqbase *base, char *path, size_t *ret_node)
{
    if (base->count == base->space) {
        size_t space = base->space * 2;
        char **paths = realloc(base->paths, space * sizeof(*paths));

        if (!paths) {
            free(path);
            return ENOMEM;
        }
        base->paths = paths;
        base->space = space;
    }
    base->paths[base->count] = path;
    *ret_node = base->count++;
    return 0;
}

int sim_freqbase_lookup(struct sim_freqbase *base, size_t parent,
                        const char *name, size_t *ret_node)
{
    struct stat st;
    char *path;

    if (base->dir_fd < 0)
        return ENOENT;
    if (asprintf(&path, "%s/%s", base->paths[parent], name) < 0)
        return ENOMEM;
    if (fstatat(base->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW)) {
        free(path);
        return errno;
    }
    for (size_t i = 1; i < base->count; i++)
        if (!strcmp(base->paths[i], path)) {
            free(path);
            *ret_node = i;
            return 0;
        }
    return path_add(base, path, ret_node);
}

int sim_freqbase_stat(const struct sim_freqbase *base, size_t node,
                      struct stat *ret_st)
{
    if (base->dir_fd < 0 || node >= base->count)
        return ENOENT;
    return fstatat(base->dir_fd, base->paths[node], ret_st, AT_SYMLINK_NOFOLLOW)
               ? errno
               : 0;
}

int sim_freqbase_readlink(const struct sim_freqbase *base, size_t node,
                          char *buf, size_t size)
{
    ssize_t len = readlinkat(base->dir_fd, base->paths[node], buf, size - 1);

    if (len < 0)
        return errno;
    buf[len] = '\0';
    return 0;
}

int sim_freqbase_read(const struct sim_freqbase *base, size_t node, char *buf,
                      size_t size, off_t off, size_t *ret_len)
{
    int fd = openat(base->dir_fd, base->paths[node],
                    O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : pread(fd, buf, size, off);
    int error = errno;

    if (fd >= 0)
        close(fd);
    if (len < 0)
        return error;
    *ret_len = (size_t)len;
    return 0;
}

int sim_freqbase_list(const struct sim_freqbase *base, size_t node,
                      void (*entry)(void *arg, const char *name, mode_t type),
                      void *arg)
{
    struct dirent *e;
    DIR *dir;
    int fd;

    if (base->dir_fd < 0)
        return ENOENT;
    fd = openat(base->dir_fd, base->paths[node],
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int error = errno;

        if (fd >= 0)
            close(fd);
        return error;
    }
    while ((e = readdir(dir)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            entry(arg, e->d_name, DTTOIF(e->d_type));
    closedir(dir);
    return 0;
}
