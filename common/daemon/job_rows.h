/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * job_rows.h - the step rows of an interval, grouped by job, and what each of
 * them is charged.  For step_rows.c alone.
 *
 *     joule_job_rows_begin(jobs);
 *     joule_job_rows_add(jobs, &step);               for each step
 *     joule_job_rows_use(jobs, job, cpu_ns, ...);    for each job's group
 *     joule_job_rows_attribute(jobs, attributor, ...);
 */
#ifndef JOULE_DAEMON_JOB_ROWS_H
#define JOULE_DAEMON_JOB_ROWS_H

#include "common/node/ledger.h"

#define JOBS_BUCKETS (2 * JOULE_LEDGER_SLOTS_MAX)

/* A step in this interval, beside its row. */
struct joule_job_rows_step {
    struct joule_row *row;
    const uint64_t *job_cpus, *step_cpus;
    const uint64_t *part_ns; /* CPU time in each part, or NULL */
    int64_t from_ns, to_ns;  /* time of the interval in which it was there */
    uint64_t cpu_ns;         /* CPU time that is known */
    uint64_t stepd_ns; /* slurmstepd's, if the job's counter includes it */
    bool cpu_unknown;
    uint64_t
        *ret_job_uj; /* receives what its job was charged before, or NULL */
    int next;        /* of the same job, or -1 */
};

struct joule_job_rows_job {
    uint32_t job;
    size_t bucket; /* of the hash table */
    int first, last;
    size_t steps;
    int64_t from_ns, to_ns;
    uint64_t uj;         /* charged before this interval */
    uint64_t counter_ns; /* of its group: before this interval, then after it */
    uint64_t stepd_ns;   /* of its slurmstepds, in this interval */
    uint64_t other_ns;   /* CPU time that none of its steps accounts for */
    bool has_unknown;    /* the CPU time of one of its steps is not known */
};

struct joule_job_rows {
    size_t words, part_count;
    size_t step_count, job_count;
    struct joule_job_rows_step step[JOULE_LEDGER_SLOTS_MAX];
    struct joule_job_rows_job job[JOULE_LEDGER_SLOTS_MAX];
    struct joule_job_use use[JOULE_LEDGER_SLOTS_MAX];
    struct joule_job_energy energy[JOULE_LEDGER_SLOTS_MAX];
    uint64_t *cpus;           /* of each job, [words] */
    uint64_t *part_ns;        /* of each job, [part_count] */
    int bucket[JOBS_BUCKETS]; /* hash table: a job, or -1 */
};

struct joule_job_rows *joule_job_rows_create(size_t words, size_t part_count);
void joule_job_rows_destroy(struct joule_job_rows *jobs); /* NULL is a no-op */

/* Forget the interval before. */
void joule_job_rows_begin(struct joule_job_rows *jobs);

/* A step that is there in this interval; its row is changed by
 * joule_job_rows_attribute. */
void joule_job_rows_add(struct joule_job_rows *jobs,
                        const struct joule_job_rows_step *step);

/* The row of a step that has ended before: it says what its job was charged. */
void joule_job_rows_note(struct joule_job_rows *jobs,
                         const struct joule_row *row);

/*
 * The counter of a job's group is [cpu_ns] now and was [before_ns] at the end of
 * the last interval (JOULE_CPU_UNKNOWN: what the job's rows say); in each part
 * it has grown by [part_ns] (NULL: not known).  Called after all steps of the
 * job were added: the job is charged by this counter.  Without a figure before,
 * it is charged by its steps.  false: no step of the job is there.
 */
bool joule_job_rows_use(struct joule_job_rows *jobs, uint32_t job,
                        uint64_t cpu_ns, uint64_t before_ns,
                        const uint64_t *part_ns);

/* The job has no group now: a later group of it counts from 0. */
void joule_job_rows_without_group(struct joule_job_rows *jobs, uint32_t job);

/* Divide the interval among jobs and steps.  Returns the sum of what rows were
 * charged. */
uint64_t joule_job_rows_attribute(struct joule_job_rows *jobs,
                                  struct joule_attributor *attributor,
                                  enum joule_attribution how,
                                  int64_t interval_ns,
                                  struct joule_node_part *parts,
                                  struct joule_attribution_rest *ret_rest);

#endif
