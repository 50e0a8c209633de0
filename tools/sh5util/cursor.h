/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cursor.h - one column of one table, read forward by time.
 *
 * Time is "Joule Start Wall ns" + "ElapsedTimeNs" where a file has them,
 * otherwise "EpochTime".  Many cursors may be open at a time: each holds a
 * batch of rows, and nothing of the file's.
 */
#ifndef JOULE_SH5UTIL_CURSOR_H
#define JOULE_SH5UTIL_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/profile/hdf5_read.h"
#include "tools/sh5util/jobtables.h"

/* A cell: a whole number, or [real] alone if the column is one of doubles. */
struct joule_value {
    bool is_there;
    __int128 whole;
    double real;
};

struct joule_sample {
    bool is_there;
    int64_t ns;
    uint64_t elapsed, elapsed_ns; /* 0 where there is no such column */
    struct joule_value value;
};

/* The sample at hand and the one behind it.  Begins with all zeros. */
struct joule_cursor {
    hid_t file;
    char *path;          /* of the table, which is open only while it is read */
    uint64_t rows, next; /* of the table, and the one that is read next */
    uint64_t lost;       /* that cannot be read */
    struct joule_column item, epoch, elapsed, elapsed_ns; /* size 0: none */
    uint64_t start_ns;
    bool has_start;
    unsigned char *batch;
    size_t batch_rows;
    const unsigned char *at; /* rows that are left of the batch */
    size_t left, row_size;
    struct joule_sample now, next_sample;
    int64_t interval_ns;
};

/* Column [item] of [table]; [bytes] of memory are for its rows.  -1 with a
 * sentence. */
int joule_cursor_open(struct joule_cursor *cursor, hid_t file,
                      const struct joule_plan *plan,
                      const struct joule_plan_table *table, const char *item,
                      size_t bytes, struct joule_error *err);

/* Rows that could not be read. */
uint64_t joule_cursor_close(struct joule_cursor *cursor);

void joule_cursor_advance(struct joule_cursor *cursor);

/* The sample nearest to [ns], which does not fall from call to call, unless it
 * is further away than half of the longer interval between samples, its own or
 * [interval_ns]. */
struct joule_value joule_cursor_at(struct joule_cursor *cursor, int64_t ns,
                                   int64_t interval_ns);

#endif
