/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * queue.h - packets that leave later, ordered by time; those of one time in
 * the order in which they came.
 */
#ifndef BMCSIM_QUEUE_H
#define BMCSIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_PACKET_MAX 1024 /* of IPMI none is longer than about 300 */
#define RELAY_QUEUE_MAX  1024

struct relay_packet {
    int64_t due_ns;
    uint64_t order; /* set by the push */
    unsigned client;
    uint32_t generation; /* of the client's place */
    bool answer;         /* from the BMC */
    size_t len;
    uint8_t data[RELAY_PACKET_MAX];
};

struct relay_queue {
    size_t count;
    uint64_t pushed;
    struct relay_packet *heap[RELAY_QUEUE_MAX];
};

/* Take a copy.  -1 with ENOBUFS (full) or ENOMEM. */
int relay_queue_push(struct relay_queue *queue,
                     const struct relay_packet *packet);

/* The next to leave, or NULL; the queue keeps it. */
const struct relay_packet *relay_queue_head(const struct relay_queue *queue);
/* Remove it. */
void relay_queue_pop(struct relay_queue *queue);
/* Remove all. */
void relay_queue_clear(struct relay_queue *queue);

#endif
