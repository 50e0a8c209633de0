/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/btree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/little.h"

/* By kind: twice the "K" that a superblock of version 0 has or implies. */
static const struct {
    unsigned children;
    size_t key;
} shape[] = {
    [JOULE_BTREE_NAMES] = {32, 8},
    [JOULE_BTREE_CHUNKS] = {64, 24},
};

static size_t node_size(const struct joule_btree *tree)
{
    return JOULE_HDF_TREE_HEAD +
           shape[tree->kind].children * (shape[tree->kind].key + 8) +
           shape[tree->kind].key;
}

void joule_btree_start(struct joule_btree *tree, enum joule_btree_kind kind,
                       struct joule_spool *spool)
{
    memset(tree, 0, sizeof(*tree));
    tree->kind = kind;
    tree->spool = spool;
}

void joule_btree_free(struct joule_btree *tree)
{
    for (unsigned i = 0; i < JOULE_BTREE_LEVELS; i++) {
        free(tree->level[i]);
        tree->level[i] = NULL;
    }
    tree->levels = 0;
}

static struct joule_btree_level *add_level(struct joule_btree *tree)
{
    struct joule_btree_level *level;

    if (tree->levels == JOULE_BTREE_LEVELS) {
        errno = E2BIG;
        return NULL;
    }
    level = calloc(1, sizeof(*level));
    if (!level)
        return NULL;
    level->left = JOULE_HDF_NOWHERE;
    tree->level[tree->levels++] = level;
    return level;
}

static void put_key(const struct joule_btree *tree,
                    struct joule_btree_level *level, const void *key)
{
    size_t size = shape[tree->kind].key;

    memcpy(level->node + JOULE_HDF_TREE_HEAD + level->used * (size + 8), key,
           size);
}

/* Its key is there. */
static void put_child(const struct joule_btree *tree,
                      struct joule_btree_level *level, uint64_t child)
{
    size_t size = shape[tree->kind].key;

    joule_little_put(level->node + JOULE_HDF_TREE_HEAD +
                         level->used * (size + 8) + size,
                     child, 8);
    level->used++;
}

/* Where the node is put. */
static uint64_t write_node(struct joule_btree *tree, unsigned i, uint64_t right)
{
    struct joule_btree_level *level = tree->level[i];
    unsigned char *head = level->node;
    size_t size = node_size(tree);

    memcpy(head, "TREE", 4);
    head[4] = (unsigned char)tree->kind;
    head[5] = (unsigned char)i;
    joule_little_put(head + 6, level->used, 2);
    joule_little_put(head + 8, level->left, 8);
    joule_little_put(head + 16, right, 8);
    if (level->at == 0)
        return joule_spool_put(tree->spool, head, size);
    joule_spool_fill(tree->spool, level->at, head, size);
    return level->at;
}

static int add_to(struct joule_btree *tree, unsigned i, const void *key,
                  uint64_t child)
{
    struct joule_btree_level *level =
        i < tree->levels ? tree->level[i] : add_level(tree);
    unsigned char first[JOULE_BTREE_KEY_MAX];
    uint64_t right, at;

    if (!level)
        return -1;
    put_key(tree, level, key);
    if (level->used == shape[tree->kind].children) {
        memcpy(first, level->node + JOULE_HDF_TREE_HEAD, shape[tree->kind].key);
        right = joule_spool_keep(tree->spool, node_size(tree));
        at = write_node(tree, i, right);
        level->left = at;
        level->at = right;
        level->used = 0;
        memset(level->node, 0, sizeof(level->node));
        put_key(tree, level, key);
        if (add_to(tree, i + 1, first, at) < 0)
            return -1;
    }
    put_child(tree, level, child);
    return 0;
}

int joule_btree_add(struct joule_btree *tree, const void *key, uint64_t child)
{
    return add_to(tree, 0, key, child);
}

int joule_btree_finish(struct joule_btree *tree, const void *key,
                       uint64_t *ret_at)
{
    int rc = tree->levels > 0 || add_level(tree) ? 0 : -1;

    /* The last node of each level is the last child of the one above it. */
    for (unsigned i = 0; rc == 0 && i < tree->levels; i++) {
        struct joule_btree_level *level = tree->level[i];
        unsigned char first[JOULE_BTREE_KEY_MAX];

        put_key(tree, level, key);
        memcpy(first, level->node + JOULE_HDF_TREE_HEAD, sizeof(first));
        *ret_at = write_node(tree, i, JOULE_HDF_NOWHERE);
        if (i + 1 < tree->levels)
            rc = add_to(tree, i + 1, first, *ret_at);
    }
    joule_btree_free(tree);
    return rc;
}
