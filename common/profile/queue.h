/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * queue.h - rows on their way to the thread that writes them: tables, their
 * rows, and the count of what is lost of them.
 *
 *     any thread              the thread that writes
 *     joule_queue_add_table   while (joule_queue_wait(queue, &until, true)) {
 *     joule_queue_append          rows = joule_queue_take(queue, &size);
 *                                 ... write them ...
 *                                 joule_queue_release(queue);
 *                             }
 *
 * Two buffers of a fixed size hold rows as the log has them (log.h): one is
 * filled while the other is written.  Rows that find the first one full are
 * dropped and counted; no caller waits for the disk.
 */
#ifndef JOULE_PROFILE_QUEUE_H
#define JOULE_PROFILE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/profile/log.h"

struct joule_queue;

/* Two buffers of [bytes], a multiple of 8; [start_s] is the wall time at which
 * ElapsedTime is 0.  NULL with errno ENOMEM. */
struct joule_queue *joule_queue_create(size_t bytes, int64_t start_s);
void joule_queue_destroy(struct joule_queue *queue);

/* As joule_writer_add_table. */
int joule_queue_add_table(struct joule_queue *queue,
                          const struct joule_log_table *table);

/* As joule_writer_append, with the time since the start.  ENOBUFS: it is full,
 * the row is counted as lost. */
int joule_queue_append(struct joule_queue *queue, int table, const void *cells,
                       int64_t epoch_s, uint64_t ns);

void joule_queue_add_missed(struct joule_queue *queue, uint64_t periods);

/* No row will come any more: joule_queue_wait returns. */
void joule_queue_close(struct joule_queue *queue);

/* ---- the thread that writes ---- */

/* Wait until CLOCK_MONOTONIC is [until]; with [early] only until half of the
 * buffer is full.  false: the queue was closed. */
bool joule_queue_wait(struct joule_queue *queue, const struct timespec *until,
                      bool early);

/* Rows that were taken and not released yet; if there are none, those that have
 * come since.  Valid until joule_queue_release; [*ret_size] 0: none. */
const void *joule_queue_take(struct joule_queue *queue, size_t *ret_size);
void joule_queue_release(struct joule_queue *queue);

/* A table by its number, as long as the queue lives; NULL behind the last. */
const struct joule_log_table *joule_queue_table(struct joule_queue *queue,
                                                uint32_t number);

/* Count what was taken, and what has come since, as lost because of [error]. */
void joule_queue_lose(struct joule_queue *queue, int error);

/* errno of the last failure to write. */
void joule_queue_set_error(struct joule_queue *queue, int error);

/* What is missing so far; the end is left 0.  [lost_of] is valid until the next
 * call.  -1 with errno ENOMEM. */
int joule_queue_state(struct joule_queue *queue, struct joule_log_state *ret);

#endif
