/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sensor_table.h - the sensors that an admin can choose, one row for each
 * energy plugin.
 */
#ifndef JOULE_SENSORS_SENSOR_TABLE_H
#define JOULE_SENSORS_SENSOR_TABLE_H

#include "common/sensors/energy_config.h"
#include "common/sensors/sensor.h"

enum joule_sensor_use {
    JOULE_SENSOR_MEASURE, /* slurmd */
    JOULE_SENSOR_FOLLOW,  /* slurmstepd: goes on from the states that slurmd
                             publishes, reads counters itself, asks no meter */
};

/*
 * Open the sensor of the plugin [name] ("joule_rapl", "joule_ipmi",
 * "joule_fused") below root_fd, as root; nothing is waited for.  [node] is the
 * NodeName, for the patterns of a BMC's host.  NULL with errno and a sentence;
 * ENOTSUP: there is no such plugin.
 */
struct joule_sensor *joule_sensor_open(const char *name, int root_fd,
                                       const struct joule_energy_config *config,
                                       const char *node,
                                       enum joule_sensor_use use,
                                       struct joule_error *err);

bool joule_sensor_is_there(const char *name);

#endif
