/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idle_power.h - the idle power of a part of the node, learned as the lowest
 * mean power of a minute.
 *
 *     struct joule_idle_power p = {0};
 *
 *     joule_idle_power_add(&p, uj, ns);
 *     idle_uj = joule_idle_power_uj(&p, ns);
 *
 * Pure arithmetic on a plain struct of 64-bit words, all 0 at first, which
 * another process of the same boot may continue.  Any contents are defined: the
 * worst result is a wrong idle power.
 *
 * A minute is the last six buckets of ten seconds; it moves on by one bucket.
 * An interval of a minute or more is a minute of its own.  By which minutes the
 * idle power falls and rises: doc/architecture.md.  A minute without energy, or
 * above JOULE_IDLE_POWER_MOST_UW, is ignored.  A node that has just booted was
 * idle for a moment, so its first job is not charged the idle power of all CPUs.
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
#define JOULE_IDLE_POWER_PROOF    5 /* much lower minutes that count */
#define JOULE_IDLE_POWER_RISE_PPM 100
#define JOULE_IDLE_POWER_RISE_NS  INT64_C(864000000000)  /* 1/100 of a day */
#define JOULE_IDLE_POWER_MOST_UW  UINT64_C(100000000000) /* 100 kW */

struct joule_idle_power {
    uint64_t idle_power_uw; /* uJ a second; 0: not known yet */
    uint64_t minutes;       /* that have been looked at */
    uint64_t bucket_uj[JOULE_IDLE_POWER_BUCKETS]; /* [0] is being filled */
    int64_t bucket_ns[JOULE_IDLE_POWER_BUCKETS];
    uint64_t proofs;   /* in a row */
    uint64_t proof_uw; /* the highest of them */
    int64_t proof_ns;  /* until the next that does not overlap */
    int64_t rise_ns;   /* time since the last rise */
    uint64_t rise_uw;  /* lowest minute since then; 0: none */
    uint64_t early_uj; /* of the second that is being filled */
    int64_t early_ns;
    uint64_t early_uw; /* the lowest one; 0: none */
};

/* Add an interval of [ns] in which [uj] were used; ns <= 0 is ignored. */
void joule_idle_power_add(struct joule_idle_power *f, uint64_t uj, int64_t ns);

/* The energy of some time is unknown: the minute begins anew. */
void joule_idle_power_gap(struct joule_idle_power *f);

/* The idle energy of an interval of [ns]; UINT64_MAX while no idle power is
 * known. */
uint64_t joule_idle_power_uj(const struct joule_idle_power *f, int64_t ns);

#endif
