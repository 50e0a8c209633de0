/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock.h - time as an argument, so that tests can have their own.
 *
 * Intervals are CLOCK_BOOTTIME (monotonic, goes on during suspend, as the
 * energy counters do); wall time is only ever a label.  Both are read through
 * the vDSO without a system call where the kernel's clock source allows it.
 */
#ifndef JOULE_BASE_CLOCK_H
#define JOULE_BASE_CLOCK_H

#include <stdint.h>

#define JOULE_NS_PER_S  INT64_C(1000000000)
#define JOULE_NS_PER_MS INT64_C(1000000)

struct joule_clock {
    int64_t (*mono_ns)(void *arg); /* required: never goes back, >= 0 */
    int64_t (*wall_ns)(void *arg); /* required: ns since 1970, a label */
    void *arg;
};

/* The kernel's clocks.  Safe from any thread. */
extern const struct joule_clock joule_clock_system;

static inline int64_t joule_clock_mono_ns(const struct joule_clock *c)
{
    return c->mono_ns(c->arg);
}

static inline int64_t joule_clock_wall_ns(const struct joule_clock *c)
{
    return c->wall_ns(c->arg);
}

#endif
