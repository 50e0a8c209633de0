/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * resolve.h - what Slurm knows: where its node-step files are, and the number in
 * the names of files of a task of an array ("42_3") or a component of a
 * heterogeneous job ("42+1").
 */
#ifndef JOULE_SH5UTIL_RESOLVE_H
#define JOULE_SH5UTIL_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "tools/sh5util/jobid.h"

/*
 * ProfileHDF5Dir of the acct_gather.conf beside slurm.conf: [conf] as of
 * $SLURM_CONF, or NULL (joule_slurmconf_look), below [root_fd].  The caller
 * frees it.  NULL with a sentence: ENOENT (there is no such file, or it does
 * not say), or as joule_slurmconf_load.
 */
char *joule_profiledir(int root_fd, const char *conf, struct joule_error *err);

/* Whether there is such a slurm.conf: Slurm's commands can be asked. */
bool joule_profiledir_has_slurm(int root_fd, const char *conf);

/*
 * Set the job's id.  Within that job its environment says it; otherwise Slurm's commands are
 * asked (sacct, then squeue, for at most 10 s each).  A plain number is itself,
 * and nobody is asked.  -1 with ENOENT and a sentence.
 */
int joule_job_resolve(struct joule_job *job, struct joule_error *err);

/*
 * What squeue and sacct, asked for at most 2 s each, know of [count] jobs that
 * were given as plain numbers: a line "42_3|57" for each task or component.
 * The caller frees it.  NULL: nothing.
 */
char *joule_jobs_ask(const struct joule_job *jobs, size_t count);

/* Whether [job] is the number of an array or of the leader of a heterogeneous
 * job: the sentence says which others it has, whose files have other numbers.
 */
bool joule_job_has_others(const struct joule_job *job, const char *lines,
                          struct joule_error *ret_sentence);

#endif
