/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * clock_sync.h - how far the clock of this process's machine is from that of rank 0.
 *
 *     machine = joule_clock_sync_begin(&sync, rank, size);   all ranks
 *     clock = joule_clock_sync_measure(&sync);               all ranks, any time
 *
 * Processes of one boot and time namespace have one clock.  Of the others one on each
 * machine plays ping-pong with rank 0, and the shortest of 100 round trips counts: the
 * offset is off by no more than half of it.  A step of one node sends no message, and
 * neither does one whose tasks are not all ranks (mpirun).
 */
#ifndef JOULE_WAITS_CLOCK_SYNC_H
#define JOULE_WAITS_CLOCK_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/waits/log.h"

struct joule_clock_sync {
    uintptr_t comm; /* of its own; 0: there is one machine */
    int rank;
    int *leader; /* of each other machine the first rank */
    int leaders;
};

/* Returns what tells the machine from others. */
uint64_t joule_clock_sync_begin(struct joule_clock_sync *sync, int rank,
                                int size);

struct joule_waits_clock
joule_clock_sync_measure(const struct joule_clock_sync *sync);

#endif
