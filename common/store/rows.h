/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rows.h - read the rows of a table: a data set of one dimension.
 *
 * Chunk by chunk, in order.  A chunk that is missing, cut off or damaged is
 * passed over and its rows are counted as lost; the rows behind it follow.
 * Memory is bounded by one chunk and the size of the file, not by what the
 * header of a file says.
 *
 * One thread at a time; libhdf5's part of it may crash on a hostile file, see
 * sandbox.h.
 */
#ifndef JOULE_STORE_ROWS_H
#define JOULE_STORE_ROWS_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/rowtype.h"
#include "common/store/unfilter.h"
#include "common/store/windows.h"

/* The largest chunk that is read, in bytes without filters. */
#define JOULE_CHUNK_MAX ((size_t)4 << 20)

/* How a table lies in its file. */
struct joule_layout {
    uint64_t rows;       /* as the file says */
    uint64_t chunk_rows; /* 0: not in chunks */
    struct joule_pipeline pipeline;
    uint32_t is_known; /* chunks can be read without libhdf5's filters */
    uint32_t spare;
    struct joule_rowtype type;
};

struct joule_rows;

/* The file of a table. */
struct joule_rows_file {
    struct joule_windows *windows; /* outlives the table */
    bool is_moved; /* addresses in it do not count from its beginning */
};

/*
 * Open [name] in group [parent] of [file].  NULL with a sentence: ENOTSUP (not
 * a table, filters or sizes that are not read, data outside of the file),
 * EBADMSG (damaged), ENOMEM.
 */
struct joule_rows *joule_rows_open(hid_t parent, const char *name,
                                   const struct joule_rows_file *file,
                                   struct joule_error *err);
void joule_rows_close(struct joule_rows *rows);

const struct joule_layout *joule_rows_layout(const struct joule_rows *rows);

/* The open data set (for its attributes); stays the table's. */
hid_t joule_rows_dataset(const struct joule_rows *rows);

/*
 * Copy the next rows to buf, up to [room] of them and at least one.  *ret_rows
 * points to them: into [buf], or into memory of the table until the next call.
 * Returns their number; 0 at the end.
 */
size_t joule_rows_read(struct joule_rows *rows, void *buf, size_t room,
                       const void **ret_rows);

/*
 * The next chunk as it is stored, with its filters on and checked: *ret_first
 * is its first row, *ret_mask the filters that were left out.  Returns its
 * size; 0 at the end.  Only when the layout is_known; [room] at least
 * joule_unfilter_bound of a chunk.
 */
size_t joule_rows_read_stored(struct joule_rows *rows, void *buf, size_t room,
                              uint64_t *ret_first, uint32_t *ret_mask);

/* Give back the memory until the next joule_rows_read, for which the chunk is
 * then read once more: where many tables are read side by side. */
void joule_rows_release(struct joule_rows *rows);

/* Rows passed over so far. */
uint64_t joule_rows_lost(const struct joule_rows *rows);

/* Start again at the first row. */
void joule_rows_rewind(struct joule_rows *rows);

#endif
