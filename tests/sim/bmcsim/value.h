/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * value.h - what a BMC makes of the node's power before it tells it: lag,
 * its own update period, noise.  Pure arithmetic over samples.
 *
 * Lag is a first-order low pass.  Its settling time is the time after a step
 * until the value stays within 2 % of the step: 3.912 time constants
 * (ln 50).  Between samples its input is the mean power by the node's energy,
 * so that nothing is lost between them.
 *
 * With an update period the value changes at its multiples only.  Then it is
 * the power of that moment, or the mean over the period.
 */
#ifndef BMCSIM_VALUE_H
#define BMCSIM_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/bmcsim/feed.h"

struct bmc_value_options {
    int64_t settle_ns; /* 0: no lag */
    int64_t update_ns; /* 0: at every sample */
    bool mean;         /* over an update period; without lag */
    double noise_w;    /* standard deviation */
    uint64_t seed;
};

struct bmc_value {
    struct bmc_value_options opt;
    double tau_s;
    uint64_t random; /* state of the generator */
    bool begun;
    int64_t start_ns;
    int64_t tick;           /* update period in which shown was made */
    struct bmc_sample last; /* sample */
    double tick_j;          /* and time of the last tick */
    int64_t tick_ns;
    double lagged_w, shown_w;
};

void bmc_value_init(struct bmc_value *value,
                    const struct bmc_value_options *opt);

/* Take a sample; returns what the BMC shows from then on, in watts, never
 * below 0.  A sample that is not later than the last one changes nothing. */
double bmc_value_add(struct bmc_value *value, const struct bmc_sample *sample);

/* When the next sample is wanted at the latest, after [now_ns]. */
int64_t bmc_value_next_ns(const struct bmc_value *value, int64_t now_ns);

/* Uniform over 0..1, from the value's generator. */
double bmc_value_random(struct bmc_value *value);

#endif
