/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * conf.h - our option tables and Slurm's parser of acct_gather.conf.
 *
 * Every option is a string for Slurm: its own conversions take "010" for 8
 * and end the daemon at a bad value.  Ours are strict, say what is wrong, and
 * leave the default in force.
 */
#ifndef JOULE_SLURM_CONF_H
#define JOULE_SLURM_CONF_H

#include "common/base/option.h"
#include "plugins/slurm_abi/slurm_abi.h"

void joule_conf_register(const struct joule_option *options,
                         s_p_options_t **full_options, int *full_count);

/*
 * Defaults, then what the file says.  A bad value is logged as one error with
 * file and line (in slurmctld and slurmd; debug level in slurmstepd, which
 * would repeat it for every step) and its default stays.  The same goes for
 * the notices of keys that are set: keys without a meaning, a password that
 * users may read.  The value of a secret is in no line.  [table] may be NULL.
 */
void joule_conf_load(const struct joule_option *options, void *config,
                     const s_p_hashtbl_t *table, bool quiet);

/* Append every option to the list of "scontrol show config", a secret as
 * "***"; not those that mean nothing. */
void joule_conf_values(const struct joule_option *options, const void *config,
                       joule_slurm_list list);

#endif
