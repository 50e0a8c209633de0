/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * select.h - which tables of a job file are meant, and the columns they have
 * together.
 */
#ifndef JOULE_SH5UTIL_SELECT_H
#define JOULE_SH5UTIL_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/sh5util/jobid.h"
#include "tools/sh5util/jobtables.h"

struct joule_selection {
    const struct joule_plan *plan;
    const struct joule_plan_table **table; /* in the order of the plan */
    size_t tables;
    const char **column; /* names of all of them, as they first come */
    size_t columns;
    bool has_series; /* rows say which series they are of */
    bool is_mixed;   /* series of several names */
};

/* NULL for [node] and [series]: all.  Nothing that fits is no failure.  -1:
 * ENOMEM.  The plan must outlive the selection. */
int joule_select(const struct joule_plan *plan, const struct joule_job *job,
                 const char *node, const char *series,
                 struct joule_selection *ret);
void joule_selection_free(struct joule_selection *selection);

/* What a row says of its series: the task's number alone where only tasks are
 * meant, as Slurm has it; otherwise the path below the node. */
const char *joule_selection_label(const struct joule_selection *selection,
                                  const struct joule_plan_table *table);

#endif
