/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cray.h - the energy counters of an HPE Cray EX or XC blade: sys/cray/pm_counters,
 * which the blade's controller fills ten times a second.
 *
 * Sources: HPE Cray EX documentation and the files of LUMI, ARCHER2 and Frontier: "energy"
 * ("598732067 J 1606240000123456 us") is of the whole node, with its accelerators;
 * cpu_energy, memory_energy and accelN_energy are parts of it.  The number in
 * "freshness" is another one after each update, that in "startup" after a restart of
 * the controller, with which counters begin anew.  "generation" tells of a power cap
 * that was changed, which is nothing to energy.
 */
#ifndef JOULE_SENSORS_CRAY_H
#define JOULE_SENSORS_CRAY_H

#include "common/sensors/counter_sensor.h"

/* Whether the machine below [root_fd] has such counters. */
bool joule_cray_is_there(int root_fd);

/*
 * Open them.  The domains are "Node", which is the total, and as far as they are there
 * "CPU", "Memory" and "Accel0" and so on.
 *
 * Returns counters whose destroy is the caller's to call, or NULL with errno and one
 * sentence: ENOENT (there are none), EINVAL (a file holds no energy), or that of
 * open.
 */
struct joule_counters *joule_cray_create(int root_fd, struct joule_error *err);

#endif
