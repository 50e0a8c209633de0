/* SPDX-License-Identifier: GPL-2.0-or-later */
/* joule waits --html, --cubex: what was found, as a page for a browser, and as a profile
 * for CubeGUI. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/waits.h"
#include "tools/waits/cubex.h"
#include "tools/waits/page.h"

/* What a value of a wait is. */
enum kind { TIME, COUNT, USED, SAVED_IDLE, SAVED_BUSY, KINDS };

/* Trees of metrics: the root of each kind, and what is below it. */
enum {
    ROOT,
    MESSAGES,
    COLLECTIVES,
    PATTERNS,
    A_TREE = PATTERNS + JOULE_WAIT_COMPLETIONS
};
enum { METRICS_MAX = KINDS * A_TREE + 3 };

static const struct {
    const char *id, *name, *unit, *about;
} kinds[KINDS] = {
    [TIME] = {"time", "Waiting", "s",
              "Time in which processes could not go on in an MPI call."},
    [COUNT] = {"count", "Waits", "", "How many times processes waited."},
    [USED] =
        {"energy", "Energy while waiting", "J",
         "An estimate: the time, by the power of a process that waits on "
         "its node, with its part of what the node uses anyway. Not all of "
         "it can be saved."},
    [SAVED_IDLE] = {"esp", "Saving potential, idle", "J",
                    "What would be saved if each wait were spent idle, in the "
                    "power state that is best for it (ESP)."},
    [SAVED_BUSY] = {"esp_bw", "Saving potential, polling", "J",
                    "The same if processes went on polling, at a lower power "
                    "(ESP_BW)."},
};

static const char *const abouts[JOULE_WAIT_PATTERNS] = {
    [JOULE_LATE_SENDER] = "A receive was waited for before its send began.",
    [JOULE_LATE_RECEIVER] =
        "A send was waited for until its receive was posted.",
    [JOULE_WAIT_AT_BARRIER] = "Until the last process had entered the barrier.",
    [JOULE_WAIT_AT_NXN] = "Until the last process had entered an operation in "
                          "which all send to all.",
    [JOULE_LATE_BROADCAST] = "Until the root had entered the operation.",
    [JOULE_EARLY_REDUCE] =
        "The root, until the first other process had entered the operation.",
    [JOULE_EARLY_SCAN] = "Until the last process of a lower rank had entered "
                         "the operation.",
    [JOULE_BARRIER_COMPLETION] =
        "No wait: to leave the barrier after the last had entered it.",
    [JOULE_NXN_COMPLETION] =
        "No wait: to leave the operation after the last had entered it.",
};

struct making {
    const struct joule_waits *w;
    struct joule_page page;
    struct joule_page_metric metric[METRICS_MAX];
    char id[METRICS_MAX][64];
    size_t first[KINDS]; /* metric of the kind's root */
    size_t completions;  /* metric of their root */
    size_t first_path;   /* what the output calls path 0 */
    bool has[KINDS];
    const char **node;
    struct joule_page_path *path;
    struct joule_page_process *process;
    struct joule_page_value *value;
    struct joule_page_power *power;
    double *times, *watts; /* of all powers */
};

static size_t add_metric(struct making *m, const char *before, const char *id,
                         const char *name, const char *unit, const char *about,
                         int parent)
{
    size_t n = m->page.metrics++;

    snprintf(m->id[n], sizeof(m->id[n]), "%s%s", before, id);
    m->metric[n] = (struct joule_page_metric){.id = m->id[n],
                                              .name = name,
                                              .unit = unit,
                                              .about = about,
                                              .parent = parent,
                                              .is_sum = true};
    return n;
}

static bool is_message(uint32_t pattern)
{
    return pattern == JOULE_LATE_SENDER || pattern == JOULE_LATE_RECEIVER;
}

/* A tree of a kind: its metrics stand one after the other. */
static void add_kind(struct making *m, enum kind kind)
{
    const char *id = kinds[kind].id, *unit = kinds[kind].unit;
    char before[32];
    int root, of[2];

    snprintf(before, sizeof(before), "%s.", id);
    root = (int)add_metric(m, "", id, kinds[kind].name, unit, kinds[kind].about,
                           -1);
    m->first[kind] = (size_t)root;
    of[1] = (int)add_metric(m, before, "messages", "Messages", unit,
                            "Sends and receives.", root);
    of[0] =
        (int)add_metric(m, before, "collectives", "Collective operations", unit,
                        "Operations of all processes of a group.", root);
    for (uint32_t p = 0; p < JOULE_WAIT_COMPLETIONS; p++)
        add_metric(m, before, joule_wait_pattern_id((enum joule_wait_pattern)p),
                   joule_wait_pattern_name((enum joule_wait_pattern)p), unit,
                   abouts[p], of[is_message(p)]);
}

static void add_metrics(struct making *m)
{
    m->has[TIME] = true;
    m->has[COUNT] = m->first_path == 0;
    m->has[USED] = m->w->profile != NULL;
    m->has[SAVED_IDLE] = m->has[SAVED_BUSY] = m->w->envelope != NULL;
    for (int kind = 0; kind < KINDS; kind++)
        if (m->has[kind])
            add_kind(m, (enum kind)kind);
    m->completions =
        add_metric(m, "", "completion", "Completion", "s",
                   "No waits: the end of collective operations.", -1);
    for (uint32_t p = JOULE_WAIT_COMPLETIONS; p < JOULE_WAIT_PATTERNS; p++)
        add_metric(m, "", joule_wait_pattern_id((enum joule_wait_pattern)p),
                   joule_wait_pattern_name((enum joule_wait_pattern)p), "s",
                   abouts[p], (int)m->completions);
    m->page.metric = m->metric;
    m->page.selected_metric = m->first[m->has[USED] ? USED : TIME];
}

/* ---- who and where ---- */

/* Path 0 of the definitions is that of no region: the whole program. */
static int add_paths(struct making *m)
{
    const struct joule_paths *paths = &m->w->d->paths;

    m->path = calloc(paths->count + 1, sizeof(*m->path));
    if (!m->path)
        return -1;
    for (size_t i = m->first_path; i < paths->count; i++)
        m->path[m->page.paths++] = (struct joule_page_path){
            .name = i == 0 ? "program"
                           : m->w->d->region[paths->path[i].region].name,
            .parent =
                i == 0 ? -1 : (int)paths->path[i].parent - (int)m->first_path,
        };
    m->page.path = m->path;
    return 0;
}

static int find_node(const struct making *m, const char *name)
{
    size_t i = 0;

    while (i < m->page.nodes && strcmp(m->node[i], name) != 0)
        i++;
    return (int)i;
}

static int add_processes(struct making *m)
{
    const struct joule_definitions *d = m->w->d;

    m->node = calloc(d->processes + 1, sizeof(*m->node));
    m->process = calloc(d->processes + 1, sizeof(*m->process));
    if (!m->node || !m->process)
        return -1;
    for (uint32_t i = 0; i < d->processes; i++) {
        const struct joule_mpi_process *p = &d->process[i];
        int node = find_node(m, p->node);

        if ((size_t)node == m->page.nodes)
            m->node[m->page.nodes++] = p->node;
        m->process[i] = (struct joule_page_process){
            .name = p->name,
            .node = node,
            .rank = p->rank != JOULE_NO_NUMBER ? p->rank : i,
        };
    }
    m->page.node = m->node;
    m->page.process = m->process;
    m->page.processes = d->processes;
    return 0;
}

/* ---- values ---- */

static void add_value(struct making *m, size_t metric,
                      const struct joule_total *t, double value)
{
    if (t->path >= m->first_path && t->path != JOULE_NO_NUMBER && value != 0)
        m->value[m->page.values++] = (struct joule_page_value){
            .metric = (uint32_t)metric,
            .path = t->path - (uint32_t)m->first_path,
            .process = t->process,
            .value = value,
        };
}

static double saved_j(const struct joule_waits *w, size_t i,
                      enum joule_wait_kind kind)
{
    return (double)joule_power_saving_pj(
               w->envelope, w->all->use + i * w->all->pieces, kind) /
           1e12;
}

static void add_total(struct making *m, size_t i)
{
    const struct joule_waits *w = m->w;
    const struct joule_total *t = &w->all->at[i];
    size_t place = PATTERNS + t->pattern;

    if (t->pattern >= JOULE_WAIT_COMPLETIONS) {
        add_value(m, m->completions + 1 + t->pattern - JOULE_WAIT_COMPLETIONS,
                  t, (double)t->ns / 1e9);
        return;
    }
    add_value(m, m->first[TIME] + place, t, (double)t->ns / 1e9);
    if (m->has[COUNT])
        add_value(m, m->first[COUNT] + place, t, (double)t->count);
    if (m->has[USED])
        add_value(m, m->first[USED] + place, t, t->uj / 1e6);
    if (!w->envelope)
        return;
    add_value(m, m->first[SAVED_IDLE] + place, t,
              saved_j(w, i, JOULE_WAIT_IDLE));
    add_value(m, m->first[SAVED_BUSY] + place, t,
              saved_j(w, i, JOULE_WAIT_BUSY));
}

static int add_values(struct making *m)
{
    m->value = calloc(m->w->all->count * KINDS + 1, sizeof(*m->value));
    if (!m->value)
        return -1;
    for (size_t i = 0; i < m->w->all->count; i++)
        add_total(m, i);
    m->page.value = m->value;
    return 0;
}

/* ---- power ---- */

static size_t count_rows(const struct joule_wait_profile *p)
{
    size_t rows = 0;

    for (size_t i = 0; i < joule_wait_profile_nodes(p); i++)
        rows += joule_wait_profile_rows(p, i).count;
    return rows;
}

/* Nodes of the profile are those of the processes, in the same order. */
static int add_powers(struct making *m)
{
    const struct joule_wait_profile *p = m->w->profile;
    size_t at = 0, rows;

    if (!p)
        return 0;
    rows = count_rows(p);
    m->power = calloc(m->page.nodes + 1, sizeof(*m->power));
    m->times = calloc(rows + 1, sizeof(*m->times));
    m->watts = calloc(rows + 1, sizeof(*m->watts));
    if (!m->power || !m->times || !m->watts)
        return -1;
    for (size_t i = 0; i < joule_wait_profile_nodes(p); i++) {
        struct joule_wait_profile_rows r = joule_wait_profile_rows(p, i);

        if (r.count == 0)
            continue;
        m->power[m->page.powers++] = (struct joule_page_power){
            .node = (int)i,
            .count = r.count,
            .s = m->times + at,
            .watts = m->watts + at,
        };
        for (size_t k = 0; k < r.count; k++, at++) {
            m->times[at] = (double)r.end_ns[k] / 1e9;
            m->watts[at] = (double)r.watts[k];
        }
    }
    m->page.power = m->power;
    return 0;
}

static void release(struct making *m)
{
    free(m->node);
    free(m->path);
    free(m->process);
    free(m->value);
    free(m->power);
    free(m->times);
    free(m->watts);
}

static int print(FILE *out, const struct joule_waits *w, size_t first_path,
                 int (*write)(FILE *out, const struct joule_page *page,
                              struct joule_error *err),
                 struct joule_error *err)
{
    struct making m = {.w = w, .first_path = first_path};
    char subtitle[128];
    int rc;

    snprintf(subtitle, sizeof(subtitle), "%s%s%s%u processes, %.3f s",
             *w->d->step ? "step " : "", w->d->step, *w->d->step ? ", " : "",
             w->d->processes,
             (double)(w->facts->end_ns - w->facts->begin_ns) / 1e9);
    m.page.title = w->trace;
    m.page.subtitle = subtitle;
    m.page.begin_s = (double)w->facts->begin_ns / 1e9;
    m.page.end_s = (double)w->facts->end_ns / 1e9;
    m.page.no_power = w->profile ? NULL
                      : *w->no_profile->text
                          ? w->no_profile->text
                          : "The trace does not say of which step of Slurm "
                            "it is.";
    add_metrics(&m);
    if (add_paths(&m) < 0 || add_processes(&m) < 0 || add_values(&m) < 0 ||
        add_powers(&m) < 0)
        rc = joule_error_set(err, ENOMEM, "out of memory");
    else
        rc = write(out, &m.page, err);
    release(&m);
    return rc;
}

int joule_waits_print_page(FILE *out, const struct joule_waits *w,
                           struct joule_error *err)
{
    return print(out, w, 1, joule_waits_page_write, err);
}

/* CubeLib reads no profile without a call path, so there is a root. */
int joule_waits_print_cubex(FILE *out, const struct joule_waits *w,
                            struct joule_error *err)
{
    return print(out, w, 0, joule_waits_cubex_write, err);
}
