/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger_command.h - `joule ledger`: whose energy it is.  Root sees all rows of
 * a node and what they add up to, anybody else his own.
 *
 * One look is collected into a plain struct and then printed.
 */
#ifndef JOULE_JOULE_LEDGER_COMMAND_H
#define JOULE_JOULE_LEDGER_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/node/user_view.h"
#include "tools/joule/json.h"

#define JOULE_NODE_MAX      256
#define JOULE_STEP_TEXT_MAX 16

struct joule_ledger_line {
    uint32_t uid;
    struct joule_user_row row;
    uint32_t backwards, unknown; /* as in joule_row; root only */
};

/* Lines of one job: line[first] and the following. */
struct joule_ledger_job {
    size_t first, count;
    uint64_t uj;      /* since its first step began on this node */
    uint64_t uj_gone; /* of it, that of steps which are no more */
    uint64_t mw;
    uint32_t cpu_count;
    bool runs;                  /* a step of it does */
    int64_t began_ns, ended_ns; /* otherwise when; 0: nobody said */
};

struct joule_ledger_view {
    char node[JOULE_NODE_MAX];
    bool own;        /* the rows of one user, without totals */
    uid_t uid;       /* whose */
    int64_t mono_ns; /* up to when is charged */
    int64_t wall_ns; /* the label of mono_ns */
    int64_t age_ns;
    bool stale;
    struct joule_ledger_totals totals; /* root only; [how]: all users */
    uint64_t jobs_mw;                  /* of all jobs */
    size_t line_count, job_count;
    struct joule_ledger_line line[JOULE_USERVIEW_ROWS_MAX];
    struct joule_ledger_job job[JOULE_USERVIEW_ROWS_MAX];
};

/*
 * Look at the ledger of [node] below root_fd, or where that is not allowed at
 * the caller's own file.  NULL: the only node there is, else that of the host's
 * name.  [job]: this job alone; 0: all.  -1 with errno and a sentence.
 */
int joule_ledger_collect(struct joule_ledger_view *v, int root_fd,
                         const struct joule_clock *clock, const char *node,
                         uint32_t job, struct joule_error *err);

/* The NodeName, [option] or as joule_nodename_find has it for tools, and how
 * many nodes have a directory here.  -1 with a sentence. */
int joule_node_name(int root_fd, const char *option, char name[JOULE_NODE_MAX],
                    unsigned *ret_nodes, struct joule_error *err);

/* -1 with ENOENT and the sentence that there is no ledger of the node. */
int joule_node_missing(const char *name, unsigned nodes,
                       struct joule_error *err);

/* Not stale, and it adds up. */
bool joule_ledger_good(const struct joule_ledger_view *v);

/* The rule by which the ledger's writer divides, joule_ledger_totals.how:
 * "cputime", "alloc", "node"; NULL: it does not say. */
const char *joule_ledger_how(uint64_t how);

/* "3", "batch", "extern", "interactive". */
const char *joule_ledger_step(const struct joule_user_row *row,
                              char buf[JOULE_STEP_TEXT_MAX]);

/* ledger_text.c, ledger_json.c */
void joule_ledger_print_text(FILE *out, const struct joule_ledger_view *v);
void joule_ledger_print_json(FILE *out, const struct joule_ledger_view *v);

/* A look that could not be had. */
void joule_ledger_print_json_error(FILE *out, const char *text);

/* Idle power of each part as it was learned, without a newline; the totals
 * and the parts as members of an object.  For `joule probe` as well. */
void joule_ledger_print_idle(FILE *out, const struct joule_ledger_totals *t);
void joule_ledger_put_totals(struct joule_json *j,
                             const struct joule_ledger_totals *t);

#endif
