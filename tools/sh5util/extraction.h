/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * extraction.h - what every extract from a job file has in common: which of
 * its tables are meant, workers that read and format them (worker.h), and a
 * file that only appears when it is whole.
 */
#ifndef JOULE_SH5UTIL_EXTRACTION_H
#define JOULE_SH5UTIL_EXTRACTION_H

#include <stddef.h>

#include "common/profile/hdf5_read.h"
#include "common/profile/worker.h"
#include "tools/sh5util/extract.h"
#include "tools/sh5util/outfile.h"
#include "tools/sh5util/jobtables.h"
#include "tools/sh5util/select.h"

struct joule_extraction {
    const struct joule_extract_request *request;
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

/* Start another task with table [i] of the selection, which is its first.
 * joule_extraction_cut begins, with room for all. */
int joule_extraction_cut(struct joule_extraction *x, struct joule_error *err);
void joule_extraction_task(struct joule_extraction *x, size_t i);

/* In a worker: the job file, which all of its tasks share.  Negative with errno
 * and a sentence. */
hid_t joule_extraction_file(struct joule_extraction *x,
                            struct joule_error *err);

/* What stands in front of the rows: names of columns. */
int joule_extraction_head(struct joule_extraction *x,
                          const char *const *columns, size_t count,
                          struct joule_error *err);

/* Do it; the exit status.  [x] has its request, and is freed. */
int joule_extraction_run(struct joule_extraction *x,
                         const struct joule_extract_kind *kind);

#endif
