/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profiledir.h - where the node-step files are, as the configuration says.
 */
#ifndef JOULE_SH5UTIL_PROFILEDIR_H
#define JOULE_SH5UTIL_PROFILEDIR_H

#include <stdbool.h>

#include "common/base/error.h"

/*
 * ProfileHDF5Dir of the acct_gather.conf beside slurm.conf: [conf] as of
 * $SLURM_CONF, or NULL (joule_slurmconf_look), below [root_fd].  The caller
 * frees it.  NULL with a sentence: ENOENT (there is no such file, or it does
 * not say), or as joule_slurmconf_load.
 */
char *joule_profiledir(int root_fd, const char *conf, struct joule_error *err);

/* Whether there is such a slurm.conf: Slurm's commands can be asked. */
bool joule_profiledir_has_slurm(int root_fd, const char *conf);

#endif
