/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lag_model.h - the power of a whole node from two sensors: a BMC, which
 * measures all of the node, but late, averaged and in steps; and RAPL, which
 * measures a part of the node at once.
 *
 *     joule_lag_model_rapl(&m, watts, ns);        each interval of RAPL
 *     joule_lag_model_bmc(&m, watts);             each measurement of the BMC
 *     node_w = joule_lag_model_watts(&m, rapl_w);
 *
 * The BMC's reading is the node's power behind a lag.  RAPL's power is put
 * through each of JOULE_LAG_MODEL_LAGS lags, and for each lag a line is fitted:
 *
 *      bmc = gain x lagged RAPL + rest
 *
 * The lag with the smallest error of prediction tells the node's power now:
 *
 *      gain x RAPL + rest
 *
 * The gain is the slope over an hour, within physical limits.  The rest is the
 * power outside of RAPL (fans, disks, accelerators, losses), averaged for as
 * long as the BMC is predictable: over minutes where it is steady, not at all
 * where it has no lag.  So the mean of the result is the mean of the BMC.
 * (Georgiou et al., "Energy Accounting and Control with SLURM Resource and Job
 * Management System", ICDCN 2014, name the combination of both as what short
 * jobs need.)
 *
 * Pure arithmetic on a plain struct of 64-bit words, all 0 at first; it may be
 * kept in shared memory and continued by another process of the same boot after
 * joule_lag_model_check().  One thread at a time.
 */
#ifndef JOULE_ENERGY_LAG_MODEL_H
#define JOULE_ENERGY_LAG_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JOULE_LAG_MODEL_LAGS = 16,
    JOULE_LAG_MODEL_RESTS = 3, /* averages of the rest: none, short and long */
    JOULE_LAG_MODEL_HISTORY = 80
};

/* What is known of one lag.  Powers are in watts. */
struct joule_lag_model_lag {
    double lagged_w; /* RAPL's power as the BMC would show it now */
    double known_s;  /* time that is in the sums below, fading */
    double mean_rapl_w, mean_bmc_w; /* of the last minutes */
    /* About the means, times known_s. */
    double var_rapl_w2s, cov_w2s, var_bmc_w2s;
    double rest_w[JOULE_LAG_MODEL_RESTS]; /* bmc - gain x lagged */
    double miss_w2; /* mean square of the error of prediction */
};

/* RAPL's energy up to a time: the node's near past. */
struct joule_lag_model_mark {
    int64_t ns;
    double joules;
};

struct joule_lag_model {
    struct joule_lag_model_lag lag[JOULE_LAG_MODEL_LAGS];
    struct joule_lag_model_mark mark[JOULE_LAG_MODEL_HISTORY];
    double joules;  /* RAPL's, since the history began */
    int64_t ns;     /* time since then */
    int64_t bmc_ns; /* of the last reading */
    double bmc_w;   /* which it was */
    double gain;    /* in use */
    double rest_w;  /* in use */
    double rest_miss_w2[JOULE_LAG_MODEL_RESTS]; /* as miss, of each average */
    double learned_s;  /* time in which the lags differed */
    double lead_s;     /* of that, how long another lag has been better */
    uint64_t marks;    /* that are set */
    uint64_t newest;   /* of them */
    uint64_t best;     /* index of the lag in use */
    uint64_t rest;     /* index of the average in use */
    uint64_t readings; /* of the BMC */
};

/* The interval of [ns] that follows, in which RAPL measured [watts] on average.
 * Ignored if one of them is not a number, negative or zero time. */
void joule_lag_model_rapl(struct joule_lag_model *f, double watts, int64_t ns);

/* The BMC read [watts] now: where the intervals have got to.  Readings at the
 * same time as the last are ignored, as is what is no power. */
void joule_lag_model_bmc(struct joule_lag_model *f, double watts);

/* RAPL has not been read for some time: what it was then is not known. */
void joule_lag_model_gap(struct joule_lag_model *f);

/* Watts of the node when RAPL measures [rapl_w]: never less than that.  Before
 * joule_lag_model_learned() what the BMC has read last; NAN without any. */
double joule_lag_model_watts(const struct joule_lag_model *f, double rapl_w);

/* Whether RAPL has moved enough to say what the BMC's lag is. */
bool joule_lag_model_learned(const struct joule_lag_model *f);

/* How much of that it has, 0 to 1. */
double joule_lag_model_learned_part(const struct joule_lag_model *f);

/* Standard deviation in watts of what the BMC reads about what is foretold. */
double joule_lag_model_deviation(const struct joule_lag_model *f);

/* The lag in use, in words: "first order, 23 s". */
const char *joule_lag_model_words(const struct joule_lag_model *f);

/* Whether what is in a struct of unknown origin can be continued. */
bool joule_lag_model_check(const struct joule_lag_model *f);

#endif
