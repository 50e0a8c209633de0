/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/joule/ledger_command.h"

/* Samples that may be late before the ledger is called stale. */
#define LATE_PERIODS 3

/* Where the period is not known: the longest there is. */
#define LONGEST_PERIOD_NS (60 * JOULE_NS_PER_S)

/* slurm.h: the last numbers of 32 bits. */
#define STEP_EXTERN      UINT32_C(0xfffffffc)
#define STEP_BATCH       UINT32_C(0xfffffffb)
#define STEP_INTERACTIVE UINT32_C(0xfffffffa)

const char *joule_ledger_how(uint64_t how)
{
    static const char *const names[] = {
        [JOULE_ATTRIBUTION_CPUTIME + 1] = "cputime",
        [JOULE_ATTRIBUTION_ALLOC + 1] = "alloc",
        [JOULE_ATTRIBUTION_NODE + 1] = "node",
    };

    return how < sizeof(names) / sizeof(names[0]) ? names[how] : NULL;
}

const char *joule_ledger_step(const struct joule_user_row *row,
                              char buf[JOULE_STEP_TEXT_MAX])
{
    switch (row->step) {
    case STEP_EXTERN:
        return "extern";
    case STEP_BATCH:
        return "batch";
    case STEP_INTERACTIVE:
        return "interactive";
    default:
        snprintf(buf, JOULE_STEP_TEXT_MAX, "%u", (unsigned)row->step);
        return buf;
    }
}

/* ---- where it stands ---- */

static void add_ledger_row(struct joule_ledger_view *v,
                           const struct joule_row *row)
{
    v->line[v->line_count++] = (struct joule_ledger_line){
        .uid = row->uid,
        .backwards = row->backwards,
        .unknown = row->unknown,
        .row = {.job = row->job,
                .step = row->step,
                .kind = row->kind,
                .state = row->state,
                .cpu_count = row->cpu_count,
                .job_cpu_count = row->job_cpu_count,
                .mw = row->mw,
                .began_ns = row->began_ns,
                .ended_ns = row->ended_ns,
                .uj = row->uj,
                .job_uj = row->job_uj,
                .components = row->components,
                .component_uj = {row->component_uj[JOULE_COMPONENT_CPU],
                                 row->component_uj[JOULE_COMPONENT_MEMORY]}},
    };
}

/* -1 with errno and a sentence. */
static int read_ledger(struct joule_ledger_view *v, struct joule_ledger *ledger,
                       struct joule_error *err)
{
    struct joule_row *rows = calloc(JOULE_LEDGER_SLOTS_MAX, sizeof(*rows));
    size_t count = JOULE_LEDGER_SLOTS_MAX;
    int errnum;

    if (!rows)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (joule_ledger_read(ledger, &v->totals, rows, &count) < 0) {
        errnum = errno;
        free(rows);
        return joule_error_set(err, errnum, "the ledger of node %s %s", v->node,
                               errnum == ENODATA
                                   ? "has no sample yet: the node's energy is "
                                     "not known"
                                   : "makes no sense");
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].owner)
            add_ledger_row(v, &rows[i]);
    free(rows);
    v->mono_ns = v->totals.mono_ns;
    return 0;
}

static int read_own(struct joule_ledger_view *v, int root_fd,
                    int64_t *ret_period_ns, struct joule_error *err)
{
    struct joule_user_totals totals;
    struct joule_user_row *rows =
        calloc(JOULE_USERVIEW_ROWS_MAX, sizeof(*rows));
    size_t count = JOULE_USERVIEW_ROWS_MAX;
    int rc, errnum;

    if (!rows)
        return joule_error_set(err, ENOMEM, "out of memory");
    v->own = true;
    v->uid = geteuid();
    rc = joule_userview_read(root_fd, v->node, v->uid, &totals, rows, &count,
                             err);
    errnum = errno;
    for (size_t i = 0; rc == 0 && i < count; i++)
        v->line[v->line_count++] =
            (struct joule_ledger_line){.uid = v->uid, .row = rows[i]};
    free(rows);
    errno = errnum;
    if (rc < 0)
        return -1;
    v->mono_ns = totals.mono_ns;
    v->wall_ns = totals.wall_ns;
    v->totals.how = totals.how + 1;
    *ret_period_ns = totals.period_ns > totals.sample_period_ns
                         ? totals.period_ns
                         : totals.sample_period_ns;
    return 0;
}

/* ---- what it comes to ---- */

/* By job; in it extern, batch and interactive, then numbered steps. */
static int compare_lines(const void *a, const void *b)
{
    static const int order[] = {
        [JOULE_STEP_EXTERN] = 0,
        [JOULE_STEP_OTHER] = 1,
        [JOULE_STEP_NUMBERED] = 2,
    };
    const struct joule_user_row *x =
        &((const struct joule_ledger_line *)a)->row;
    const struct joule_user_row *y =
        &((const struct joule_ledger_line *)b)->row;

    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    if (x->kind != y->kind)
        return order[x->kind] < order[y->kind] ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    /* A requeued job has had the same step before. */
    return (x->began_ns > y->began_ns) - (x->began_ns < y->began_ns);
}

static void add_to_job(struct joule_ledger_job *job,
                       const struct joule_user_row *row)
{
    bool runs = row->state == JOULE_ROW_RUNNING;

    if (job->count == 0 || row->began_ns < job->began_ns)
        job->began_ns = row->began_ns;
    if (row->job_uj > job->uj)
        job->uj = row->job_uj;
    /* What is left of it are the steps that are no more. */
    job->uj_gone += row->uj;
    if (runs)
        job->mw += row->mw;
    if (row->job_cpu_count > job->cpu_count)
        job->cpu_count = row->job_cpu_count;
    if (row->ended_ns > job->ended_ns)
        job->ended_ns = row->ended_ns;
    job->runs |= runs;
    job->count++;
}

static void group(struct joule_ledger_view *v)
{
    struct joule_ledger_job *job = NULL;

    qsort(v->line, v->line_count, sizeof(v->line[0]), compare_lines);
    for (size_t i = 0; i < v->line_count; i++) {
        if (!job || v->line[i].row.job != v->line[job->first].row.job) {
            job = &v->job[v->job_count++];
            *job = (struct joule_ledger_job){.first = i};
        }
        add_to_job(job, &v->line[i].row);
    }
    for (size_t i = 0; i < v->job_count; i++) {
        job = &v->job[i];
        if (job->uj_gone > job->uj)
            job->uj = job->uj_gone;
        job->uj_gone = job->uj - job->uj_gone;
    }
}

static void keep_job(struct joule_ledger_view *v, uint32_t job)
{
    size_t kept = 0;

    for (size_t i = 0; i < v->line_count; i++)
        if (v->line[i].row.job == job)
            v->line[kept++] = v->line[i];
    v->line_count = kept;
}

/* The steps that run, and their power. */
static size_t add_running(struct joule_ledger_view *v)
{
    size_t count = 0;

    for (size_t i = 0; i < v->line_count; i++) {
        if (v->line[i].row.state != JOULE_ROW_RUNNING)
            continue;
        v->jobs_mw += v->line[i].row.mw;
        count++;
    }
    return count;
}

/* The period, as far as it can be read. */
static int look(struct joule_ledger_view *v, int root_fd, int64_t *period_ns,
                struct joule_error *err)
{
    struct joule_ledger *ledger = joule_ledger_open(root_fd, v->node, err);
    struct joule_snapshot snapshot;
    int rc, saved;

    if (!ledger)
        return errno == EACCES ? read_own(v, root_fd, period_ns, err) : -1;
    if (joule_ledger_read_node(ledger, &snapshot, NULL) == 0)
        *period_ns = snapshot.period_ns;
    rc = read_ledger(v, ledger, err);
    saved = errno;
    joule_ledger_destroy(ledger);
    errno = saved;
    return rc;
}

int joule_ledger_collect(struct joule_ledger_view *v, int root_fd,
                         const struct joule_clock *clock, const char *node,
                         uint32_t job, struct joule_error *err)
{
    int64_t period_ns = LONGEST_PERIOD_NS;
    size_t running;
    unsigned nodes;

    memset(v, 0, offsetof(struct joule_ledger_view, line));
    if (joule_node_name(root_fd, node, v->node, &nodes, err) < 0)
        return -1;
    if (look(v, root_fd, &period_ns, err) < 0) {
        if (errno == ENOENT && !v->own)
            joule_node_missing(v->node, nodes, err);
        return -1;
    }
    v->age_ns = joule_clock_mono_ns(clock) - v->mono_ns;
    running = add_running(v);
    /* A user's rows stand still when all his steps have ended. */
    v->stale = v->age_ns > LATE_PERIODS * period_ns && (!v->own || running);
    if (!v->own)
        v->wall_ns = joule_clock_wall_ns(clock) - v->age_ns;
    if (job)
        keep_job(v, job);
    group(v);
    if (job && v->line_count == 0)
        return joule_error_set(err, ESRCH, "job %u has no step on node %s%s",
                               (unsigned)job, v->node,
                               v->own ? " that this user may see" : "");
    return 0;
}

bool joule_ledger_good(const struct joule_ledger_view *v)
{
    return !v->stale && v->totals.faults == 0;
}
