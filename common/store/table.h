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

#include <hdf5.h>
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

/* In group [parent] of the HDF5 file in [image], which outlives the table;
 * nothing else of the file is changed at the same time.  NULL with errno
 * ENOMEM, or EINVAL if HDF5 refuses (the name is taken). */
struct joule_table *joule_table_create(struct joule_image *image, hid_t parent,
                                       const char *name,
                                       const struct joule_table_options *opt);
void joule_table_destroy(struct joule_table *table);

/* 8 bytes each for the fields and the three columns of time. */
size_t joule_table_row_size(const struct joule_table *table);

/* -1: errno ENOMEM or EIO (HDF5), the row is not in the table. */
int joule_table_append(struct joule_table *table, const void *row);

/*
 * All rows so far into the image, but for their number.  -1 as above.  1: the
 * file's H5Fflush is needed for them, after joule_table_tell; 0: it is not.
 */
int joule_table_flush(struct joule_table *table);

/* Tell HDF5 the number of rows.  -1 as above. */
int joule_table_tell(struct joule_table *table);

/*
 * The number of rows into the image without HDF5, which would touch a hundred
 * kilobytes of code and data for it at each flush: into the eight bytes of the
 * object header where it was found to put it.  To be called after H5Fflush,
 * if there is one.  -1: errno ENOMEM.
 */
int joule_table_patch(struct joule_table *table);

/* Pack the last chunk as well; no row may follow.  -1 as above. */
int joule_table_finish(struct joule_table *table);

uint64_t joule_table_rows(const struct joule_table *table);

/* Set the attribute "Joule Lost Rows". */
int joule_table_set_lost(struct joule_table *table, uint64_t rows);

#endif
