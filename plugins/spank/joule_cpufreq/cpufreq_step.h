/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpufreq_step.h - one step in slurmstepd, from its request to what it gives
 * back.
 */
#ifndef JOULE_SPANK_JOULE_CPUFREQ_CPUFREQ_STEP_H
#define JOULE_SPANK_JOULE_CPUFREQ_CPUFREQ_STEP_H

#include "common/cpufreq/average.h"
#include "common/cpufreq/control.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/spank/joule_cpufreq/cpufreq_options.h"

struct joule_spank_step {
    bool is_active;  /* there is a request, and what follows is set up */
    bool is_default; /* it is CpuFreqDef's: the user has not asked, is told
                        nothing, and strict is not about it */
    bool is_verbose; /* the user wants to know (srun -v) */
    struct joule_spank_options options;
    int root_fd;
    struct joule_control control;
    struct joule_control_claim claim;
    char name[JOULE_CPUFREQ_STEP_MAX]; /* of claim.step */
    char asked[JOULE_REQUEST_TEXT_MAX];
    unsigned tasks, forked, ended;
    struct joule_error *failure; /* strict alone: shared with the tasks; a
                                 sentence if they must not run */
    struct joule_control_grant watch, grant;
    struct joule_average *average;
    int dataset; /* the frequency's series in a profile; -1: there is none */
};

/* At slurmstepd's start: read the request, put Slurm's own code out of the way
 * or on record. */
void joule_spank_step_begin(struct joule_spank_step *s, spank_t spank,
                            const struct joule_spank_options *options);

/* A task is there, bound to its CPUs, and waits; with the last one the
 * frequencies are set. */
void joule_spank_step_task(struct joule_spank_step *s, spank_t spank);

/* In the task itself, as its user: does not return if the request must be
 * fulfilled and cannot be (strict).  srun takes a step that SPANK refuses for
 * a success, and drops the last words of one that is killed. */
void joule_spank_step_gate(const struct joule_spank_step *s, spank_t spank);

/* A task has ended; with the last one the frequencies are given back. */
void joule_spank_step_task_end(struct joule_spank_step *s);

/* The step is over, however it ended; again is no harm. */
void joule_spank_step_end(struct joule_spank_step *s);

#endif
