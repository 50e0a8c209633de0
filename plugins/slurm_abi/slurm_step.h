/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slurm_step.h - what a plugin is told of its step: Slurm's private record of
 * it, read at the offsets of this release, and believed only if it agrees with
 * what slurmstepd says elsewhere.
 *
 * Checked are the job and the step (against the title of the process) and the
 * node's name (against SLURMD_NODENAME).  The offsets of a series have never
 * changed, and a plugin is loaded only by the very release it was built for;
 * should that fail some day, the step is not profiled, and nothing else
 * happens.
 */
#ifndef JOULE_SLURM_ABI_SLURM_STEP_H
#define JOULE_SLURM_ABI_SLURM_STEP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

/* Texts and lists are the record's own. */
struct joule_slurm_step {
    uint32_t job_id;
    uint32_t step_id; /* SLURM_BATCH_SCRIPT and the like */
    uint32_t node_index;
    uint32_t node_tasks;
    uint32_t cpus_per_task;
    uint32_t profile; /* ACCT_GATHER_PROFILE_ bits */
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    size_t group_count;
    const char *user;
    const char *node;
    char *const *env; /* of the job, ended by NULL; may be NULL */
    /* Cores on this node, as Slurm counts them ("0-3,8"): of the job and of
     * the step; NULL if they are not said. */
    const char *job_cores, *step_cores;
};

/* [record] is slurmstepd's stepd_step_rec_t.  -1 with errno ENOTSUP and a
 * sentence if it is not as expected. */
int joule_slurm_step_read(const void *record, struct joule_slurm_step *ret_step,
                          struct joule_error *err);

/* A variable of the job, or NULL. */
const char *joule_slurm_step_getenv(const struct joule_slurm_step *step,
                                    const char *name);

/* "7_0_node1", "7_batch_node1": the name of its profile without ".h5".
 * -1: it does not fit. */
int joule_slurm_step_file(const struct joule_slurm_step *step, char *buf,
                          size_t size);

#endif
