/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tally.h - all counters, or all powers, of a node and their sum: the node
 * total.
 *
 * A plain struct, copied whole from process to process.  [domains] below is
 * always the source's own array, in the order in which the tally was started.
 */
#ifndef JOULE_ENERGY_NODE_TOTAL_H
#define JOULE_ENERGY_NODE_TOTAL_H

#include "common/base/clock.h"
#include "common/energy/counter.h"
#include "common/energy/integrator.h"

struct joule_node_total {
    int64_t mono_ns;     /* counters: of the last update; power: of the last
                            measurement of the node, 0 before the first */
    uint64_t base_uj;    /* carried over from an earlier set of domains */
    uint64_t node_uj;    /* base + domains in the total: never falls */
    int64_t gap_ns;      /* time over which wraps may have been missed, or the
                            power of the node was not measured */
    uint64_t domain_key; /* joule_domains_key of the domains */
    int64_t from_ns;     /* since when node_uj has all that the node used: when
                            it has become valid, or has again */
    uint32_t valid;      /* 1: node_uj is a measurement (below) */
    uint32_t count;      /* domains */
    uint64_t is_power;   /* 1: integrator[] holds the domains, 0: counter[] */
    union {
        struct joule_counter counter[JOULE_DOMAINS_MAX];
        struct joule_integrator integrator[JOULE_DOMAINS_MAX];
    };
};

/* A number that two sets of domains share only if they are the same. */
uint64_t joule_domains_key(const struct joule_domain *domains, size_t count);

/* One for the sensors that the total is made of, as their readings told; 0:
 * they did not. */
uint64_t joule_node_total_sensor_key(const struct joule_node_total *t,
                                     const struct joule_domain *domains);

/* Begin at [base_uj] with counters, or for a power source (the first domain
 * tells) integrators, that have not been read. */
void joule_node_total_start(struct joule_node_total *t,
                            const struct joule_domain *domains, size_t count,
                            uint64_t base_uj);

/*
 * Follow all counters.  The total is valid once every package (or PSYS)
 * counter in it has moved: registers of guests that read 0, or any other
 * constant, never make a valid total, and a total without one of its packages
 * is none.  It is not valid while a counter is silent
 * (joule_node_total_silent). When that answers again, what it has counted
 * meanwhile is added, if it cannot have wrapped; else there is a gap.  The time
 * until a counter answers first is a gap, too.
 */
void joule_node_total_update(struct joule_node_total *t,
                             const struct joule_domain *domains,
                             const struct joule_reading *readings,
                             int64_t now_ns);

/*
 * The same for a power source: follow the power of all domains.  What is no
 * measurement counts as an error and changes nothing else.  The total is valid
 * once the node (the domain in the total) has been measured.  [edge_ns] and
 * [gap_ns]: see joule_integrator_update.
 */
void joule_node_total_integrate(struct joule_node_total *t,
                                const struct joule_domain *domains,
                                const struct joule_power *power,
                                int64_t edge_ns, int64_t gap_ns);

/*
 * The same for a source of energy: the readings say what was used, or that a
 * power holds.  A total is one of the node from its first reading on.
 */
void joule_node_total_add(struct joule_node_total *t,
                          const struct joule_domain *domains,
                          const struct joule_power *power);

/* The time without a measurement after which a power that is asked for every
 * [period_ns] is no longer known, and an interval is a gap: three periods, but
 * 3 s at least, in which a BMC may well be busy. */
int64_t joule_power_gap_ns(int64_t period_ns);

/* Power sources: the last measurement of the node is older than [gap_ns] at
 * [now_ns], or there has been none. */
bool joule_node_total_overdue(const struct joule_node_total *t, int64_t now_ns,
                              int64_t gap_ns);

/*
 * The first counter of the total that did not answer at the last update, and
 * had not for JOULE_COUNTER_FROZEN_NS or longer, or never; -1: there is none.
 * DRAM that has never moved is no part of a total.
 */
int joule_node_total_silent(const struct joule_node_total *t,
                            const struct joule_domain *domains);

/* true: a counter that the total stands on has stopped moving or answering
 * for JOULE_COUNTER_FROZEN_NS or longer at the last update. */
bool joule_node_total_stale(const struct joule_node_total *t,
                            const struct joule_domain *domains);

/* The shortest wrap time of all domains; INT64_MAX if none can wrap. */
int64_t joule_domains_wrap_ns(const struct joule_domain *domains, size_t count);

#endif
