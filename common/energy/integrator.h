/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * integrator.h - energy of a power that is known at moments: trapezoids over
 * monotonic nanoseconds, in double watts, nothing rounded inside.
 *
 * Pure arithmetic on a plain struct, all 0 at first, which another process of
 * the same boot may continue.
 */
#ifndef JOULE_ENERGY_INTEGRATOR_H
#define JOULE_ENERGY_INTEGRATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/energy/domain.h"

struct joule_integrator {
    double power_w;      /* last measurement */
    double rest_uj;      /* of uj, in [0, 1) */
    uint64_t uj;         /* since the first measurement, never falls */
    uint64_t sensor_key; /* of that measurement; 0: not told */
    int64_t began_ns;    /* of the first measurement */
    int64_t read_ns;     /* when power_w was measured */
    int64_t changed_ns;  /* when power_w last differed from the one before (or
                            was first measured) */
    int64_t gap_ns;      /* time that was not measured */
    int64_t refresh_ns;  /* shortest time between two changes: the BMC refreshes
                            its value no more often than is seen; 0: unknown */
    uint64_t changes;
    uint64_t held;     /* readings that the BMC had not refreshed: the same as
                          before, and sooner after changed_ns than refresh_ns */
    uint32_t readings; /* measurements, saturating; 0: nothing is known */
    uint32_t errors;   /* readings that are no measurement, saturating */
    uint32_t gaps;     /* intervals longer than the caller's gap_ns */
    uint32_t lost;     /* of these, those too long to be bridged */
};

/* A longer interval without a measurement is not bridged: it has so much time
 * with the power before, as was carried on, and the energy of the rest is
 * unknown and left out (`lost` counts it). */
#define JOULE_POWER_BRIDGE_NS INT64_C(300000000000)

/* A task is forked, loaded and linked before it is a load: a measurement so
 * soon after an edge still shows the power before it. */
#define JOULE_POWER_SETTLE_NS INT64_C(100000000)

/* The time after which a power that is read every [period_ns] is unknown
 * without a new measurement, and an interval is a gap: three periods, but at
 * least 3 s, for which a BMC may well be busy. */
int64_t joule_power_gap_ns(int64_t period_ns);

/*
 * Follow the power with a measurement of [watts] (finite, >= 0) at [at_ns]; one
 * that is not later than the last is ignored.  The interval between is
 *  - a trapezoid,
 *  - with the power before all the way if [sensor_key] says that another sensor
 *    is read from here on: nothing is between the powers of two sensors, or
 *  - if [edge_ns] lies within it (a step began then: its load begins at once),
 *    the power before up to the edge and the new power from there on; an edge
 *    up to JOULE_POWER_SETTLE_NS before it counts as one at its beginning.
 * Intervals longer than [gap_ns] are counted as gaps; above
 * JOULE_POWER_BRIDGE_NS that much time has the power before.
 */
void joule_integrator_update(struct joule_integrator *g, double watts,
                             uint64_t sensor_key, int64_t at_ns,
                             int64_t edge_ns, int64_t gap_ns);

/* The same where the energy since the reading before is known: [joules], and
 * [watts] for what is carried on from here.  Ignored if it is not later. */
void joule_integrator_add(struct joule_integrator *g, double watts,
                          double joules, uint64_t sensor_key, int64_t at_ns);

/* A reading that is no measurement. */
void joule_integrator_error(struct joule_integrator *g);

/* What it says of its domain at [now_ns]: energy carried on to then with the
 * last power, for JOULE_POWER_BRIDGE_NS at most, or with [carry] false as it was
 * at the last measurement; stale without a measurement for [gap_ns]. */
struct joule_reading joule_integrator_reading(const struct joule_integrator *g,
                                              int64_t gap_ns, int64_t now_ns,
                                              bool carry);

/* Whether a struct of unknown origin can be continued at [now_ns]. */
bool joule_integrator_check(const struct joule_integrator *g, int64_t now_ns);

/* A power that is a measurement, and can be one. */
bool joule_power_is_measured(const struct joule_power *power);

#endif
