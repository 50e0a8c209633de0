/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * queue.h - rows on their way to the thread that writes them.
 *
 * Two buffers of a fixed size: one is filled by whoever has rows, the other
 * is being emptied.  Who holds the owner's lock may call; a full buffer says
 * so at once.
 */
#ifndef JOULE_STORE_QUEUE_H
#define JOULE_STORE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct joule_queue;

/* Two buffers of [bytes]; NULL with ENOMEM. */
struct joule_queue *joule_queue_create(size_t bytes);
void joule_queue_destroy(struct joule_queue *queue);

/* Room for a row of [size] bytes (a multiple of 8) of a table, to be filled
 * before the lock is given up; NULL: there is none. */
void *joule_queue_add(struct joule_queue *queue, uint32_t table, uint32_t size);

/* Whether half of the buffer is used. */
bool joule_queue_is_half_full(const struct joule_queue *queue);
bool joule_queue_is_empty(const struct joule_queue *queue);

/* Take what there is, and let the other buffer, which must have been emptied
 * by joule_queue_next, be filled. */
void joule_queue_swap(struct joule_queue *queue);

/* The next row of what was taken, without the lock; NULL at the end. */
const void *joule_queue_next(struct joule_queue *queue, uint32_t *ret_table,
                             uint32_t *ret_size);

#endif
