/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rows.h - read the rows of a table: a data set of one dimension.
 *
 * Chunk by chunk, in order.  A chunk that is missing, cut off or damaged is
 * passed over and its rows are counted as lost; the rows behind it follow.
 * Memory is bounded by one chunk and the size of the file, not by what the
 * header of a file says.
 *
 * One thread at a time.
 */
#ifndef JOULE_STORE_ROWS_H
#define JOULE_STORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/layout.h"
#include "common/store/windows.h"

struct joule_rows;

/* How the data of a table is got at where chunks cannot be found in the file
 * itself, or where their filters are not known (unfilter.h). */
struct joule_rows_reader {
    /* The chunk at row [first] to buf, as it is stored; its size, 0 if there is
     * none that could be read. */
    size_t (*chunk)(void *arg, uint64_t first, void *buf, size_t room,
                    uint32_t *ret_mask);
    /* [count] rows to [out], without filters.  -1: they are not there. */
    int (*rows)(void *arg, uint64_t first, uint64_t count, void *out);
    void (*close)(void *arg);
};

/* A table of this layout, in chunks whose index has been checked (chunkmap.h),
 * with its object header at [header] of the file, whose windows outlive it.
 * NULL: ENOTSUP, ENOMEM. */
struct joule_rows *joule_rows_create(const struct joule_layout *layout,
                                     struct joule_windows *windows,
                                     uint64_t header, struct joule_error *err);

/* A table of any layout.  [header] 0: its chunks are got from [reader] alone.
 * [arg] belongs to the table, and is closed if there is none.  NULL: ENOMEM. */
struct joule_rows *
joule_rows_create_read(const struct joule_layout *layout,
                       struct joule_windows *windows, uint64_t header,
                       const struct joule_rows_reader *reader, void *arg,
                       struct joule_error *err);
void joule_rows_close(struct joule_rows *rows);

const struct joule_layout *joule_rows_layout(const struct joule_rows *rows);

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
