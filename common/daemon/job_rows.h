/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * job_rows.h - the rows of an interval as jobs with steps, and what each of
 * them is charged.  For step_rows.c alone.
 */
#ifndef JOULE_DAEMON_JOB_ROWS_H
#define JOULE_DAEMON_JOB_ROWS_H

#include "common/node/ledger.h"

#define JOBS_BUCKETS (2 * JOULE_LEDGER_SLOTS_MAX)

/* A step in this interval, beside its row. */
struct joule_job_rows_step {
    struct joule_row *row;
    const uint64_t *job_cpus, *step_cpus;
    const uint64_t *part_ns; /* used in each part, or NULL */
    int64_t from_ns, to_ns;  /* when it was there */
    uint64_t cpu_ns;         /* that it is known to have used */
    uint64_t stepd_ns;       /* slurmstepd, if the job's counter has it */
    bool cpu_unknown;
    uint64_t *ret_job_uj; /* what its job was charged before; may be NULL */
    int next;             /* of the same job, or -1 */
};

struct joule_job_rows_job {
    uint32_t job;
    size_t bucket; /* in which it is found */
    int first, last;
    size_t steps;
    int64_t from_ns, to_ns;
    uint64_t uj;         /* charged before this interval */
    uint64_t counter_ns; /* of its group: as it was charged, then as it is */
    uint64_t stepd_ns;   /* of its slurmstepds, in this interval */
    uint64_t other_ns;   /* that none of its steps accounts for */
    bool has_unknown;    /* a step whose CPU time is not known */
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
    int bucket[JOBS_BUCKETS]; /* a job, or -1 */
};

struct joule_job_rows *joule_job_rows_create(size_t words, size_t part_count);
void joule_job_rows_destroy(struct joule_job_rows *jobs); /* NULL is a no-op */

/* Forget the interval before. */
void joule_job_rows_begin(struct joule_job_rows *jobs);

/* A step that is there in this interval; its row is changed by
 * joule_job_rows_charge. */
void joule_job_rows_add(struct joule_job_rows *jobs,
                        const struct joule_job_rows_step *step);

/* A step that has ended: what its job was charged by then. */
void joule_job_rows_note(struct joule_job_rows *jobs,
                         const struct joule_row *row);

/*
 * The counter of a job's group is [cpu_ns], and was [before_ns] at the last
 * interval (JOULE_CPU_UNKNOWN: what the job's rows say); in each part it has
 * grown by [part_ns] (NULL: not known).  The job is charged by that, after all
 * its steps were added.  A job that has no base yet is charged by its steps.
 * false: no step of it is there.
 */
bool joule_job_rows_use(struct joule_job_rows *jobs, uint32_t job,
                        uint64_t cpu_ns, uint64_t before_ns,
                        const uint64_t *part_ns);

/* The job has no group now: the next one counts from 0. */
void joule_job_rows_without_group(struct joule_job_rows *jobs, uint32_t job);

/* Split the interval among jobs and steps.  Returns the sum of what was
 * charged to rows. */
uint64_t joule_job_rows_attribute(struct joule_job_rows *jobs,
                                  struct joule_attributor *attributor,
                                  enum joule_attribution how,
                                  int64_t interval_ns,
                                  struct joule_node_part *parts,
                                  struct joule_attribution_rest *ret_rest);

#endif
