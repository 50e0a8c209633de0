/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu_counters.h - the energy counters of the CPUs, wherever this machine shows them:
 * in MSRs (rapl.h) or in powercap (powercap.h).  The domains have the same names, and
 * the same joules.
 *
 * By itself the MSRs, which are exact, and of which a table row says what they mean;
 * powercap where there is no such row or no MSR device, or where the row says that
 * the kernel knows more (Granite Rapids: DRAM).  Both go on counting while nobody
 * reads: energy is known over a restart.  perf's counters are left alone, since they
 * begin at 0 with each process that opens them.
 */
#ifndef JOULE_SENSORS_CPU_COUNTERS_H
#define JOULE_SENSORS_CPU_COUNTERS_H

#include "common/sensors/rapl.h"

enum joule_cpu_way { JOULE_CPU_AUTO, JOULE_CPU_MSR, JOULE_CPU_POWERCAP };

struct joule_cpu_options {
    unsigned way;         /* enum joule_cpu_way */
    unsigned total_kinds; /* as in rapl.h */
    bool with_cores;      /* as there; powercap has none */
    bool
        compares; /* MSRs with powercap, once, for a second: a remark where both are
                      more than 2 % apart */
    struct joule_rapl_info *ret_info; /* as there */
};

/*
 * Counters whose destroy is the caller's to call, with a remark where it is not by
 * their MSRs that they are read; or NULL with errno and one sentence, which is
 * that of the MSRs, and then, if it may help, that of powercap.
 */
struct joule_counters *
joule_cpu_counters_create(int root_fd, const struct joule_cpu_options *opt,
                          struct joule_error *err);

#endif
