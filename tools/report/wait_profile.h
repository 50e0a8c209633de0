/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wait_profile.h - the power of a step, from its energy profile, beside the times at
 * which its processes waited in MPI: what a process uses while it waits.
 *
 *     p = joule_wait_profile_open(&request, &definitions, parts, &err);
 *     joule_wait_profile_add(p, part, &wait);          of each wait
 *     joule_wait_profile_solve(p, begin_ns, end_ns);
 *     power = joule_wait_profile_of(p, process);
 *     joule_wait_profile_free(p);
 *
 * joule_wait_profile_add is called by one thread for each part; all else by one.
 */
#ifndef JOULE_REPORT_WAIT_PROFILE_H
#define JOULE_REPORT_WAIT_PROFILE_H

#include "common/waits/matcher.h"
#include "common/waits/power_fit.h"
#include "tools/report/nodes.h"
#include "tools/waits/definitions.h"

struct joule_wait_profile;

/* The nodes of [request] that are nodes of the trace, whose clock is
 * definitions->wall_ns at 0.  NULL with a sentence: there is none. */
struct joule_wait_profile *
joule_wait_profile_open(const struct joule_nodes_request *request,
                        const struct joule_definitions *definitions,
                        unsigned parts, struct joule_error *err);
void joule_wait_profile_free(struct joule_wait_profile *p); /* NULL: no-op */

void joule_wait_profile_add(struct joule_wait_profile *p, unsigned part,
                            const struct joule_wait *wait);

/* The trace is of this time. */
void joule_wait_profile_solve(struct joule_wait_profile *p, uint64_t begin_ns,
                              uint64_t end_ns);

struct joule_wait_power
joule_wait_profile_of(const struct joule_wait_profile *p, uint32_t process);

/* For the reader: a node whose power is known. */
struct joule_wait_profile_node {
    const char *name;
    unsigned processes;
    size_t rows; /* of the profile, in the time of the trace */
    struct joule_wait_power power;
};

/* The rows of a node: their ends on the clock of the trace, and watts; they live as
 * long as [p]. */
struct joule_wait_profile_rows {
    size_t count;
    const int64_t *end_ns;
    const float *watts;
};

struct joule_wait_profile_rows
joule_wait_profile_rows(const struct joule_wait_profile *p, size_t i);

size_t joule_wait_profile_nodes(const struct joule_wait_profile *p);
struct joule_wait_profile_node
joule_wait_profile_node(const struct joule_wait_profile *p, size_t i);

#endif
