/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/energy/lag_model.h"

#include <math.h>

/* Constants are those of real nodes and BMCs, not of a simulation: a power
 * supply and the regulators behind it lose 5 to 40 % of what the sockets add;
 * BMCs of Georgiou et al. took up to 70 s to show a new level, which is the
 * settling of a first-order lag of 23 s. */
#define GAIN_GUESS     1.2
#define GAIN_DEVIATION 0.15
#define GAIN_LEAST     1.0
#define GAIN_MOST      1.6

#define MEAN_S       600.0 /* levels further back say nothing of the slope */
#define SLOPE_S      3600.0
#define MISS_S       300.0
#define NOISE_W2     4.0  /* no BMC is better than that */
#define ALIKE        30.0 /* readings that err together */
#define SPREAD_W     20.0 /* by which lags differ when they can be told apart */
#define LEARNED_S    60.0
#define LEAD_S       200.0
#define LEAD         0.85 /* of the miss of the lag in use */
#define REST_LEAD    0.9
#define LONGEST_S    60.0 /* between two readings */
#define MARK_NS      INT64_C(900000000)
#define SECOND_NS    INT64_C(1000000000)
#define HELD_NS      SECOND_NS /* over which a held reading had been averaged */
#define MOST_W       1e6
#define REST_MOST_W  (3 * MOST_W)
#define KNOWN_MOST_S (SLOPE_S + 2 * LONGEST_S)
#define SUM_MOST     1e18

static const double rest_s[JOULE_LAG_MODEL_RESTS] = {0, 45, 240};

enum shape { FIRST_ORDER, BOXCAR, DELAY, HOLD };

/* FIRST_ORDER: time constant; BOXCAR: width; DELAY: age of what is shown; HOLD:
 * the same, and it stays until the next value is shown. */
static const struct {
    enum shape shape;
    int seconds;
    const char *words;
} lags[JOULE_LAG_MODEL_LAGS] = {
    {FIRST_ORDER, 0, "none"},
    {FIRST_ORDER, 3, "first order, 3 s"},
    {FIRST_ORDER, 5, "first order, 5 s"},
    {FIRST_ORDER, 8, "first order, 8 s"},
    {FIRST_ORDER, 12, "first order, 12 s"},
    {FIRST_ORDER, 17, "first order, 17 s"},
    {FIRST_ORDER, 23, "first order, 23 s"},
    {FIRST_ORDER, 32, "first order, 32 s"},
    {FIRST_ORDER, 45, "first order, 45 s"},
    {FIRST_ORDER, 60, "first order, 60 s"},
    {BOXCAR, 10, "average of 10 s"},
    {BOXCAR, 20, "average of 20 s"},
    {BOXCAR, 30, "average of 30 s"},
    {BOXCAR, 60, "average of 60 s"},
    {DELAY, 3, "delay of 3 s"},
    {HOLD, 3, "delay of 3 s, held"},
};

#define NO_LAG 0 /* its index */

static double fade(double seconds, double constant)
{
    return exp(-seconds / constant);
}

/* ----------------------------------------------------------------- history */

static const struct joule_lag_model_mark *
mark_before(const struct joule_lag_model *f, uint64_t back)
{
    return &f->mark[(f->newest + JOULE_LAG_MODEL_HISTORY - back) %
                    JOULE_LAG_MODEL_HISTORY];
}

static void add_mark(struct joule_lag_model *f)
{
    f->newest = (f->newest + 1) % JOULE_LAG_MODEL_HISTORY;
    f->mark[f->newest] = (struct joule_lag_model_mark){f->ns, f->joules};
    if (f->marks < JOULE_LAG_MODEL_HISTORY)
        f->marks++;
}

/* RAPL's energy up to a time not before the oldest mark. */
static double joules_at(const struct joule_lag_model *f, int64_t ns)
{
    struct joule_lag_model_mark after = {f->ns, f->joules};

    for (uint64_t back = 0; back < f->marks; back++) {
        const struct joule_lag_model_mark *m = mark_before(f, back);

        if (m->ns <= ns) {
            int64_t between = after.ns - m->ns;

            if (between <= 0)
                return m->joules;
            return m->joules + (after.joules - m->joules) *
                                   (double)(ns - m->ns) / (double)between;
        }
        after = *m;
    }
    return after.joules;
}

/* Mean power between two ages, as far as the history goes back. */
static double power_between(const struct joule_lag_model *f, int64_t from_age,
                            int64_t to_age, double otherwise)
{
    int64_t oldest = mark_before(f, f->marks - 1)->ns;
    int64_t from = f->ns - from_age, to = f->ns - to_age;

    if (from < oldest)
        from = oldest;
    if (to <= from)
        return otherwise;
    return (joules_at(f, to) - joules_at(f, from)) /
           ((double)(to - from) / (double)SECOND_NS);
}

/* What was measured a delay ago. */
static void follow_delay(struct joule_lag_model *f, unsigned i)
{
    int64_t age = lags[i].seconds * SECOND_NS;

    f->lag[i].lagged_w =
        power_between(f, age + HELD_NS, age, f->lag[i].lagged_w);
}

static void follow(struct joule_lag_model *f, unsigned i, double watts,
                   double s)
{
    double *w = &f->lag[i].lagged_w;
    int seconds = lags[i].seconds;

    switch (lags[i].shape) {
    case FIRST_ORDER:
        *w = seconds == 0 ? watts : watts + (*w - watts) * fade(s, seconds);
        break;
    case BOXCAR:
        *w = power_between(f, seconds * SECOND_NS, 0, watts);
        break;
    case DELAY:
        follow_delay(f, i);
        break;
    case HOLD: /* until the BMC shows another value */
        break;
    }
}

void joule_lag_model_rapl(struct joule_lag_model *f, double watts, int64_t ns)
{
    double s = (double)ns / (double)SECOND_NS;

    if (!(watts >= 0 && watts <= MOST_W) || ns <= 0)
        return;
    if (f->marks == 0) {
        for (unsigned i = 0; i < JOULE_LAG_MODEL_LAGS; i++)
            f->lag[i].lagged_w = watts;
        add_mark(f);
    }
    f->ns += ns;
    f->joules += watts * s;
    for (unsigned i = 0; i < JOULE_LAG_MODEL_LAGS; i++)
        follow(f, i, watts, s);
    if (f->ns - mark_before(f, 0)->ns >= MARK_NS)
        add_mark(f);
}

void joule_lag_model_gap(struct joule_lag_model *f)
{
    f->marks = 0;
}

/* --------------------------------------------------------------------- fit */

/* The slope, drawn to what is usual as long as little is known: errors of
 * readings that follow one another are the same errors. */
static double gain_of(const struct joule_lag_model_lag *l)
{
    double slope, noise, doubt, gain;

    if (!(l->known_s > 0))
        return GAIN_GUESS;
    slope = l->var_rapl_w2s > 0 ? l->cov_w2s / l->var_rapl_w2s : GAIN_GUESS;
    noise = (l->var_bmc_w2s - slope * l->cov_w2s) / l->known_s;
    if (!(noise > NOISE_W2))
        noise = NOISE_W2;
    doubt = noise * ALIKE / (GAIN_DEVIATION * GAIN_DEVIATION);
    gain = (l->cov_w2s + doubt * GAIN_GUESS) / (l->var_rapl_w2s + doubt);
    return fmin(fmax(gain, GAIN_LEAST), GAIN_MOST);
}

static void fit(struct joule_lag_model_lag *l, double bmc, double s)
{
    /* At first a plain mean. */
    double part = fmax(1 - fade(s, MEAN_S), s / (l->known_s + s));
    double rapl, weight, kept = fade(s, SLOPE_S);

    if (!(l->known_s > 0)) {
        l->mean_rapl_w = l->lagged_w;
        l->mean_bmc_w = bmc;
    }
    rapl = l->lagged_w - l->mean_rapl_w;
    bmc -= l->mean_bmc_w;
    l->mean_rapl_w += part * rapl;
    l->mean_bmc_w += part * bmc;
    weight = (1 - part) * s;
    l->var_rapl_w2s = l->var_rapl_w2s * kept + weight * rapl * rapl;
    l->cov_w2s = l->cov_w2s * kept + weight * rapl * bmc;
    l->var_bmc_w2s = l->var_bmc_w2s * kept + weight * bmc * bmc;
    l->known_s = l->known_s * kept + s;
}

/* How far the lags are from one another, as a weight from 0 to 1: at a steady
 * power all of them foretell the same. */
static double told_apart(const struct joule_lag_model *f)
{
    double least = f->lag[0].lagged_w, most = least, spread;

    for (unsigned i = 1; i < JOULE_LAG_MODEL_LAGS; i++) {
        least = fmin(least, f->lag[i].lagged_w);
        most = fmax(most, f->lag[i].lagged_w);
    }
    spread = (most - least) * (most - least);
    return spread / (spread + SPREAD_W * SPREAD_W);
}

/* Another lag is taken if it has been better for long. */
static void choose_lag(struct joule_lag_model *f, double weighted_s)
{
    uint64_t best = f->best;
    double least = f->lag[best].miss_w2 * LEAD;

    for (unsigned i = 0; i < JOULE_LAG_MODEL_LAGS; i++)
        if (f->lag[i].miss_w2 < least) {
            least = f->lag[i].miss_w2;
            best = i;
        }
    f->lead_s = best == f->best ? 0 : f->lead_s + weighted_s;
    if (!joule_lag_model_learned(f) || f->lead_s > LEAD_S) {
        f->best = best;
        f->lead_s = 0;
    }
}

static void choose_rest(struct joule_lag_model *f, double beyond, double s)
{
    const struct joule_lag_model_lag *l = &f->lag[f->best];
    double kept = fade(s, MISS_S);

    for (unsigned j = 0; j < JOULE_LAG_MODEL_RESTS; j++)
        if (f->rest_miss_w2[j] < f->rest_miss_w2[f->rest] * REST_LEAD)
            f->rest = j;
    for (unsigned j = 0; j < JOULE_LAG_MODEL_RESTS; j++) {
        double miss = beyond - l->rest_w[j];

        f->rest_miss_w2[j] =
            f->rest_miss_w2[j] * kept + (1 - kept) * miss * miss;
    }
}

/* What was foretold is compared before the reading is learned from. */
static void learn(struct joule_lag_model *f, unsigned i, double bmc, double s,
                  double weighted_s)
{
    struct joule_lag_model_lag *l = &f->lag[i];
    double beyond = bmc - gain_of(l) * l->lagged_w;
    double miss, kept = fade(weighted_s, MISS_S);

    if (!(l->known_s > 0)) {
        for (unsigned j = 0; j < JOULE_LAG_MODEL_RESTS; j++)
            l->rest_w[j] = beyond;
    }
    miss = beyond - l->rest_w[1];
    l->miss_w2 = l->miss_w2 * kept + (1 - kept) * miss * miss;
    for (unsigned j = 0; j < JOULE_LAG_MODEL_RESTS; j++) {
        double part = rest_s[j] > 0 ? fade(s, rest_s[j]) : 0;

        l->rest_w[j] = l->rest_w[j] * part + (1 - part) * beyond;
    }
    fit(l, bmc, s);
}

static void learn_all(struct joule_lag_model *f, double watts, double s)
{
    const struct joule_lag_model_lag *l = &f->lag[f->best];
    double weighted_s = told_apart(f) * s;

    choose_rest(f, watts - gain_of(l) * l->lagged_w, s);
    for (unsigned i = 0; i < JOULE_LAG_MODEL_LAGS; i++)
        learn(f, i, watts, s, weighted_s);
    choose_lag(f, weighted_s);
    f->learned_s += weighted_s;
    l = &f->lag[f->best];
    f->gain = gain_of(l);
    /* Without a lag the BMC knows better than any average. */
    f->rest_w =
        f->best == NO_LAG ? watts - f->gain * l->lagged_w : l->rest_w[f->rest];
}

void joule_lag_model_bmc(struct joule_lag_model *f, double watts)
{
    bool first = f->readings == 0, changed = first || watts != f->bmc_w;
    double s = first ? 1 : (double)(f->ns - f->bmc_ns) / (double)SECOND_NS;

    if (!(watts >= 0 && watts <= MOST_W) || !(s > 0))
        return;
    f->readings++;
    f->bmc_w = watts;
    f->bmc_ns = f->ns;
    if (f->marks == 0)
        return; /* RAPL is not known */
    /* What a BMC that holds its value shows has just been measured. */
    for (unsigned i = 0; changed && i < JOULE_LAG_MODEL_LAGS; i++)
        if (lags[i].shape == HOLD)
            follow_delay(f, i);
    learn_all(f, watts, s < LONGEST_S ? s : LONGEST_S);
}

/* ------------------------------------------------------------------ result */

bool joule_lag_model_learned(const struct joule_lag_model *f)
{
    return f->learned_s >= LEARNED_S;
}

double joule_lag_model_learned_part(const struct joule_lag_model *f)
{
    return f->learned_s < LEARNED_S ? f->learned_s / LEARNED_S : 1;
}

double joule_lag_model_watts(const struct joule_lag_model *f, double rapl_w)
{
    double watts;

    if (f->readings == 0)
        return NAN;
    watts =
        joule_lag_model_learned(f) ? f->gain * rapl_w + f->rest_w : f->bmc_w;
    return watts >= rapl_w ? watts : rapl_w;
}

double joule_lag_model_deviation(const struct joule_lag_model *f)
{
    return sqrt(f->rest_miss_w2[f->rest]);
}

const char *joule_lag_model_words(const struct joule_lag_model *f)
{
    return lags[f->best].words;
}

static bool within(double x, double least, double most)
{
    return x >= least && x <= most; /* a NAN is not */
}

static bool is_lag(const struct joule_lag_model_lag *l)
{
    for (unsigned j = 0; j < JOULE_LAG_MODEL_RESTS; j++)
        if (!within(l->rest_w[j], -REST_MOST_W, REST_MOST_W))
            return false;
    return within(l->lagged_w, 0, MOST_W) &&
           within(l->known_s, 0, KNOWN_MOST_S) &&
           within(l->mean_rapl_w, 0, MOST_W) &&
           within(l->mean_bmc_w, 0, MOST_W) &&
           within(l->var_rapl_w2s, 0, SUM_MOST) &&
           within(l->var_bmc_w2s, 0, SUM_MOST) &&
           within(l->cov_w2s, -SUM_MOST, SUM_MOST) &&
           within(l->miss_w2, 0, SUM_MOST);
}

/* From now back: no later, no more, and no faster than any node. */
static bool is_history(const struct joule_lag_model *f)
{
    struct joule_lag_model_mark after = {f->ns, f->joules};

    for (uint64_t back = 0; back < f->marks; back++) {
        const struct joule_lag_model_mark *m = mark_before(f, back);

        if (m->ns < 0 || m->ns > after.ns || !(m->joules >= 0) ||
            !within(after.joules - m->joules, 0,
                    MOST_W * 1.01 * (double)(after.ns - m->ns) /
                        (double)SECOND_NS))
            return false;
        after = *m;
    }
    return true;
}

bool joule_lag_model_check(const struct joule_lag_model *f)
{
    if (f->best >= JOULE_LAG_MODEL_LAGS || f->rest >= JOULE_LAG_MODEL_RESTS ||
        f->marks > JOULE_LAG_MODEL_HISTORY ||
        f->newest >= JOULE_LAG_MODEL_HISTORY || f->ns < 0 ||
        f->ns > INT64_MAX / 2 || f->bmc_ns < 0 || f->bmc_ns > f->ns ||
        !within(f->joules, 0, SUM_MOST) || !is_history(f))
        return false;
    for (unsigned i = 0; i < JOULE_LAG_MODEL_LAGS; i++)
        if (!is_lag(&f->lag[i]))
            return false;
    for (unsigned j = 0; j < JOULE_LAG_MODEL_RESTS; j++)
        if (!within(f->rest_miss_w2[j], 0, SUM_MOST))
            return false;
    return (f->readings > 0 || f->learned_s == 0) &&
           within(f->bmc_w, 0, MOST_W) && within(f->gain, 0, GAIN_MOST) &&
           within(f->rest_w, -REST_MOST_W, REST_MOST_W) &&
           within(f->learned_s, 0, SUM_MOST) && within(f->lead_s, 0, SUM_MOST);
}
