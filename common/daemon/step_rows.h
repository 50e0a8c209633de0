/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * step_rows.h - bring the step rows of the ledger up to each sample: from
 * registrations, the node's energy and CPU times to rows and totals.
 *
 *     rows = joule_step_rows_create(&options, &err);
 *     totals = joule_step_rows_update(rows, &sample);
 *
 * The ledger holds the time up to which energy is attributed, so that another
 * process continues where this one was killed.  Belongs to one thread at a
 * time.  Rules: doc/architecture.md.
 */
#ifndef JOULE_DAEMON_STEP_ROWS_H
#define JOULE_DAEMON_STEP_ROWS_H

#include "common/node/ledger.h"

struct joule_step_rows;

struct joule_step_rows_options {
    struct joule_ledger *ledger; /* borrowed; its writer */
    enum joule_attribution attribution;
    uint64_t idle_uw;          /* the node's, divided by CPUs; 0: learned */
    const uint64_t *part_cpus; /* bitmaps as in joule_attributor_create, of the
                                  ledger's words; not kept */
    size_t part_count;
    uint64_t part_key; /* tells this set of parts from any other */
};

enum joule_usage_state {
    JOULE_USAGE_UNKNOWN, /* could not be read */
    JOULE_USAGE_KNOWN,
    JOULE_USAGE_GONE, /* the group is gone: nothing is used any more */
};

/* CPU time of a step up to now. */
struct joule_step_cpu_time {
    uint64_t owner; /* the step's process; 0: the slot is free */
    enum joule_usage_state state;
    uint64_t cpu_ns;
    const uint64_t *part_ns; /* in each part, or NULL */
    uint64_t stepd_ns; /* slurmstepd's, if the job's counter includes it */
};

/* CPU time of a job's group up to now.  A job keeps its place in the array from
 * sample to sample. */
struct joule_job_cpu_time {
    uint32_t job; /* 0: none */
    enum joule_usage_state state;
    uint64_t cpu_ns;
    const uint64_t *part_ns;
};

struct joule_step_rows_sample {
    int64_t mono_ns;         /* when all of it was read */
    uint64_t node_uj;        /* the node total */
    int64_t node_since_ns;   /* when the total began: tells it from another */
    int64_t measured_ns;     /* since when the total has all that the node used;
                              the idle power is not learned from earlier time */
    uint64_t sensor_key;     /* of the total: other sensors have another idle
                              power; 0: not told */
    const uint64_t *part_uj; /* of each part, or NULL */
    const uint64_t *component_uj; /* of each part, [JOULE_COMPONENTS] each */
    uint64_t components;          /* that it has: 1 << enum joule_component */
    const uint64_t *part_busy_ns; /* CPU time of its CPUs, or NULL */
    const struct joule_step_cpu_time *usage; /* by slot */
    size_t usage_count;
    const struct joule_job_cpu_time *jobs;
    size_t job_count; /* up to JOULE_LEDGER_SLOTS_MAX */
    uint64_t foreign; /* jobs newly found to have foreign groups (usage.h) */
    bool gap; /* energy may be missing: idle power is not learned from it */
};

/* NULL with a sentence: EINVAL or ENOMEM.  Rows that make no sense begin anew:
 * then joule_step_rows_is_spoiled is true. */
struct joule_step_rows *
joule_step_rows_create(const struct joule_step_rows_options *options,
                       struct joule_error *err);
bool joule_step_rows_is_spoiled(const struct joule_step_rows *rows);
void joule_step_rows_destroy(struct joule_step_rows *rows); /* NULL: no-op */

/*
 * Attribute what the node has used since the sample before, and publish.  The
 * first sample of a boot, or of another node total, only begins.  A sample that
 * is not later than the one before changes nothing.  A node total that is lower
 * than before attributes nothing until it has come up to what is attributed.
 * Returns the totals, which live until the next call.
 */
const struct joule_ledger_totals *
joule_step_rows_update(struct joule_step_rows *rows,
                       const struct joule_step_rows_sample *sample);

/* The rows as they were published last, by slot; they live until the next
 * update. */
const struct joule_row *joule_step_rows_list(const struct joule_step_rows *rows,
                                             size_t *ret_count);

#endif
