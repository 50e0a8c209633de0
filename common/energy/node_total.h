/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * node_total.h - the energy of a node: the sum of the domains that its total is
 * made of.
 *
 *     joule_node_total_start(&t, domains, count, 0);
 *     joule_node_total_update(&t, domains, readings, now_ns);
 *     if (t.valid)
 *         use(t.node_uj);
 *
 * A plain struct, copied whole from process to process.  [domains] is always
 * the sensor's own array, in the order of joule_node_total_start.
 */
#ifndef JOULE_ENERGY_NODE_TOTAL_H
#define JOULE_ENERGY_NODE_TOTAL_H

#include "common/base/clock.h"
#include "common/energy/domain.h"

struct joule_node_total {
    int64_t mono_ns;  /* of the last update */
    int64_t began_ns; /* of the domains in the total, the earliest; 0: none */
    uint64_t base_uj; /* carried over from an earlier set of domains */
    uint64_t node_uj; /* base + domains in the total: never falls */
    int64_t gap_ns;   /* time in which the node was not measured, or counters
                            may have wrapped unseen */
    uint64_t domain_key; /* joule_domains_key of the domains */
    int64_t from_ns;     /* since when node_uj has all that the node used: when
                            it has become valid, or has again */
    uint64_t mw;         /* the node's power, or JOULE_MW_UNKNOWN */
    uint64_t sensor_key; /* of the domains in the total; 0: not told */
    uint32_t valid;      /* 1: node_uj is a measurement (below) */
    uint32_t stale;      /* 1: valid, but a domain of it is stale */
    uint64_t count;      /* domains */
    struct joule_reading reading[JOULE_DOMAINS_MAX];
};

/* A number that two sets of domains share only if they are the same. */
uint64_t joule_domains_key(const struct joule_domain *domains, size_t count);

/* Begin at [base_uj] with domains that have not been read. */
void joule_node_total_start(struct joule_node_total *t,
                            const struct joule_domain *domains, size_t count,
                            uint64_t base_uj);

/*
 * Take the readings of all domains at [now_ns].  The total is valid while the
 * energy of each domain in it is known.  A sum that is lower than before (power
 * was carried on, and is corrected) does not count until it is higher again.
 */
void joule_node_total_update(struct joule_node_total *t,
                             const struct joule_domain *domains,
                             const struct joule_reading *readings,
                             int64_t now_ns);

#endif
