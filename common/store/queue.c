/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/queue.h"

#include <stdlib.h>

struct head {
    uint32_t table;
    uint32_t size;
};

struct buffer {
    size_t used;
    size_t taken;
    unsigned char *bytes;
};

struct joule_queue {
    size_t size;
    struct buffer fill;
    struct buffer drain;
};

struct joule_queue *joule_queue_create(size_t bytes)
{
    struct joule_queue *queue = calloc(1, sizeof(*queue));

    if (!queue)
        return NULL;
    queue->size = bytes;
    queue->fill.bytes = malloc(bytes);
    queue->drain.bytes = malloc(bytes);
    if (queue->fill.bytes && queue->drain.bytes)
        return queue;
    joule_queue_destroy(queue);
    return NULL;
}

void joule_queue_destroy(struct joule_queue *queue)
{
    if (!queue)
        return;
    free(queue->fill.bytes);
    free(queue->drain.bytes);
    free(queue);
}

void *joule_queue_add(struct joule_queue *queue, uint32_t table, uint32_t size)
{
    struct buffer *fill = &queue->fill;
    struct head *head;

    if (queue->size - fill->used < sizeof(*head) + size)
        return NULL;
    head = (struct head *)(fill->bytes + fill->used);
    head->table = table;
    head->size = size;
    fill->used += sizeof(*head) + size;
    return head + 1;
}

bool joule_queue_is_half_full(const struct joule_queue *queue)
{
    return queue->fill.used > queue->size / 2;
}

bool joule_queue_is_empty(const struct joule_queue *queue)
{
    return queue->fill.used == 0 && queue->drain.taken == queue->drain.used;
}

void joule_queue_swap(struct joule_queue *queue)
{
    struct buffer empty = queue->drain;

    empty.used = 0;
    empty.taken = 0;
    queue->drain = queue->fill;
    queue->fill = empty;
}

const void *joule_queue_next(struct joule_queue *queue, uint32_t *ret_table,
                             uint32_t *ret_size)
{
    struct buffer *drain = &queue->drain;
    const struct head *head;

    if (drain->taken == drain->used)
        return NULL;
    head = (const struct head *)(drain->bytes + drain->taken);
    drain->taken += sizeof(*head) + head->size;
    *ret_table = head->table;
    *ret_size = head->size;
    return head + 1;
}
