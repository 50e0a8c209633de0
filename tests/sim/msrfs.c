/* SPDX-License-Identifier: GPL-2.0-or-later */
#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>

#include "tests/sim/msrfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/parse.h"
#include "tests/sim/fusemount.h"
#include "tests/sim/procstat.h"
#include "tests/sim/zones.h"

#define FILE_SIZE INT64_C(0x100000000)
#define READ_MAX  65536

struct sim_msrfs {
    struct sim_node *node;
    struct sim_fusemount *mount;
};

/* An open "stat". */
struct stat_text {
    char *text;
    size_t length;
};

/* The root is inode 1, CPU i of the machine has directory 2 + 2i and file
 * 3 + 2i; "stat" is the file after the last CPU's, and then
 * those of the zones, "energy-N". */
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

static fuse_ino_t stat_ino(const struct sim_machine *m)
{
    return dir_ino(m->cpu_count) + 1;
}

static bool ino_is_stat(fuse_req_t req, fuse_ino_t ino)
{
    return ino == stat_ino(req_machine(req));
}

static bool ino_is_zone(fuse_req_t req, fuse_ino_t ino, size_t *ret)
{
    size_t zone = (ino - stat_ino(req_machine(req))) / 2 - 1;

    *ret = zone;
    return ino % 2 == 1 && ino > stat_ino(req_machine(req)) &&
           zone < sim_zones(req_machine(req));
}

static bool ino_valid(fuse_req_t req, fuse_ino_t ino)
{
    size_t zone;

    return ino == FUSE_ROOT_ID || ino_is_stat(req, ino) ||
           ino_is_zone(req, ino, &zone) ||
           ino_cpu(ino) < req_machine(req)->cpu_count;
}

static struct stat ino_stat(fuse_req_t req, fuse_ino_t ino)
{
    size_t zone;

    if (ino_is_stat(req, ino))
        return (struct stat){
            .st_ino = ino, .st_mode = S_IFREG | 0444, .st_nlink = 1};
    if (ino_is_zone(req, ino, &zone))
        return (struct stat){
            .st_ino = ino, .st_mode = S_IFREG | 0400, .st_nlink = 1};
    if (ino_is_dir(ino))
        return (struct stat){
            .st_ino = ino, .st_mode = S_IFDIR | 0755, .st_nlink = 2};
    return (struct stat){.st_ino = ino,
                         .st_mode = S_IFREG | 0600,
                         .st_nlink = 1,
                         .st_size = FILE_SIZE};
}

static void fs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    const struct sim_machine *m = req_machine(req);
    struct fuse_entry_param entry = {.ino = 0};
    uint64_t number;

    if (parent == FUSE_ROOT_ID && !strcmp(name, "stat")) {
        const struct sim_msrfs *fs = fuse_req_userdata(req);

        if (sim_procstat_there(fs->node))
            entry.ino = stat_ino(m);
    } else if (parent == FUSE_ROOT_ID && !strncmp(name, "energy-", 7)) {
        if (!joule_parse_u64(name + 7, 0, UINT32_MAX, &number) &&
            number < sim_zones(m))
            entry.ino = stat_ino(m) + 2 * (number + 1);
    } else if (parent == FUSE_ROOT_ID) {
        if (!joule_parse_u64(name, 0, UINT32_MAX, &number))
            for (size_t i = 0; i < m->cpu_count; i++)
                if (m->cpus[i].number == number && m->cpus[i].online)
                    entry.ino = dir_ino(i);
    } else if (ino_is_dir(parent) && !strcmp(name, "msr") && !m->no_msr) {
        entry.ino = parent + 1;
    }
    if (!entry.ino) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    entry.attr = ino_stat(req, entry.ino);
    fuse_reply_entry(req, &entry);
}

static void fs_getattr(fuse_req_t req, fuse_ino_t ino,
                       struct fuse_file_info *fi)
{
    struct stat st = ino_stat(req, ino);

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
        return at == 0 && !m->no_msr;
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
        st = ino_stat(req, entry_ino);
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
    if (ino_is_stat(req, ino)) {
        struct stat_text *open = calloc(1, sizeof(*open));

        if (!open) {
            fuse_reply_err(req, ENOMEM);
            return;
        }
        fi->fh = (uintptr_t)open;
    }
    fuse_reply_open(req, fi);
}

static void fs_release(fuse_req_t req, fuse_ino_t ino,
                       struct fuse_file_info *fi)
{
    struct stat_text *open = (struct stat_text *)(uintptr_t)fi->fh;

    (void)ino;
    if (open)
        free(open->text);
    free(open);
    fuse_reply_err(req, 0);
}

static void stat_read(fuse_req_t req, struct stat_text *open, size_t size,
                      off_t off)
{
    const struct sim_msrfs *fs = fuse_req_userdata(req);
    size_t at = (size_t)off;

    if (off == 0) {
        free(open->text);
        open->text = sim_procstat(fs->node, &open->length);
    }
    if (!open->text)
        fuse_reply_err(req, ENOMEM);
    else if (off < 0 || at >= open->length)
        fuse_reply_buf(req, NULL, 0);
    else
        fuse_reply_buf(req, open->text + at,
                       size < open->length - at ? size : open->length - at);
}

static void zone_read(fuse_req_t req, size_t zone, size_t size, off_t off)
{
    const struct sim_msrfs *fs = fuse_req_userdata(req);
    char text[SIM_ZONE_TEXT];
    int errnum = sim_zone_read(fs->node, zone, text);
    size_t length = errnum ? 0 : strlen(text);

    if (errnum)
        fuse_reply_err(req, errnum);
    else if (off != 0)
        fuse_reply_buf(req, NULL, 0);
    else
        fuse_reply_buf(req, text, size < length ? size : length);
}

static void fs_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    struct sim_msrfs *fs = fuse_req_userdata(req);
    uint64_t values[READ_MAX / 8];
    size_t count, zone;

    if (ino_is_zone(req, ino, &zone)) {
        zone_read(req, zone, size, off);
        return;
    }
    if (ino_is_stat(req, ino)) {
        stat_read(req, (struct stat_text *)(uintptr_t)fi->fh, size, off);
        return;
    }
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
    .init = sim_fusemount_init,
    .lookup = fs_lookup,
    .getattr = fs_getattr,
    .readdir = fs_readdir,
    .open = fs_open,
    .release = fs_release,
    .read = fs_read,
    .write = fs_write,
};

struct sim_msrfs *sim_msrfs_create(const char *path, struct sim_node *node,
                                   struct joule_error *err)
{
    struct sim_msrfs *fs = calloc(1, sizeof(*fs));

    if (!fs) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    fs->node = node;
    fs->mount = sim_fusemount_create(
        path, "fsname=nodesim,subtype=msr,default_permissions,allow_other",
        &operations, fs, err);
    if (!fs->mount) {
        sim_msrfs_destroy(fs);
        return NULL;
    }
    return fs;
}

void sim_msrfs_destroy(struct sim_msrfs *fs)
{
    int saved = errno;

    if (fs)
        sim_fusemount_destroy(fs->mount);
    free(fs);
    errno = saved;
}

int sim_msrfs_fd(const struct sim_msrfs *fs)
{
    return sim_fusemount_fd(fs->mount);
}

int sim_msrfs_serve(struct sim_msrfs *fs)
{
    return sim_fusemount_serve(fs->mount);
}
