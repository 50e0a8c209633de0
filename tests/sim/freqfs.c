/* SPDX-License-Identifier: GPL-2.0-or-later */
#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>

#include "tests/sim/freqfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/sim/freqnode.h"
#include "tests/sim/fusemount.h"

/*
 * What an inode number stands for never changes, and neither do modes and
 * sizes: the kernel may keep them.  It may keep names only of what never goes;
 * others it looks up again, and finds them missing.
 */
#define KEPT_S 3600

struct sim_freqfs {
    struct sim_freqfs_options opt;
    struct sim_freqtree tree;
    struct sim_fusemount *mount;
};

static double attributes_kept_s(struct sim_freqnode node)
{
    return node.kind == SIM_NODE_BASE ? 0 : KEPT_S;
}

static double name_kept_s(struct sim_freqnode node)
{
    switch (node.kind) {
    case SIM_NODE_DIR:
        return node.dir == SIM_DIR_POLICY ? 0 : KEPT_S;
    case SIM_NODE_FILE:
        return sim_freqnode_file(node)->present ? 0 : KEPT_S;
    default:
        return 0;
    }
}

static void fs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct sim_freqfs *fs = fuse_req_userdata(req);
    struct fuse_entry_param entry = {.ino = 0};
    struct sim_freqnode node;
    int rc = sim_freqnode_find(&fs->tree, sim_freqnode_of(parent), name, &node);

    if (!rc)
        rc = sim_freqnode_stat(&fs->tree, node, &entry.attr);
    entry.ino = entry.attr.st_ino;
    if (rc) {
        fuse_reply_err(req, rc);
        return;
    }
    entry.entry_timeout = name_kept_s(node);
    entry.attr_timeout = attributes_kept_s(node);
    fuse_reply_entry(req, &entry);
}

/* Of a file that is gone, who has it open still gets these. */
static void fs_getattr(fuse_req_t req, fuse_ino_t ino,
                       struct fuse_file_info *fi)
{
    struct sim_freqfs *fs = fuse_req_userdata(req);
    struct stat st;
    int rc = sim_freqnode_attributes(&fs->tree, sim_freqnode_of(ino), &st);

    (void)fi;
    if (rc)
        fuse_reply_err(req, rc);
    else
        fuse_reply_attr(req, &st, attributes_kept_s(sim_freqnode_of(ino)));
}

/* O_TRUNC is accepted and does nothing, as in sysfs. */
static void fs_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr,
                       int what, struct fuse_file_info *fi)
{
    (void)attr;
    if (what & ~(FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MTIME |
                 FUSE_SET_ATTR_CTIME | FUSE_SET_ATTR_MTIME_NOW))
        fuse_reply_err(req, EPERM);
    else
        fs_getattr(req, ino, fi);
}

static void fs_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct sim_freqfs *fs = fuse_req_userdata(req);
    char target[SIM_FREQ_PAGE];
    int rc = sim_freqnode_readlink(&fs->tree, sim_freqnode_of(ino), target,
                                   sizeof(target));

    if (rc)
        fuse_reply_err(req, rc);
    else
        fuse_reply_readlink(req, target);
}

static void fs_opendir(fuse_req_t req, fuse_ino_t ino,
                       struct fuse_file_info *fi)
{
    struct sim_freqfs *fs = fuse_req_userdata(req);
    struct stat st;
    int rc = sim_freqnode_stat(&fs->tree, sim_freqnode_of(ino), &st);

    if (rc)
        fuse_reply_err(req, rc);
    else
        fuse_reply_open(req, fi);
}

static void fs_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    struct sim_freqfs *fs = fuse_req_userdata(req);
    char *buf = malloc(size);

    (void)fi;
    if (!buf) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    fuse_reply_buf(req, buf,
                   sim_freqnode_list(&fs->tree, sim_freqnode_of(ino), req, off,
                                     buf, size));
    free(buf);
}

static void fs_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct sim_freqfs *fs = fuse_req_userdata(req);
    struct sim_freqnode n = sim_freqnode_of(ino);
    bool write = (fi->flags & O_ACCMODE) != O_RDONLY;
    struct stat st;
    int rc = sim_freqnode_stat(&fs->tree, n, &st);

    if (!rc && write && *fs->opt.readonly)
        rc = EROFS;
    else if (!rc && write &&
             (n.kind == SIM_NODE_BASE || !sim_freqnode_file(n)->store))
        rc = EACCES;
    if (rc) {
        fuse_reply_err(req, rc);
        return;
    }
    fi->direct_io = 1;
    fuse_reply_open(req, fi);
}

static void fs_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    struct sim_freqfs *fs = fuse_req_userdata(req);
    struct sim_freqnode n = sim_freqnode_of(ino);
    char buf[SIM_FREQ_PAGE], path[128];
    size_t len = 0;
    ssize_t rc;

    (void)fi;
    if (n.kind == SIM_NODE_BASE) {
        rc = -sim_freqbase_read(fs->tree.base, n.at, buf,
                                size < sizeof(buf) ? size : sizeof(buf), off,
                                &len);
        off = 0;
    } else {
        sim_freq_path_print(fs->tree.freq, n.dir, n.i, sim_freqnode_file(n),
                            path, sizeof(path));
        rc = -sim_freqfault_strike(fs->opt.fault, path, false);
        if (!rc)
            rc = sim_freq_show(fs->tree.freq, n.dir, n.i, sim_freqnode_file(n),
                               buf);
        len = rc > 0 ? (size_t)rc : 0;
    }
    if (rc < 0) {
        fuse_reply_err(req, (int)-rc);
        return;
    }
    if (off < 0 || (size_t)off > len)
        off = (off_t)len;
    len -= (size_t)off;
    fuse_reply_buf(req, buf + off, len < size ? len : size);
}

static void fs_write(fuse_req_t req, fuse_ino_t ino, const char *buf,
                     size_t size, off_t off, struct fuse_file_info *fi)
{
    struct sim_freqfs *fs = fuse_req_userdata(req);
    struct sim_freq *freq = fs->tree.freq;
    struct sim_freqnode n = sim_freqnode_of(ino);
    char path[128];
    ssize_t rc;

    (void)off;
    (void)fi;
    sim_freq_path_print(freq, n.dir, n.i, sim_freqnode_file(n), path,
                        sizeof(path));
    rc = -sim_freqfault_strike(fs->opt.fault, path, true);
    if (!rc)
        rc = sim_freq_store(freq, n.dir, n.i, sim_freqnode_file(n), buf, size);
    sim_freqfault_log(fs->opt.fault, joule_clock_mono_ns(freq->clock),
                      fuse_req_ctx(req)->pid, path, buf, size,
                      rc < 0 ? (int)-rc : 0);
    fs->opt.changed(fs->opt.arg);
    if (rc < 0)
        fuse_reply_err(req, (int)-rc);
    else
        fuse_reply_write(req, (size_t)rc);
}

static void fs_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
                     mode_t mode, dev_t rdev)
{
    (void)parent;
    (void)name;
    (void)mode;
    (void)rdev;
    fuse_reply_err(req, EACCES);
}

static void fs_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
                     mode_t mode)
{
    (void)parent;
    (void)name;
    (void)mode;
    fuse_reply_err(req, EPERM);
}

static void fs_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent;
    (void)name;
    fuse_reply_err(req, EPERM);
}

static const struct fuse_lowlevel_ops operations = {
    .init = sim_fusemount_init,
    .lookup = fs_lookup,
    .getattr = fs_getattr,
    .setattr = fs_setattr,
    .readlink = fs_readlink,
    .opendir = fs_opendir,
    .readdir = fs_readdir,
    .open = fs_open,
    .read = fs_read,
    .write = fs_write,
    .mknod = fs_mknod,
    .mkdir = fs_mkdir,
    .unlink = fs_unlink,
    .rmdir = fs_unlink,
};

struct sim_freqfs *sim_freqfs_create(const char *path,
                                     const struct sim_freqfs_options *opt,
                                     struct joule_error *err)
{
    struct sim_freqfs *fs = calloc(1, sizeof(*fs));

    if (fs) {
        fs->opt = *opt;
        fs->tree.freq = opt->freq;
        fs->tree.base = sim_freqbase_create(opt->base_fd);
    }
    if (!fs || !fs->tree.base) {
        free(fs);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    fs->mount = sim_fusemount_create(
        path, "fsname=freqsim,subtype=cpufreq,default_permissions,allow_other",
        &operations, fs, err);
    if (!fs->mount) {
        sim_freqfs_destroy(fs);
        return NULL;
    }
    return fs;
}

void sim_freqfs_destroy(struct sim_freqfs *fs)
{
    int saved = errno;

    if (!fs)
        return;
    sim_fusemount_destroy(fs->mount);
    sim_freqbase_destroy(fs->tree.base);
    free(fs);
    errno = saved;
}

int sim_freqfs_fd(const struct sim_freqfs *fs)
{
    return sim_fusemount_fd(fs->mount);
}

/* Who sets a frequency makes request after request, and waking up for each
 * would take longer than to answer it. */
#define LINGER_NS 30000

int sim_freqfs_serve(struct sim_freqfs *fs)
{
    const struct joule_clock *clock = fs->tree.freq->clock;
    int64_t until_ns = 0;

    do {
        uint64_t served = sim_fusemount_served(fs->mount);

        if (sim_fusemount_serve(fs->mount))
            return -1;
        if (served != sim_fusemount_served(fs->mount))
            until_ns = joule_clock_mono_ns(clock) + LINGER_NS;
    } while (joule_clock_mono_ns(clock) < until_ns);
    return 0;
}
