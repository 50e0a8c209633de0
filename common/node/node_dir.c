/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/node/node_dir.h"

#include <dirent.h>
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

/* Whether a name in run/slurm-joule is that of a node: a directory, and not the
 * one of CPU frequencies. */
static bool is_node(int dir_fd, const char *name)
{
    struct stat st;

    return name[0] != '.' && strcmp(name, "cpufreq") != 0 &&
           fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(st.st_mode);
}

/* The one to choose of the nodes here: the only one, or [job] if it is one of
 * them; "": none. */
static void find_local(struct joule_nodename *from, int root_fd,
                       char name[NODE_NAME_MAX + 1])
{
    int fd =
        joule_file_open(root_fd, "run/slurm-joule", O_RDONLY | O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    bool has_job = false;

    if (!dir && fd >= 0)
        close(fd);
    while (dir && (entry = readdir(dir))) {
        if (!is_node(dirfd(dir), entry->d_name))
            continue;
        snprintf(name, NODE_NAME_MAX + 1, "%s", entry->d_name);
        from->ret_count++;
        if (from->job && strcmp(from->job, entry->d_name) == 0)
            has_job = true;
    }
    if (dir)
        closedir(dir);
    if (from->ret_count != 1)
        snprintf(name, NODE_NAME_MAX + 1, "%s", has_job ? from->job : "");
}

static int host_name(int root_fd, char *buf, size_t size,
                     struct joule_error *err)
{
    if (joule_file_read(root_fd, "proc/sys/kernel/hostname", buf, size) < 0 &&
        gethostname(buf, size) < 0)
        return joule_error_set(err, errno, "cannot find the node's name: %s",
                               strerror(errno));
    buf[size - 1] = '\0';
    buf[strcspn(buf, ".")] = '\0';
    return 0;
}

int joule_nodename_find(struct joule_nodename *from, int root_fd, char *buf,
                        size_t size, struct joule_error *err)
{
    char local[NODE_NAME_MAX + 1] = "";
    const char *names[] = {from->option, from->slurmd, local, from->conf};

    from->ret_count = 0;
    if (from->is_tool && !from->option)
        find_local(from, root_fd, local);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!names[i] || !*names[i])
            continue;
        if (strlen(names[i]) >= size)
            return joule_error_set(err, ENAMETOOLONG,
                                   "the node name is too long");
        memcpy(buf, names[i], strlen(names[i]) + 1);
        return 0;
    }
    return host_name(root_fd, buf, size, err);
}

int joule_nodedir_file(int dir_fd, const char *node, const char *name,
                       int flags, struct joule_error *err)
{
    char what[32];
    int fd =
        openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (fd < 0)
        return joule_error_set(err, errno == ELOOP ? EPERM : errno,
                               "cannot open the %s of node %s: %s", name, node,
                               strerror(errno));
    snprintf(what, sizeof(what), "the %s", name);
    if (joule_file_check_owner(fd, S_IFREG, S_IWGRP | S_IWOTH, what, err) == 0)
        return fd;
    joule_close(fd);
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
