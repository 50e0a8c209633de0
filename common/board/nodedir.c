/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/board/nodedir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"

#define NODE_NAME_MAX 255

int joule_nodedir_open(int root_fd, const char *node, bool create,
                       char boot_id[JOULE_BOOT_ID_MAX], struct joule_error *err)
{
    if (joule_rundir_boot_id(root_fd, boot_id, err) < 0)
        return -1;
    if (!*node || *node == '.' || strchr(node, '/') ||
        strlen(node) > NODE_NAME_MAX)
        return joule_error_set(err, EINVAL, "\"%s\" is not a node name", node);
    return joule_rundir_open(root_fd, node, 0711, create, err);
}

int joule_nodedir_file(int dir_fd, const char *node, const char *name,
                       int flags, struct joule_error *err)
{
    char what[32];
    int saved, fd = openat(dir_fd, name,
                           flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (fd < 0)
        return joule_error_set(err, errno == ELOOP ? EPERM : errno,
                               "cannot open the %s of node %s: %s", name, node,
                               strerror(errno));
    snprintf(what, sizeof(what), "the %s", name);
    if (joule_file_check_owner(fd, S_IFREG, S_IWGRP | S_IWOTH, what, err) == 0)
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

int joule_nodedir_reader(int dir_fd, const char *node, const char *name,
                         bool *ret_writable, struct joule_error *err)
{
    int fd = joule_nodedir_file(dir_fd, node, name, O_RDWR, err);

    *ret_writable = fd >= 0;
    if (fd < 0 && (errno == EACCES || errno == EROFS))
        fd = joule_nodedir_file(dir_fd, node, name, O_RDONLY, err);
    return fd;
}
