/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * samplepage.h - pages of `joule waits` for tests, the same whenever they are made.
 *
 *     small    2 nodes, 4 ranks, 8 call paths, 9 metrics, power with a gap
 *     hostile  the same with names that would break out of the page
 *     empty    nothing was recorded at all
 *     calm     as small, but all values are 0
 *     one      one process, no power
 *     large    64 nodes, 4,096 ranks, 100 call paths, 8 metrics: each has a value
 */
#ifndef JOULE_TESTS_SAMPLEPAGE_H
#define JOULE_TESTS_SAMPLEPAGE_H

#include "tools/waits/page.h"

struct sample_page {
    struct joule_page page;
    struct joule_page_metric *metric;
    struct joule_page_path *path;
    struct joule_page_process *process;
    struct joule_page_value *value;
    struct joule_page_power *power;
    const char **node;
    double *s, *watts; /* of all nodes */
    char (*text)[32];  /* names that are made */
};

/* NULL if there is none of that name; destroy it.  Ends the program without memory. */
struct sample_page *sample_page_create(const char *name);
void sample_page_destroy(struct sample_page *sample);

#endif
