/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tableheader.h - what an HDF5 file says of a table: the messages of its object
 * header, but for attributes, and the keys of its chunks (HDF5 File Format
 * Specification 3.0, III.A.1, IV.A.2.b to l).
 *
 * One dimension without an end, in chunks that a B-tree of version 1 finds.
 */
#ifndef JOULE_STORE_TABLEHEADER_H
#define JOULE_STORE_TABLEHEADER_H

#include "common/store/little.h"
#include "common/store/newheader.h"
#include "common/store/unfilter.h"

struct joule_tableheader {
    struct joule_type_bytes type; /* of a row */
    uint32_t row_size;
    uint64_t chunk_rows;
    const struct joule_pipeline *filters; /* NULL: none */
    /* Where in the header they are to be put, 8 bytes each. */
    size_t rows_at; /* the number of rows */
    size_t tree_at; /* the place of the tree of chunks */
};

/* Add the messages; the number of rows is 0, and there is no tree.  -1: E2BIG,
 * ENOMEM. */
int joule_tableheader_add(struct joule_tableheader *table,
                          struct joule_header *header);

/* The key on the left of a chunk in the tree: its bytes as stored, the filters
 * that were left out, its first row. */
void joule_chunk_key(unsigned char key[JOULE_HDF_CHUNK_KEY], size_t size,
                     uint32_t mask, uint64_t row);

/* The key on the right of all: behind [rows], a multiple of the chunk's. */
void joule_chunk_last_key(unsigned char key[JOULE_HDF_CHUNK_KEY], uint64_t rows,
                          uint32_t row_size);

#endif
