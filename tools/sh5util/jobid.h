/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jobid.h - what stands behind -j: jobs and steps.
 *
 *     42       a job            42.0, 42.batch, 42.extern, 42.interactive
 *     42_3     a task of an array    42+1   a component of a het job
 *
 * and lists of these, separated by commas.
 */
#ifndef JOULE_SH5UTIL_JOBID_H
#define JOULE_SH5UTIL_JOBID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define JOULE_JOB_TEXT_MAX  24
#define JOULE_STEP_TEXT_MAX 16
#define JOULE_STEPS_MAX     256
#define JOULE_JOBS_MAX      256

struct joule_job {
    char text[JOULE_JOB_TEXT_MAX]; /* as given, without a step: "42_3" */
    uint32_t id;  /* of a plain number, or resolved (resolve.h); else 0 */
    size_t steps; /* 0: all */
    /* As in a job file: "0", "batch", "-4". */
    char step[JOULE_STEPS_MAX][JOULE_STEP_TEXT_MAX];
};

/* Parse the list; a job that stands there twice is one with both steps, and
 * with all of them if it stands there without one.  The caller frees *ret.
 * -1 with EINVAL and a sentence. */
int joule_jobs_parse(const char *list, struct joule_job **ret,
                     size_t *ret_count, struct joule_error *err);

bool joule_job_has_step(const struct joule_job *job, const char *step);

/* The step of a node-step file's name, as in a job file ("4294967292" is
 * "-4"), into name[JOULE_STEP_TEXT_MAX].  -1: it is none. */
int joule_step_name(const char *text, char *name);

#endif
