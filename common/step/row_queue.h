/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * row_queue.h - a step's energy in profile rows, which come more often than the
 * samples of the ledger.
 *
 * The ledger says what the step had used at its samples, a second apart or more.
 * Between two samples the step's energy grows as the node's in the rows, scaled
 * to what the step had of the whole interval; where the node used nothing, it
 * grows with the time.  So a row waits for the sample that comes after it, and a
 * sample for the row in which it lies.  At each sample the rows agree with the
 * ledger.
 *
 * Rows for which no sample comes are given up: their energy is what was known
 * last, and their power is unknown.  The first row after them begins at the
 * ledger's figure, and its power is that of its own time.
 *
 * Not thread-safe.
 */
#ifndef JOULE_STEP_ROW_QUEUE_H
#define JOULE_STEP_ROW_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct joule_row_queue;

struct joule_row_queue_row {
    int64_t mono_ns;
    int64_t epoch_s; /* as given to joule_row_queue_add */
    uint64_t uj;     /* the step's since it began, never falls */
    double mw;       /* the step's mean since the row before; NaN: not known */
    void *cells;     /* as given; live until the next row is added */
};

/* For [depth] rows that wait, of [cell_bytes].  NULL with errno ENOMEM. */
struct joule_row_queue *joule_row_queue_create(size_t depth, size_t cell_bytes);

/* NULL is a no-op. */
void joule_row_queue_destroy(struct joule_row_queue *queue);

/* The first row begins at [mono_ns], when the node had used [node_uj].  Calls
 * after the first do nothing. */
void joule_row_queue_begin(struct joule_row_queue *queue, int64_t mono_ns,
                           uint64_t node_uj);

/* Add a row that ends at [mono_ns], later than the one before.  [cells] are
 * copied.  -1 with errno ENOBUFS: the queue is full. */
int joule_row_queue_add(struct joule_row_queue *queue, int64_t mono_ns,
                        uint64_t node_uj, int64_t epoch_s, const void *cells);

bool joule_row_queue_is_full(const struct joule_row_queue *queue);

/* A sample of the ledger: by [mono_ns] the step, which began at [began_ns], has
 * used [uj].  One that is not newer than the last does nothing. */
void joule_row_queue_sample(struct joule_row_queue *queue, int64_t began_ns,
                            int64_t mono_ns, uint64_t uj);

/* Take the next row that has its sample; with [give_up] the next row in any case.
 * false: there is none. */
bool joule_row_queue_next(struct joule_row_queue *queue, bool give_up,
                          struct joule_row_queue_row *ret);

#endif
