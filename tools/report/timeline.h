/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline.h - what the profiles of a job have, moment by moment: power, the states
 * of CPUs, and the regions of programs.  For the writers of traces.
 *
 *     joule_timeline_read(nodes, &timeline, "joule trace", &err);
 *     joule_timeline_free(&timeline);
 *
 * One thread.
 */
#ifndef JOULE_REPORT_TIMELINE_H
#define JOULE_REPORT_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "tools/report/nodes.h"

#define JOULE_TIMELINE_COLUMNS 32
#define JOULE_TIMELINE_NAME    64
#define JOULE_TIMELINE_STATES  4

/* A region of a process; of a mark both times are the same. */
struct joule_timeline_region {
    uint64_t process, rank, thread, depth, count;
    uint64_t begin_ns, end_ns;
    uint32_t name; /* of the node's */
    bool is_mark;
};

/* The C-states of a CPU, or its P-states. */
struct joule_timeline_states {
    uint64_t cpu;
    bool is_p;
    /* The end of each row since the step began on the node, which does not fall, and
     * the percent of its time in each state. */
    uint64_t *ns;
    float (*percent)[JOULE_TIMELINE_STATES];
    size_t samples, ns_room, percent_room;
};

struct joule_timeline_node {
    bool is_read;
    uint64_t start_wall_ns; /* 0: not known */
    size_t columns; /* "node", "step" and the table's own, as "dram_0" */
    char column[JOULE_TIMELINE_COLUMNS][JOULE_TIMELINE_NAME];
    /* Rows of the energy table: the end of each since the step began on the node, which
     * does not fall, and for each column the mean since the row before. */
    uint64_t *ns;
    float *watts; /* joule_timeline_watts */
    size_t samples, ns_room, watts_room;
    struct joule_timeline_states *states; /* CPU by CPU, C-states first */
    size_t state_series, state_room;
    uint32_t
        *series_of; /* of each CPU while they are read: C, P; + 1, 0: none */
    struct joule_timeline_region *region; /* by begin, the outer ones first */
    size_t regions, region_room;
    joule_region_text *name;
    size_t names, name_room;
};

struct joule_timeline {
    struct joule_timeline_node *node; /* as in nodes */
    size_t nodes, failed;
    size_t bytes;
    const char *who; /* says what cannot be read */
    const struct joule_nodes *of;
};

/* Read all, in up to 2 GiB: nodes that have no room, or cannot be read, are named on
 * stderr and counted in [failed].  -1 with a sentence: nothing can be read at all.
 * Free it in either case. */
int joule_timeline_read(struct joule_nodes *nodes, struct joule_timeline *ret,
                        const char *who, struct joule_error *err);
void joule_timeline_free(struct joule_timeline *timeline);

/* NAN: not known. */
static inline double
joule_timeline_watts(const struct joule_timeline_node *node, size_t sample,
                     size_t column)
{
    return (double)node->watts[sample * node->columns + column];
}

/* The column of that name, or -1. */
int joule_timeline_column(const struct joule_timeline_node *node,
                          const char *name);

#endif
