/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * meter_sensor.h - a sensor made of a power meter: trapezoids between what a
 * thread of its own measures, and the last power carried on to now.
 *
 * A domain is known once it has been measured, and stale without a measurement
 * for gap_ns.  Energy is carried on for JOULE_POWER_BRIDGE_NS at most; the next
 * measurement corrects it.  Intervals between measurements are split at the
 * edges of read (integrator.h).
 */
#ifndef JOULE_SENSORS_METER_SENSOR_H
#define JOULE_SENSORS_METER_SENSOR_H

#include "common/sensors/meter.h"
#include "common/sensors/sensor.h"

struct joule_meter_sensor_options {
    const struct joule_clock *clock; /* required; kept */
    struct joule_meter *meter; /* required; the sensor's, also on failure */
    int64_t period_ns; /* how often the meter is asked; 0: never.  Such a sensor
                          only goes on from the states of another one. */
    int64_t gap_ns;    /* see joule_power_gap_ns */
    bool no_carry;     /* energy is that of the last measurement */
};

/* NULL with errno ENOMEM. */
struct joule_sensor *
joule_meter_sensor_create(const struct joule_meter_sensor_options *opt);

#endif
