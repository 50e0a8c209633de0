/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/energy/node_total.h"

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
        if (d->modulus)
            hash = joule_hash_u64(hash, d->modulus);
        /* A core is told from its neighbours by its CPU; a package may be
         * read through another CPU after a hot-unplug. */
        hash = joule_hash_u64(hash, d->kind == JOULE_DOMAIN_CORE ? d->cpu : 0);
        /* Nothing but its label tells one power from another. */
        if (d->kind == JOULE_DOMAIN_POWER)
            hash = joule_hash_text(hash, d->name);
    }
    return hash;
}

void joule_node_total_start(struct joule_node_total *t,
                            const struct joule_domain *domains, size_t count,
                            uint64_t base_uj)
{
    memset(t, 0, sizeof(*t));
    t->base_uj = base_uj;
    t->node_uj = base_uj;
    t->domain_key = joule_domains_key(domains, count);
    t->mw = JOULE_MW_UNKNOWN;
    t->count = count;
}

void joule_node_total_update(struct joule_node_total *t,
                             const struct joule_domain *domains,
                             const struct joule_reading *readings,
                             int64_t now_ns)
{
    uint64_t sum_uj = t->base_uj, key = JOULE_HASH_BEGIN;
    bool is_known = false, is_missing = false, is_told = false;
    int64_t most_ns = 0;

    t->mw = 0;
    t->stale = 0;
    t->began_ns = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct joule_reading *r = &readings[i];
        int64_t missed_ns = r->gap_ns - t->reading[i].gap_ns;

        t->reading[i] = *r;
        /* A gap that goes on may turn out to be none: what was counted of it
         * stays, and is not counted again. */
        if (missed_ns < 0)
            t->reading[i].gap_ns -= missed_ns;
        if (!domains[i].in_total)
            continue;
        if (missed_ns > most_ns)
            most_ns = missed_ns;
        if (r->state == JOULE_READING_UNKNOWN)
            is_missing = true;
        else
            is_known = true;
        if (r->state == JOULE_READING_STALE)
            t->stale = 1;
        if (r->mw == JOULE_MW_UNKNOWN)
            t->mw = JOULE_MW_UNKNOWN;
        else if (t->mw != JOULE_MW_UNKNOWN)
            t->mw += r->mw;
        if (r->began_ns && (t->began_ns == 0 || r->began_ns < t->began_ns))
            t->began_ns = r->began_ns;
        key = joule_hash_u64(key, r->sensor_key);
        is_told = is_told || r->sensor_key != 0;
        sum_uj += r->uj;
    }
    t->gap_ns += most_ns; /* those of several domains are at the same time */
    if (sum_uj > t->node_uj)
        t->node_uj = sum_uj;
    t->mono_ns = now_ns;
    t->sensor_key = is_told ? key : 0;
    if (!t->valid)
        t->from_ns = now_ns;
    t->valid = is_known && !is_missing;
    if (!t->valid)
        t->stale = 0;
    if (!t->valid || t->stale)
        t->mw = JOULE_MW_UNKNOWN;
}
