/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * node_total.h - the energy of a node: all its domains, and the sum of those
 * that its total is made of.
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

/* A number for the sensors behind the total, as told by their readings; 0: the
 * readings do not tell. */
uint64_t joule_node_total_sensor_key(const struct joule_node_total *t,
                                     const struct joule_domain *domains);

/* Begin at [base_uj] with domains that have not been read: integrators if the
 * first domain is a power, else counters. */
void joule_node_total_start(struct joule_node_total *t,
                            const struct joule_domain *domains, size_t count,
                            uint64_t base_uj);

/*
 * Add the readings of all counters.  The total is valid once every package (or
 * PSYS) counter in it has moved: the constant registers of a guest never make a
 * valid total, and without one of its packages a total is unknown.  The total
 * is not valid while a counter is silent (joule_node_total_silent).  When the
 * counter answers again, its growth meanwhile is added if it cannot have
 * wrapped; otherwise that time is a gap.  The time before a counter's first
 * reading is a gap, too.
 */
void joule_node_total_update(struct joule_node_total *t,
                             const struct joule_domain *domains,
                             const struct joule_reading *readings,
                             int64_t now_ns);

/*
 * Add measurements of power.  A reading that is no measurement counts as an
 * error and changes nothing else.  The total is valid once the node (the domain
 * in the total) has been measured.  [edge_ns] and [gap_ns]: see
 * joule_integrator_update.
 */
void joule_node_total_integrate(struct joule_node_total *t,
                                const struct joule_domain *domains,
                                const struct joule_power *power,
                                int64_t edge_ns, int64_t gap_ns);

/* Add readings that tell energy, or a power that holds until the next reading.
 * The total is valid from the first reading on. */
void joule_node_total_add(struct joule_node_total *t,
                          const struct joule_domain *domains,
                          const struct joule_power *power);

/* The time after which a power that is read every [period_ns] is unknown
 * without a new measurement, and an interval is a gap: three periods, but at
 * least 3 s, for which a BMC may well be busy. */
int64_t joule_power_gap_ns(int64_t period_ns);

/* Powers: whether the last measurement of the node is older than [gap_ns] at
 * [now_ns], or missing. */
bool joule_node_total_overdue(const struct joule_node_total *t, int64_t now_ns,
                              int64_t gap_ns);

/*
 * Return the first counter of the total that is silent: it did not answer at
 * the last update, nor for JOULE_COUNTER_FROZEN_NS before, or never.  -1: none
 * is.  A DRAM counter that has never moved is no part of a total.
 */
int joule_node_total_silent(const struct joule_node_total *t,
                            const struct joule_domain *domains);

/* Whether a package or PSYS counter of the total has not moved, or not
 * answered, for JOULE_COUNTER_FROZEN_NS or longer at the last update. */
bool joule_node_total_stale(const struct joule_node_total *t,
                            const struct joule_domain *domains);

/* The shortest wrap time of all domains; INT64_MAX if none can wrap. */
int64_t joule_domains_wrap_ns(const struct joule_domain *domains, size_t count);

#endif
