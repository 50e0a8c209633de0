/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqnode.h - what the inode numbers of a freqfs stand for.
 *
 * A number keeps its meaning for ever, also while what it stands for is not
 * there.  FUSE_USE_VERSION and fuse_lowlevel.h come before this header.
 */
#ifndef SIM_FREQNODE_H
#define SIM_FREQNODE_H

#include <sys/stat.h>

#include "tests/sim/freqbase.h"
#include "tests/sim/freqfile.h"

/* A directory of ours, a file or link in it, or a node of the other
 * directory. */
struct sim_freqnode {
    enum { SIM_NODE_DIR, SIM_NODE_FILE, SIM_NODE_LINK, SIM_NODE_BASE } kind;
    enum sim_freq_dir dir;
    size_t i;
    size_t at; /* of a file in its table, or of a node in the base */
};

struct sim_freqtree {
    struct sim_freq *freq;
    struct sim_freqbase *base;
};

fuse_ino_t sim_freqnode_ino(struct sim_freqnode node);
struct sim_freqnode sim_freqnode_of(fuse_ino_t ino);

const struct sim_freq_file *sim_freqnode_file(struct sim_freqnode node);

/* The functions below return 0 or an errno value. */

int sim_freqnode_find(const struct sim_freqtree *tree,
                      struct sim_freqnode parent, const char *name,
                      struct sim_freqnode *ret_node);
/* ENOENT: it is not there now. */
int sim_freqnode_stat(const struct sim_freqtree *tree, struct sim_freqnode node,
                      struct stat *ret_st);
/* The same whether it is there or not. */
int sim_freqnode_attributes(const struct sim_freqtree *tree,
                            struct sim_freqnode node, struct stat *ret_st);
int sim_freqnode_readlink(const struct sim_freqtree *tree,
                          struct sim_freqnode node, char *buf, size_t size);

/* Put the entries of a directory from the [from]th on into [buf], as
 * fuse_reply_buf wants them; returns the bytes used. */
size_t sim_freqnode_list(const struct sim_freqtree *tree,
                         struct sim_freqnode dir, fuse_req_t req, off_t from,
                         char *buf, size_t size);

#endif
