/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/chunktree.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/tableheader.h"

/* Twice the "K" that a superblock of version 0 implies. */
#define CHILDREN 64

#define ENTRY      (JOULE_HDF_CHUNK_KEY + 8) /* a key, and a child */
#define NODE       (JOULE_HDF_TREE_HEAD + CHILDREN * ENTRY + JOULE_HDF_CHUNK_KEY)
#define LEVELS_MAX 8

/* The last node of a level. */
struct level {
    uint64_t at;
    unsigned used; /* children */
    bool changed;
    unsigned char node[NODE];
};

struct joule_chunktree {
    struct joule_image *image;
    uint64_t chunk_rows;
    uint32_t row_size;
    uint64_t chunks;
    bool finished;
    uint64_t first; /* the first leaf */
    uint64_t end;   /* of all nodes */
    unsigned levels;
    struct level *level[LEVELS_MAX]; /* the leaf first, the root last */
};

static uint64_t make_place(struct joule_chunktree *tree)
{
    uint64_t at = joule_image_alloc(tree->image, JOULE_IMAGE_INDEX, NODE);

    if (at + NODE > tree->end)
        tree->end = at + NODE;
    return at;
}

static void begin_node(struct level *level, unsigned number, uint64_t at,
                       uint64_t left)
{
    memset(level->node, 0, sizeof(level->node));
    memcpy(level->node, "TREE", 4);
    level->node[4] = 1; /* of chunks */
    level->node[5] = (unsigned char)number;
    joule_little_put(level->node + 8, left, 8);
    joule_little_put(level->node + 16, JOULE_HDF_NOWHERE, 8);
    level->at = at;
    level->used = 0;
    level->changed = true;
}

static unsigned char *key_of(struct level *level, unsigned child)
{
    return level->node + JOULE_HDF_TREE_HEAD + (size_t)child * ENTRY;
}

static void put_entry(struct level *level, const unsigned char *key,
                      uint64_t child)
{
    unsigned char *at = key_of(level, level->used);

    memcpy(at, key, JOULE_HDF_CHUNK_KEY);
    joule_little_put(at + JOULE_HDF_CHUNK_KEY, child, 8);
    level->used++;
    joule_little_put(level->node + 6, level->used, 2);
    level->changed = true;
}

struct joule_chunktree *joule_chunktree_create(struct joule_image *image,
                                               uint64_t chunk_rows,
                                               uint32_t row_size)
{
    struct joule_chunktree *tree = calloc(1, sizeof(*tree));

    if (!tree)
        return NULL;
    tree->level[0] = malloc(sizeof(*tree->level[0]));
    if (!tree->level[0]) {
        free(tree);
        return NULL;
    }
    tree->levels = 1;
    tree->image = image;
    tree->chunk_rows = chunk_rows;
    tree->row_size = row_size;
    tree->first = make_place(tree);
    begin_node(tree->level[0], 0, tree->first, JOULE_HDF_NOWHERE);
    return tree;
}

void joule_chunktree_destroy(struct joule_chunktree *tree)
{
    if (!tree)
        return;
    for (unsigned i = 0; i < tree->levels; i++)
        free(tree->level[i]);
    free(tree);
}

uint64_t joule_chunktree_at(const struct joule_chunktree *tree)
{
    return tree->level[tree->levels - 1]->at;
}

uint64_t joule_chunktree_end(const struct joule_chunktree *tree)
{
    return tree->end;
}

/* The key on the right of the last node of any level is far behind, or it
 * would have to be written anew in all of them for each chunk. */
static void put_last_key(const struct joule_chunktree *tree,
                         struct level *level)
{
    uint64_t chunks =
        tree->finished ? tree->chunks : (uint64_t)INT64_MAX / tree->chunk_rows;

    joule_chunk_last_key(key_of(level, level->used), chunks * tree->chunk_rows,
                         tree->row_size);
}

static int write_node(const struct joule_chunktree *tree,
                      const struct level *level)
{
    return joule_image_write(tree->image, JOULE_IMAGE_INDEX, level->at,
                             level->node, NODE);
}

int joule_chunktree_flush(struct joule_chunktree *tree)
{
    for (unsigned i = 0; i < tree->levels; i++) {
        struct level *level = tree->level[i];

        if (!level->changed)
            continue;
        put_last_key(tree, level);
        if (write_node(tree, level) < 0)
            return -1;
        level->changed = false;
    }
    return 0;
}

void joule_chunktree_finish(struct joule_chunktree *tree)
{
    tree->finished = true;
    for (unsigned i = 0; i < tree->levels; i++)
        tree->level[i]->changed = true;
}

/* The root moves to a place that is no longer its own, and is the only child of
 * a new one in its place. */
static int add_level(struct joule_chunktree *tree)
{
    struct level *old = tree->level[tree->levels - 1], *root;

    if (tree->levels == LEVELS_MAX) {
        errno = E2BIG;
        return -1;
    }
    root = malloc(sizeof(*root));
    if (!root)
        return -1;
    begin_node(root, tree->levels, old->at, JOULE_HDF_NOWHERE);
    old->at = make_place(tree);
    old->changed = true;
    if (tree->levels == 1)
        tree->first = old->at;
    put_entry(root, key_of(old, 0), old->at);
    tree->level[tree->levels++] = root;
    return 0;
}

/* The full last node of level [i] is left behind, and another one begun. */
static int add_node(struct joule_chunktree *tree, unsigned i,
                    const unsigned char *key)
{
    struct level *level = tree->level[i];
    uint64_t at;

    if (i + 1 == tree->levels && add_level(tree) < 0)
        return -1;
    if (tree->level[i + 1]->used == CHILDREN && add_node(tree, i + 1, key) < 0)
        return -1;
    at = make_place(tree);
    memcpy(key_of(level, CHILDREN), key, JOULE_HDF_CHUNK_KEY);
    joule_little_put(level->node + 16, at, 8);
    if (write_node(tree, level) < 0)
        return -1;
    begin_node(level, i, at, level->at);
    put_entry(tree->level[i + 1], key, at);
    return 0;
}

int joule_chunktree_add(struct joule_chunktree *tree, size_t size,
                        uint32_t mask, uint64_t at)
{
    unsigned char key[JOULE_HDF_CHUNK_KEY];

    joule_chunk_key(key, size, mask, tree->chunks * tree->chunk_rows);
    if (tree->level[0]->used == CHILDREN && add_node(tree, 0, key) < 0)
        return -1;
    put_entry(tree->level[0], key, at);
    tree->chunks++;
    return 0;
}

void joule_chunktree_replace(struct joule_chunktree *tree, size_t size,
                             uint32_t mask, uint64_t at)
{
    struct level *leaf = tree->level[0];
    unsigned char key[JOULE_HDF_CHUNK_KEY];

    joule_chunk_key(key, size, mask, (tree->chunks - 1) * tree->chunk_rows);
    leaf->used--;
    put_entry(leaf, key, at);
}

static int walk_node(const unsigned char *node,
                     int (*chunk)(void *arg, size_t size, uint32_t mask,
                                  uint64_t at),
                     void *arg)
{
    unsigned used = (unsigned)joule_little_get(node + 6, 2);
    const unsigned char *key = node + JOULE_HDF_TREE_HEAD;

    for (unsigned i = 0; i < used; i++, key += ENTRY)
        if (chunk(arg, joule_little_get(key, 4),
                  (uint32_t)joule_little_get(key + 4, 4),
                  joule_little_get(key + JOULE_HDF_CHUNK_KEY, 8)) < 0)
            return -1;
    return 0;
}

int joule_chunktree_walk(struct joule_chunktree *tree,
                         int (*chunk)(void *arg, size_t size, uint32_t mask,
                                      uint64_t at),
                         void *arg)
{
    unsigned char node[NODE];
    uint64_t at = tree->first;

    while (at != tree->level[0]->at) {
        if (joule_image_read(tree->image, at, node, sizeof(node)) < 0)
            return -1;
        if (memcmp(node, "TREE", 4) != 0 || node[5] != 0 ||
            joule_little_get(node + 6, 2) > CHILDREN) {
            errno = EIO;
            return -1;
        }
        if (walk_node(node, chunk, arg) < 0)
            return -1;
        at = joule_little_get(node + 16, 8);
    }
    return walk_node(tree->level[0]->node, chunk, arg);
}
