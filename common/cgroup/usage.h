/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage.h - the CPU time of a step's tasks, and of a whole job.
 *
 * Both are counters of the cgroups that Slurm has made for the step and its
 * job.  They are found by what slurmstepd registered (node, user, job, step)
 * and by the groups that slurmstepd itself is in: never by a task's group,
 * which the user may choose (in cgroup v1 Slurm gives the directories of a step
 * to its user).  Layouts: doc/architecture.md; as measured with Slurm 22.05,
 * 24.11 and 26.05.
 *
 * Where a step has no group, or none yet, its processes are added up
 * (processes.h).  A job without a group has no CPU time of its own.
 */
#ifndef JOULE_CGROUP_USAGE_H
#define JOULE_CGROUP_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum joule_usage_from {
    JOULE_USAGE_FROM_PROCESSES,
    JOULE_USAGE_FROM_V1,
    JOULE_USAGE_FROM_V2,
};

struct joule_usage;

/* Whose CPU time it is. */
struct joule_usage_step {
    pid_t pid; /* of its slurmstepd */
    uint32_t job, step, uid;
    const char *node; /* NodeName */
    const char *path; /* the step's group, as /proc/PID/cgroup has it, where it
                         is known otherwise; else NULL or "" */
};

/* [step] is copied.  [cpus]: of the node; 0 if CPU time by CPU is not wanted.
 * root_fd is borrowed.  NULL with ENOMEM. */
struct joule_usage *joule_usage_create(int root_fd,
                                       const struct joule_usage_step *step,
                                       size_t cpus);
void joule_usage_destroy(struct joule_usage *u); /* NULL is a no-op */

/*
 * The CPU time of the whole job of a step that has been read.  It outlives
 * [step].  NULL with ENOENT (the job has no group now), ENOTSUP (there is no
 * cgroup of v1 or v2 in which the step could be), or ENOMEM.
 */
struct joule_usage *joule_usage_create_job(const struct joule_usage *step);

enum joule_usage_from joule_usage_from(const struct joule_usage *u);

/*
 * What has been used up to now.  *ret_by_cpu (may be NULL): that on each CPU,
 * which lives until the next call, or NULL if it is not known.  It may go
 * back, if the kernel's counter does.  -1 with
 *   ENODEV   the group is gone, and will not come back
 *   ESRCH    there are no processes, nor slurmstepd
 *   EBADMSG  it is not what the kernel writes
 *   other    of reading
 */
int joule_usage_read(struct joule_usage *u, uint64_t *ret_ns,
                     const uint64_t **ret_by_cpu);

/* Of a step: the CPU time of slurmstepd itself that is in the job's counter and
 * not in the step's, as of the last joule_usage_read.  In v1 0. */
uint64_t joule_usage_stepd_ns(const struct joule_usage *u);

/* Of a job: how many groups are below those of its steps that Slurm has not
 * made (v1, where the user can make them).  Processes of other jobs of the user
 * may be in them.  Counting stops at JOULE_USAGE_FOREIGN_MAX. */
#define JOULE_USAGE_FOREIGN_MAX 100
size_t joule_usage_foreign(const struct joule_usage *job);

#endif
