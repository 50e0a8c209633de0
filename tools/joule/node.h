/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * node.h - which node this is, and what its sampler has published.
 */
#ifndef JOULE_TOOLS_NODE_H
#define JOULE_TOOLS_NODE_H

#include <stdbool.h>

#include "common/base/clock.h"
#include "common/node/ledger.h"
#include "tools/joule/finding.h"

#define JOULE_NODE_MAX 256

struct joule_node {
    char name[JOULE_NODE_MAX];
    bool present;             /* there is a sample */
    struct joule_error error; /* otherwise: why not */
    bool fresh;               /* the last sample is at most 3 periods old */
    int64_t age_ns;
    uint64_t wraps, errors; /* of all domains together */
    struct joule_snapshot snapshot;
    struct joule_sensor_state state; /* of the sensor */
    bool is_power;                   /* it has a meter */
    bool is_fused; /* and counters, and what it has learned makes sense */
};

/* The NodeName, [option] or as joule_nodename_find has it for tools, and how
 * many nodes have a directory here.  -1 with a sentence. */
int joule_node_name(int root_fd, const char *option, char name[JOULE_NODE_MAX],
                    unsigned *ret_nodes, struct joule_error *err);

/* -1 with ENOENT and the sentence that there is no ledger of the node. */
int joule_node_missing(const char *name, unsigned nodes,
                       struct joule_error *err);

/* Trouble that an admin should know of becomes a finding; that slurmd has not
 * run yet is a note. */
void joule_node_collect(struct joule_node *n, int root_fd,
                        const struct joule_clock *clock, const char *name,
                        struct joule_findings *findings);

#endif
