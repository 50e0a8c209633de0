/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profiledir.h - where the node-step files are, as the configuration says.
 */
#ifndef JOULE_SH5UTIL_PROFILEDIR_H
#define JOULE_SH5UTIL_PROFILEDIR_H

#include "common/base/error.h"

/*
 * ProfileHDF5Dir of the acct_gather.conf beside slurm.conf ($SLURM_CONF, else
 * /etc/slurm).  The caller frees it.  NULL with a sentence: ENOENT (there is
 * no such file, or it does not say), or as joule_slurmconf_load.
 */
char *joule_profiledir(struct joule_error *err);

#endif
