/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/segment.h"
#include "tools/report/trace.h"

static int add_lane(struct joule_trace *t, const struct joule_trace_lane *lane)
{
    if (t->lanes == t->lane_room) {
        size_t room = t->lane_room ? 2 * t->lane_room : 64;
        struct joule_trace_lane *more =
            reallocarray(t->lane, room, sizeof(*more));

        if (!more)
            return -1;
        t->lane = more;
        t->lane_room = room;
    }
    t->lane[t->lanes++] = *lane;
    return 0;
}

/* Of threads. */
static int compare_lanes(const void *pa, const void *pb)
{
    const struct joule_trace_lane *a = pa, *b = pb;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

static uint32_t next_group(const struct joule_trace *t)
{
    return t->lanes ? t->lane[t->lanes - 1].group + 1 : 0;
}

/* A node's power, and its CPUs'. */
static int add_series(struct joule_trace *t, size_t node)
{
    const struct joule_timeline_node *n = &t->timeline->node[node];
    struct joule_trace_lane lane = {.node = node, .group = next_group(t)};

    if (add_lane(t, &lane) < 0)
        return -1;
    lane.group++;
    for (size_t i = 0; i < n->state_series; i++) {
        lane.states = &n->states[i];
        lane.kind =
            n->states[i].is_p ? JOULE_TRACE_PSTATES : JOULE_TRACE_CSTATES;
        if (add_lane(t, &lane) < 0)
            return -1;
    }
    return 0;
}

/* A node's threads in order of rank, each once. */
static int add_threads(struct joule_trace *t, size_t node)
{
    const struct joule_timeline_node *n = &t->timeline->node[node];
    size_t first = t->lanes, kept = first;
    uint32_t group = next_group(t);

    for (size_t i = 0; i < n->regions; i++) {
        const struct joule_timeline_region *r = &n->region[i];
        const struct joule_trace_lane lane = {.node = node,
                                              .kind = JOULE_TRACE_THREAD,
                                              .process = r->process,
                                              .rank = r->rank,
                                              .thread = r->thread};

        /* Most follow one of their own lane. */
        if (t->lanes > first &&
            compare_lanes(&t->lane[t->lanes - 1], &lane) == 0)
            continue;
        if (add_lane(t, &lane) < 0)
            return -1;
    }
    if (t->lanes > first)
        qsort(t->lane + first, t->lanes - first, sizeof(*t->lane),
              compare_lanes);
    for (size_t i = first; i < t->lanes; i++) {
        if (i > first && compare_lanes(&t->lane[kept - 1], &t->lane[i]) == 0)
            continue;
        t->lane[kept++] = t->lane[i];
    }
    t->lanes = kept;
    for (size_t i = first; i < t->lanes; i++) {
        if (i > first && t->lane[i].process != t->lane[i - 1].process)
            group++;
        t->lane[i].group = group;
    }
    return 0;
}

/* The lane of a region among those of its node, from [first] on. */
static uint32_t find_lane(const struct joule_trace *t, size_t first,
                          const struct joule_timeline_region *r)
{
    const struct joule_trace_lane key = {
        .process = r->process, .rank = r->rank, .thread = r->thread};
    const struct joule_trace_lane *found = bsearch(
        &key, t->lane + first, t->lanes - first, sizeof(key), compare_lanes);

    return (uint32_t)(found - t->lane);
}

static void add_event(struct joule_trace *t,
                      const struct joule_trace_event *event)
{
    t->event[t->events++] = *event;
    if (t->end_ns < event->ns)
        t->end_ns = event->ns;
}

static void add_values(struct joule_trace *t, size_t lane, uint64_t start_ns)
{
    const struct joule_trace_lane *l = &t->lane[lane];
    const struct joule_timeline_node *n = &t->timeline->node[l->node];
    const uint64_t *ns = l->states ? l->states->ns : n->ns;
    size_t samples = l->states ? l->states->samples : n->samples;
    struct joule_trace_event e = {.ns = start_ns, .lane = (uint32_t)lane};

    for (size_t i = 0; i < samples; i++) {
        e.sample = i;
        add_event(t, &e);
        e.ns = start_ns + ns[i];
    }
    e.sample = JOULE_TRACE_OVER;
    add_event(t, &e);
}

static void add_regions(struct joule_trace *t,
                        const struct joule_timeline_node *n, size_t threads,
                        uint64_t start_ns)
{
    struct joule_trace_event e;

    for (size_t i = 0; i < n->regions; i++) {
        const struct joule_timeline_region *r = &n->region[i];

        e.lane = find_lane(t, threads, r);
        e.region = r;
        e.ns = start_ns + r->begin_ns;
        e.kind = r->is_mark ? JOULE_TRACE_MARK : JOULE_TRACE_BEGIN;
        add_event(t, &e);
        if (r->is_mark)
            continue;
        e.ns = start_ns + r->end_ns;
        e.kind = JOULE_TRACE_END;
        add_event(t, &e);
    }
}

/* A node's lanes and their events. */
static int add_node(struct joule_trace *t, size_t node)
{
    const struct joule_timeline_node *n = &t->timeline->node[node];
    uint64_t start_ns =
        n->start_wall_ns ? n->start_wall_ns - t->start_wall_ns : 0;
    size_t first = t->lanes, threads, count = n->samples + 1 + 2 * n->regions;
    struct joule_trace_event *more;

    if (add_series(t, node) < 0)
        return -1;
    threads = t->lanes;
    if (add_threads(t, node) < 0)
        return -1;
    for (size_t i = 0; i < n->state_series; i++)
        count += n->states[i].samples + 1;
    more = reallocarray(t->event, t->events + count, sizeof(*more));
    if (!more)
        return -1;
    t->event = more;
    for (size_t i = first; i < threads; i++)
        add_values(t, i, start_ns);
    add_regions(t, n, threads, start_ns);
    return 0;
}

/* The order of what is at one time: ends from the innermost on; what has no time of its
 * own inside of what ends then; values; begins from the outermost on. */
static int rank_of(const struct joule_trace_event *e)
{
    int depth;

    if (e->kind == JOULE_TRACE_VALUES)
        return JOULE_REGION_DEPTH;
    depth = e->region->depth < JOULE_REGION_DEPTH ? (int)e->region->depth
                                                  : JOULE_REGION_DEPTH - 1;
    if (e->region->begin_ns == e->region->end_ns)
        return 1 - 2 * depth;
    return e->kind == JOULE_TRACE_END ? -2 * depth
                                      : JOULE_REGION_DEPTH + 1 + depth;
}

static int compare_events(const void *pa, const void *pb)
{
    const struct joule_trace_event *a = pa, *b = pb;

    if (a->ns != b->ns)
        return a->ns < b->ns ? -1 : 1;
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    if (rank_of(a) != rank_of(b))
        return rank_of(a) - rank_of(b);
    if (a->kind == JOULE_TRACE_VALUES || a->region == b->region)
        return (int)a->kind - (int)b->kind;
    return a->region < b->region ? -1 : 1;
}

int joule_trace_make(const struct joule_timeline *timeline,
                     const struct joule_nodes *nodes, struct joule_trace *ret)
{
    *ret = (struct joule_trace){.timeline = timeline, .nodes = nodes};
    for (size_t i = 0; i < timeline->nodes; i++) {
        uint64_t ns = timeline->node[i].start_wall_ns;

        if (timeline->node[i].is_read && ns &&
            (ret->start_wall_ns == 0 || ns < ret->start_wall_ns))
            ret->start_wall_ns = ns;
    }
    for (size_t i = 0; i < timeline->nodes; i++)
        if (timeline->node[i].is_read && add_node(ret, i) < 0) {
            errno = ENOMEM;
            return -1;
        }
    if (ret->events > 0)
        qsort(ret->event, ret->events, sizeof(*ret->event), compare_events);
    return 0;
}

void joule_trace_free(struct joule_trace *t)
{
    free(t->lane);
    free(t->event);
}

__attribute__((format(printf, 5, 6))) static void
put_name(const struct joule_trace *t, size_t lane, char *buf, size_t size,
         const char *fmt, ...)
{
    struct joule_node node = joule_nodes_get(t->nodes, t->lane[lane].node);
    int length = snprintf(buf, size, "step %s on %s: ", node.step, node.name);
    va_list ap;

    if (length < 0 || (size_t)length >= size)
        return;
    va_start(ap, fmt);
    vsnprintf(buf + length, size - (size_t)length, fmt, ap);
    va_end(ap);
}

void joule_trace_name(const struct joule_trace *t, size_t lane, char *buf,
                      size_t size)
{
    const struct joule_trace_lane *l = &t->lane[lane];

    if (l->kind == JOULE_TRACE_POWER)
        put_name(t, lane, buf, size, "power");
    else if (l->states)
        put_name(t, lane, buf, size, "%s-states of CPU %" PRIu64,
                 l->states->is_p ? "P" : "C", l->states->cpu);
    else if (l->rank == JOULE_REGION_NO_RANK)
        put_name(t, lane, buf, size, "process %" PRIu64 ", thread %" PRIu64,
                 l->process, l->thread);
    else
        put_name(t, lane, buf, size, "rank %" PRIu64 ", thread %" PRIu64,
                 l->rank, l->thread);
}

void joule_trace_group_name(const struct joule_trace *t, size_t lane, char *buf,
                            size_t size)
{
    if (t->lane[lane].states)
        put_name(t, lane, buf, size, "CPUs");
    else
        joule_trace_name(t, lane, buf, size);
}

size_t joule_trace_columns(const struct joule_trace *t, size_t lane)
{
    const struct joule_trace_lane *l = &t->lane[lane];

    return l->states ? JOULE_TIMELINE_STATES
                     : t->timeline->node[l->node].columns;
}

const char *joule_trace_column(const struct joule_trace *t, size_t lane,
                               size_t column)
{
    static const char *const states[2][JOULE_TIMELINE_STATES] = {
        {"C0", "C1", "C2", "C3"}, {"P0", "P1", "P2", "P3"}};
    const struct joule_trace_lane *l = &t->lane[lane];
    const char *name;

    if (l->states)
        return states[l->states->is_p][column];
    name = t->timeline->node[l->node].column[column];
    return *name ? name : "step";
}

double joule_trace_value(const struct joule_trace *t,
                         const struct joule_trace_event *event, size_t column)
{
    const struct joule_trace_lane *l = &t->lane[event->lane];

    if (event->sample == JOULE_TRACE_OVER)
        return 0;
    return l->states ? (double)l->states->percent[event->sample][column]
                     : joule_timeline_watts(&t->timeline->node[l->node],
                                            event->sample, column);
}

void joule_trace_region(const struct joule_trace *t,
                        const struct joule_trace_event *event,
                        char ret[sizeof(joule_region_text)])
{
    const struct joule_timeline_node *n =
        &t->timeline->node[t->lane[event->lane].node];

    strcpy(ret, n->name[event->region->name]);
    for (char *c = ret; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
}
