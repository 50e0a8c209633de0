/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * region_energy.h - the energy of a step on one node, divided among the regions
 * of its processes.  Pure arithmetic.
 *
 * Between two rows of the energy series the power is even, but where it changes
 * from the row before to the row behind: then it changes once within the row.  A row's
 * energy goes to the processes that were there by the CPU time that each used in the
 * row, and evenly where they used next to none; within the row at the times at which
 * the process had its part of all CPU time.  Of a row in which a process comes or goes,
 * so does the time before and the time behind: before the first call of any process
 * there is no region.  So a process that is alone has the step's
 * energy at each moment.  What a process has goes to its innermost regions: with several
 * threads in regions, to each of these threads the same.
 *
 * For each region and process:
 *     share   what it has in this way; all shares and what is in no region are
 *             together the step's energy, to the microjoule
 *     total   the same with the regions inside
 *     window  the step's energy while the process was in it
 * and for each region its window while any process was in it.
 *
 * A row that stands for many regions (joule.h records a loop of short ones as
 * one) counts as so many, spread evenly from the begin of the first to the end of
 * the last.
 */
#ifndef JOULE_REPORT_REGION_ENERGY_H
#define JOULE_REPORT_REGION_ENERGY_H

#include <stddef.h>
#include <stdint.h>

/* As the tables of the profile have them; times are ns since the step began. */
struct joule_region_row {
    uint64_t process, thread, depth, region, kind, count;
    uint64_t begin_ns, end_ns, time_ns;
};

struct joule_region_process {
    uint64_t process, pid, rank, begin_ns, end_ns;
    uint64_t lost, too_deep, without_begin, without_name;
};

struct joule_region_cpu {
    uint64_t process, cpu_ns, ns;
};

struct joule_energy_point {
    uint64_t ns, uj; /* since the step began */
};

/* Rows in any order, and of any content. */
struct joule_region_step {
    const struct joule_energy_point *energy;
    const struct joule_region_row *row;
    const struct joule_region_process *process;
    const struct joule_region_cpu *cpu;
    size_t energies, rows, processes, cpus;
    uint32_t regions; /* names are 0 to regions - 1 */
};

/* Of a region in a process; of a region in all of them without share and total. */
struct joule_region_use {
    uint32_t region, process; /* process: index in step->process */
    uint64_t count, marks, unended, lost;
    uint64_t time_ns; /* of all, summed up */
    uint64_t window_ns, window_uj;
    uint64_t share_uj, total_uj;
};

struct joule_region_result {
    struct joule_region_use *use; /* by region, then process */
    size_t uses;
    struct joule_region_use *region; /* one for each that is in use */
    size_t regions;
    uint64_t step_uj, step_ns; /* until the last row */
    uint64_t no_region_uj;
    uint64_t period_ns; /* mean time of a row */
    size_t left_out;    /* rows that make no sense */
};

/* 0, or -1 with errno ENOMEM.  The caller frees the result. */
int joule_region_energy(const struct joule_region_step *step,
                        struct joule_region_result *ret);
void joule_region_result_free(struct joule_region_result *result);

#endif
