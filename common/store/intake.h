/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * intake.h - what comes in for a profile, from any thread and under one lock:
 * series, their rows, and the count of what is lost of them.  One thread takes
 * it out again; what it alone may call is marked so.
 */
#ifndef JOULE_STORE_INTAKE_H
#define JOULE_STORE_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/store/nodefile.h"

struct joule_intake;

/* A series on its way into the file.  It lives as long as the intake. */
struct joule_series_entry {
    const char *name;
    const struct joule_field *fields; /* their names lie behind them */
    size_t count;
    int64_t period_ns;
    /* of the thread that takes out */
    int table; /* in the file, or -1 */
    bool refused;
    uint64_t appended; /* rows given to the file */
    uint64_t on_disk;  /* of them */
    uint64_t told;     /* what the attribute says is lost */
    /* under the lock */
    uint64_t last_ns; /* of the row before */
    uint64_t lost;    /* rows */
};

/* What is missing in the file. */
struct joule_intake_toll {
    struct joule_loss loss;
    uint64_t missed; /* periods without a row */
};

/* A queue of two buffers of [queue_bytes]; [start_s] is the wall time at which
 * ElapsedTime is 0.  NULL with errno ENOMEM. */
struct joule_intake *joule_intake_create(size_t queue_bytes, int64_t start_s);
void joule_intake_destroy(struct joule_intake *intake);

/* As joule_writer_add_table. */
int joule_intake_add_series(struct joule_intake *intake, const char *name,
                            const struct joule_field *fields, size_t count,
                            int64_t period_ns);

/* As joule_writer_append, with the time since the start.  ENOBUFS: it is full,
 * the row is counted as lost. */
int joule_intake_append(struct joule_intake *intake, int table,
                        const void *cells, int64_t epoch_s, uint64_t ns);

void joule_intake_add_missed(struct joule_intake *intake, uint64_t periods);

/* true for the first who asks: the same trouble is not said twice. */
bool joule_intake_say_first(struct joule_intake *intake);

/* Nothing is to come any more: let joule_intake_wait return. */
void joule_intake_close(struct joule_intake *intake);

struct joule_intake_toll joule_intake_toll(struct joule_intake *intake);

/* ---- the thread that takes out ---- */

/* Until CLOCK_MONOTONIC is [until], or the queue is half full and [early].
 * false: closed. */
bool joule_intake_wait(struct joule_intake *intake,
                       const struct timespec *until, bool early);

/* Take what there is; what was taken before must be empty. */
void joule_intake_take(struct joule_intake *intake);

/* The next row of what was taken, as joule_table_append wants it; NULL at the
 * end. */
const void *joule_intake_next(struct joule_intake *intake,
                              struct joule_series_entry **ret_series,
                              uint64_t *ret_ns);

/* Series by number; NULL behind the last one. */
struct joule_series_entry *joule_intake_series(struct joule_intake *intake,
                                               uint32_t i);

/* How many rows of a series are lost. */
uint64_t joule_intake_lost(struct joule_intake *intake,
                           const struct joule_series_entry *series);

/* Rows that were taken are lost. */
void joule_intake_lose(struct joule_intake *intake,
                       struct joule_series_entry *series, uint64_t rows,
                       uint64_t first_ns, uint64_t last_ns);

/* errno of the last failure to write. */
void joule_intake_set_error(struct joule_intake *intake, int error);

#endif
