/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table.h - one series in a node-step file: a data set that grows by rows.
 *
 * Rows are collected in memory up to a chunk.  A full chunk is packed and
 * given to the file; of one that is not full, the rows lie unpacked in a place
 * of the chunk's full size, so that a flush only adds to it.
 *
 * Belongs to the thread of its file.
 */
#ifndef JOULE_STORE_TABLE_H
#define JOULE_STORE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/store/image.h"
#include "common/store/pack.h"

enum joule_field_type {
    JOULE_FIELD_U64,
    JOULE_FIELD_DOUBLE,
};

/* The columns between "EpochTime" and "ElapsedTimeNs". */
struct joule_field {
    const char *name;
    enum joule_field_type type;
};

#define JOULE_FIELDS_MAX 512

struct joule_table_options {
    const struct joule_field *fields;
    size_t count;
    size_t chunk_rows; /* > 0 */
    struct joule_pack pack;
    uint64_t period_ns; /* attribute "Joule Period ns" */
};

struct joule_table;

/* For the file in [image], which outlives the table.  NULL with errno ENOMEM,
 * EINVAL (a field without a name, or two of one), E2BIG (names too long). */
struct joule_table *joule_table_create(struct joule_image *image,
                                       const struct joule_table_options *opt);
void joule_table_destroy(struct joule_table *table);

/* Where its object header is. */
uint64_t joule_table_at(const struct joule_table *table);

/* 8 bytes each for the fields and the three columns of time. */
size_t joule_table_row_size(const struct joule_table *table);

/* -1: errno ENOMEM or E2BIG (too many chunks), the row is not in the table. */
int joule_table_append(struct joule_table *table, const void *row);

/* All rows so far into the image, and their number.  -1 as above. */
int joule_table_flush(struct joule_table *table);

/* Pack the last chunk as well; no row may follow, but a flush.  -1 as above. */
int joule_table_finish(struct joule_table *table);

uint64_t joule_table_rows(const struct joule_table *table);

/* Set the attribute "Joule Lost Rows". */
void joule_table_set_lost(struct joule_table *table, uint64_t rows);

/*
 * After finish and the commit behind it: the same in another image, of a file
 * that nobody sees before it is whole (parts of it may be on disk then).  NULL
 * with errno of reading, of a commit, or as above.  The copy is for a flush and
 * nothing else.
 */
struct joule_table *joule_table_copy(struct joule_table *table,
                                     struct joule_image *image);

#endif
