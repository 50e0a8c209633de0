/* SPDX-License-Identifier: GPL-2.0-or-later */
#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>

#include "tests/sim/freqnode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/parse.h"

fuse_ino_t sim_freqnode_ino(struct sim_freqnode n)
{
    if (n.kind == SIM_NODE_DIR && n.dir == SIM_DIR_TOP)
        return FUSE_ROOT_ID;
    return (uint64_t)(n.kind + 1) << 56 | (uint64_t)n.dir << 48 |
           (uint64_t)n.i << 24 | (uint64_t)n.at;
}

struct sim_freqnode sim_freqnode_of(fuse_ino_t ino)
{
    if (ino == FUSE_ROOT_ID)
        return (struct sim_freqnode){.kind = SIM_NODE_DIR, .dir = SIM_DIR_TOP};
    return (struct sim_freqnode){.kind = (ino >> 56) - 1,
                                 .dir = ino >> 48 & 0xff,
                                 .i = ino >> 24 & 0xffffff,
                                 .at = ino & 0xffffff};
}

const struct sim_freq_file *sim_freqnode_file(struct sim_freqnode n)
{
    return &sim_freq_files(n.dir)[n.at];
}

static const struct sim_freq_policy *policy_of_cpu(const struct sim_freq *freq,
                                                   size_t i)
{
    return &freq->policies[freq->cpus[i].policy];
}

int sim_freqnode_attributes(const struct sim_freqtree *tree,
                            struct sim_freqnode n, struct stat *ret_st)
{
    *ret_st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    if (n.kind == SIM_NODE_BASE) {
        int rc = sim_freqbase_stat(tree->base, n.at, ret_st);

        if (rc)
            return rc;
    } else if (n.kind == SIM_NODE_LINK) {
        ret_st->st_mode = S_IFLNK | 0777;
        ret_st->st_nlink = 1;
    } else if (n.kind == SIM_NODE_FILE) {
        ret_st->st_mode = S_IFREG | sim_freqnode_file(n)->mode;
        ret_st->st_nlink = 1;
        ret_st->st_size = SIM_FREQ_PAGE;
    }
    ret_st->st_ino = sim_freqnode_ino(n);
    return 0;
}

static bool node_present(const struct sim_freq *freq, struct sim_freqnode n)
{
    switch (n.kind) {
    case SIM_NODE_BASE:
        return true;
    case SIM_NODE_LINK:
        return sim_freq_there(freq, policy_of_cpu(freq, n.i));
    case SIM_NODE_FILE:
        return sim_freq_file_present(freq, n.dir, n.i, sim_freqnode_file(n));
    default:
        return sim_freq_dir_present(freq, n.dir, n.i);
    }
}

int sim_freqnode_stat(const struct sim_freqtree *tree, struct sim_freqnode n,
                      struct stat *ret_st)
{
    return node_present(tree->freq, n)
               ? sim_freqnode_attributes(tree, n, ret_st)
               : ENOENT;
}

/* The directories of ours in the topmost and in cpufreq. */
static int subdir_find(const struct sim_freq *freq, struct sim_freqnode parent,
                       const char *name, struct sim_freqnode *ret_node)
{
    static const struct {
        const char *name;
        enum sim_freq_dir dir;
    } dirs[] = {{"cpufreq", SIM_DIR_CPUFREQ},
                {"intel_pstate", SIM_DIR_INTEL},
                {"amd_pstate", SIM_DIR_AMD}};
    uint64_t number;

    *ret_node = (struct sim_freqnode){.kind = SIM_NODE_DIR};
    if (parent.dir == SIM_DIR_CPUFREQ && !strncmp(name, "policy", 6) &&
        !joule_parse_u64(name + 6, 0, UINT32_MAX, &number)) {
        ret_node->dir = SIM_DIR_POLICY;
        for (size_t i = 0; i < freq->policy_count; i++, ret_node->i++)
            if (freq->policies[i].number == number)
                return 0;
    }
    if (parent.dir != SIM_DIR_TOP)
        return -1;
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        if (!strcmp(name, dirs[i].name)) {
            ret_node->dir = dirs[i].dir;
            return 0;
        }
    if (!strncmp(name, "cpu", 3) &&
        !joule_parse_u64(name + 3, 0, UINT32_MAX, &number)) {
        ret_node->dir = SIM_DIR_CPU;
        for (size_t i = 0; i < freq->cpu_count; i++, ret_node->i++)
            if (freq->cpus[i].number == number)
                return 0;
    }
    return -1;
}

/* A name of ours in a directory of ours, whether it is there or not. */
static int own_find(const struct sim_freq *freq, struct sim_freqnode parent,
                    const char *name, struct sim_freqnode *ret_node)
{
    const struct sim_freq_file *files = sim_freq_files(parent.dir);

    if (!subdir_find(freq, parent, name, ret_node))
        return 0;
    *ret_node = parent;
    ret_node->kind = SIM_NODE_LINK;
    if (parent.dir == SIM_DIR_CPU && !strcmp(name, "cpufreq"))
        return 0;
    ret_node->kind = SIM_NODE_FILE;
    for (ret_node->at = 0; files[ret_node->at].name; ret_node->at++)
        if (!strcmp(files[ret_node->at].name, name))
            return 0;
    return -1;
}

/* Whether a name of the other directory is to be seen in one of ours. */
static bool base_shown(const struct sim_freq *freq, struct sim_freqnode parent,
                       const char *name)
{
    uint64_t number;

    if (parent.dir == SIM_DIR_CPU)
        return freq->cpus[parent.i].online ||
               (strcmp(name, "topology") && strcmp(name, "cache"));
    return parent.dir == SIM_DIR_TOP &&
           (strncmp(name, "cpu", 3) ||
            joule_parse_u64(name + 3, 0, UINT32_MAX, &number));
}

/* The node of the other directory that is beside one of ours. */
static int base_parent(const struct sim_freqtree *tree,
                       struct sim_freqnode parent, size_t *ret_at)
{
    char name[16];

    *ret_at = parent.kind == SIM_NODE_BASE ? parent.at : 0;
    if (parent.kind == SIM_NODE_BASE || parent.dir != SIM_DIR_CPU)
        return 0;
    snprintf(name, sizeof(name), "cpu%u", tree->freq->cpus[parent.i].number);
    return sim_freqbase_lookup(tree->base, 0, name, ret_at);
}

static int base_find(const struct sim_freqtree *tree,
                     struct sim_freqnode parent, const char *name,
                     struct sim_freqnode *ret_node)
{
    size_t at;
    int rc;

    if (parent.kind != SIM_NODE_BASE && !base_shown(tree->freq, parent, name))
        return ENOENT;
    rc = base_parent(tree, parent, &at);
    *ret_node = (struct sim_freqnode){.kind = SIM_NODE_BASE};
    return rc ? rc : sim_freqbase_lookup(tree->base, at, name, &ret_node->at);
}

int sim_freqnode_find(const struct sim_freqtree *tree,
                      struct sim_freqnode parent, const char *name,
                      struct sim_freqnode *ret_node)
{
    if (parent.kind != SIM_NODE_BASE &&
        !own_find(tree->freq, parent, name, ret_node))
        return 0;
    return base_find(tree, parent, name, ret_node);
}

int sim_freqnode_readlink(const struct sim_freqtree *tree,
                          struct sim_freqnode n, char *buf, size_t size)
{
    struct stat st;
    int rc = sim_freqnode_stat(tree, n, &st);

    if (rc)
        return rc;
    if (n.kind == SIM_NODE_BASE)
        return sim_freqbase_readlink(tree->base, n.at, buf, size);
    snprintf(buf, size, "../cpufreq/policy%u",
             policy_of_cpu(tree->freq, n.i)->number);
    return 0;
}

/* A listing is made anew for each request, in the same order. */
struct listing {
    const struct sim_freqtree *tree;
    fuse_req_t req;
    struct sim_freqnode dir;
    char *buf;
    size_t size, used;
    off_t at, from;
    bool full;
};

static void list_add(struct listing *l, const char *name, fuse_ino_t ino,
                     mode_t mode)
{
    const struct stat st = {.st_ino = ino, .st_mode = mode};
    size_t len;

    if (l->full || l->at++ < l->from)
        return;
    len = fuse_add_direntry(l->req, l->buf + l->used, l->size - l->used, name,
                            &st, l->at);
    if (len > l->size - l->used)
        l->full = true;
    else
        l->used += len;
}

static void list_node(struct listing *l, const char *name,
                      struct sim_freqnode n)
{
    struct stat st;

    if (!sim_freqnode_stat(l->tree, n, &st))
        list_add(l, name, st.st_ino, st.st_mode);
}

static void list_own(struct listing *l)
{
    const struct sim_freq *freq = l->tree->freq;
    const struct sim_freq_file *files = sim_freq_files(l->dir.dir);
    struct sim_freqnode n = l->dir;
    char name[32];

    n.kind = SIM_NODE_FILE;
    for (n.at = 0; files[n.at].name; n.at++)
        list_node(l, files[n.at].name, n);
    n.at = 0;
    n.kind = l->dir.dir == SIM_DIR_CPU ? SIM_NODE_LINK : SIM_NODE_DIR;
    if (l->dir.dir == SIM_DIR_CPU)
        list_node(l, "cpufreq", n);
    n.dir = SIM_DIR_POLICY;
    for (n.i = 0; l->dir.dir == SIM_DIR_CPUFREQ && n.i < freq->policy_count;
         n.i++) {
        snprintf(name, sizeof(name), "policy%u", freq->policies[n.i].number);
        list_node(l, name, n);
    }
    if (l->dir.dir != SIM_DIR_TOP)
        return;
    n.dir = SIM_DIR_CPU;
    for (n.i = 0; n.i < freq->cpu_count; n.i++) {
        snprintf(name, sizeof(name), "cpu%u", freq->cpus[n.i].number);
        list_node(l, name, n);
    }
    list_node(l, "cpufreq", (struct sim_freqnode){.dir = SIM_DIR_CPUFREQ});
    list_node(l, "intel_pstate", (struct sim_freqnode){.dir = SIM_DIR_INTEL});
    list_node(l, "amd_pstate", (struct sim_freqnode){.dir = SIM_DIR_AMD});
}

static void list_base(void *arg, const char *name, mode_t type)
{
    struct listing *l = arg;
    struct sim_freqnode own;

    if (l->dir.kind != SIM_NODE_BASE &&
        (!own_find(l->tree->freq, l->dir, name, &own) ||
         !base_shown(l->tree->freq, l->dir, name)))
        return;
    /* Any number but 0; a lookup says which. */
    list_add(l, name, FUSE_ROOT_ID, type);
}

size_t sim_freqnode_list(const struct sim_freqtree *tree,
                         struct sim_freqnode dir, fuse_req_t req, off_t from,
                         char *buf, size_t size)
{
    struct listing l = {.tree = tree,
                        .req = req,
                        .dir = dir,
                        .buf = buf,
                        .size = size,
                        .from = from};
    size_t at;

    list_add(&l, ".", sim_freqnode_ino(dir), S_IFDIR);
    list_add(&l, "..", FUSE_ROOT_ID, S_IFDIR);
    if (dir.kind != SIM_NODE_BASE)
        list_own(&l);
    if ((dir.kind == SIM_NODE_BASE || dir.dir == SIM_DIR_TOP ||
         dir.dir == SIM_DIR_CPU) &&
        !base_parent(tree, dir, &at))
        sim_freqbase_list(tree->base, at, list_base, &l);
    return l.used;
}
