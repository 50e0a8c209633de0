/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * node_energy.h - the node's energy since a profile began, more often than
 * slurmd samples it.
 *
 *     n = joule_node_energy_create(&clock, sensor, ledger);
 *     joule_node_energy_begin(n);
 *     if (joule_node_energy_update(n, &reading) == 0)
 *         use(reading.used_uj);
 *     joule_node_energy_destroy(n);
 *
 * At each sample that slurmd publishes, the sensor of this process goes on from
 * the published state, and counts from there: by the counters that it reads
 * itself, or with the last power of a meter.  What the next sample says
 * otherwise is worked off over a period of the sampler, so that a row of 10 ms
 * does not show the difference of a second; at once where the power was not
 * known.  Without slurmd it counts on for JOULE_POWER_BRIDGE_NS; then the power
 * is not known.  A wrap of a counter that slurmd has missed is not taken back.
 *
 * A node with other domains (slurmd has another configuration) gives its total
 * alone, a period late.
 *
 * Belongs to one thread at a time.
 */
#ifndef JOULE_STEP_NODE_ENERGY_H
#define JOULE_STEP_NODE_ENERGY_H

#include "common/base/clock.h"
#include "common/node/ledger.h"
#include "common/sensors/sensor.h"

struct joule_node_energy;

struct joule_node_energy_reading {
    int64_t mono_ns;    /* when the sensor was read */
    int64_t elapsed_ns; /* since joule_node_energy_begin */
    int64_t gap_ns;     /* part of it that was not measured */
    uint64_t used_uj;   /* since joule_node_energy_begin; never falls */
    bool is_stale;      /* the node's power is not known now */
    /* One for each domain of the sensor; live until the next update. */
    const uint64_t *domain_uj; /* since begin, as far as it was seen; never
                                  falls */
    const bool *domain_known;  /* it is measured now */
};

/*
 * [sensor] (JOULE_SENSOR_FOLLOW) and [ledger] are borrowed and must outlive the
 * handle.
 * NULL with errno ENOMEM.
 */
struct joule_node_energy *
joule_node_energy_create(const struct joule_clock *clock,
                         struct joule_sensor *sensor,
                         struct joule_ledger *ledger);

/* NULL is a no-op. */
void joule_node_energy_destroy(struct joule_node_energy *node_energy);

/* Count from here.  Where there is no measurement, or none that can be
 * counted on from, the count begins with the next one, and the time until then
 * is a gap. */
void joule_node_energy_begin(struct joule_node_energy *node_energy);

/* What has been used up to now.  0, or -1 with errno ENODATA: not known (now),
 * or EINVAL: joule_node_energy_begin has not been called. */
int joule_node_energy_update(struct joule_node_energy *node_energy,
                             struct joule_node_energy_reading *ret_reading);

/* From here on nothing is spread: the next update is the last. */
void joule_node_energy_end(struct joule_node_energy *node_energy);

#endif
