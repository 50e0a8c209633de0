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
#include "common/store/layout.h"
#include "common/store/windows.h"

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

/* The same without libhdf5: a table of this layout, in chunks whose index has
 * been checked (chunkmap.h), with its object header at [header].  NULL:
 * ENOTSUP, ENOMEM. */
struct joule_rows *joule_rows_create(const struct joule_layout *layout,
                                     uint64_t header,
                                     const struct joule_rows_file *file,
                                     struct joule_error *err);
void joule_rows_close(struct joule_rows *rows);

const struct joule_layout *joule_rows_layout(const struct joule_rows *rows);

/* The data set that joule_rows_open has opened (for its attributes); stays the
 * table's. */
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

/* A run of chunks that have nothing on them that could be checked. */
struct joule_run {
    uint64_t at; /* in the file, which has it all */
    size_t len;
    uint64_t rows;
    uint32_t mask; /* of each */
};

#define JOULE_RUN_MAX ((size_t)8 << 20)

/* Whether the next chunk is such a one; then it is passed over, together with
 * those that lie right behind it, and need not be read. */
bool joule_rows_skip_plain(struct joule_rows *rows, struct joule_run *ret);

/* Give back the memory until the next joule_rows_read, for which the chunk is
 * then read once more: where many tables are read side by side. */
void joule_rows_release(struct joule_rows *rows);

/* Rows passed over so far. */
uint64_t joule_rows_lost(const struct joule_rows *rows);

/* Start again at the first row. */
void joule_rows_rewind(struct joule_rows *rows);

#endif
