/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * core.h - Slurm's own part in CPU frequencies: what slurm.conf says, and the
 * code in slurmstepd that would set them as well.
 */
#ifndef JOULE_SPANK_CORE_H
#define JOULE_SPANK_CORE_H

#include "common/cpufreq/plan.h"

/* CpuFreqGovernors and CpuFreqDef.  *ret_default is the request of steps that
 * make none; false: there is none. */
bool joule_core_conf(struct joule_cpufreq_rules *rules,
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

#endif
