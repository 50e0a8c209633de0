/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * powercap.h - the energy counters of the CPUs as Linux shows them in
 * /sys/class/powercap: zones "intel-rapl:N" (packages, dies, psys) and
 * "intel-rapl:N:M" (DRAM, cores, graphics) in them.
 *
 * Sources: Documentation/power/powercap/powercap.rst; drivers/powercap/
 * intel_rapl_common.c, _msr.c and _tpmi.c.  The kernel knows the CPU: machines
 * that no row of rapl_row.h knows can be read here, and those whose counters are
 * not in MSRs (TPMI).  AMD and Hygon have the same names.
 *
 * The kernel counts in whole nanojoules for each tick (15,300 for DRAM that has
 * 15,258.8): its microjoules are turned into those that the hardware counts.
 */
#ifndef JOULE_SENSORS_POWERCAP_H
#define JOULE_SENSORS_POWERCAP_H

#include "common/sensors/counter_sensor.h"

/*
 * Open the zones below [root_fd] (duplicated).  [total_kinds]: as in rapl.h.  The
 * domains have the same names as those of MSRs.
 *
 * Returns counters whose destroy is the caller's to call, or NULL with errno and
 * one sentence:
 *   ENOENT   there are no zones (no powercap in the kernel, or no RAPL)
 *   EACCES   energy_uj may not be read (root)
 *   EINVAL   a zone makes no sense
 *   E2BIG    more than JOULE_DOMAINS_MAX domains
 *   EOPNOTSUPP  there are none of total_kinds
 *   ENOMEM, EMFILE and the like
 */
struct joule_counters *joule_powercap_create(int root_fd, unsigned total_kinds,
                                             struct joule_error *err);

#endif
