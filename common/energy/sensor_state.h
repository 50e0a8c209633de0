/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sensor_state.h - what a sensor keeps from reading to reading: published with
 * each sample, so that another process of the same boot can go on with it.
 *
 * A plain struct of 64-bit words.  Of the arrays as many entries are used as
 * the counts say.
 */
#ifndef JOULE_ENERGY_SENSOR_STATE_H
#define JOULE_ENERGY_SENSOR_STATE_H

#include "common/energy/counter.h"
#include "common/energy/fused.h"
#include "common/energy/integrator.h"

struct joule_sensor_state {
    uint64_t domain_key; /* joule_domains_key of the sensor's domains */
    uint64_t counters, integrators, is_fused;
    struct joule_fused_state fused;
    struct joule_counter counter[JOULE_DOMAINS_MAX];
    struct joule_integrator integrator[JOULE_DOMAINS_MAX];
};

#endif
