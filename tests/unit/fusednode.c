/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/fusednode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fake.h"

#define PAST (sizeof(((struct fused_node *)0)->past_w) / sizeof(double))

const int fused_lengths[FUSED_LENGTHS] = {10, 30, 120, 900, 2640};

static void begin_sensor(struct fused_node *n)
{
    n->sensor = fake_sensor(n->counters);
    if (!n->sensor)
        abort();
    joule_node_total_start(&n->rapl, n->sensor->domains,
                           n->sensor->domain_count, 0);
}

void fused_node_init(struct fused_node *n, const struct fused_bmc *bmc,
                     uint64_t seed)
{
    memset(n, 0, sizeof(*n));
    n->bmc = *bmc;
    node_load_init(&n->load, seed);
    n->counters = malloc(sizeof(*n->counters));
    if (!n->counters)
        abort();
    fake_init(n->counters);
    fake_add(n->counters, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(n->counters, JOULE_DOMAIN_PACKAGE, 1, 0);
    begin_sensor(n);
    n->noise_w = 1;
    n->length = -1;
    n->job_end_s = 60;
}

void fused_node_clear(struct fused_node *n)
{
    joule_sensor_destroy(n->sensor);
    free(n->counters);
}

void fused_node_restart(struct fused_node *n)
{
    struct joule_sensor *before = n->sensor;
    const struct joule_sensor_state *kept = &before->state;

    begin_sensor(n);
    if (!joule_sensor_resume(n->sensor, kept))
        abort();
    n->rapl.gap_ns = n->state.rapl_gap_ns;
    for (size_t i = 0; i < 2; i++)
        n->rapl.reading[i].gap_ns = kept->counter[i].gap_ns;
    joule_sensor_destroy(before);
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
    static const double up_to[FUSED_LENGTHS] = {0.3, 0.6, 0.85, 0.97, 1};
    struct node_load *l = &n->load;
    bool ran = n->length >= 0;
    double kind;

    if (ran)
        count_job(n);
    n->length = -1;
    if (ran && node_load_uniform(l, 1) < 0.5) { /* idle for a while */
        node_load_rest(l, 60 + node_load_uniform(l, 10));
        n->job_end_s = l->s + 1 + node_load_uniform(l, 60);
        return;
    }
    kind = node_load_uniform(l, 1);
    for (n->length = 0; kind >= up_to[n->length]; n->length++)
        ;
    node_load_vary(l);
    n->begun_s = l->s;
    n->job_end_s = l->s + fused_lengths[n->length];
    n->begun_j[0] = n->node_j;
    n->begun_j[1] = n->fused_j;
    n->begun_j[2] = n->bmc_j;
    n->begun_j[3] = n->rapl_j;
}

/* Mean of [count] steps that ended [age] steps ago, as far back as is known. */
static double past_mean(const struct fused_node *n, uint64_t count,
                        uint64_t age)
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
    uint64_t age = (uint64_t)lround(n->bmc.delay_s / NODE_LOAD_STEP_S);
    uint64_t width = (uint64_t)lround(n->bmc.seconds / NODE_LOAD_STEP_S);

    n->past_w[n->past++ % PAST] = n->load.node_w;
    switch (n->bmc.lag) {
    case FUSED_FIRST:
        if (n->past == 1)
            n->lagged_w = n->load.node_w;
        n->lagged_w += (n->load.node_w - n->lagged_w) *
                       (1 - exp(-NODE_LOAD_STEP_S / n->bmc.seconds));
        return n->lagged_w;
    case FUSED_BOXCAR:
        return past_mean(n, width, age);
    case FUSED_HOLD:
        if (n->load.s >= n->next_held_s) {
            n->held_w =
                past_mean(n, 1, age) + n->noise_w * node_load_normal(&n->load);
            n->next_held_s = n->load.s + n->bmc.seconds;
        }
        return n->held_w;
    case FUSED_NONE:
        break;
    }
    return past_mean(n, 1, age);
}

int64_t fused_node_ns(const struct fused_node *n)
{
    return FUSED_BEGIN_NS + llround(n->load.s * 1e9);
}

static void move_counter(struct fused_node *n, size_t i, double part)
{
    n->counters->ticks[i] = (uint64_t)(n->rapl_j * part * 65536);
}

/* The sampler reads RAPL. */
static void read_rapl(struct fused_node *n)
{
    struct joule_reading readings[2];
    int64_t now_ns;
    bool answer;

    n->counters->now_ns = fused_node_ns(n);
    n->counters->error[0] = n->rapl_error;
    move_counter(n, 0, 0.55);
    move_counter(n, 1, 0.45);
    now_ns = joule_sensor_read(n->sensor, false, readings);
    joule_node_total_update(&n->rapl, n->sensor->domains, readings, now_ns);
    answer = readings[0].mono_ns == now_ns && readings[1].mono_ns == now_ns;
    joule_fused_advance(&n->state, answer ? &n->rapl : NULL, now_ns,
                        n->has_power ? &n->power : NULL, FUSED_GAP_NS,
                        &n->interval);
    n->has_power = false;
    if (n->interval.known)
        n->fused_j += n->interval.node_j;
}

static void read_bmc(struct fused_node *n, double shown_w)
{
    if (n->bmc_away || node_load_uniform(&n->load, 1) < n->lost)
        return;
    if (n->bmc.lag != FUSED_HOLD) /* that has its own already */
        shown_w += n->noise_w * node_load_normal(&n->load);
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
    struct node_load *l = &n->load;
    double end_s = l->s + seconds;

    while (l->s < end_s) {
        double shown_w;

        if (l->s >= n->job_end_s) {
            read_rapl(n); /* a step's end is exact */
            next_job(n);
        }
        node_load_draw(l);
        shown_w = image(n);
        n->node_j += l->node_w * NODE_LOAD_STEP_S;
        n->rapl_j += l->sockets_w * NODE_LOAD_STEP_S;
        n->bmc_j += n->read_w * NODE_LOAD_STEP_S;
        l->s += NODE_LOAD_STEP_S;
        if (l->s >= n->next_bmc_s) {
            read_bmc(n, shown_w);
            n->next_bmc_s = l->s + 0.85 + node_load_uniform(l, 0.3);
        }
        if (l->s >= n->next_tick_s) {
            read_rapl(n);
            n->next_tick_s = l->s + 0.95 + node_load_uniform(l, 0.1);
        }
    }
}

void fused_node_rest(struct fused_node *n, double seconds)
{
    read_rapl(n);
    n->length = -1;
    node_load_rest(&n->load, 60);
    n->job_end_s = n->load.s + seconds;
    fused_node_run(n, seconds);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct fused_summary fused_summary(double *values, unsigned count)
{
    struct fused_summary summary = {0, 0, 0};

    if (count == 0)
        return summary;
    qsort(values, count, sizeof(*values), by_size);
    for (unsigned i = 0; i < count; i++)
        summary.mean += values[i] / count;
    summary.p95 = values[(count - 1) * 95 / 100];
    summary.most = values[count - 1];
    return summary;
}
