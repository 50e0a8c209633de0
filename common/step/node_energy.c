/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/node_energy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/energy/integrator.h"

/* It has been said that so much more has been used than the sample after it
 * said: that is taken off again. */
struct ahead {
    double uj, per_ns;
};

struct joule_node_energy {
    const struct joule_clock *clock;
    struct joule_sensor *sensor;
    struct joule_ledger *ledger;
    bool begun, known; /* known: base_uj is set */
    bool is_last;
    int64_t begin_ns, last_ns, base_gap_ns;
    uint64_t base_uj, used_uj;
    struct ahead ahead;
    /* slurmd's sample, and what has been counted on from it */
    uint64_t generation; /* 0: none yet */
    int64_t sampled_ns, period_ns;
    bool counts; /* the sensor has the state of the sample */
    struct joule_node_total total;
    bool has_domains;  /* bases of the domains are set: */
    uint64_t count_uj; /* for slurmd's count of them with this base */
    uint64_t domain_base_uj[JOULE_DOMAINS_MAX];
    uint64_t domain_uj[JOULE_DOMAINS_MAX];
    bool domain_known[JOULE_DOMAINS_MAX];
    struct ahead domain_ahead[JOULE_DOMAINS_MAX];
    /* scratch */
    struct joule_snapshot snapshot;
    struct joule_sensor_state state;
    struct joule_reading readings[JOULE_DOMAINS_MAX];
    struct joule_reading said[JOULE_DOMAINS_MAX];
};

struct joule_node_energy *
joule_node_energy_create(const struct joule_clock *clock,
                         struct joule_sensor *sensor,
                         struct joule_ledger *ledger)
{
    struct joule_node_energy *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    n->clock = clock;
    n->sensor = sensor;
    n->ledger = ledger;
    return n;
}

void joule_node_energy_destroy(struct joule_node_energy *n)
{
    free(n);
}

/* Nothing tells what the node uses now: the sample is too old to be counted on
 * from, or to stand alone. */
static bool is_overdue(const struct joule_node_energy *n, int64_t now_ns)
{
    return now_ns - n->sampled_ns > (n->counts
                                         ? JOULE_POWER_BRIDGE_NS
                                         : joule_power_gap_ns(n->period_ns));
}

/* Count on from the sample.  Without slurmd not for longer than a power is
 * carried on. */
static int64_t count_on(struct joule_node_energy *n)
{
    int64_t now_ns = joule_clock_mono_ns(n->clock);

    if (!n->counts || is_overdue(n, now_ns))
        return now_ns;
    now_ns = joule_sensor_read(n->sensor, 0, n->readings);
    joule_node_total_update(&n->total, n->sensor->domains, n->readings, now_ns);
    return now_ns;
}

/* A counter that says less has not answered this time, or slurmd: that is no
 * correction.  A power that was carried on may have been too much. */
static void correct(struct ahead *ahead, const struct joule_domain *domain,
                    uint64_t said_uj, uint64_t uj, int64_t period_ns)
{
    if (domain->kind != JOULE_DOMAIN_POWER && said_uj > uj)
        return;
    ahead->uj += (double)(int64_t)(said_uj - uj);
    ahead->per_ns = fabs(ahead->uj) / (double)period_ns;
}

static void work_off(struct ahead *ahead, int64_t ns)
{
    double uj = ahead->per_ns * (double)ns;

    if (uj < fabs(ahead->uj))
        ahead->uj -= copysign(uj, ahead->uj);
    else
        ahead->uj = 0;
}

/* What was said before is corrected at once. */
static void forget_ahead(struct joule_node_energy *n)
{
    n->ahead.uj = 0;
    memset(n->domain_ahead, 0, sizeof(n->domain_ahead));
}

/* The domains' energy goes on from what was seen of them, whatever slurmd's
 * count is. */
static void base_domains(struct joule_node_energy *n)
{
    memset(n->domain_ahead, 0, sizeof(n->domain_ahead));
    for (size_t i = 0; i < n->total.count; i++)
        n->domain_base_uj[i] = n->total.reading[i].uj - n->domain_uj[i];
    n->has_domains = true;
    n->count_uj = n->total.base_uj;
}

/* Go on from the sample in n->snapshot.  Returns the time of the reading. */
static int64_t go_on(struct joule_node_energy *n)
{
    const struct joule_node_total *t = &n->snapshot.total;

    n->sampled_ns = t->mono_ns;
    n->period_ns = n->snapshot.period_ns > 0 ? n->snapshot.period_ns : 1;
    n->total = *t;
    n->counts = t->count == n->sensor->domain_count &&
                joule_sensor_resume(n->sensor, &n->state);
    return count_on(n);
}

/* A counter that has wrapped while slurmd was away, and was read here: slurmd
 * knows less, and says so.  What was counted stays. */
static void keep_wraps(struct joule_node_energy *n)
{
    for (size_t i = 0; i < n->total.count; i++) {
        const struct joule_domain *domain = &n->sensor->domains[i];
        const struct joule_reading *r = &n->total.reading[i];
        uint64_t lost_uj = n->said[i].uj - r->uj;

        if (domain->kind == JOULE_DOMAIN_POWER || n->said[i].uj <= r->uj ||
            n->said[i].gap_ns >= r->gap_ns || r->mono_ns != n->total.mono_ns)
            continue;
        n->domain_base_uj[i] -= lost_uj;
        if (domain->in_total)
            n->base_uj -= lost_uj;
    }
}

/* What [mw] make in a time that this thread was away between two readings, which
 * is no difference between what they say. */
static uint64_t power_uj(uint64_t mw, int64_t ns)
{
    return mw == JOULE_MW_UNKNOWN || ns <= 0
               ? 0
               : (uint64_t)((double)mw * (double)ns / 1e6);
}

/* Go on from a new sample, if there is one.  Returns the time of the reading,
 * or -1 with errno. */
static int64_t follow(struct joule_node_energy *n)
{
    int64_t now_ns = count_on(n), counted_ns = now_ns;
    uint64_t node_mw = n->total.mw;
    uint64_t generation = joule_ledger_generation(n->ledger);
    uint64_t node_uj = n->total.node_uj;
    bool counted = n->counts;
    /* Rows that are not there show no difference. */
    bool is_shown = n->generation != 0 && n->total.valid && !n->total.stale &&
                    !is_overdue(n, now_ns);

    if (generation == n->generation)
        return now_ns;
    if (joule_ledger_read_node(n->ledger, &n->snapshot, &n->state) < 0)
        return -1;
    n->generation = generation;
    memcpy(n->said, n->total.reading,
           n->sensor->domain_count * sizeof(n->said[0]));
    now_ns = go_on(n);
    node_uj += power_uj(node_mw, now_ns - counted_ns);
    for (size_t i = 0; i < n->sensor->domain_count; i++)
        n->said[i].uj += power_uj(n->said[i].mw, now_ns - counted_ns);
    if (is_shown)
        correct(&n->ahead, &n->sensor->domains[0], node_uj, n->total.node_uj,
                n->period_ns);
    else
        forget_ahead(n);
    if (!n->counts)
        return now_ns;
    if (!n->has_domains || n->total.base_uj != n->count_uj) {
        base_domains(n);
    } else if (counted) {
        keep_wraps(n);
        for (size_t i = 0; is_shown && i < n->total.count; i++)
            correct(&n->domain_ahead[i], &n->sensor->domains[i], n->said[i].uj,
                    n->total.reading[i].uj, n->period_ns);
    }
    return now_ns;
}

static void take_base(struct joule_node_energy *n, int64_t now_ns)
{
    n->known = true;
    n->base_uj = n->total.node_uj;
    /* The time until now is a gap, if it is not that of begin. */
    n->base_gap_ns = n->total.gap_ns - (now_ns - n->begin_ns);
    forget_ahead(n);
    if (n->counts)
        base_domains(n);
}

void joule_node_energy_begin(struct joule_node_energy *n)
{
    int64_t now_ns;

    n->begun = true;
    n->known = n->is_last = n->has_domains = false;
    n->used_uj = 0;
    memset(n->domain_uj, 0, sizeof(n->domain_uj));
    n->begin_ns = n->last_ns = joule_clock_mono_ns(n->clock);
    now_ns = follow(n);
    if (now_ns < 0)
        return;
    n->begin_ns = n->last_ns = now_ns;
    if (n->total.valid && !is_overdue(n, now_ns))
        take_base(n, now_ns);
}

void joule_node_energy_end(struct joule_node_energy *n)
{
    n->is_last = true;
}

static void work_all_off(struct joule_node_energy *n, int64_t now_ns)
{
    int64_t ns = now_ns - n->last_ns;

    n->last_ns = now_ns;
    if (n->is_last)
        forget_ahead(n);
    work_off(&n->ahead, ns);
    for (size_t i = 0; i < n->sensor->domain_count; i++)
        work_off(&n->domain_ahead[i], ns);
}

/* What has been used since [base_uj], but never less than was said. */
static uint64_t used(uint64_t uj, uint64_t base_uj, const struct ahead *ahead,
                     uint64_t said_uj)
{
    double used_uj = (double)(int64_t)(uj - base_uj) + ahead->uj;

    return used_uj > (double)said_uj ? (uint64_t)used_uj : said_uj;
}

static void fill_domains(struct joule_node_energy *n, int64_t now_ns)
{
    bool counts = n->counts && !is_overdue(n, now_ns);

    for (size_t i = 0; i < n->sensor->domain_count; i++) {
        const struct joule_reading *r = &n->total.reading[i];

        n->domain_known[i] = counts && r->state == JOULE_READING_OK;
        if (n->counts)
            n->domain_uj[i] = used(r->uj, n->domain_base_uj[i],
                                   &n->domain_ahead[i], n->domain_uj[i]);
    }
}

/* Since begin, also where it goes on. */
static int64_t gap_ns(const struct joule_node_energy *n, int64_t now_ns)
{
    int64_t ns = n->total.gap_ns - n->base_gap_ns;

    if (is_overdue(n, now_ns))
        ns += now_ns - n->total.mono_ns;
    return ns < now_ns - n->begin_ns ? ns : now_ns - n->begin_ns;
}

int joule_node_energy_update(struct joule_node_energy *n,
                             struct joule_node_energy_reading *ret)
{
    int64_t now_ns;

    if (!n->begun) {
        errno = EINVAL;
        return -1;
    }
    now_ns = follow(n);
    if (now_ns < 0 || !n->total.valid || (!n->known && is_overdue(n, now_ns))) {
        errno = ENODATA;
        return -1;
    }
    if (!n->known)
        take_base(n, now_ns);
    work_all_off(n, now_ns);
    n->used_uj = used(n->total.node_uj, n->base_uj, &n->ahead, n->used_uj);
    fill_domains(n, now_ns);
    *ret = (struct joule_node_energy_reading){
        .mono_ns = now_ns,
        .elapsed_ns = now_ns - n->begin_ns,
        .gap_ns = gap_ns(n, now_ns),
        .used_uj = n->used_uj,
        .is_stale = n->total.stale || is_overdue(n, now_ns),
        .domain_uj = n->domain_uj,
        .domain_known = n->domain_known,
    };
    return 0;
}
