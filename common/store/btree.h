/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btree.h - write an index of HDF5: a B-tree of version 1 (HDF5 File Format
 * Specification 3.0, III.A.1), of keys that come in order.
 *
 * Nodes are filled one after the other and written when they are full, so that
 * memory is one node a level.  Other than libhdf5, this leaves no room in them:
 * a file that is merged is not added to.
 */
#ifndef JOULE_STORE_BTREE_H
#define JOULE_STORE_BTREE_H

#include <stddef.h>
#include <stdint.h>

#include "common/store/spool.h"

enum joule_btree_kind {
    JOULE_BTREE_NAMES = 0,  /* keys: 8 bytes, 32 children a node */
    JOULE_BTREE_CHUNKS = 1, /* of one dimension: 24 bytes, 64 children */
};

#define JOULE_BTREE_LEVELS   8
#define JOULE_BTREE_KEY_MAX  24
#define JOULE_BTREE_NODE_MAX (24 + 64 * 8 + 65 * JOULE_BTREE_KEY_MAX)

struct joule_btree_level {
    uint64_t at;   /* kept for this node; 0: nowhere yet */
    uint64_t left; /* the node before it */
    unsigned used; /* children */
    unsigned char node[JOULE_BTREE_NODE_MAX];
};

struct joule_btree {
    struct joule_spool *spool;
    enum joule_btree_kind kind;
    unsigned levels; /* that are there */
    struct joule_btree_level *level[JOULE_BTREE_LEVELS];
};

void joule_btree_start(struct joule_btree *tree, enum joule_btree_kind kind,
                       struct joule_spool *spool);

/* A child and the key on its left.  -1: ENOMEM, or E2BIG. */
int joule_btree_add(struct joule_btree *tree, const void *key, uint64_t child);

/* The key on the right of all; where the tree is (an empty one is a node
 * without children).  -1 as above.  Memory is given back in any case. */
int joule_btree_finish(struct joule_btree *tree, const void *key,
                       uint64_t *ret_at);

void joule_btree_free(struct joule_btree *tree);

#endif
