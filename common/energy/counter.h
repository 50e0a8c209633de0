/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counter.h - one hardware counter, followed across its wraps.
 *
 * Pure arithmetic on plain structs: no allocation, no failure, no lock.  A
 * struct joule_counter may be copied, kept in shared memory and continued by
 * another process of the same boot.
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

/*
 * No domain uses more than this: two readings further apart than the counter
 * takes to wrap at this power do not tell how often it wrapped.  It is well
 * above any socket (2026: 500 W), so that a burst cannot be missed.
 */
#define JOULE_DOMAIN_POWER_MAX_W 1000

/*
 * Above this power between two readings the counter was set back (firmware,
 * warm reset), which looks like a wrap: nothing is added.  The lower, the more
 * of them are told from a wrap: at one sample a second and 15.3 uJ, seven in
 * ten.  No socket and no platform counter of a node comes near it (2026).
 */
#define JOULE_DOMAIN_POWER_ABSURD_W 20000

/* Time without movement after which a counter that had moved is FROZEN (it is
 * updated about every ms), and one that never moved is known to be still. */
#define JOULE_COUNTER_FROZEN_NS INT64_C(3000000000)

/* Ticks between two raw readings of a counter [width_bits] wide. */
uint64_t joule_counter_diff(uint64_t now, uint64_t before, unsigned width_bits);

/* Microjoules of [ticks], rounded down; exact in 128 bits. */
uint64_t joule_unit_to_uj(struct joule_unit unit, uint64_t ticks);

/* Mean power of [uj] in [ns] (> 0), in mW, rounded to the nearest. */
uint64_t joule_power_mw(uint64_t uj, int64_t ns);

/* The same for rows: rounded down, 0 without time, at most UINT32_MAX. */
uint32_t joule_mean_mw(uint64_t uj, int64_t ns);

/* The shortest time in which the counter can wrap, in ns, at
 * JOULE_DOMAIN_POWER_MAX_W; INT64_MAX for a 64-bit counter. */
int64_t joule_domain_wrap_ns(const struct joule_domain *domain);

/* More than any hardware can have used in the time (JOULE_DOMAIN_POWER_
 * ABSURD_W): the counter was set back in between. */
bool joule_domain_absurd(const struct joule_domain *domain, uint64_t ticks,
                         int64_t elapsed_ns);

/*
 * Follow the counter with a reading taken at [now_ns].  A failed reading
 * counts as an error and changes nothing else.  Readings must come in the
 * order of their time.
 */
void joule_counter_update(struct joule_counter *c,
                          const struct joule_domain *domain,
                          struct joule_raw reading, int64_t now_ns);

#endif
