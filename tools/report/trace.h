/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace.h - a job's power, regions and states of CPUs in the order of time, for the
 * writers of trace formats.
 */
#ifndef JOULE_REPORT_TRACE_H
#define JOULE_REPORT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "tools/report/timeline.h"

enum joule_trace_lane_kind {
    JOULE_TRACE_POWER, /* of a node, in W: the columns of the timeline's node */
    JOULE_TRACE_CSTATES, /* of a CPU, in %: JOULE_TIMELINE_STATES columns */
    JOULE_TRACE_PSTATES,
    JOULE_TRACE_THREAD, /* of a process */
};

/* What has events of its own. */
struct joule_trace_lane {
    size_t node; /* of the timeline */
    enum joule_trace_lane_kind kind;
    const struct joule_timeline_states *states; /* of a CPU */
    uint64_t process, rank, thread;             /* of a thread */
    uint32_t
        group; /* the same for all threads of a process, and for all CPUs of a
                     * node; counts up */
};

enum joule_trace_kind {
    JOULE_TRACE_VALUES, /* from then on, until the lane's next */
    JOULE_TRACE_BEGIN,
    JOULE_TRACE_END,
    JOULE_TRACE_MARK,
};

#define JOULE_TRACE_OVER SIZE_MAX

struct joule_trace_event {
    uint64_t ns; /* since the first step began on any node */
    uint32_t lane;
    enum joule_trace_kind kind;
    union {
        size_t sample; /* JOULE_TRACE_OVER: none any more */
        const struct joule_timeline_region *region;
    };
};

struct joule_trace {
    const struct joule_timeline *timeline;
    const struct joule_nodes *nodes;
    uint64_t start_wall_ns, end_ns;
    struct joule_trace_lane
        *lane; /* a node's power, its CPUs', its processes' */
    size_t lanes, lane_room;
    struct joule_trace_event *event;
    size_t events;
};

/* 0, or -1 with errno ENOMEM.  The caller frees it. */
int joule_trace_make(const struct joule_timeline *timeline,
                     const struct joule_nodes *nodes, struct joule_trace *ret);
void joule_trace_free(struct joule_trace *trace);

/* "step 0 on n1: power", "step 0 on n1: rank 3, thread 1", "step 0 on n1: C-states of
 * CPU 5". */
void joule_trace_name(const struct joule_trace *trace, size_t lane, char *buf,
                      size_t size);

/* Of the group of a lane: "step 0 on n1: CPUs", or the name of its first lane. */
void joule_trace_group_name(const struct joule_trace *trace, size_t lane,
                            char *buf, size_t size);

/* Of a lane that has values. */
size_t joule_trace_columns(const struct joule_trace *trace, size_t lane);

/* "node", "C0"; what is called step has no name of its own in the profile. */
const char *joule_trace_column(const struct joule_trace *trace, size_t lane,
                               size_t column);

/* Of an event of values: 0 when it is over; NAN. */
double joule_trace_value(const struct joule_trace *trace,
                         const struct joule_trace_event *event, size_t column);

/* The name of a region of an event, with what is not printable replaced. */
void joule_trace_region(const struct joule_trace *trace,
                        const struct joule_trace_event *event,
                        char ret[sizeof(joule_region_text)]);

/*
 * Write a trace: at [path] a file of JSON; path.prv, path.pcf and path.row; a new
 * directory with traces.otf2.  0, or -1 with a sentence.
 */
int joule_trace_chrome(const struct joule_trace *trace, const char *path,
                       struct joule_error *err);
int joule_trace_paraver(const struct joule_trace *trace, const char *path,
                        struct joule_error *err);
int joule_trace_otf2(const struct joule_trace *trace, const char *path,
                     struct joule_error *err);

#endif
