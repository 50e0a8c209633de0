/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/joule/json.h"
#include "tools/joule/text.h"
#include "tools/report/waits.h"

/* Rows that are one line: of a path, of a process, or of both. */
struct group {
    struct joule_trace_slack sum; /* JOULE_NO_NUMBER: of several */
    double least, most;           /* share of its speed, of its rows */
};

/* The share of its speed at which a place would use up its slack. */
static double share(const struct joule_trace_slack *t)
{
    double computed = (double)t->computed_ns;

    return computed > 0 ? computed / (computed + (double)t->slack_ns) : 1;
}

/* By path those of all processes are of one line, by process the ones that are of all
 * paths are the lines. */
static int compare_keys(const void *pa, const void *pb)
{
    const struct joule_trace_slack *a = &((const struct group *)pa)->sum;
    const struct joule_trace_slack *b = &((const struct group *)pb)->sum;

    if (a->path != b->path)
        return a->path < b->path ? -1 : 1;
    return (a->process > b->process) - (a->process < b->process);
}

static int compare_slack(const void *pa, const void *pb)
{
    const struct group *a = pa, *b = pb;

    if (a->sum.slack_ns != b->sum.slack_ns)
        return a->sum.slack_ns > b->sum.slack_ns ? -1 : 1;
    return compare_keys(pa, pb);
}

/* Lines, the longest slack first; [by] 0: each row is one.  The caller frees them;
 * NULL: out of memory. */
static struct group *make_groups(const struct joule_waits *w, unsigned by,
                                 size_t *ret_count)
{
    const struct joule_trace_facts *f = w->facts;
    struct group *g = calloc(f->slacks + 1, sizeof(*g));
    size_t rows = 0, count = 0;

    if (!g)
        return NULL;
    for (size_t i = 0; i < f->slacks; i++) {
        const struct joule_trace_slack *t = &f->slack[i];

        if (by && (t->path == JOULE_SLACK_ALL) != (by == JOULE_BY_PROCESS))
            continue;
        g[rows] = (struct group){*t, share(t), share(t)};
        if (by == JOULE_BY_PATH)
            g[rows].sum.process = JOULE_NO_NUMBER;
        rows++;
    }
    qsort(g, rows, sizeof(*g), compare_keys);
    for (size_t i = 0; i < rows; i++) {
        struct group *to = count > 0 ? &g[count - 1] : NULL;

        if (!to || compare_keys(to, &g[i]) != 0) {
            g[count++] = g[i];
            continue;
        }
        to->sum.computed_ns += g[i].sum.computed_ns;
        to->sum.slack_ns += g[i].sum.slack_ns;
        if (to->least > g[i].least)
            to->least = g[i].least;
        if (to->most < g[i].most)
            to->most = g[i].most;
    }
    qsort(g, count, sizeof(*g), compare_slack);
    *ret_count = count;
    return g;
}

/* ---- text ---- */

static int print_line(const struct joule_waits *w, const struct group *g)
{
    char *path;

    printf("%16.6f s %16.6f s", (double)g->sum.computed_ns / 1e9,
           (double)g->sum.slack_ns / 1e9);
    if (g->sum.process == JOULE_NO_NUMBER)
        printf("  %6.2f to %6.2f %%  ", 100 * g->least, 100 * g->most);
    else
        printf("  %16.2f %%  ", 100 * g->least);
    if (g->sum.process != JOULE_NO_NUMBER) {
        joule_waits_put_process(w, g->sum.process);
        if (*w->d->process[g->sum.process].node) {
            fputs(" on ", stdout);
            joule_text_put(stdout, w->d->process[g->sum.process].node);
        }
    } else {
        path = joule_path_text(w->d, g->sum.path);
        if (!path)
            return -1;
        joule_text_put(stdout, *path ? path : "outside of all regions");
        free(path);
    }
    putchar('\n');
    return 0;
}

static int print_table(const struct joule_waits *w, unsigned by,
                       const char *what)
{
    size_t count, most;
    struct group *g = make_groups(w, by, &count);
    int rc = g ? 0 : -1;

    most = rc == 0 && count < w->top ? count : w->top;
    if (rc == 0 && count > 0)
        printf("\n%18s %18s  %18s  %s (%zu of %zu)\n", "computing", "slack",
               "speed", what, most, count);
    for (size_t i = 0; rc == 0 && count > 0 && i < most; i++)
        rc = print_line(w, &g[i]);
    free(g);
    return rc;
}

int joule_waits_print_slack(const struct joule_waits *w)
{
    unsigned by = w->by ? w->by : JOULE_BY_PATH | JOULE_BY_PROCESS;
    int rc = 0;

    if (w->facts->slacks == 0)
        return 0;
    puts(
        "\nSlack: how much longer computing could have taken without making "
        "another process\nwait, and at what share of its speed it would have.");
    if (by & JOULE_BY_PATH)
        rc = print_table(w, JOULE_BY_PATH, "call path");
    if (rc == 0 && by & JOULE_BY_PROCESS)
        rc = print_table(w, JOULE_BY_PROCESS, "process");
    return rc;
}

/* ---- CSV and JSON ---- */

static int print_csv_line(const struct joule_waits *w, const struct group *g)
{
    const struct joule_mpi_process *p = g->sum.process == JOULE_NO_NUMBER
                                            ? NULL
                                            : &w->d->process[g->sum.process];
    char *path = g->sum.path == JOULE_SLACK_ALL
                     ? strdup("")
                     : joule_path_text(w->d, g->sum.path);

    if (!path)
        return -1;
    printf("%s,", g->sum.path == JOULE_SLACK_ALL ? "all" : "path");
    joule_waits_put_cell(path);
    free(path);
    putchar(',');
    if (p)
        joule_waits_put_cell(p->name);
    putchar(',');
    if (p && p->rank != JOULE_NO_NUMBER)
        printf("%" PRIu32, p->rank);
    putchar(',');
    if (p)
        joule_waits_put_cell(p->node);
    printf(",%" PRIu64 ".%09" PRIu64 ",%" PRIu64 ".%09" PRIu64 ",%.4f,%.4f\n",
           g->sum.computed_ns / 1000000000, g->sum.computed_ns % 1000000000,
           g->sum.slack_ns / 1000000000, g->sum.slack_ns % 1000000000, g->least,
           g->most);
    return 0;
}

int joule_waits_print_slack_csv(const struct joule_waits *w)
{
    size_t count;
    struct group *g = make_groups(w, w->by, &count);
    int rc = g ? 0 : -1;

    puts("of,path,process,rank,node,computed_s,slack_s,speed_least,speed_most");
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = print_csv_line(w, &g[i]);
    free(g);
    return rc;
}

static int print_json_line(struct joule_json *j, const struct joule_waits *w,
                           const struct group *g)
{
    char *path = NULL;

    if (g->sum.path != JOULE_SLACK_ALL) {
        path = joule_path_text(w->d, g->sum.path);
        if (!path)
            return -1;
    }
    joule_json_object(j, NULL);
    if (path)
        joule_json_string(j, "path", path);
    if (g->sum.process != JOULE_NO_NUMBER) {
        const struct joule_mpi_process *p = &w->d->process[g->sum.process];

        joule_json_string(j, "process", p->name);
        joule_json_u64_if(j, "rank", p->rank != JOULE_NO_NUMBER, p->rank);
        joule_json_string(j, "node", p->node);
    }
    joule_json_u64(j, "computed_ns", g->sum.computed_ns);
    joule_json_u64(j, "slack_ns", g->sum.slack_ns);
    joule_json_close(j);
    free(path);
    return 0;
}

int joule_waits_print_slack_json(struct joule_json *j,
                                 const struct joule_waits *w)
{
    size_t count;
    struct group *g = make_groups(w, w->by, &count);
    int rc = g ? 0 : -1;

    joule_json_array(j, "slack");
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = print_json_line(j, w, &g[i]);
    joule_json_close(j);
    free(g);
    return rc;
}
