/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fused_sensor.h - a sensor made of two: energy counters, and a power meter of
 * the whole node (a BMC), which a thread of its own asks.
 *
 * Its domains are "Node" (in the total), "BMC", which is the meter's reading of
 * the node as it was, one for each other label of the meter, and each counter.
 * What becomes of the node is arithmetic of common/energy/fused.h; the power of
 * "BMC" and labels holds until the next reading, for gap_ns or with a gap.
 */
#ifndef JOULE_SENSORS_FUSED_SENSOR_H
#define JOULE_SENSORS_FUSED_SENSOR_H

#include "common/sensors/counter_sensor.h"
#include "common/sensors/meter.h"

enum {
    JOULE_FUSED_SENSOR_NODE,
    JOULE_FUSED_SENSOR_BMC,
    JOULE_FUSED_SENSOR_LABELS
};

/* Counters and meter are the sensor's, also on failure. */
struct joule_fused_sensor_options {
    const struct joule_clock *clock; /* required; kept */
    struct joule_counters *counters; /* NULL: none */
    const char *missing;       /* then the reason, for the log; not kept */
    struct joule_meter *meter; /* required */
    int64_t period_ns; /* how often the meter is asked; 0: never.  Such a sensor
                          only goes on from the states of another one. */
    int64_t gap_ns;    /* a meter without a measurement for longer does not
                       answer */
};

/*
 * NULL with errno and a sentence:
 *   EINVAL  a label of the meter has the name of another domain
 *   E2BIG   there are too many domains
 *   ENOMEM
 */
struct joule_sensor *
joule_fused_sensor_create(const struct joule_fused_sensor_options *opt,
                          struct joule_error *err);

#endif
