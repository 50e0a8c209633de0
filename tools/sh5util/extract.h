/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * extract.h - what is in a job file, as text: series and their totals, one item
 * of all nodes side by side (item.c), or the names of series and items.
 *
 * Workers (worker.h) read and format, the caller's process only writes, into a
 * file that appears when it is whole.
 */
#ifndef JOULE_SH5UTIL_EXTRACT_H
#define JOULE_SH5UTIL_EXTRACT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/profile/worker.h"
#include "tools/sh5util/cells.h"
#include "tools/sh5util/jobtables.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/outfile.h"

/* Each returns the exit status and says on stderr what is to be said. */
int joule_extract(const struct joule_sh5_options *options,
                  const struct joule_job *job, const char *input,
                  const char *output);
int joule_extract_item(const struct joule_sh5_options *options,
                       const struct joule_job *job, const char *input,
                       const char *output);

/* [listed]: jobs that were printed so far; of several jobs, the caller ends their
 * JSON with "]". */
int joule_extract_list(const struct joule_sh5_options *options,
                       const struct joule_job *job, const char *input,
                       size_t *listed);

/* ---- what extracts have in common ---- */

/* Least, largest, sum and mean of a column: whole numbers exactly; of doubles,
 * NaN (not measured) counts for nothing.  Begins with all zeros. */
struct joule_total {
    const struct joule_column *column; /* NULL: there is no such number */
    bool is_elapsed;                   /* "ElapsedTime": only its last value */
    uint64_t count;
    struct joule_value least, largest, sum, last;
};

void joule_total_add(struct joule_total *total, const unsigned char *rows,
                     size_t count, size_t row_size);

/* Four cells, or one of ElapsedTime. */
void joule_total_put(const struct joule_total *total,
                     struct joule_cells *cells);

/* Which tables of a job file are meant, and the columns they have together. */
struct joule_selection {
    const struct joule_plan_table **table; /* in the order of the plan */
    size_t tables;
    const char **column; /* names of all of them, as they first come */
    size_t columns;
    bool has_series; /* rows say which series they are of */
    bool is_mixed;   /* series of several names */
};

struct joule_extraction {
    const struct joule_sh5_options *options;
    const struct joule_job *job;
    const char *input, *output;
    struct joule_plan plan;
    struct joule_selection selection;
    /* Each task is a run of the selection's tables: where it begins, and where
     * the last one ends. */
    size_t *first;
    size_t tasks;
    int input_fd;
    struct stat input_st;
    hid_t file; /* the same, in a worker; negative */
    struct joule_outfile out;
    bool has_rows;
    size_t failed; /* tasks that were not whole */
};

/* All required; -1 with a sentence. */
struct joule_extract_kind {
    /* Of the tables that were selected (none: perhaps): leave away those that
     * are not wanted, and make tasks. */
    int (*choose)(struct joule_extraction *x, struct joule_error *err);
    /* Say on stderr what is done. */
    void (*say)(const struct joule_extraction *x);
    int (*head)(struct joule_extraction *x, struct joule_error *err);
    /* In a worker, as joule_work's, with joule_extraction_file(); what it
     * says when it has not failed is printed. */
    int (*run)(void *x, size_t task, int fd, struct joule_out *out,
               struct joule_error *err);
};

/* What a row says of its series: the task's number alone where only tasks are
 * meant, as Slurm has it; otherwise the path below the node. */
const char *joule_selection_label(const struct joule_selection *selection,
                                  const struct joule_plan_table *table);

/* Start another task with table [i] of the selection, which is its first. */
void joule_extraction_task(struct joule_extraction *x, size_t i);

/* In a worker: the job file, which all of its tasks share.  Negative with errno
 * and a sentence. */
hid_t joule_extraction_file(struct joule_extraction *x,
                            struct joule_error *err);

/* Write what stands in front of the rows: names of columns. */
int joule_extraction_head(struct joule_extraction *x,
                          const char *const *columns, size_t count,
                          struct joule_error *err);

/* Do it; the exit status.  [x] has its first four fields, and is freed. */
int joule_extraction_run(struct joule_extraction *x,
                         const struct joule_extract_kind *kind);

#endif
