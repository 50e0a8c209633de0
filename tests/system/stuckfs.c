/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stuckfs - a file system that stops to answer when its process is stopped.
 *
 *   stuckfs [--squash] DIRECTORY MOUNTPOINT
 *
 * Shows DIRECTORY at MOUNTPOINT to all users, with the rights and owners that
 * its files have.  kill -STOP makes every call to it wait, kill -CONT goes on.
 *
 * --squash: as an NFS server with root_squash, which does what users ask for
 * with their rights, and what root asks for with those of nobody.
 */
#define FUSE_USE_VERSION 35

#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#define NOBODY 65534

static int root_fd;
static bool squash;

/* Below root_fd: paths of FUSE begin with a slash. */
static const char *below(const char *path)
{
    return path[1] ? path + 1 : ".";
}

static int result(int rc)
{
    return rc < 0 ? -errno : 0;
}

/* For the thread: the rights of whoever asks. */
static void become_caller(void)
{
    const struct fuse_context *context = fuse_get_context();

    if (!squash)
        return;
    setfsgid(context->uid ? context->gid : NOBODY);
    setfsuid(context->uid ? context->uid : NOBODY);
}

/* For the thread: those of root again, whomever it worked for before.  The
 * attributes of a file are told to anybody: the kernel has looked at the rights
 * on the way to it (default_permissions). */
static void become_root(void)
{
    if (!squash)
        return;
    setfsuid(0);
    setfsgid(0);
}

/* To whoever asked. */
static void give(const char *path)
{
    const struct fuse_context *context = fuse_get_context();

    if (!squash && fchownat(root_fd, below(path), context->uid, context->gid,
                 AT_SYMLINK_NOFOLLOW) < 0)
        perror(path);
}

static int stuck_getattr(const char *path, struct stat *st,
                         struct fuse_file_info *info)
{
    (void)info;
    become_root();
    return result(fstatat(root_fd, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int stuck_mkdir(const char *path, mode_t mode)
{
    int rc;

    become_caller();
    rc = result(mkdirat(root_fd, below(path), mode));
    if (rc == 0)
        give(path);
    return rc;
}

static int stuck_unlink(const char *path)
{
    become_caller();
    return result(unlinkat(root_fd, below(path), 0));
}

static int stuck_rename(const char *from, const char *to, unsigned flags)
{
    if (flags)
        return -EINVAL;
    become_caller();
    return result(renameat(root_fd, below(from), root_fd, below(to)));
}

static int stuck_chown(const char *path, uid_t uid, gid_t gid,
                       struct fuse_file_info *info)
{
    (void)info;
    become_caller();
    return result(
        fchownat(root_fd, below(path), uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int stuck_truncate(const char *path, off_t size,
                          struct fuse_file_info *info)
{
    (void)path;
    return info ? result(ftruncate((int)info->fh, size)) : -EINVAL;
}

static int stuck_open(const char *path, struct fuse_file_info *info)
{
    int fd;

    become_caller();
    fd = openat(root_fd, below(path), info->flags & ~O_CREAT, 0);
    if (fd < 0)
        return -errno;
    info->fh = (uint64_t)fd;
    return 0;
}

static int stuck_create(const char *path, mode_t mode,
                        struct fuse_file_info *info)
{
    int fd;

    become_caller();
    fd = openat(root_fd, below(path), info->flags | O_CREAT, mode);
    if (fd < 0)
        return -errno;
    give(path);
    info->fh = (uint64_t)fd;
    return 0;
}

static int stuck_read(const char *path, char *buf, size_t size, off_t at,
                      struct fuse_file_info *info)
{
    ssize_t n = pread((int)info->fh, buf, size, at);

    (void)path;
    return n < 0 ? -errno : (int)n;
}

static int stuck_write(const char *path, const char *buf, size_t size,
                       off_t at, struct fuse_file_info *info)
{
    ssize_t n = pwrite((int)info->fh, buf, size, at);

    (void)path;
    return n < 0 ? -errno : (int)n;
}

static int stuck_release(const char *path, struct fuse_file_info *info)
{
    (void)path;
    close((int)info->fh);
    return 0;
}

static const struct fuse_operations operations = {
    .getattr = stuck_getattr,
    .mkdir = stuck_mkdir,
    .unlink = stuck_unlink,
    .rename = stuck_rename,
    .chown = stuck_chown,
    .truncate = stuck_truncate,
    .open = stuck_open,
    .create = stuck_create,
    .read = stuck_read,
    .write = stuck_write,
    .release = stuck_release,
};

int main(int argc, char **argv)
{
    char *fuse_argv[] = {argv[0], (char *)"-f", (char *)"-o",
                         (char *)"allow_other,default_permissions", NULL,
                         NULL};

    if (argc == 4 && strcmp(argv[1], "--squash") == 0) {
        squash = true;
        argv++;
        argc--;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: stuckfs [--squash] DIRECTORY MOUNTPOINT\n");
        return 2;
    }
    if (squash && setgroups(0, NULL) < 0) {
        perror("setgroups");
        return 1;
    }
    root_fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        perror(argv[1]);
        return 1;
    }
    umask(0);
    fuse_argv[4] = argv[2];
    return fuse_main(5, fuse_argv, &operations, NULL);
}
