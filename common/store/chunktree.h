/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chunktree.h - the index of a table's chunks, that grows in an image
 * (image.h): a B-tree of version 1 (HDF5 File Format Specification 3.0,
 * III.A.1).
 *
 * Chunks come in the order of their rows.  So nodes are filled one after the
 * other, only the last of each level is kept in memory, and what a node says
 * stays true: entries are added, and the last one may be replaced.  The root
 * keeps its place, as the object header of the table tells it; when it is full,
 * what it holds is put to a new place, and it becomes the node above.
 *
 * Belongs to the thread of its image.
 */
#ifndef JOULE_STORE_CHUNKTREE_H
#define JOULE_STORE_CHUNKTREE_H

#include "common/store/image.h"

struct joule_chunktree;

/* An empty one.  NULL: ENOMEM. */
struct joule_chunktree *joule_chunktree_create(struct joule_image *image,
                                               uint64_t chunk_rows,
                                               uint32_t row_size);
void joule_chunktree_destroy(struct joule_chunktree *tree);

/* Where it is. */
uint64_t joule_chunktree_at(const struct joule_chunktree *tree);

/* Where the last of its nodes ends. */
uint64_t joule_chunktree_end(const struct joule_chunktree *tree);

/* A chunk, as stored: the next one.  -1 with ENOMEM, or E2BIG; nothing has
 * changed then. */
int joule_chunktree_add(struct joule_chunktree *tree, size_t size,
                        uint32_t mask, uint64_t at);

/* The last chunk is this one instead. */
void joule_chunktree_replace(struct joule_chunktree *tree, size_t size,
                             uint32_t mask, uint64_t at);

/* What has changed, to the image.  -1 with ENOMEM: it is written next time. */
int joule_chunktree_flush(struct joule_chunktree *tree);

/* No chunk will follow: tell the true end of the last one from now on. */
void joule_chunktree_finish(struct joule_chunktree *tree);

/* All chunks in their order.  -1 with errno of the image, EIO (the tree is not
 * what was written), or what [chunk] returned. */
int joule_chunktree_walk(struct joule_chunktree *tree,
                         int (*chunk)(void *arg, size_t size, uint32_t mask,
                                      uint64_t at),
                         void *arg);

#endif
