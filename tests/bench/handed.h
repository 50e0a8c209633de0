/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * handed.h - a power meter whose readings are handed to the thread that waits
 * for them: a BMC without a clock, whose thread does the same each time.
 */
#ifndef JOULE_BENCH_HANDED_H
#define JOULE_BENCH_HANDED_H

#include <pthread.h>
#include <stdbool.h>

#include "common/sensors/meter.h"

struct handed {
    struct joule_meter meter;   /* first */
    struct joule_domain domain; /* "Node" */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool full, waiting, interrupted;
    struct joule_power power;
};

void handed_init(struct handed *h);

/* Give a reading to the thread, and wait until it comes for the next one: what
 * it does with this one is done then.  There must be such a thread. */
void handed_give(struct handed *h, const struct joule_power *power);

#endif
