/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sensor.h - a sensor: domains whose energy grows, whatever it is behind them
 * (counters that wrap, a BMC that takes seconds, both together).
 *
 *     sensor = joule_counter_sensor_create(...);
 *     joule_sensor_resume(sensor, &state);        what another process left
 *     now_ns = joule_sensor_read(sensor, 0, readings);
 *     while (sensor->ops->remark(sensor, &event, &text))
 *         log it
 *     joule_sensor_destroy(sensor);
 *
 * A sensor belongs to one thread at a time.  It knows no log: what an admin
 * should know is a remark.
 */
#ifndef JOULE_SENSORS_SENSOR_H
#define JOULE_SENSORS_SENSOR_H

#include <stdbool.h>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/energy/domain.h"
#include "common/energy/sensor_state.h"

struct joule_sensor;

enum joule_event {
    JOULE_EVENT_INFO,    /* found, connected, recovered */
    JOULE_EVENT_PROBLEM, /* said once for each problem */
};

struct joule_sensor_ops {
    const char *type; /* "counters", "meter", "fused" */
    /*
     * The energy of every domain, up to now; out has as many entries as
     * domains.  Returns the time that is now, within 50 us: a sensor that has
     * to wait for an answer carries the last power on.  [edge_ns]: when the load
     * of the node changed last, because a step's tasks began or ended; 0: not
     * known.
     * Energy falls only where power was carried on and is corrected.
     */
    int64_t (*read)(struct joule_sensor *sensor, int64_t edge_ns,
                    struct joule_reading *out);
    /* The state has become that of another process.  Optional. */
    void (*resumed)(struct joule_sensor *sensor);
    /* 1 and a sentence for the log, or 0. */
    int (*remark)(struct joule_sensor *sensor, enum joule_event *ret_event,
                  struct joule_error *ret_text);
    /* Optional: call [news] in another thread whenever there is more to read, and
     * the sensor should be read soon; NULL: no longer.  It must be quick, and
     * must not call the sensor. */
    void (*notify)(struct joule_sensor *sensor, void (*news)(void *arg),
                   void *arg);
    /* Returns soon, also while something does not answer.  In a child of fork
     * only memory and descriptors are given back. */
    void (*destroy)(struct joule_sensor *sensor);
};

/* The head of every sensor; constant but for the state. */
struct joule_sensor {
    const struct joule_sensor_ops *ops;
    const struct joule_clock *clock;
    const struct joule_domain *domains;
    size_t domain_count;
    int64_t wrap_ns; /* in which a counter may wrap unseen; INT64_MAX: never */
    struct joule_sensor_state state; /* what another process needs to go on */
};

/* Fill the head; of the state who creates it says what there is. */
void joule_sensor_init(struct joule_sensor *sensor,
                       const struct joule_sensor_ops *ops,
                       const struct joule_clock *clock,
                       const struct joule_domain *domains, size_t domain_count);

/* Go on from a state of unknown origin.  false: it is of other domains, or makes
 * no sense; then nothing has changed. */
bool joule_sensor_resume(struct joule_sensor *sensor,
                         const struct joule_sensor_state *state);

static inline int64_t joule_sensor_read(struct joule_sensor *sensor,
                                        int64_t edge_ns,
                                        struct joule_reading *out)
{
    return sensor->ops->read(sensor, edge_ns, out);
}

/* NULL is a no-op; errno is kept. */
void joule_sensor_destroy(struct joule_sensor *sensor);

#endif
