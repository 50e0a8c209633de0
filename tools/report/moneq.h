/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * moneq.h - the files of MonEQ (moneq.h of the library), from the profile of a step.
 */
#ifndef JOULE_REPORT_MONEQ_H
#define JOULE_REPORT_MONEQ_H

#include <stdio.h>

#include "common/base/error.h"
#include "tools/report/names.h"
#include "tools/report/timeline.h"

/* The node card and its seven domains. */
#define JOULE_MONEQ_FIELDS 8

struct joule_moneq_options {
    const char *dir; /* of all files */
    bool reduce;     /* what moneq_reducer made of them, too */
    bool plot;       /* and what moneq_analyzer drew */
};

/* A tag was open at times in (begin, end]. */
struct joule_moneq_tag {
    uint64_t begin_ns, end_ns;
    size_t name; /* of the step's */
};

struct joule_moneq_node {
    const struct joule_timeline_node *of;
    const char *name;
    struct joule_moneq_tag *tag; /* by begin */
    size_t tags;
};

struct joule_moneq_step {
    struct joule_moneq_node *node;
    size_t nodes;
    struct joule_names tags; /* in the order in which they began */
};

/* Write them all.  0, or -1 with a sentence. */
int joule_moneq_write(const struct joule_timeline *timeline,
                      const struct joule_nodes *nodes,
                      const struct joule_moneq_options *options,
                      struct joule_error *err);

/* ---- between moneq.c and moneq_reduce.c ---- */

/* A new file, and no link; NULL with a sentence. */
FILE *joule_moneq_open(int dir_fd, const char *name, struct joule_error *err);
int joule_moneq_close(FILE *file, const char *name, struct joule_error *err);

/* The line of a sample; [board] is the number of the node. */
void joule_moneq_line(FILE *file, const struct joule_moneq_node *node,
                      size_t sample, size_t board);

/* Of a sample the watts of a field; NAN: there is none. */
double joule_moneq_watts(const struct joule_timeline_node *node, size_t sample,
                         int field);

int joule_moneq_reduce(const struct joule_moneq_step *step, int dir_fd,
                       bool plot, struct joule_error *err);

#endif
