/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chunkmap.h - where the chunks of a table lie, without libhdf5.
 *
 * libhdf5 looks each chunk up from the root of the index, in a microsecond or
 * two; in Slurm's files there is one for ten rows.  This walks the index once,
 * in order, if it is the kind that nearly all profiles have: an object header
 * of version 1, a layout of version 3, a B-tree of version 1 (HDF5 File Format
 * Specification 3.0, III.A.1, IV.A.1.a, IV.A.2.i).
 *
 * It believes nothing: what is odd ends the walk, for the caller to ask
 * libhdf5 instead.  One thread at a time.
 */
#ifndef JOULE_STORE_CHUNKMAP_H
#define JOULE_STORE_CHUNKMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/windows.h"

/* Nodes within each other; 64 children each are usual. */
#define JOULE_CHUNKMAP_DEPTH 8

struct joule_chunk {
    uint64_t first; /* row */
    uint64_t at;    /* in the file */
    uint32_t size;  /* as it is stored */
    uint32_t mask;  /* filters that were left out */
};

struct joule_chunkmap {
    struct joule_windows *windows;
    uint64_t root; /* of the tree; no chunks: UINT64_MAX */
    uint64_t chunk_rows;
    /* The walk: the nodes on the way to the next entry, root first. */
    unsigned depth;
    struct {
        uint64_t at;
        unsigned level, entry, entries;
    } node[JOULE_CHUNKMAP_DEPTH];
    struct joule_chunk now; /* the chunk that the walk is at */
    bool has_now, is_done;
};

/* For the data set whose object header lies at [header], with chunks of
 * [chunk_rows] rows of [row_size] bytes.  -1 with ENOTSUP: another kind, or
 * damaged. */
int joule_chunkmap_open(struct joule_chunkmap *map,
                        struct joule_windows *windows, uint64_t header,
                        uint64_t chunk_rows, uint32_t row_size);

/*
 * The chunk that begins with row [first], which is not less than in the call
 * before, or rewind.  1: it is there; 0: it is not; -1 with EBADMSG: the index
 * is damaged.
 */
int joule_chunkmap_find(struct joule_chunkmap *map, uint64_t first,
                        struct joule_chunk *ret);

void joule_chunkmap_rewind(struct joule_chunkmap *map);

/* Walk the whole index, and rewind.  -1 with EBADMSG: it is damaged. */
int joule_chunkmap_check(struct joule_chunkmap *map);

#endif
