/* SPDX-License-Identifier: GPL-2.0-or-later */
#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>

#include "tests/sim/msrfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/parse.h"

#define FILE_SIZE INT64_C(0x100000000)
#define READ_MAX  65536

struct sim_msrfs {
    struct sim_node *node;
    struct fuse_session *session;
    struct fuse_buf buf;
    bool mounted;
};

/* The root is inode 1, CPU i of the machine has directory 2 + 2i and file
 * 3 + 2i. */
static fuse_ino_t dir_ino(size_t cpu)
{
    return 2 + 2 * cpu;
}

static bool ino_is_dir(fuse_ino_t ino)
{
    return ino == FUSE_ROOT_ID || ino % 2 == 0;
}

static size_t ino_cpu(fuse_ino_t ino)
{
    return (ino - 2) / 2;
}

static const struct sim_machine *req_machine(fuse_req_t req)
{
    const struct sim_msrfs *fs = fuse_req_userdata(req);

    return fs->node->machine;
}

static bool ino_valid(fuse_req_t req, fuse_ino_t ino)
{
    return ino == FUSE_ROOT_ID || ino_cpu(ino) < req_machine(req)->cpu_count;
}

static struct stat ino_stat(fuse_ino_t ino)
{
    if (ino_is_dir(ino))
        return (struct stat){
            .st_ino = ino, .st_mode = S_IFDIR | 0755, .st_nlink = 2};
    return (struct stat){.st_ino = ino,
                         .st_mode = S_IFREG | 0600,
                         .st_nlink = 1,
                         .st_size = FILE_SIZE};
}

static void fs_init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    /* Answers are 8 bytes: pipes would only cost. */
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
                              FUSE_CAP_SPLICE_MOVE);
}

static void fs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    const struct sim_machine *m = req_machine(req);
    struct fuse_entry_param entry = {.ino = 0};
    uint64_t number;

    if (parent == FUSE_ROOT_ID) {
        if (!joule_parse_u64(name, 0, UINT32_MAX, &number))
            for (size_t i = 0; i < m->cpu_count; i++)
                if (m->cpus[i].number == number && m->cpus[i].online)
                    entry.ino = dir_ino(i);
    } else if (ino_is_dir(parent) && !strcmp(name, "msr")) {
        entry.ino = parent + 1;
    }
    if (!entry.ino) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    entry.attr = ino_stat(entry.ino);
    fuse_reply_entry(req, &entry);
}

static void fs_getattr(fuse_req_t req, fuse_ino_t ino,
                       struct fuse_file_info *fi)
{
    struct stat st = ino_stat(ino);

    (void)fi;
    if (ino_valid(req, ino))
        fuse_reply_attr(req, &st, 0);
    else
        fuse_reply_err(req, ENOENT);
}

/* Entries are numbered: 0 ".", 1 "..", then "msr" or the CPUs. */
static bool dir_entry(const struct sim_machine *m, fuse_ino_t dir, size_t at,
                      char name[16], fuse_ino_t *ret_ino)
{
    if (at < 2) {
        strcpy(name, at ? ".." : ".");
        *ret_ino = at ? FUSE_ROOT_ID : dir;
        return true;
    }
    at -= 2;
    if (dir != FUSE_ROOT_ID) {
        strcpy(name, "msr");
        *ret_ino = dir + 1;
        return at == 0;
    }
    if (at >= m->cpu_count)
        return false;
    snprintf(name, 16, "%u", m->cpus[at].number);
    *ret_ino = m->cpus[at].online ? dir_ino(at) : 0;
    return true;
}

static void fs_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    char *buf = malloc(size), name[16];
    fuse_ino_t entry_ino;
    size_t used = 0;

    (void)fi;
    if (!buf) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    for (size_t at = (size_t)off;
         dir_entry(req_machine(req), ino, at, name, &entry_ino); at++) {
        struct stat st;
        size_t len;

        if (!entry_ino)
            continue; /* an offline CPU */
        st = ino_stat(entry_ino);
        len = fuse_add_direntry(req, buf + used, size - used, name, &st,
                                (off_t)at + 1);
        if (len > size - used)
            break;
        used += len;
    }
    fuse_reply_buf(req, buf, used);
    free(buf);
}

static void fs_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    if (ino_is_dir(ino)) {
        fuse_reply_err(req, EISDIR);
        return;
    }
    fi->direct_io = 1;
    fuse_reply_open(req, fi);
}

static void fs_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    struct sim_msrfs *fs = fuse_req_userdata(req);
    uint64_t values[READ_MAX / 8];
    size_t count;

    (void)fi;
    if (size % 8) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    if (size > READ_MAX)
        size = READ_MAX;
    for (count = 0; count < size / 8; count++) {
        int rc = EIO;

        if (off >= 0 && off <= UINT32_MAX)
            rc = sim_node_rdmsr(fs->node, ino_cpu(ino), (uint32_t)off,
                                &values[count]);
        if (rc && !count) {
            fuse_reply_err(req, rc);
            return;
        }
        if (rc)
            break;
    }
    fuse_reply_buf(req, (const char *)values, count * 8);
}

static void fs_write(fuse_req_t req, fuse_ino_t ino, const char *buf,
                     size_t size, off_t off, struct fuse_file_info *fi)
{
    (void)ino;
    (void)buf;
    (void)size;
    (void)off;
    (void)fi;
    fuse_reply_err(req, EPERM);
}

static const struct fuse_lowlevel_ops operations = {
    .init = fs_init,
    .lookup = fs_lookup,
    .getattr = fs_getattr,
    .readdir = fs_readdir,
    .open = fs_open,
    .read = fs_read,
    .write = fs_write,
};

/* A nodesim that was killed leaves a mount on which everything is ENOTCONN. */
static void dead_mount_remove(const char *path)
{
    struct stat st;

    if (stat(path, &st) && errno == ENOTCONN)
        umount2(path, MNT_DETACH);
}

struct sim_msrfs *sim_msrfs_create(const char *path, struct sim_node *node,
                                   struct joule_error *err)
{
    char *argv[] = {"nodesim", "-o",
                    "fsname=nodesim,subtype=msr,default_permissions", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, argv);
    struct sim_msrfs *fs = calloc(1, sizeof(*fs));
    int fd;

    if (!fs) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    fs->node = node;
    fs->session = fuse_session_new(&args, &operations, sizeof(operations), fs);
    fuse_opt_free_args(&args);
    if (!fs->session) {
        joule_error_set(err, ENOMEM, "cannot create a FUSE session");
        goto fail;
    }
    dead_mount_remove(path);
    errno = 0;
    if (fuse_session_mount(fs->session, path)) {
        joule_error_set(err, errno ? errno : EPERM,
                        "cannot mount FUSE at %s (root and /dev/fuse needed)",
                        path);
        goto fail;
    }
    fs->mounted = true;
    fd = fuse_session_fd(fs->session);
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
        fcntl(fd, F_SETFD, FD_CLOEXEC)) {
        joule_error_set(err, errno, "fcntl of the FUSE device: %m");
        goto fail;
    }
    return fs;
fail:
    sim_msrfs_destroy(fs);
    return NULL;
}

void sim_msrfs_destroy(struct sim_msrfs *fs)
{
    int saved = errno;

    if (!fs)
        return;
    if (fs->mounted)
        fuse_session_unmount(fs->session);
    if (fs->session)
        fuse_session_destroy(fs->session);
    free(fs->buf.mem);
    free(fs);
    errno = saved;
}

int sim_msrfs_fd(const struct sim_msrfs *fs)
{
    return fuse_session_fd(fs->session);
}

int sim_msrfs_serve(struct sim_msrfs *fs)
{
    int rc = fuse_session_receive_buf(fs->session, &fs->buf);

    if (rc > 0) {
        fuse_session_process_buf(fs->session, &fs->buf);
        rc = 0;
    } else if (rc == 0) {
        rc = -ENODEV;
    }
    if (rc == -EINTR || rc == -EAGAIN)
        rc = 0;
    if (!rc && fuse_session_exited(fs->session))
        rc = -ENODEV;
    errno = -rc;
    return rc ? -1 : 0;
}
