/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * writer.h - the profile of one step on one node, written by a thread of its
 * own: a log (log.h) while the step runs, and at its end an HDF5 file that a
 * helper program makes of it (converter.h).
 *
 *     writer = joule_writer_create(&opt, &err);
 *     table = joule_writer_add_table(writer, "Energy", fields, count, 0);
 *     joule_writer_append(writer, table, cells, epoch_s, mono_ns);
 *     joule_writer_close(writer, wait_ns);
 *
 * Rows wait in two buffers of a fixed size, one of which is filled while the
 * other is written; the disk is the thread's affair alone.  It wakes at each
 * flush interval (and when a buffer is half full), makes the file if there is
 * none yet, and brings to disk what has come.  Nothing is done on the disk before
 * the first interval is over or the profile is closed: while slurmstepd launches
 * tasks it changes the user of all its threads, and would wait for one that is
 * stuck in the file system.
 *
 * When the disk refuses, that is said once, and the next interval tries again;
 * when both buffers are full, rows are dropped and counted, and the file tells
 * how many and when.  When the helper fails, the log stays, and sh5util reads it.
 *
 * joule_writer_add_table and joule_writer_append may be called by any thread.
 */
#ifndef JOULE_PROFILE_WRITER_H
#define JOULE_PROFILE_WRITER_H

#include <stdbool.h>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/profile/log.h"
#include "common/profile/place.h"

struct joule_writer;

/* Texts and groups are copied. */
struct joule_writer_options {
    struct joule_place place;
    const char *base;                 /* the file's name without ".log" */
    struct joule_profile_facts facts; /* run, start and the clocks are set by
                                         the writer */
    const char *helper; /* absolute path; NULL: the log stays one */
    const struct joule_clock *clock;
    int64_t flush_ns;   /* > 0 */
    size_t queue_bytes; /* of each of the two buffers; a multiple of 8 */
    /* One sentence about what is wrong, from any thread; at most three in the
     * life of a writer: rows cannot be written, what is lost, and that the log
     * stays one. */
    void (*problem)(const char *text, void *arg);
    void *problem_arg;
};

/* The step begins now.  NULL with errno ENOMEM or what pthread_create gave. */
struct joule_writer *joule_writer_create(const struct joule_writer_options *opt,
                                         struct joule_error *err);

/* CLOCK_BOOTTIME and the wall clock at ElapsedTimeNs 0. */
int64_t joule_writer_start_ns(const struct joule_writer *writer);
int64_t joule_writer_start_wall_ns(const struct joule_writer *writer);

/*
 * A series, "Energy" or "Tasks/0"; names of fields are copied.  Its number,
 * or -1 with errno
 *   EINVAL  a name that cannot be in a profile (joule_log_check_table)
 *   EEXIST  there is a table or group of this name
 *   E2BIG   more than JOULE_FIELDS_MAX fields
 *   ENOSPC  there are JOULE_TABLES_MAX tables
 *   ENOMEM
 */
int joule_writer_add_table(struct joule_writer *writer, const char *name,
                           const struct joule_field *fields, size_t count,
                           int64_t period_ns);

/*
 * A row: [cells] are joule_log_cells of 8 bytes.  [epoch_s] is the wall time that
 * the row is labelled with, [mono_ns] when it was measured; a row from before
 * the one before it in its table is put at the time of that one.  Takes well
 * below a microsecond and never waits for the disk.  -1 with errno ENOBUFS
 * (dropped and counted) or EINVAL (no such table).
 */
int joule_writer_append(struct joule_writer *writer, int table,
                        const void *cells, int64_t epoch_s, int64_t mono_ns);

/* Whether more than half of the queue waits for the disk: rows that can wait, or
 * be left out, should. */
bool joule_writer_is_behind(struct joule_writer *writer);

/* Periods of a sampled series that never got a row: the file tells how many. */
void joule_writer_add_missed(struct joule_writer *writer, uint64_t periods);

/*
 * Write what there is, end the log and have it made an HDF5 file; the helper
 * has nine tenths of [wait_ns].  Nobody may call anything else any more.  -1
 * with errno ETIMEDOUT if all that takes longer than [wait_ns]: the thread is
 * then left to itself, and frees what it has if it ever gets on.  NULL is a
 * no-op.
 */
int joule_writer_close(struct joule_writer *writer, int64_t wait_ns);

#endif
