/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * regionstep.h - a step whose processes record regions, and the rows that it has
 * left: slurmstepd's part runs in the test, tasks are its children.
 *
 * A failure of these functions ends the test.  One step at a time.
 */
#ifndef JOULE_TESTS_REGIONSTEP_H
#define JOULE_TESTS_REGIONSTEP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/step/region_reader.h"
#include "common/step/regions.h"
#include "tests/unit/tree.h"

#define REGIONSTEP_ROWS_MAX 40000

struct region_row {
    uint64_t process, thread, depth, region, kind, count, begin, end, time;
};

struct region_process_row {
    uint64_t process, pid, rank, begin, end, lost, too_deep, without_begin,
        without_name;
};

/* What the step has left; [tree] stands in for "/". */
struct regionstep {
    struct tree tree;
    char dir[128], run_dir[80];
    struct joule_writer *writer;
    struct joule_regions *regions;
    struct region_row rows[REGIONSTEP_ROWS_MAX];
    struct region_process_row processes[REGIONSTEP_ROWS_MAX];
    uint64_t cpu_ns[REGIONSTEP_ROWS_MAX]; /* the last of each process */
    uint64_t cpu_at_ns[REGIONSTEP_ROWS_MAX];
    char names[JOULE_REGIONS_NAMES][JOULE_TEXT_CELLS * 8];
    size_t row_count, process_count, cpu_rows, name_count, refused;
};

extern struct regionstep step;

/* Fixtures: a step has begun in a tree of its own, and its variables are in the
 * environment. */
void regionstep_setup(void);
void regionstep_teardown(void);

void regionstep_begin(void);

/* The end of the step; [step] has its rows. */
void regionstep_end(void);

/* A task of the step, which has not recorded before; its exit status. */
pid_t regionstep_start(void (*body)(void));
int regionstep_wait(pid_t pid);

/* A task that ends well. */
void regionstep_run(void (*body)(void));

/* All rows of a region. */
struct region_sum {
    uint64_t rows, count, time, unended, lost;
};

struct region_sum regionstep_sum(const char *name);

#endif
