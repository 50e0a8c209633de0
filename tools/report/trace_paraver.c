/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paraver: events in PATH.prv, the meaning of their numbers in PATH.pcf, names of
 * rows in PATH.row.  An application is a step; a task is the power of a node, its
 * CPUs, or a process.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/paraver.h"
#include "tools/report/trace.h"

#define TYPE_REGION 60000019  /* a function of the user's, as Extrae has it */
#define TYPE_MARK   60000020  /* the value is a region's, too */
#define TYPE_POWER  501000001 /* and one for each other column; mW */
#define TYPE_CSTATE                                                            \
    900000010 /* as pmlib has it, and one for each other state; 0.01 % */
#define TYPE_PSTATE 800000010

#define POWERS_MAX 256

/* Where a lane is in Paraver's numbers, which count from 1. */
struct place {
    unsigned application, task, thread, node;
};

struct prv {
    const struct joule_trace *trace;
    struct place *place; /* of each lane */
    unsigned applications;
    const char **node; /* names, each once */
    unsigned nodes;
    const char **region; /* sorted, each once */
    size_t regions;
    const char *power[POWERS_MAX]; /* names of columns, each once */
    size_t powers;
};

static struct joule_node node_of(const struct prv *p, size_t lane)
{
    return joule_nodes_get(p->trace->nodes, p->trace->lane[lane].node);
}

/* ---- numbers ---- */

static int find_node(struct prv *p, const char *name, unsigned *ret)
{
    const char **more;

    for (*ret = 0; *ret < p->nodes; ++*ret)
        if (strcmp(p->node[*ret], name) == 0)
            return 0;
    more = reallocarray(p->node, p->nodes + 1, sizeof(*more));
    if (!more)
        return -1;
    p->node = more;
    p->node[p->nodes++] = name;
    return 0;
}

/* Lanes come step by step, and process by process. */
static int find_places(struct prv *p)
{
    const struct joule_trace *t = p->trace;

    p->place = calloc(t->lanes + 1, sizeof(*p->place));
    if (!p->place)
        return -1;
    for (size_t i = 0; i < t->lanes; i++) {
        struct place *at = &p->place[i], *before = at - 1;
        bool same_step =
            i > 0 && strcmp(node_of(p, i).step, node_of(p, i - 1).step) == 0;
        bool same_task = same_step && t->lane[i].group == t->lane[i - 1].group;

        at->application =
            same_step ? before->application : p->applications++ + 1;
        at->task = same_task ? before->task : same_step ? before->task + 1 : 1;
        at->thread = same_task ? before->thread + 1 : 1;
        if (find_node(p, node_of(p, i).name, &at->node) < 0)
            return -1;
    }
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int find_regions(struct prv *p)
{
    const struct joule_timeline *t = p->trace->timeline;
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < t->nodes; i++)
        count += t->node[i].names;
    p->region = calloc(count + 1, sizeof(*p->region));
    if (!p->region)
        return -1;
    for (size_t i = 0; i < t->nodes; i++)
        for (size_t k = 0; k < t->node[i].names; k++)
            p->region[p->regions++] = t->node[i].name[k];
    if (count > 0)
        qsort(p->region, count, sizeof(*p->region), compare_names);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(p->region[i], p->region[kept - 1]) != 0)
            p->region[kept++] = p->region[i];
    p->regions = kept;
    return 0;
}

static size_t region_number(const struct prv *p,
                            const struct joule_trace_event *e)
{
    const struct joule_trace *t = p->trace;
    const char *name =
        t->timeline->node[t->lane[e->lane].node].name[e->region->name];
    const char **found = bsearch(&name, p->region, p->regions,
                                 sizeof(*p->region), compare_names);

    return (size_t)(found - p->region) + 1;
}

/* The number of a column's events, counted from 0; more than there is room for have
 * none. */
static size_t power_number(struct prv *p, const char *name)
{
    for (size_t i = 0; i < p->powers; i++)
        if (strcmp(p->power[i], name) == 0)
            return i;
    if (p->powers == POWERS_MAX)
        return POWERS_MAX;
    p->power[p->powers] = name;
    return p->powers++;
}

/* ---- PATH.prv ---- */

static void put_header(FILE *file, const struct prv *p)
{
    const struct joule_trace *t = p->trace;

    joule_paraver_put_date(file, t->start_wall_ns);
    fprintf(file, "%" PRIu64 "_ns:%u(", t->end_ns, p->nodes);
    for (unsigned i = 0; i < p->nodes; i++)
        fprintf(file, "%s1", i ? "," : "");
    fprintf(file, "):%u", p->applications);
    for (size_t i = 0, end; i < t->lanes; i = end) {
        unsigned tasks = 0;

        for (end = i; end < t->lanes &&
                      p->place[end].application == p->place[i].application;
             end++)
            tasks = p->place[end].task;
        fprintf(file, ":%u(", tasks);
        for (size_t k = i; k < end; k++)
            if (k + 1 == end || p->place[k + 1].thread == 1)
                fprintf(file, "%u:%u%s", p->place[k].thread,
                        p->place[k].node + 1, k + 1 == end ? ")" : ",");
    }
    fputc('\n', file);
}

static void put_begin(FILE *file, const struct prv *p,
                      const struct joule_trace_event *e)
{
    const struct place *at = &p->place[e->lane];

    fprintf(file, "2:0:%u:%u:%u:%" PRIu64, at->application, at->task,
            at->thread, e->ns);
}

/* The type of a lane's column, or 0: it has none. */
static size_t type_of(struct prv *p, size_t lane, size_t column)
{
    const struct joule_trace_lane *l = &p->trace->lane[lane];
    size_t number;

    if (l->states)
        return (l->states->is_p ? TYPE_PSTATE : TYPE_CSTATE) + column;
    number = power_number(p, joule_trace_column(p->trace, lane, column));
    return number < POWERS_MAX ? TYPE_POWER + number : 0;
}

static void put_values(FILE *file, struct prv *p,
                       const struct joule_trace_event *e)
{
    double scale = p->trace->lane[e->lane].states ? 100 : 1e3;
    bool any = false;

    for (size_t i = 0; i < joule_trace_columns(p->trace, e->lane); i++) {
        size_t type = type_of(p, e->lane, i);
        double value = joule_trace_value(p->trace, e, i) * scale;

        if (!(value >= 0 && value < 1e15) || type == 0)
            continue;
        if (!any)
            put_begin(file, p, e);
        any = true;
        fprintf(file, ":%zu:%" PRIu64, type, (uint64_t)(value + 0.5));
    }
    if (any)
        fputc('\n', file);
}

static void put_region(FILE *file, const struct prv *p,
                       const struct joule_trace_event *e)
{
    put_begin(file, p, e);
    fprintf(file, ":%d:%zu\n",
            e->kind == JOULE_TRACE_MARK ? TYPE_MARK : TYPE_REGION,
            e->kind == JOULE_TRACE_END ? 0 : region_number(p, e));
}

static void put_prv(FILE *file, void *arg)
{
    struct prv *p = arg;

    put_header(file, p);
    for (size_t i = 0; i < p->trace->events; i++)
        if (p->trace->event[i].kind == JOULE_TRACE_VALUES)
            put_values(file, p, &p->trace->event[i]);
        else
            put_region(file, p, &p->trace->event[i]);
}

/* ---- PATH.pcf and PATH.row ---- */

static void put_pcf(FILE *file, void *arg)
{
    struct prv *p = arg;

    joule_paraver_put_options(file);
    fprintf(file,
            "EVENT_TYPE\n0    %d    Region\n0    %d    Mark\nVALUES\n"
            "0      End\n",
            TYPE_REGION, TYPE_MARK);
    for (size_t i = 0; i < p->regions; i++) {
        fprintf(file, "%zu      ", i + 1);
        joule_paraver_put_text(file, p->region[i]);
    }
    for (size_t i = 0; i < p->powers; i++) {
        fprintf(file, "\nEVENT_TYPE\n0    %zu    Power mW ", TYPE_POWER + i);
        joule_paraver_put_text(file, p->power[i]);
    }
    for (int i = 0; i < JOULE_TIMELINE_STATES; i++)
        fprintf(
            file,
            "\nEVENT_TYPE\n0    %d    C%d 0.01 %%\n0    %d    P%d 0.01 %%\n",
            TYPE_CSTATE + i, i, TYPE_PSTATE + i, i);
}

static void put_row(FILE *file, void *arg)
{
    struct prv *p = arg;
    char name[700];

    fprintf(file, "LEVEL NODE SIZE %u\n", p->nodes);
    for (unsigned i = 0; i < p->nodes; i++)
        joule_paraver_put_text(file, p->node[i]);
    fprintf(file, "\nLEVEL THREAD SIZE %zu\n", p->trace->lanes);
    for (size_t i = 0; i < p->trace->lanes; i++) {
        joule_trace_name(p->trace, i, name, sizeof(name));
        joule_paraver_put_text(file, name);
    }
}

/* ---- all of it ---- */

int joule_trace_paraver(const struct joule_trace *trace, const char *path,
                        struct joule_error *err)
{
    struct prv p = {.trace = trace};
    int rc = 0;

    if (find_places(&p) < 0 || find_regions(&p) < 0)
        rc = joule_error_set(err, ENOMEM, "out of memory");
    /* In this order: columns have their numbers by then. */
    if (rc == 0)
        rc = joule_paraver_write(path, "prv", put_prv, &p, err);
    if (rc == 0)
        rc = joule_paraver_write(path, "pcf", put_pcf, &p, err);
    if (rc == 0)
        rc = joule_paraver_write(path, "row", put_row, &p, err);
    free(p.place);
    free(p.node);
    free(p.region);
    return rc;
}
