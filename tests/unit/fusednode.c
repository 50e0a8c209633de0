/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/fusednode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/dice.h"

#define STEP_S 0.1 /* of the simulation */
#define PAST   (sizeof(((struct fused_node *)0)->past_w) / sizeof(double))

const int fused_lengths[FUSED_LENGTHS] = { 10, 30, 120, 900, 2640 };

const struct joule_domain fused_domains[2] = {
    { JOULE_DOMAIN_PACKAGE, 0, 0, 0, { 15625, 10 }, 32, true, "package-0" },
    { JOULE_DOMAIN_PACKAGE, 1, 0, 1, { 15625, 10 }, 32, true, "package-1" },
};

/* In [0, most). */
static double uniform(struct fused_node *n, double most)
{
    return (double)(dice64(&n->seed) >> 11) * 0x1p-53 * most;
}

static double normal(struct fused_node *n)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += uniform(n, 1);
    return sum;
}

void fused_node_init(struct fused_node *n, const struct fused_bmc *bmc,
                     uint64_t seed)
{
    memset(n, 0, sizeof(*n));
    n->bmc = *bmc;
    n->seed = seed;
    joule_fused_start(&n->state, fused_domains, 2);
    n->noise_w = 1;
    n->length = -1;
    n->job_w = 60;
    n->job_end_s = 60;
}

static void count_job(struct fused_node *n)
{
    struct fused_errors *e = &n->errors[n->length];
    double node_j = n->node_j - n->begun_j[0];

    if (n->begun_s < n->checked_from_s || e->count == FUSED_JOBS)
        return;
    e->fused[e->count] = fabs((n->fused_j - n->begun_j[1]) / node_j - 1) * 100;
    e->bmc[e->count] = fabs((n->bmc_j - n->begun_j[2]) / node_j - 1) * 100;
    e->rapl[e->count] = fabs((n->rapl_j - n->begun_j[3]) / node_j - 1) * 100;
    e->count++;
}

static void next_job(struct fused_node *n)
{
    static const double up_to[FUSED_LENGTHS] = { 0.3, 0.6, 0.85, 0.97, 1 };
    bool ran = n->length >= 0;
    double kind;

    if (ran)
        count_job(n);
    n->wave_w = n->accelerator_job_w = 0;
    n->length = -1;
    if (ran && uniform(n, 1) < 0.5) { /* idle for a while */
        n->job_w = 60 + uniform(n, 10);
        n->job_end_s = n->s + 1 + uniform(n, 60);
        return;
    }
    kind = uniform(n, 1);
    for (n->length = 0; kind >= up_to[n->length]; n->length++)
        ;
    n->job_w = 80 + uniform(n, 250);
    if (uniform(n, 1) < 0.4) {
        n->wave_w = uniform(n, 60);
        n->wave_s = 5 + uniform(n, 60);
        n->phase_s = uniform(n, n->wave_s);
    }
    if (uniform(n, 1) < 0.7)
        n->accelerator_job_w = uniform(n, n->accelerator_w);
    n->begun_s = n->s;
    n->job_end_s = n->s + fused_lengths[n->length];
    n->begun_j[0] = n->node_j;
    n->begun_j[1] = n->fused_j;
    n->begun_j[2] = n->bmc_j;
    n->begun_j[3] = n->rapl_j;
}

static void draw(struct fused_node *n)
{
    double load, part, w = n->job_w + normal(n);

    if (n->wave_w > 0)
        w += fmod(n->s + n->phase_s, n->wave_s) < n->wave_s / 2 ?
                 n->wave_w / 2 : -n->wave_w / 2;
    n->sockets_w = w > 40 ? w : 40;
    if (n->s >= n->fan_s) {
        n->fan_w = uniform(n, 25);
        n->fan_s = n->s + 60 + uniform(n, 900);
    }
    n->accelerator_now_w +=
        (n->accelerator_job_w - n->accelerator_now_w) * STEP_S / 1.5;
    load = 1.06 * n->sockets_w + 70 + n->fan_w + 8 * sin(n->s / 3000) +
           n->accelerator_now_w;
    part = load / 800;
    n->node_w = load / (0.93 - 0.10 * (part - 0.5) * (part - 0.5) -
                        0.002 / (part + 0.05));
}

/* Mean of [count] steps that ended [age] steps ago, as far back as is known. */
static double past_mean(const struct fused_node *n, uint64_t count, uint64_t age)
{
    double sum = 0;

    if (age >= n->past)
        age = n->past - 1;
    if (count > n->past - age)
        count = n->past - age;
    for (uint64_t i = 1; i <= count; i++)
        sum += n->past_w[(n->past - age - i) % PAST];
    return sum / (double)count;
}

/* What the BMC has to show. */
static double image(struct fused_node *n)
{
    uint64_t age = (uint64_t)lround(n->bmc.delay_s / STEP_S);

    n->past_w[n->past++ % PAST] = n->node_w;
    switch (n->bmc.lag) {
    case FUSED_FIRST:
        if (n->past == 1)
            n->lagged_w = n->node_w;
        n->lagged_w +=
            (n->node_w - n->lagged_w) * (1 - exp(-STEP_S / n->bmc.seconds));
        return n->lagged_w;
    case FUSED_BOXCAR:
        return past_mean(n, (uint64_t)lround(n->bmc.seconds / STEP_S), age);
    case FUSED_HOLD:
        if (n->s >= n->next_held_s) {
            n->held_w = past_mean(n, 1, age) + n->noise_w * normal(n);
            n->next_held_s = n->s + n->bmc.seconds;
        }
        return n->held_w;
    case FUSED_NONE:
        break;
    }
    return past_mean(n, 1, age);
}

int64_t fused_node_ns(const struct fused_node *n)
{
    return FUSED_BEGIN_NS + llround(n->s * 1e9);
}

struct joule_reading fused_node_counter(const struct fused_node *n, int i)
{
    double ticks = n->rapl_j * (i == 0 ? 0.55 : 0.45) * 65536;

    return (struct joule_reading){
        .raw = (uint64_t)ticks & 0xffffffff,
        .error = i == 0 ? n->rapl_error : 0,
    };
}

/* The sampler reads RAPL. */
static void read_rapl(struct fused_node *n)
{
    struct joule_reading readings[2] = { fused_node_counter(n, 0),
                                         fused_node_counter(n, 1) };

    joule_fused_advance(&n->state, fused_domains, readings, fused_node_ns(n),
                        n->has_power ? &n->power : NULL, FUSED_GAP_NS,
                        &n->interval);
    n->has_power = false;
    if (n->interval.known)
        n->fused_j += n->interval.node_j;
}

static void read_bmc(struct fused_node *n, double shown_w)
{
    if (n->bmc_away || uniform(n, 1) < n->lost)
        return;
    if (n->bmc.lag != FUSED_HOLD) /* that has its own already */
        shown_w += n->noise_w * normal(n);
    n->read_w = n->bmc.scale * shown_w;
    if (n->step_w > 0)
        n->read_w = round(n->read_w / n->step_w) * n->step_w;
    n->power = (struct joule_power){
        .watts = n->read_w,
        .mono_ns = fused_node_ns(n),
    };
    n->has_power = true;
}

void fused_node_run(struct fused_node *n, double seconds)
{
    double end_s = n->s + seconds;

    while (n->s < end_s) {
        double shown_w;

        if (n->s >= n->job_end_s) {
            read_rapl(n); /* a step's end is exact */
            next_job(n);
        }
        draw(n);
        shown_w = image(n);
        n->node_j += n->node_w * STEP_S;
        n->rapl_j += n->sockets_w * STEP_S;
        n->bmc_j += n->read_w * STEP_S;
        n->s += STEP_S;
        if (n->s >= n->next_bmc_s) {
            read_bmc(n, shown_w);
            n->next_bmc_s = n->s + 0.85 + uniform(n, 0.3);
        }
        if (n->s >= n->next_tick_s) {
            read_rapl(n);
            n->next_tick_s = n->s + 0.95 + uniform(n, 0.1);
        }
    }
}

void fused_node_rest(struct fused_node *n, double seconds)
{
    read_rapl(n);
    n->length = -1;
    n->wave_w = n->accelerator_job_w = 0;
    n->job_w = 60;
    n->job_end_s = n->s + seconds;
    fused_node_run(n, seconds);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct fused_summary fused_summary(double *values, unsigned count)
{
    struct fused_summary summary = { 0, 0, 0 };

    if (count == 0)
        return summary;
    qsort(values, count, sizeof(*values), by_size);
    for (unsigned i = 0; i < count; i++)
        summary.mean += values[i] / count;
    summary.p95 = values[(count - 1) * 95 / 100];
    summary.most = values[count - 1];
    return summary;
}
