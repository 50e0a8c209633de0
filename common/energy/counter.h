/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counter.h - one hardware counter, followed across its wraps.
 *
 * Pure arithmetic on a plain struct, all 0 at first, which another process of
 * the same boot may continue.
 */
#ifndef JOULE_ENERGY_COUNTER_H
#define JOULE_ENERGY_COUNTER_H

#include <stdint.h>

#include "common/energy/domain.h"

enum joule_counter_state {
    JOULE_COUNTER_NEW = 0,   /* never read */
    JOULE_COUNTER_STILL = 1, /* read, but it has not moved since */
    JOULE_COUNTER_MOVING = 2,
    JOULE_COUNTER_FROZEN = 3, /* it had moved, but no longer does */
};

struct joule_counter {
    uint64_t raw;     /* last good reading */
    uint64_t ticks;   /* since the counter was first read, never falls */
    int64_t began_ns; /* when the counter was first read (monotonic) */
    int64_t read_ns;  /* when raw was read */
    int64_t moved_ns; /* when raw last changed; first reading: read_ns; while
                         there is none the caller's: when it was asked last */
    int64_t gap_ns;   /* time in which wraps may have been missed */
    uint32_t wraps;   /* that were seen */
    uint32_t errors;  /* readings that failed, saturating */
    uint32_t gaps;    /* readings too far apart to know the wraps, or more
                         than the hardware can use: see counter_update */
    uint32_t state;   /* enum joule_counter_state */
};

/* Two readings further apart than the counter takes to wrap at this power do
 * not tell how often it wrapped.  No domain uses as much (2026: 500 W). */
#define JOULE_DOMAIN_POWER_MAX_W 1000

/* Above this power between two readings the counter was set back (firmware,
 * warm reset), which looks like a wrap: nothing is added.  The lower, the more
 * of them are told from a wrap: at one sample a second and 15.3 uJ, seven in
 * ten.  No platform counter of a node comes near it (2026). */
#define JOULE_DOMAIN_POWER_ABSURD_W 20000

/* Time without movement after which a counter that had moved is FROZEN (it is
 * updated about every ms), and one that never moved is known to be still. */
#define JOULE_COUNTER_FROZEN_NS INT64_C(3000000000)

/* Microjoules of [ticks], rounded down; exact in 128 bits. */
uint64_t joule_unit_to_uj(struct joule_unit unit, uint64_t ticks);

/* Mean power of [uj] in [ns] (> 0), in mW, rounded to the nearest. */
uint64_t joule_power_mw(uint64_t uj, int64_t ns);

/* The same for rows: rounded down, 0 without time, at most UINT32_MAX. */
uint32_t joule_mean_mw(uint64_t uj, int64_t ns);

/* The shortest time in which one of the counters can wrap, in ns, at
 * JOULE_DOMAIN_POWER_MAX_W; INT64_MAX if none is less than 64 bits wide. */
int64_t joule_domains_wrap_ns(const struct joule_domain *domains, size_t count);

/* Follow the counter with a reading taken at [now_ns], not before the last.  A
 * failed reading counts as an error and changes nothing else. */
void joule_counter_update(struct joule_counter *c,
                          const struct joule_domain *domain,
                          struct joule_raw reading, int64_t now_ns);

/* Whether a struct of unknown origin can be continued at [now_ns]. */
bool joule_counter_check(const struct joule_counter *c, int64_t now_ns);

#endif
