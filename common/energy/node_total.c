/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/energy/node_total.h"

#include <math.h>
#include <string.h>

#include "common/base/hash.h"

uint64_t joule_domains_key(const struct joule_domain *domains, size_t count)
{
    uint64_t hash = JOULE_HASH_BEGIN;
    size_t i;

    hash = joule_hash_u64(hash, count);
    for (i = 0; i < count; i++) {
        const struct joule_domain *d = &domains[i];

        hash = joule_hash_u64(hash, (uint64_t)d->kind << 32 |
                                        d->width_bits << 8 | d->in_total);
        hash = joule_hash_u64(hash, (uint64_t)d->package << 16 | d->die);
        hash =
            joule_hash_u64(hash, (uint64_t)d->unit.num << 32 | d->unit.shift);
        /* A core is told from its neighbours by its CPU; a package may be
         * read through another CPU after a hot-unplug. */
        hash = joule_hash_u64(hash, d->kind == JOULE_DOMAIN_CORE ? d->cpu : 0);
        /* Nothing but its label tells one power from another. */
        if (d->kind == JOULE_DOMAIN_POWER)
            hash = joule_hash_text(hash, d->name);
    }
    return hash;
}

uint64_t joule_node_total_sensor_key(const struct joule_node_total *t,
                                     const struct joule_domain *domains)
{
    uint64_t hash = JOULE_HASH_BEGIN;
    bool told = false;
    uint32_t i;

    for (i = 0; t->is_power && i < t->count; i++) {
        if (!domains[i].in_total)
            continue;
        hash = joule_hash_u64(hash, t->integrator[i].sensor_key);
        told |= t->integrator[i].sensor_key != 0;
    }
    return told ? hash : 0;
}

int64_t joule_domains_wrap_ns(const struct joule_domain *domains, size_t count)
{
    int64_t least_ns = INT64_MAX;
    size_t i;

    for (i = 0; i < count; i++) {
        int64_t ns = joule_domain_wrap_ns(&domains[i]);

        if (ns < least_ns)
            least_ns = ns;
    }
    return least_ns;
}

void joule_node_total_start(struct joule_node_total *t,
                            const struct joule_domain *domains, size_t count,
                            uint64_t base_uj)
{
    memset(t, 0, sizeof(*t));
    t->base_uj = base_uj;
    t->node_uj = base_uj;
    t->domain_key = joule_domains_key(domains, count);
    t->count = (uint32_t)count;
    t->is_power = count > 0 && domains[0].kind == JOULE_DOMAIN_POWER;
}

/* A total stands on its package or PSYS counters; DRAM that reads 0 for ever
 * (desktop parts) neither makes nor spoils one. */
static bool carries_total(const struct joule_domain *domain)
{
    return domain->in_total && (domain->kind == JOULE_DOMAIN_PACKAGE ||
                                domain->kind == JOULE_DOMAIN_PSYS);
}

int joule_node_total_silent(const struct joule_node_total *t,
                            const struct joule_domain *domains)
{
    uint32_t i;

    for (i = 0; i < t->count; i++) {
        const struct joule_counter *c = &t->counter[i];

        if (!domains[i].in_total || t->mono_ns == 0 ||
            (c->state == JOULE_COUNTER_STILL && !carries_total(&domains[i])))
            continue;
        if (c->state == JOULE_COUNTER_NEW ||
            t->mono_ns - c->read_ns > JOULE_COUNTER_FROZEN_NS)
            return (int)i;
    }
    return -1;
}

void joule_node_total_update(struct joule_node_total *t,
                             const struct joule_domain *domains,
                             const struct joule_reading *readings,
                             int64_t now_ns)
{
    uint64_t sum_uj = t->base_uj;
    int64_t gap_ns = 0;
    bool carried = false, missing = false;
    uint32_t i;

    for (i = 0; i < t->count; i++) {
        struct joule_counter *c = &t->counter[i];
        const struct joule_domain *d = &domains[i];
        int64_t before_ns = c->read_ns;
        uint32_t gaps = c->gaps;
        bool was_new = c->state == JOULE_COUNTER_NEW;

        joule_counter_update(c, d, readings[i], now_ns);
        if (!d->in_total)
            continue;
        if (c->gaps != gaps && now_ns - before_ns > gap_ns)
            gap_ns = now_ns - before_ns;
        if (was_new && t->mono_ns != 0 && now_ns - t->mono_ns > gap_ns)
            gap_ns = now_ns - t->mono_ns;
        sum_uj += joule_unit_to_uj(d->unit, c->ticks);
        if (carries_total(d)) {
            if (c->state >= JOULE_COUNTER_MOVING)
                carried = true;
            else
                missing = true;
        }
    }
    t->node_uj = sum_uj;
    t->gap_ns += gap_ns;
    t->mono_ns = now_ns;
    if (!t->valid)
        t->from_ns = now_ns;
    t->valid = carried && !missing && joule_node_total_silent(t, domains) < 0;
}

bool joule_node_total_stale(const struct joule_node_total *t,
                            const struct joule_domain *domains)
{
    uint32_t i;

    for (i = 0; i < t->count; i++) {
        const struct joule_counter *c = &t->counter[i];

        if (!carries_total(&domains[i]) || c->state < JOULE_COUNTER_MOVING)
            continue;
        if (c->state == JOULE_COUNTER_FROZEN ||
            t->mono_ns - c->read_ns > JOULE_COUNTER_FROZEN_NS)
            return true;
    }
    return false;
}

/* Sources classify; that nothing but a power gets into the integral is seen
 * to here as well. */
static bool is_measurement(const struct joule_power *power)
{
    return power->status == JOULE_POWER_OK && isfinite(power->watts) &&
           power->watts >= 0 && power->watts <= JOULE_POWER_MAX_W;
}

void joule_node_total_integrate(struct joule_node_total *t,
                                const struct joule_domain *domains,
                                const struct joule_power *power,
                                int64_t edge_ns, int64_t gap_ns)
{
    uint64_t sum_uj = t->base_uj;
    uint32_t i;

    for (i = 0; i < t->count; i++) {
        struct joule_integrator *g = &t->integrator[i];
        int64_t lost_ns = 0;

        if (is_measurement(&power[i]))
            lost_ns =
                joule_integrator_update(g, power[i].watts, power[i].sensor_key,
                                        power[i].mono_ns, edge_ns, gap_ns);
        else
            joule_integrator_error(g);
        if (!domains[i].in_total)
            continue;
        t->gap_ns += lost_ns;
        t->mono_ns = g->read_ns;
        if (!t->valid)
            t->from_ns = g->read_ns;
        t->valid = g->readings > 0;
        sum_uj += g->uj;
    }
    t->node_uj = sum_uj;
}

void joule_node_total_add(struct joule_node_total *t,
                          const struct joule_domain *domains,
                          const struct joule_power *power)
{
    uint64_t sum_uj = t->base_uj;
    uint32_t i;

    for (i = 0; i < t->count; i++) {
        struct joule_integrator *g = &t->integrator[i];

        if (!is_measurement(&power[i]))
            joule_integrator_error(g);
        else if (power[i].is_held)
            joule_integrator_update(g, power[i].watts, power[i].sensor_key,
                                    power[i].mono_ns, power[i].mono_ns,
                                    JOULE_POWER_BRIDGE_NS);
        else
            joule_integrator_add(g, power[i].watts, power[i].joules,
                                 power[i].sensor_key, power[i].mono_ns);
        if (!domains[i].in_total)
            continue;
        if (is_measurement(&power[i]))
            t->gap_ns += power[i].gap_ns;
        t->mono_ns = g->read_ns;
        if (!t->valid)
            t->from_ns = g->read_ns;
        t->valid = g->readings > 0;
        sum_uj += g->uj;
    }
    t->node_uj = sum_uj;
}

int64_t joule_power_gap_ns(int64_t period_ns)
{
    int64_t ns = 3 * period_ns;

    return ns > 3 * JOULE_NS_PER_S ? ns : 3 * JOULE_NS_PER_S;
}

bool joule_node_total_overdue(const struct joule_node_total *t, int64_t now_ns,
                              int64_t gap_ns)
{
    return !t->valid || now_ns - t->mono_ns > gap_ns;
}
