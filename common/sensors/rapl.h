/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rapl.h - Running Average Power Limit counters through the MSR device.
 *
 * Registers: Intel SDM volume 4 (MSR_RAPL_POWER_UNIT 0x606, MSR_*_ENERGY_
 * STATUS 0x611, 0x619, 0x639, 0x641, 0x64D); AMD Processor Programming
 * References (0xC0010299 unit, 0xC001029A core, 0xC001029B package).  What
 * differs between CPU models is in rapl_row.h.
 */
#ifndef JOULE_SENSORS_RAPL_H
#define JOULE_SENSORS_RAPL_H

#include "common/base/error.h"
#include "common/sensors/counter_sensor.h"
#include "common/sensors/cpuinfo.h"

/* What a machine said of itself, for `joule probe`. */
struct joule_rapl_info {
    struct joule_cpuinfo cpu;
    const char *row; /* name of its row in rapl_row.h, or NULL; static */
    unsigned packages, dies; /* dies: in all packages together */
    uint64_t unit_raw;       /* the unit register of the first package */
    bool kernel_has_more;    /* see rapl_row.h */
    bool filtering;          /* energy filtering is on (MSR 0xBC bit 0) */
    bool filtering_known;    /* false: register absent or unreadable */
};

struct joule_rapl_options {
    /* Kinds whose sum is the node's energy: package, package|dram or psys.  A
     * kind that a package of the machine lacks is left out, but at least one
     * domain must remain.  Other kinds are read as well. */
    unsigned total_kinds;
    bool with_cores;                  /* one more reading for each core */
    struct joule_rapl_info *ret_info; /* optional; on failure what is known */
};

/*
 * Open the counters of the machine below [root_fd] ("proc/cpuinfo",
 * "sys/devices/system/cpu", "dev/cpu/N/msr"; duplicated).  The lowest online
 * CPU is chosen for each package (AMD, Hygon) or each die of it (Intel), for
 * PSYS that of the first package.
 *
 * If that CPU goes offline, or its device fails, the next reading opens another
 * online CPU of the same package or die (a core's: of the core), and remark()
 * says so.  Devices are opened as whoever reads then.
 *
 * Returns counters whose destroy is the caller's to call, or NULL with errno
 * and one sentence that says what is missing and how to mend it:
 *   ENODEV   this CPU has no RAPL, or is not known to have it, its registers do
 *            not answer, or its unit register holds no unit (0 in many guests)
 *   ENOENT   no MSR device (kernel module "msr" not loaded)
 *   EACCES, EPERM  the MSR device may not be read (root and CAP_SYS_RAWIO)
 *   EIO      the registers are there but refuse to be read (guests)
 *   EINVAL   /proc/cpuinfo or the topology is missing or makes no sense, or
 *            total_kinds is none of the three sums
 *   E2BIG    more than JOULE_DOMAINS_MAX domains
 *   EOPNOTSUPP  the machine lacks all domains of total_kinds
 *   ENOMEM, EMFILE and the like
 * Whether a register ever moves is not decided here: see node_total.h.
 */
struct joule_counters *joule_rapl_create(int root_fd,
                                         const struct joule_rapl_options *opt,
                                         struct joule_error *err);

#endif
