/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jobs.h - the jobs of a node, found by the cgroups that Slurm makes for them,
 * and what each of them costs: the truth that shares of jobs are measured
 * against.
 *
 *   energy of a job = sum of price x its intensity x its CPU seconds
 *
 * in integers, so that the jobs and the system add up to what the node uses
 * above its floor.  The price is that of a busy CPU.
 *
 * The groups of jobs (jobtree.h) are looked for every 5 ms at most.  What the
 * group of the node has used beside the jobs is the system's: slurmd and
 * slurmstepd; and what a job used between the last look at its group and the
 * end of that.
 *
 * With cgroup v1 all of it is known by CPU, and energy is that of the packages
 * where it was used.
 */
#ifndef SIM_JOBS_H
#define SIM_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "tests/sim/machine.h"
#include "tests/sim/number.h"

/* In millionths; 1000 at most. */
#define SIM_INTENSITY_ONE INT64_C(1000000)
#define SIM_INTENSITY_MAX (1000 * SIM_INTENSITY_ONE)

#define SIM_JOB_SYSTEM 0 /* no job has this number */

struct sim_job {
    uint32_t id;
    int64_t intensity_ppm;
    bool seen;
    int64_t first_ns, last_ns; /* its group was there; of the clock */
    uint64_t cpu_ns;
    sim_fj cost;        /* its energy in millionths of a fJ */
    sim_fj share_fj;    /* of all energy above the floor, by CPU time: in each
                           second all CPU time costs the same */
    uint64_t window_ns; /* CPU time of the second that is not over */
};

struct sim_jobs;

/*
 * Jobs of [machine] (borrowed) below the group [path], which must be there; CPU
 * time counts from now on, and costs nothing yet.  NULL with errno (ENOENT: no
 * such group; ENOTSUP: v2, and several packages; ENOMEM) and a sentence.
 */
struct sim_jobs *sim_jobs_create(const char *path,
                                 const struct sim_machine *machine,
                                 int64_t now_ns, struct joule_error *err);
/*
 * A job is also there while it has a group below [path], in a hierarchy of v1
 * that counts no CPU time: with Slurm 26.05 a step without processes, as the
 * extern step, has no group in cpuacct, but one in freezer.  Call once.  -1 with
 * errno of access, or ENOMEM, and a sentence.
 */
int sim_jobs_also(struct sim_jobs *jobs, const char *path,
                  struct joule_error *err);
/* NULL is a no-op. */
void sim_jobs_destroy(struct sim_jobs *jobs);

/* Take in what has been used until now. */
void sim_jobs_update(struct sim_jobs *jobs, int64_t now_ns);

/* All of it, until the last update; never falls. */
sim_fj sim_jobs_fj(const struct sim_jobs *jobs);
uint64_t sim_job_nj(const struct sim_job *job);
/* Of it, what was used in a package. */
uint64_t sim_jobs_package_nj(const struct sim_jobs *jobs, unsigned package);

/* CPU time after the last update costs this. */
void sim_jobs_set_price(struct sim_jobs *jobs, int64_t price_uw);
/* The same for one job, which need not be there yet.  -1 with ENOMEM. */
int sim_jobs_set_intensity(struct sim_jobs *jobs, uint32_t id, int64_t ppm);

/* The second is over: share_fj is up to date. */
void sim_jobs_settle(struct sim_jobs *jobs, int64_t now_ns);

/* The first is the system. */
size_t sim_jobs_count(const struct sim_jobs *jobs);
const struct sim_job *sim_jobs_at(const struct sim_jobs *jobs, size_t i);

/* Whether the group of the node tells CPU time by CPU; not so with v2. */
bool sim_jobs_know_cpus(const struct sim_jobs *jobs);
/* The CPU time of the group of the node on each of the host's CPUs, or else one
 * for all of them; as of the last update. */
const uint64_t *sim_jobs_by_cpu(const struct sim_jobs *jobs, size_t *ret_count);

#endif
