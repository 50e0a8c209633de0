/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * newtable.h - a table in a job file that is being written: its chunks, one
 * behind the other, their index, and at the end its object header.
 *
 * One thread at a time.
 */
#ifndef JOULE_STORE_NEWTABLE_H
#define JOULE_STORE_NEWTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/btree.h"
#include "common/store/object.h"
#include "common/store/tableheader.h"
#include "common/store/typecache.h"
#include "common/store/visitor.h"

/* Begins with all zeros; one after the other may be written. */
struct joule_newtable {
    bool is_open;
    struct joule_spool *spool;
    struct joule_layout layout;
    uint64_t chunk_rows;
    uint64_t rows; /* in chunks */
    struct joule_btree index;
    struct joule_header header;
    struct joule_tableheader head; /* what is in it */
    uint64_t part_rows;
    unsigned char *part; /* rows of a chunk that is not full */
    size_t part_room;
};

/* Of chunks that come as they are ([stored]), or of rows.  -1 with ENOMEM, or
 * E2BIG: it cannot be kept. */
int joule_newtable_begin(struct joule_newtable *table,
                         struct joule_spool *spool,
                         struct joule_typecache *types,
                         const struct joule_layout *layout, bool stored);

/* [count] rows, put together into chunks.  -1 with ENOMEM or E2BIG. */
int joule_newtable_rows(struct joule_newtable *table, const void *rows,
                        uint64_t count);

/* A chunk of which [rows] are meant; only the last may hold fewer than there
 * is room for.  -1 as above, or EBADMSG. */
int joule_newtable_chunk(struct joule_newtable *table, uint64_t rows,
                         uint32_t mask, const void *data, size_t len);

/* Chunks that lie in the file [fd].  -1 also with errno of reading it (ENODATA:
 * the file ends before). */
int joule_newtable_run(struct joule_newtable *table,
                       const struct joule_run *run, int fd);

/* The table is complete; where its object header is.  -1 as above. */
int joule_newtable_end(struct joule_newtable *table, uint64_t *ret_at);

void joule_newtable_free(struct joule_newtable *table);

#endif
