/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/bmcsim/queue.h"

#include <errno.h>
#include <stdlib.h>

/* A binary heap: the parent of [i] is [(i - 1) / 2] and leaves earlier. */

static bool earlier(const struct relay_packet *a, const struct relay_packet *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void swap(struct relay_queue *queue, size_t i, size_t j)
{
    struct relay_packet *packet = queue->heap[i];

    queue->heap[i] = queue->heap[j];
    queue->heap[j] = packet;
}

int relay_queue_push(struct relay_queue *queue,
                     const struct relay_packet *packet)
{
    size_t i = queue->count;

    if (i == RELAY_QUEUE_MAX) {
        errno = ENOBUFS;
        return -1;
    }
    queue->heap[i] = malloc(sizeof(*packet));
    if (!queue->heap[i])
        return -1;
    *queue->heap[i] = *packet;
    queue->heap[i]->order = queue->pushed++;
    queue->count++;
    while (i && earlier(queue->heap[i], queue->heap[(i - 1) / 2])) {
        swap(queue, i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
    return 0;
}

const struct relay_packet *relay_queue_head(const struct relay_queue *queue)
{
    return queue->count ? queue->heap[0] : NULL;
}

void relay_queue_pop(struct relay_queue *queue)
{
    size_t i = 0, child;

    if (!queue->count)
        return;
    free(queue->heap[0]);
    queue->heap[0] = queue->heap[--queue->count];
    while ((child = 2 * i + 1) < queue->count) {
        if (child + 1 < queue->count &&
            earlier(queue->heap[child + 1], queue->heap[child]))
            child++;
        if (!earlier(queue->heap[child], queue->heap[i]))
            break;
        swap(queue, i, child);
        i = child;
    }
}

void relay_queue_clear(struct relay_queue *queue)
{
    while (queue->count)
        relay_queue_pop(queue);
}
