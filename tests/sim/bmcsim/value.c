/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/bmcsim/value.h"

#include <math.h>

/* Samples are taken this often for the statistics alone, and so much finer
 * than the lag that its filter does not show it. */
#define IDLE_NS     (250 * JOULE_NS_PER_MS)
#define STEP_MIN_NS (10 * JOULE_NS_PER_MS)
#define STEP_MAX_NS (100 * JOULE_NS_PER_MS)
#define STEPS       50

void bmc_value_init(struct bmc_value *value,
                    const struct bmc_value_options *opt)
{
    *value = (struct bmc_value){
        .opt = *opt,
        .tau_s = (double)opt->settle_ns / JOULE_NS_PER_S / log(50),
        .random = opt->seed * 2 + 1,
    };
    for (int i = 0; i < 8; i++)
        bmc_value_random(value);
}

/* xorshift64* (Vigna 2016): the same numbers everywhere for the same seed. */
double bmc_value_random(struct bmc_value *value)
{
    uint64_t x = value->random;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    value->random = x;
    return (double)((x * UINT64_C(0x2545F4914F6CDD1D)) >> 11) * 0x1p-53;
}

/* Box and Muller's method, one of the two numbers. */
static double gauss(struct bmc_value *value)
{
    double u = 1 - bmc_value_random(value); /* above 0 */

    return sqrt(-2 * log(u)) * cos(2 * M_PI * bmc_value_random(value));
}

static double show(struct bmc_value *value, double watts)
{
    if (value->opt.noise_w > 0)
        watts += value->opt.noise_w * gauss(value);
    return watts > 0 ? watts : 0;
}

static double seconds(int64_t ns)
{
    return (double)ns / JOULE_NS_PER_S;
}

static void begin(struct bmc_value *value, const struct bmc_sample *sample)
{
    value->begun = true;
    value->start_ns = value->tick_ns = sample->mono_ns;
    value->tick_j = sample->joules;
    value->last = *sample;
    value->lagged_w = sample->watts;
    value->shown_w = show(value, sample->watts);
}

/* The power that the BMC would show if it did so now. */
static double present_w(const struct bmc_value *value)
{
    const struct bmc_sample *now = &value->last;

    if (value->tau_s > 0)
        return value->lagged_w;
    if (value->opt.mean && value->opt.update_ns &&
        now->mono_ns > value->tick_ns)
        return (now->joules - value->tick_j) /
               seconds(now->mono_ns - value->tick_ns);
    return now->watts;
}

double bmc_value_add(struct bmc_value *value, const struct bmc_sample *sample)
{
    double dt, mean;
    int64_t tick;

    if (!value->begun || sample->joules < value->last.joules) {
        /* The first, or of another nodesim. */
        begin(value, sample);
        return value->shown_w;
    }
    if (sample->mono_ns <= value->last.mono_ns)
        return value->shown_w;
    dt = seconds(sample->mono_ns - value->last.mono_ns);
    mean = (sample->joules - value->last.joules) / dt;
    if (value->tau_s > 0)
        value->lagged_w =
            mean + (value->lagged_w - mean) * exp(-dt / value->tau_s);
    value->last = *sample;

    tick = value->opt.update_ns
               ? (sample->mono_ns - value->start_ns) / value->opt.update_ns
               : value->tick + 1;
    if (tick != value->tick) {
        value->shown_w = show(value, present_w(value));
        value->tick = tick;
        value->tick_ns = sample->mono_ns;
        value->tick_j = sample->joules;
    }
    return value->shown_w;
}

int64_t bmc_value_next_ns(const struct bmc_value *value, int64_t now_ns)
{
    int64_t update_ns = value->opt.update_ns;
    int64_t step_ns = IDLE_NS, next_ns;

    if (value->tau_s > 0) {
        step_ns = (int64_t)(value->tau_s * JOULE_NS_PER_S / STEPS);
        step_ns = step_ns < STEP_MIN_NS   ? STEP_MIN_NS
                  : step_ns > STEP_MAX_NS ? STEP_MAX_NS
                                          : step_ns;
    }
    next_ns = now_ns + step_ns;
    if (update_ns && value->begun) {
        int64_t tick_ns =
            value->start_ns +
            ((now_ns - value->start_ns) / update_ns + 1) * update_ns;

        if (tick_ns < next_ns)
            next_ns = tick_ns;
    }
    return next_ns;
}
