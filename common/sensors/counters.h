/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counters.h - a set of energy counters: registers that wrap, read within
 * microseconds.
 *
 * Passive: it knows no thread and no log, and belongs to one thread at a time.
 * counter_sensor.h makes a sensor of it.
 */
#ifndef JOULE_SENSORS_COUNTERS_H
#define JOULE_SENSORS_COUNTERS_H

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/energy/domain.h"

struct joule_counters;

/* All are required. */
struct joule_counters_ops {
    const char *type; /* "rapl" */
    /* Read every domain; out has as many entries as domains.  A reading that
     * failed is tried once more, and then wherever else the same counter can be
     * read, before it is an error. */
    void (*read)(struct joule_counters *counters, struct joule_raw *out);
    /* 1 and a sentence for the log about something that happened since the last
     * call (a counter is read on another CPU), or 0. */
    int (*remark)(struct joule_counters *counters,
                  struct joule_error *ret_remark);
    void (*destroy)(struct joule_counters *counters);
};

/* The head of every set; filled at creation, constant afterwards. */
struct joule_counters {
    const struct joule_counters_ops *ops;
    const struct joule_domain *domains;
    size_t domain_count;
};

/*
 * Read all counters and return the time at which that was, to 1 ms: a thread
 * that was off the CPU between reading and clock reads again.  (A late time
 * would make the next interval short and its power absurd.)
 */
int64_t joule_counters_read(struct joule_counters *counters,
                            const struct joule_clock *clock,
                            struct joule_raw *out);

/* NULL is a no-op; errno is kept. */
void joule_counters_destroy(struct joule_counters *counters);

#endif
