/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OTF2: a location for each lane; power and states of CPUs are metrics. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "tools/report/trace.h"

#ifdef HAVE_OTF2

#include "tools/waits/trace_libotf2.h"

#define EVENT_CHUNK      (1024 * 1024)
#define DEFINITION_CHUNK (4 * 1024 * 1024)

struct writer {
    const struct joule_trace *trace;
    OTF2_Archive *archive;
    OTF2_GlobalDefWriter *global;
    uint32_t strings;
    struct joule_error *err;
};

static int check(struct writer *w, OTF2_ErrorCode code)
{
    return joule_otf2_check(code, w->err);
}

/* ---- definitions ---- */

/* Each text by its own number; -1: it cannot be written. */
static int64_t put_string(struct writer *w, const char *text)
{
    if (check(w, OTF2_GlobalDefWriter_WriteString(w->global, w->strings,
                                                  text)) < 0)
        return -1;
    return w->strings++;
}

/* Regions have numbers of their own on each node. */
static uint32_t first_region(const struct joule_trace *t, size_t node)
{
    uint32_t first = 0;

    for (size_t i = 0; i < node; i++)
        first += (uint32_t)t->timeline->node[i].names;
    return first;
}

static int put_region(struct writer *w, uint32_t number, const char *name)
{
    int64_t string = put_string(w, name);

    if (string < 0)
        return -1;
    return check(w, OTF2_GlobalDefWriter_WriteRegion(
                        w->global, number, (OTF2_StringRef)string,
                        (OTF2_StringRef)string, 0, OTF2_REGION_ROLE_CODE,
                        OTF2_PARADIGM_USER, OTF2_REGION_FLAG_NONE, 0, 0, 0));
}

/* Metric classes: the power of each node, the C-states, the P-states. */
static OTF2_MetricRef class_of(const struct joule_trace *t, size_t lane)
{
    const struct joule_trace_lane *l = &t->lane[lane];

    return (OTF2_MetricRef)(l->states ? t->timeline->nodes + l->states->is_p
                                      : l->node);
}

/* The class of a lane, which is the first that has it. */
static int put_class(struct writer *w, size_t lane)
{
    OTF2_MetricMemberRef member[JOULE_TIMELINE_COLUMNS];
    OTF2_MetricRef class = class_of(w->trace, lane);
    size_t columns = joule_trace_columns(w->trace, lane);
    int64_t name, unit = put_string(w, w->trace->lane[lane].states ? "%" : "W");

    for (size_t i = 0; i < columns; i++) {
        name = put_string(w, joule_trace_column(w->trace, lane, i));
        if (name < 0 || unit < 0)
            return -1;
        member[i] = (OTF2_MetricMemberRef)(class * JOULE_TIMELINE_COLUMNS + i);
        if (check(w, OTF2_GlobalDefWriter_WriteMetricMember(
                         w->global, member[i], (OTF2_StringRef)name,
                         (OTF2_StringRef)name, OTF2_METRIC_TYPE_OTHER,
                         OTF2_METRIC_ABSOLUTE_NEXT, OTF2_TYPE_DOUBLE,
                         OTF2_BASE_DECIMAL, 0, (OTF2_StringRef)unit)) < 0)
            return -1;
    }
    return check(w, OTF2_GlobalDefWriter_WriteMetricClass(
                        w->global, class, (uint8_t)columns, member,
                        OTF2_METRIC_ASYNCHRONOUS, OTF2_RECORDER_KIND_ABSTRACT));
}

static int put_classes(struct writer *w)
{
    const struct joule_trace *t = w->trace;
    bool has_states[2] = {false, false};

    for (size_t i = 0; i < t->lanes; i++) {
        const struct joule_trace_lane *l = &t->lane[i];

        if (l->kind == JOULE_TRACE_THREAD ||
            (l->states && has_states[l->states->is_p]))
            continue;
        if (l->states)
            has_states[l->states->is_p] = true;
        if (put_class(w, i) < 0)
            return -1;
    }
    return 0;
}

static int put_node(struct writer *w, size_t node)
{
    const struct joule_timeline_node *n = &w->trace->timeline->node[node];
    uint32_t region = first_region(w->trace, node);
    int64_t name = put_string(w, joule_nodes_get(w->trace->nodes, node).name);
    int64_t kind = put_string(w, "node");

    if (name < 0 || kind < 0 ||
        check(w, OTF2_GlobalDefWriter_WriteSystemTreeNode(
                     w->global, (OTF2_SystemTreeNodeRef)node + 1,
                     (OTF2_StringRef)name, (OTF2_StringRef)kind, 0)) < 0)
        return -1;
    for (size_t i = 0; i < n->names; i++)
        if (put_region(w, region + (uint32_t)i, n->name[i]) < 0)
            return -1;
    return 0;
}

static int put_lane(struct writer *w, size_t lane, uint64_t events)
{
    const struct joule_trace_lane *l = &w->trace->lane[lane];
    char text[700];
    int64_t name, group;

    joule_trace_name(w->trace, lane, text, sizeof(text));
    name = put_string(w, text);
    if (name < 0)
        return -1;
    if (lane == 0 || w->trace->lane[lane - 1].group != l->group) {
        joule_trace_group_name(w->trace, lane, text, sizeof(text));
        group = put_string(w, text);
        if (group < 0 ||
            check(w, OTF2_GlobalDefWriter_WriteLocationGroup(
                         w->global, l->group, (OTF2_StringRef)group,
                         OTF2_LOCATION_GROUP_TYPE_PROCESS,
                         (OTF2_SystemTreeNodeRef)l->node + 1,
                         OTF2_UNDEFINED_LOCATION_GROUP)) < 0)
            return -1;
    }
    return check(w, OTF2_GlobalDefWriter_WriteLocation(
                        w->global, lane, (OTF2_StringRef)name,
                        l->kind == JOULE_TRACE_THREAD
                            ? OTF2_LOCATION_TYPE_CPU_THREAD
                            : OTF2_LOCATION_TYPE_METRIC,
                        events, l->group));
}

static int put_definitions(struct writer *w, const uint64_t *events)
{
    const struct joule_trace *t = w->trace;
    int64_t machine;

    w->global = OTF2_Archive_GetGlobalDefWriter(w->archive);
    if (!w->global ||
        check(w, OTF2_GlobalDefWriter_WriteClockProperties(
                     w->global, 1000000000, 0, t->end_ns + 1,
                     t->start_wall_ns ? t->start_wall_ns
                                      : OTF2_UNDEFINED_TIMESTAMP)) < 0 ||
        put_string(w, "") < 0 || (machine = put_string(w, "machine")) < 0 ||
        check(w, OTF2_GlobalDefWriter_WriteSystemTreeNode(
                     w->global, 0, (OTF2_StringRef)machine,
                     (OTF2_StringRef)machine,
                     OTF2_UNDEFINED_SYSTEM_TREE_NODE)) < 0)
        return -1;
    for (size_t i = 0; i < t->timeline->nodes; i++)
        if (t->timeline->node[i].is_read && put_node(w, i) < 0)
            return -1;
    if (put_classes(w) < 0)
        return -1;
    for (size_t i = 0; i < t->lanes; i++)
        if (put_lane(w, i, events[i]) < 0)
            return -1;
    return check(w, OTF2_Archive_CloseGlobalDefWriter(w->archive, w->global));
}

/* ---- events ---- */

static int put_values(struct writer *w, OTF2_EvtWriter *to,
                      const struct joule_trace_event *e)
{
    size_t columns = joule_trace_columns(w->trace, e->lane);
    OTF2_Type type[JOULE_TIMELINE_COLUMNS];
    OTF2_MetricValue value[JOULE_TIMELINE_COLUMNS];

    for (size_t i = 0; i < columns; i++) {
        type[i] = OTF2_TYPE_DOUBLE;
        value[i].floating_point = joule_trace_value(w->trace, e, i);
    }
    return check(w, OTF2_EvtWriter_Metric(to, NULL, e->ns,
                                          class_of(w->trace, e->lane),
                                          (uint8_t)columns, type, value));
}

/* A mark is a region without time. */
static int put_event(struct writer *w, OTF2_EvtWriter *to,
                     const struct joule_trace_event *e)
{
    uint32_t region;

    if (e->kind == JOULE_TRACE_VALUES)
        return put_values(w, to, e);
    region =
        first_region(w->trace, w->trace->lane[e->lane].node) + e->region->name;
    if (e->kind != JOULE_TRACE_END &&
        check(w, OTF2_EvtWriter_Enter(to, NULL, e->ns, region)) < 0)
        return -1;
    if (e->kind == JOULE_TRACE_BEGIN)
        return 0;
    return check(w, OTF2_EvtWriter_Leave(to, NULL, e->ns, region));
}

/* The events of one lane: those of [order] from [i] on. */
static int put_lane_events(struct writer *w, size_t lane, const size_t *order,
                           size_t *i, uint64_t *ret_count)
{
    const struct joule_trace *t = w->trace;
    OTF2_EvtWriter *to = OTF2_Archive_GetEvtWriter(w->archive, lane);

    if (!to)
        return joule_error_set(w->err, ENOMEM, "out of memory");
    for (; *i < t->events && t->event[order[*i]].lane == lane; ++*i)
        if (put_event(w, to, &t->event[order[*i]]) < 0)
            return -1;
    return check(w, OTF2_EvtWriter_GetNumberOfEvents(to, ret_count)) < 0 ||
                   check(w, OTF2_Archive_CloseEvtWriter(w->archive, to)) < 0
               ? -1
               : 0;
}

/* Lane by lane, so that only one is open. */
static int put_lanes(struct writer *w, uint64_t *events)
{
    const struct joule_trace *t = w->trace;
    size_t *next = calloc(t->lanes + 1, sizeof(*next));
    size_t *order = calloc(t->events + 1, sizeof(*order)), i;
    int rc =
        next && order ? 0 : joule_error_set(w->err, ENOMEM, "out of memory");

    if (rc == 0) {
        for (i = 0; i < t->events; i++)
            next[t->event[i].lane + 1]++;
        for (i = 1; i <= t->lanes; i++)
            next[i] += next[i - 1];
        for (i = 0; i < t->events; i++)
            order[next[t->event[i].lane]++] = i;
    }
    i = 0;
    for (size_t lane = 0; rc == 0 && lane < t->lanes; lane++)
        rc = put_lane_events(w, lane, order, &i, &events[lane]);
    free(next);
    free(order);
    return rc;
}

static int put_local_definitions(struct writer *w)
{
    for (size_t lane = 0; lane < w->trace->lanes; lane++) {
        OTF2_DefWriter *to = OTF2_Archive_GetDefWriter(w->archive, lane);

        if (!to || check(w, OTF2_Archive_CloseDefWriter(w->archive, to)) < 0)
            return -1;
    }
    return 0;
}

static int write_archive(struct writer *w, uint64_t *events)
{
    return check(w, joule_otf2_prepare(w->archive)) < 0 ||
                   check(w, OTF2_Archive_SetCreator(w->archive,
                                                    PACKAGE_STRING)) < 0 ||
                   check(w, OTF2_Archive_OpenEvtFiles(w->archive)) < 0 ||
                   put_lanes(w, events) < 0 ||
                   check(w, OTF2_Archive_CloseEvtFiles(w->archive)) < 0 ||
                   check(w, OTF2_Archive_OpenDefFiles(w->archive)) < 0 ||
                   put_local_definitions(w) < 0 ||
                   check(w, OTF2_Archive_CloseDefFiles(w->archive)) < 0 ||
                   put_definitions(w, events) < 0
               ? -1
               : 0;
}

int joule_trace_otf2(const struct joule_trace *trace, const char *path,
                     struct joule_error *err)
{
    struct writer w = {.trace = trace, .err = err};
    uint64_t *events = calloc(trace->lanes + 1, sizeof(*events));
    int rc;

    if (!events)
        return joule_error_set(err, ENOMEM, "out of memory");
    joule_otf2_silence();
    w.archive = OTF2_Archive_Open(path, "traces", OTF2_FILEMODE_WRITE,
                                  EVENT_CHUNK, DEFINITION_CHUNK,
                                  OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (w.archive) {
        rc = write_archive(&w, events);
        if (check(&w, OTF2_Archive_Close(w.archive)) < 0)
            rc = -1;
    } else {
        rc = joule_error_set(err, EEXIST, "cannot make the directory %s", path);
    }
    free(events);
    return rc;
}

#else

int joule_trace_otf2(const struct joule_trace *trace, const char *path,
                     struct joule_error *err)
{
    (void)trace;
    (void)path;
    return joule_error_set(err, ENOTSUP,
                           "this joule was built without OTF2 (Debian: "
                           "libotf2-trace-dev)");
}

#endif
