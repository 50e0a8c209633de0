/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/report/wait_profile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/timeline.h"

/* Rows of a node: their ends on the clock of the trace. */
struct node {
    const char *name; /* the definitions' */
    unsigned processes;
    size_t rows, used;
    int64_t begin_ns; /* of the first row */
    int64_t *end_ns;
    float *watts;
    double *waiting_ns; /* [parts][rows]: of all processes together */
    struct joule_wait_power power;
};

struct joule_wait_profile {
    unsigned parts;
    struct node *node;
    size_t nodes;
    uint32_t *node_of; /* of each process; [nodes]: none */
    uint32_t processes;
};

/* The node of the trace with that name, or where it would be. */
static size_t find_node(const struct joule_wait_profile *p, const char *name)
{
    size_t i = 0;

    while (i < p->nodes && strcmp(p->node[i].name, name) != 0)
        i++;
    return i;
}

static int list_nodes(struct joule_wait_profile *p,
                      const struct joule_definitions *d)
{
    p->processes = d->processes;
    p->node = calloc(d->processes + 1, sizeof(*p->node));
    p->node_of = calloc(d->processes + 1, sizeof(*p->node_of));
    if (!p->node || !p->node_of)
        return -1;
    for (uint32_t i = 0; i < d->processes; i++) {
        size_t n = find_node(p, d->process[i].node);

        if (n == p->nodes)
            p->node[p->nodes++].name = d->process[i].node;
        p->node[n].processes++;
        p->node_of[i] = (uint32_t)n;
    }
    return 0;
}

/* The step's own power, or the node's where it is all the step's. */
static int take_rows(struct joule_wait_profile *p, struct node *n,
                     const struct joule_timeline_node *from, int64_t wall_ns)
{
    int column = joule_timeline_column(from, "step");
    int64_t begin_ns = (int64_t)from->start_wall_ns - wall_ns;

    if (column < 0)
        column = joule_timeline_column(from, "node");
    if (!from->is_read || from->start_wall_ns == 0 || column < 0 ||
        from->samples == 0)
        return 0;
    n->end_ns = malloc(from->samples * sizeof(*n->end_ns));
    n->watts = malloc(from->samples * sizeof(*n->watts));
    n->waiting_ns = calloc(p->parts * from->samples, sizeof(*n->waiting_ns));
    if (!n->end_ns || !n->watts || !n->waiting_ns)
        return -1;
    n->rows = from->samples;
    n->begin_ns = begin_ns;
    for (size_t i = 0; i < n->rows; i++) {
        n->end_ns[i] = begin_ns + (int64_t)from->ns[i];
        n->watts[i] = (float)joule_timeline_watts(from, i, (size_t)column);
    }
    return 0;
}

static int read_rows(struct joule_wait_profile *p, struct joule_nodes *nodes,
                     int64_t wall_ns, struct joule_error *err)
{
    struct joule_timeline timeline = {0};
    bool any = false;
    int rc = joule_timeline_read(nodes, &timeline, "joule waits", err);

    for (size_t i = 0; rc == 0 && i < timeline.nodes; i++) {
        size_t n = find_node(p, joule_nodes_get(nodes, i).name);

        if (n == p->nodes || p->node[n].rows > 0)
            continue;
        if (take_rows(p, &p->node[n], &timeline.node[i], wall_ns) < 0)
            rc = joule_error_set(err, ENOMEM, "out of memory");
        any |= p->node[n].rows > 0;
    }
    joule_timeline_free(&timeline);
    if (rc == 0 && !any)
        rc = joule_error_set(err, ENOENT,
                             "the profile has no power of the trace's nodes");
    return rc;
}

struct joule_wait_profile *
joule_wait_profile_open(const struct joule_nodes_request *request,
                        const struct joule_definitions *d, unsigned parts,
                        struct joule_error *err)
{
    struct joule_wait_profile *p = calloc(1, sizeof(*p));
    struct joule_nodes *nodes = NULL;
    int rc;

    if (p)
        p->parts = parts;
    if (!p || list_nodes(p, d) < 0)
        rc = joule_error_set(err, ENOMEM, "out of memory");
    else if (d->wall_ns == 0)
        rc = joule_error_set(err, ENODATA,
                             "the trace does not tell when it was");
    else if (!(nodes = joule_nodes_find(request, err)))
        rc = -1;
    else
        rc = read_rows(p, nodes, d->wall_ns, err);
    joule_nodes_free(nodes);
    if (rc == 0)
        return p;
    joule_wait_profile_free(p);
    return NULL;
}

void joule_wait_profile_free(struct joule_wait_profile *p)
{
    int saved = errno;

    if (!p)
        return;
    for (size_t i = 0; i < p->nodes; i++) {
        free(p->node[i].end_ns);
        free(p->node[i].watts);
        free(p->node[i].waiting_ns);
    }
    free(p->node);
    free(p->node_of);
    free(p);
    errno = saved;
}

/* The first row that ends behind [ns]; n->rows: none. */
static size_t row_at(const struct node *n, int64_t ns)
{
    size_t low = 0, high = n->rows;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (n->end_ns[middle] <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void joule_wait_profile_add(struct joule_wait_profile *p, unsigned part,
                            const struct joule_wait *wait)
{
    int64_t at_ns = (int64_t)wait->begin_ns, end_ns = (int64_t)wait->end_ns;
    const struct node *n;
    double *waiting_ns;

    if (wait->pattern >= JOULE_WAIT_COMPLETIONS ||
        wait->process >= p->processes)
        return;
    n = &p->node[p->node_of[wait->process]];
    waiting_ns = n->waiting_ns + part * n->rows;
    for (size_t i = row_at(n, at_ns); i < n->rows && at_ns < end_ns; i++) {
        int64_t to_ns = n->end_ns[i] < end_ns ? n->end_ns[i] : end_ns;

        waiting_ns[i] += (double)(to_ns - at_ns);
        at_ns = to_ns;
    }
}

static double waiting_ns_of(const struct joule_wait_profile *p,
                            const struct node *n, size_t row)
{
    double ns = 0;

    for (unsigned part = 0; part < p->parts; part++)
        ns += n->waiting_ns[part * n->rows + row];
    return ns;
}

/* The rows that lie in the time of the trace; with [parts], those that have a part of
 * it. */
static struct joule_power_fit fit_rows(const struct joule_wait_profile *p,
                                       const struct node *n, int64_t begin_ns,
                                       int64_t end_ns, bool parts)
{
    struct joule_power_fit fit = {0};

    for (size_t i = 0; i < n->rows; i++) {
        int64_t from_ns = i > 0 ? n->end_ns[i - 1] : n->begin_ns;
        int64_t to_ns = n->end_ns[i];
        bool is_within = from_ns >= begin_ns && to_ns <= end_ns;
        double ns = (double)(to_ns - from_ns);

        if (ns > 0 &&
            (is_within || (parts && from_ns < end_ns && to_ns > begin_ns)))
            joule_power_fit_add(&fit, ns / 1e9, (double)n->watts[i],
                                waiting_ns_of(p, n, i) / ns);
    }
    return fit;
}

/* A short run may lie within one or two rows. */
static void solve_node(const struct joule_wait_profile *p, struct node *n,
                       int64_t begin_ns, int64_t end_ns)
{
    struct joule_power_fit fit = fit_rows(p, n, begin_ns, end_ns, false);

    if (fit.rows == 0)
        fit = fit_rows(p, n, begin_ns, end_ns, true);
    n->used = fit.rows;
    n->power = joule_power_fit_solve(&fit, n->processes);
}

void joule_wait_profile_solve(struct joule_wait_profile *p, uint64_t begin_ns,
                              uint64_t end_ns)
{
    for (size_t i = 0; i < p->nodes; i++)
        solve_node(p, &p->node[i], (int64_t)begin_ns, (int64_t)end_ns);
}

struct joule_wait_power
joule_wait_profile_of(const struct joule_wait_profile *p, uint32_t process)
{
    if (process >= p->processes)
        return (struct joule_wait_power){0};
    return p->node[p->node_of[process]].power;
}

size_t joule_wait_profile_nodes(const struct joule_wait_profile *p)
{
    return p->nodes;
}

struct joule_wait_profile_node
joule_wait_profile_node(const struct joule_wait_profile *p, size_t i)
{
    const struct node *n = &p->node[i];

    return (struct joule_wait_profile_node){n->name, n->processes, n->used,
                                            n->power};
}

struct joule_wait_profile_rows
joule_wait_profile_rows(const struct joule_wait_profile *p, size_t i)
{
    const struct node *n = &p->node[i];

    return (struct joule_wait_profile_rows){n->rows, n->end_ns, n->watts};
}
