/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * floor.h - what a part of the node uses when nothing runs, learned: the
 * lowest mean power of a minute.
 *
 * Pure arithmetic on a plain struct of 64-bit words, all 0 at first; it may be
 * kept in shared memory and continued by another process of the same boot.
 * Whatever is in it, nothing worse comes of it than a wrong floor.
 *
 *  - A minute is six buckets of ten seconds, the last ones: it moves on by a
 *    bucket.  An interval of a minute or more is a minute of its own.
 *  - A minute that is lower, but not by more than a fifth, is the new floor.
 *  - Lower by more: it takes JOULE_IDLE_POWER_PROOF such minutes, none
 * overlapping, one after the other, and the highest of them is the new floor.
 *  - Otherwise the floor rises by JOULE_IDLE_POWER_RISE_PPM each
 *    JOULE_IDLE_POWER_RISE_NS, never above the lowest minute since the last
 * rise: 1 % in 24 hours.
 *  - A lower minute in which one bucket is less than four fifths of another
 *    is passed over: a load began or ended in it.
 *  - A minute without energy, or above JOULE_IDLE_POWER_MOST_UW, is none.
 *  - Before the first minute, the lowest mean of a second or more (several
 *    short intervals, or a long one) stands in for the floor; before there is
 *    one, everything is below it.  A node that has just booted has been idle
 *    for a moment, and its first job is not charged what all CPUs need.  Its
 *    first bucket should be one of short intervals: of a long one only the
 *    mean is known.
 */
#ifndef JOULE_ENERGY_IDLE_POWER_H
#define JOULE_ENERGY_IDLE_POWER_H

#include <stdbool.h>
#include <stdint.h>

#define JOULE_IDLE_POWER_BUCKETS   6
#define JOULE_IDLE_POWER_BUCKET_NS INT64_C(10000000000)
#define JOULE_IDLE_POWER_MINUTE_NS                                             \
    (JOULE_IDLE_POWER_BUCKETS * JOULE_IDLE_POWER_BUCKET_NS)
#define JOULE_IDLE_POWER_EARLY_NS INT64_C(1000000000)
#define JOULE_IDLE_POWER_PROOF    5
#define JOULE_IDLE_POWER_RISE_PPM 100
#define JOULE_IDLE_POWER_RISE_NS  INT64_C(864000000000)  /* 1/100 of a day */
#define JOULE_IDLE_POWER_MOST_UW  UINT64_C(100000000000) /* 100 kW */

struct joule_idle_power {
    uint64_t idle_power_uw; /* uJ a second; 0: not known yet */
    uint64_t minutes;       /* that have been looked at */
    uint64_t bucket_uj[JOULE_IDLE_POWER_BUCKETS]; /* [0] is being filled */
    int64_t bucket_ns[JOULE_IDLE_POWER_BUCKETS];
    uint64_t proofs;   /* minutes in turn that were far below the floor */
    uint64_t proof_uw; /* the highest of them */
    int64_t proof_ns;  /* until the next that does not overlap */
    int64_t rise_ns;   /* time since the last rise */
    uint64_t rise_uw;  /* lowest minute since then; 0: none */
    uint64_t early_uj; /* of the second that is being filled */
    int64_t early_ns;
    uint64_t early_uw; /* the lowest one; 0: none */
};

/* An interval of [ns] in which [uj] were used.  Nothing happens if ns <= 0. */
void joule_idle_power_add(struct joule_idle_power *f, uint64_t uj, int64_t ns);

/* There is time of which nothing is known: the minute begins anew. */
void joule_idle_power_gap(struct joule_idle_power *f);

/* The floor over an interval, or what stands in for it, at most UINT64_MAX,
 * which it also is if nothing is known. */
uint64_t joule_idle_power_uj(const struct joule_idle_power *f, int64_t ns);

#endif
