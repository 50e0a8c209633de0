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

/* The plugin that takes what the node has. */
#define JOULE_SENSOR_CHOICE "joule"

/*
 * What [JOULE_SENSOR_CHOICE] takes below root_fd, of what config->sensors allows: the
 * name of a row, and why, and why not those that cover more; NULL: nothing is
 * there.  Nothing is asked that might have to be waited for: a BMC is there if it
 * is configured, or its device is.
 */
const char *joule_sensor_choose(int root_fd,
                                const struct joule_energy_config *config,
                                struct joule_error *ret_why);

/*
 * Open the sensor of the plugin [name] ("joule_rapl", "joule_ipmi",
 * "joule_fused", "joule"; or one that "joule" may choose: "joule_cray",
 * "joule_hwmon") below root_fd, as root; nothing is waited for.  [node] is the
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
