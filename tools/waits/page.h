/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * page.h - an HTML page with three linked trees, as in Scalasca's Cube: metrics, call
 * paths, processes; and the power of the nodes over time.
 *
 *     struct joule_page page = {.title = "...", .metrics = 3, .metric = metric, ...};
 *     if (joule_waits_page_write(file, &page, &err) < 0)
 *         ...
 *
 * The page is one file that asks no other for anything: its Content-Security-Policy
 * allows its own script and style, by their hashes, and nothing else.  Strings may
 * hold any bytes: they come from programs that nobody has checked.
 *
 * Units: values are in the unit of their metric, times in seconds on one clock.
 * The caller owns everything that the structs point to.  Threads: no state.
 */
#ifndef JOULE_WAITS_PAGE_H
#define JOULE_WAITS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/error.h"

/* In all three trees a parent stands before its children; -1: a root. */
struct joule_page_metric {
    const char *id;    /* in the address of a view: #metric=ID */
    const char *name;  /* "Late sender" */
    const char *unit;  /* "s", "J" or "W", shown as ms or kJ; "": a count; or
                          another, shown as it is.  The same as the parent's. */
    const char *about; /* a sentence that explains the name */
    int parent;
    bool is_sum; /* the value of several paths or processes is their sum; else
                    the greatest of them.  The same as the parent's. */
};

struct joule_page_path {
    const char *name; /* of the function or region */
    int parent;
};

struct joule_page_process {
    const char *name;
    int node;
    uint32_t rank;
};

/* NaN among the watts: not known then. */
struct joule_page_power {
    int node;
    size_t count;
    const double *s, *watts; /* [count], by time */
};

/* Of this metric alone without those below it, and of this path alone.  What has no
 * value is 0; what has several has their sum, or the greatest (is_sum). */
struct joule_page_value {
    uint32_t metric, path, process;
    double value;
};

struct joule_page {
    const char *title, *subtitle;
    size_t metrics, paths, nodes, processes, values, powers;
    const struct joule_page_metric *metric;
    const struct joule_page_path *path;
    const char *const *node;
    const struct joule_page_process *process;
    const struct joule_page_value *value;
    const struct joule_page_power *power; /* no more than one a node */
    const char *no_power;   /* why there are no powers, a sentence; or NULL */
    size_t selected_metric; /* when the page is opened */
    double begin_s, end_s;  /* of the program */
};

/* Whether all indices and numbers of it are sound; -1: EINVAL, with a sentence. */
int joule_page_check(const struct joule_page *page, struct joule_error *err);

/*
 * Write the page.  A curve of power with more points than a screen can show is
 * written as the least and the greatest value of each of its stretches.
 *
 * 0, or -1 with errno and a sentence; [out] may have a part of the page then.
 * EINVAL: as joule_page_check (an index out of range, a parent behind its child, a
 * value that is not finite); ENOMEM; or of [out].
 */
int joule_waits_page_write(FILE *out, const struct joule_page *page,
                           struct joule_error *err);

#endif
