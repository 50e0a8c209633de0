/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counter_sensor.h - a sensor made of energy counters, registers that wrap and
 * are read within microseconds: their growth in microjoules, across wraps,
 * silence and restarts.
 *
 * A package (or PSYS) is known once its counter has moved: the constant
 * registers of a guest never make energy.  Any other domain is known once it
 * has answered; one that stands at 0 uses nothing.  A counter that has not
 * answered for JOULE_COUNTER_FROZEN_NS is unknown until it does; its growth
 * meanwhile is added if it cannot have wrapped, otherwise that time is a gap,
 * as is the time before its first answer.  A package whose counter no longer
 * moves is stale.
 */
#ifndef JOULE_SENSORS_COUNTER_SENSOR_H
#define JOULE_SENSORS_COUNTER_SENSOR_H

#include "common/sensors/sensor.h"

struct joule_counters;

/* All are required; one thread at a time. */
struct joule_counters_ops {
    /* Read every domain; out has as many entries as domains.  A reading that
     * failed is tried once more, and then wherever else the same counter can be
     * read, before it is an error. */
    void (*read)(struct joule_counters *counters, struct joule_raw *out);
    void (*destroy)(struct joule_counters *counters);
};

/* The head of every set of counters; but for the remark, filled at creation and
 * constant afterwards. */
struct joule_counters {
    const struct joule_counters_ops *ops;
    const char *way; /* "MSR", "powercap" */
    const struct joule_domain *domains;
    size_t domain_count;
    /* For the log, about something that has happened (a counter is read on another
     * CPU); empty: nothing has since it was told. */
    struct joule_error remark;
};

/* [counters] is the sensor's, also on failure: NULL with errno ENOMEM. */
struct joule_sensor *
joule_counter_sensor_create(const struct joule_clock *clock,
                            struct joule_counters *counters);

/* The raw readings of the last read, one for each domain. */
const struct joule_raw *
joule_counter_sensor_raw(const struct joule_sensor *sensor);

/* What the counters have to say alone: 1 and a sentence, or 0. */
int joule_counter_sensor_moved(struct joule_sensor *sensor,
                               struct joule_error *ret);

#endif
