/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline.h - what the profiles of a job have, moment by moment: power, and the
 * regions of programs.  For the writers of traces.
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

/* A row of a node's energy table. */
struct joule_timeline_sample {
    uint64_t ns; /* since the step began on the node: the end of the row */
    double watts[JOULE_TIMELINE_COLUMNS]; /* mean since the row before; NAN */
};

/* A region of a process; of a mark both times are the same. */
struct joule_timeline_region {
    uint64_t process, rank, thread, depth, count;
    uint64_t begin_ns, end_ns;
    uint32_t name; /* of the node's */
    bool is_mark;
};

struct joule_timeline_node {
    bool is_read;
    uint64_t start_wall_ns; /* 0: not known */
    size_t columns; /* "node", "step" and the table's own, as "dram_0" */
    char column[JOULE_TIMELINE_COLUMNS][JOULE_TIMELINE_NAME];
    struct joule_timeline_sample *sample; /* times do not fall */
    size_t samples, sample_room;
    struct joule_timeline_region *region; /* by begin, the outer ones first */
    size_t regions, region_room;
    joule_region_text *name;
    size_t names, name_room;
};

struct joule_timeline {
    struct joule_timeline_node *node; /* as in nodes */
    size_t nodes, failed;
    const char *who; /* says what cannot be read */
    const struct joule_nodes *of;
};

/* Read all.  What cannot be read is said on stderr, and counted in [failed].  -1
 * with a sentence: nothing can be read at all.  Free it in either case. */
int joule_timeline_read(struct joule_nodes *nodes, struct joule_timeline *ret,
                        const char *who, struct joule_error *err);
void joule_timeline_free(struct joule_timeline *timeline);

/* The column of that name, or -1. */
int joule_timeline_column(const struct joule_timeline_node *node,
                          const char *name);

#endif
