/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hwmon.h - the power of NVIDIA Grace, by its ACPI power meters in sys/class/hwmon.
 *
 * Each has a label in power1_oem_info: "Module Power Socket N" is all of a Grace Hopper
 * module with its GPU and memories, "Grace Power Socket N" the processor's socket, "CPU
 * Power Socket N" and "SysIO Power Socket N" parts of that.  Values are uW, the mean of
 * what power1_average_interval says (50 ms or 1 s); 4294967295000 is none.
 *
 * The node's is the sum of the modules, or where there is not one for each socket that
 * of the sockets, never of both.  Fans, disks and network cards are not in it.
 */
#ifndef JOULE_SENSORS_HWMON_H
#define JOULE_SENSORS_HWMON_H

#include "common/sensors/meter.h"

/*
 * Open the meters below [root_fd], as whoever may read them.  Domains: "Node", the
 * total, and "Module0", "Grace0", "CPU0", "SysIO0" and so on.
 *
 * Returns a meter whose destroy is the caller's to call, or NULL with errno and one
 * sentence: ENODEV (there are none, or not of the node), E2BIG, ENOMEM, or that of
 * open.
 */
struct joule_meter *joule_hwmon_create(int root_fd, struct joule_error *err);

#endif
