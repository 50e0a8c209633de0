/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spank_joule.h - the parts of spank_joule: its options, the frequencies of a step
 * (--cpu-freq), the hooks that name its regions (--energy-regions), and the recorder
 * of its calls of MPI (--energy-waits).
 */
#ifndef JOULE_SPANK_JOULE_H
#define JOULE_SPANK_JOULE_H

#include "common/base/option.h"
#include "common/cpufreq/average.h"
#include "common/cpufreq/control.h"

/* ---- options.c: what stands behind the plugin in plugstack.conf ---- */

#define JOULE_SPANK_PATH_MAX 1023

enum joule_spank_limits { JOULE_LIMITS_HARDWARE = 1, JOULE_LIMITS_SITE = 2 };

struct joule_spank_options {
    bool cpufreq;    /* --cpu-freq is ours */
    bool core;       /* Slurm's own code sets frequencies, too */
    bool batch;      /* batch scripts and interactive steps as well */
    bool strict;     /* what cannot be fulfilled fails the step */
    unsigned limits; /* enum joule_spank_limits */
    int64_t lock_wait_ns;
    int64_t keeper_period_ns;
    char keeper[JOULE_SPANK_PATH_MAX + 1]; /* the program that slurmd starts */
    char hooks[JOULE_SPANK_PATH_MAX + 1];  /* libjoule_hooks.so */
    char waits[JOULE_SPANK_PATH_MAX + 1];  /* libjoule_waits.so */
    char report[JOULE_SPANK_PATH_MAX + 1]; /* joule-report */
};

extern const struct joule_option joule_spank_option_table[];

/*
 * The defaults, then KEY=VALUE of argv.  A bad one leaves its default in
 * force; the first is told: -1 with errno EINVAL or ERANGE and a sentence.
 */
int joule_spank_options_parse(struct joule_spank_options *ret, int argc,
                              char *const *argv, struct joule_error *err);

/* ---- cpufreq_core.c: slurm.conf, and Slurm's own code for frequencies ---- */

/* What the options, CpuFreqGovernors and CpuFreqDef come to.  *ret_default is
 * the request of steps that make none; false: there is none. */
bool joule_core_conf(const struct joule_spank_options *options,
                     struct joule_control_config *ret,
                     struct joule_request *ret_default);

/*
 * Make slurmstepd's code believe that there is no CPU it could set, for this
 * process (doc/slurm-abi.md).  -1 with a sentence if this Slurm does not offer
 * the way.
 */
int joule_core_off(struct joule_error *err);

/* The log of this slurmd (SlurmdLogFile), of at most size - 1 bytes; "" if it
 * has none, or if nobody knows. */
void joule_core_slurmd_log(char *buf, size_t size);

/* ---- cpufreq_step.c: from a step's request to what it gives back ---- */

struct spank_handle; /* what a spank_t points to */

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
void joule_spank_step_begin(struct joule_spank_step *s,
                            struct spank_handle *spank,
                            const struct joule_spank_options *options);

/* A task is there, bound to its CPUs, and waits; with the last one the
 * frequencies are set. */
void joule_spank_step_task(struct joule_spank_step *s,
                           struct spank_handle *spank);

/* In the task itself, as its user: does not return if the request must be
 * fulfilled and cannot be (strict).  srun takes a step that SPANK refuses for
 * a success, and drops the last words of one that is killed. */
void joule_spank_step_gate(const struct joule_spank_step *s,
                           struct spank_handle *spank);

/* A task has ended; with the last one the frequencies are given back. */
void joule_spank_step_task_end(struct joule_spank_step *s);

/* The step is over, however it ended; again is no harm. */
void joule_spank_step_end(struct joule_spank_step *s);

/* ---- region_hooks.c: regions of programs that do not name them for us ---- */

#define JOULE_SPANK_HOOKS_MAX      64
#define JOULE_SPANK_HOOKS_VARIABLE "JOULE_REGIONS"

/* Whether it is "all" or a list of hooks, as "mpi,likwid": 0, or -1 with errno
 * EINVAL and a sentence. */
int joule_spank_hooks_check(const char *list, struct joule_error *err);

/*
 * In slurmstepd, before the tasks: set what makes a step's programs call the hooks of
 * [wish], or of JOULE_REGIONS in its environment where that is "".  What the user
 * has set for other tools stays.  0, or -1 with a sentence for the user, whose step
 * runs all the same.
 */
int joule_spank_hooks_begin(struct spank_handle *spank, const char *wish,
                            const struct joule_spank_options *options,
                            struct joule_error *err);

/* Add [object] to the LD_PRELOAD of a step: behind what the user has there, or
 * [first] of all.  0, or -1 with a sentence. */
int joule_spank_preload(struct spank_handle *spank, const char *object,
                        bool first, struct joule_error *err);

/* ---- waits_option.c: the calls of MPI ---- */

#define JOULE_SPANK_WAITS_MAX      1024
#define JOULE_SPANK_WAITS_VARIABLE "JOULE_ENERGY_WAITS"
#define JOULE_SPANK_WAITS_DEFAULT  "joule-waits-%j.%s"
#define JOULE_SPANK_WAITS_OFF      "none"

/* The option in srun, sbatch or salloc: it goes into the environment, with the whole
 * path; NULL or "": the default; "none": nothing is recorded, whatever a job's option
 * says.  0, or -1 with a sentence. */
int joule_spank_waits_wish(const char *directory, struct joule_error *err);

/* As joule_spank_hooks_begin; [wish] counts where the environment has none. */
int joule_spank_waits_begin(struct spank_handle *spank, const char *wish,
                            const struct joule_spank_options *options,
                            struct joule_error *err);

/* In srun: when the step has its number, and when it is over: then an archive is
 * made of what its processes have left; whether srun itself was asked for it. */
void joule_spank_waits_local(struct spank_handle *spank);
void joule_spank_waits_local_end(const struct joule_spank_options *options,
                                 bool is_asked);

#endif
