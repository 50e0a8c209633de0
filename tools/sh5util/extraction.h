/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * extraction.h - what every extract from a job file has in common: which of
 * its tables are meant, workers that read and format them (pool.h), and a file
 * that only appears when it is whole.
 */
#ifndef JOULE_SH5UTIL_EXTRACTION_H
#define JOULE_SH5UTIL_EXTRACTION_H

#include <stddef.h>

#include "common/store/reader.h"
#include "tools/sh5util/extract.h"
#include "tools/sh5util/plan.h"
#include "tools/sh5util/select.h"

struct joule_extraction {
    const struct joule_extract_request *request;
    struct joule_plan plan;
    struct joule_selection selection;
    /* Each task is a run of the selection's tables: where it begins, and where
     * the last one ends. */
    size_t *first;
    size_t tasks;
    struct joule_text text;
    struct stat input_st;
    struct joule_reader *reader; /* of a worker */
    int reader_fd;
};

/* All required; -1 with a sentence. */
struct joule_extract_kind {
    /* Of the tables that were selected (none: perhaps): leave away those that
     * are not wanted, and make tasks. */
    int (*choose)(struct joule_extraction *x, struct joule_error *err);
    /* Say on stderr what is done. */
    void (*say)(const struct joule_extraction *x);
    int (*head)(struct joule_extraction *x, struct joule_error *err);
    /* In a worker, as joule_work's, with joule_extraction_reader(); what it
     * says when it has not failed is printed. */
    int (*run)(void *x, size_t task, int fd, struct joule_out *out,
               struct joule_error *err);
};

/* Start another task with table [i] of the selection, which is its first.
 * joule_extraction_cut begins, with room for all. */
int joule_extraction_cut(struct joule_extraction *x, struct joule_error *err);
void joule_extraction_task(struct joule_extraction *x, size_t i);

/* In a worker: to read the file of a task, whose descriptor it takes over.  It
 * is the same for all tasks of the worker: to look at what a file of thousands
 * of nodes has takes longer than a task.  But where libhdf5 reads, whose memory
 * would grow from task to task, each has its own.  NULL with errno and a
 * sentence. */
struct joule_reader *joule_extraction_reader(struct joule_extraction *x, int fd,
                                             struct joule_error *err);

/* Do it; the exit status.  [x] has its request, and is freed. */
int joule_extraction_run(struct joule_extraction *x,
                         const struct joule_extract_kind *kind);

#endif
