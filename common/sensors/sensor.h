/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sensor.h - where energy readings come from: plain structs that cross to
 * the meters, and the table of functions that every source fills.
 *
 * A counter source (RAPL) gives the raw value of energy counters; it is read
 * within microseconds.  A power source (a BMC) gives watts of now and then,
 * and may take seconds to answer.
 *
 * A source of energy (both in one) gives watts as a power source does, and what
 * was used since the reading before; it answers as fast as a counter source.
 *
 * A source is passive: it knows no thread and no log.  It belongs to one
 * thread at a time.
 */
#ifndef JOULE_SENSORS_SENSOR_H
#define JOULE_SENSORS_SENSOR_H

#include <stdbool.h>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/energy/domain.h"

struct joule_sensor;
struct joule_fused_state;

struct joule_sensor_ops {
    const char *type; /* "rapl", "ipmi" */
    /* counter sources: read every domain; out has as many entries as domains.
     * A reading that failed is tried once more, and then wherever else the
     * same counter can be read, before it is an error. */
    void (*read)(struct joule_sensor *source, struct joule_reading *out);
    /*
     * power sources: ask for every domain once; out has as many entries as
     * domains.  Returns within a time that the source bounds.  0: out is
     * filled; -1: nothing is known, with a sentence and errno
     *   EAGAIN     connecting again is not due yet (back-off); no sentence
     *   ECANCELED  interrupt() was called; no sentence
     *   ETIMEDOUT  no answer in time
     *   other      what went wrong
     */
    int (*read_power)(struct joule_sensor *source, struct joule_power *out,
                      struct joule_error *err);
    /* optional: 1 and a sentence for the log about something that happened
     * since the last call (connected; sensors found or changed; a counter is
     * read on another CPU), or 0 if there is none. */
    int (*remark)(struct joule_sensor *source, struct joule_error *ret_remark);
    /* power sources: end a read_power that waits, and let every later one
     * fail with ECANCELED.  Any thread. */
    void (*interrupt)(struct joule_sensor *source);
    /* sources of energy alone: what the board keeps of it, borrowed; and go on
     * with what the board has; false: that is not right */
    const struct joule_fused_state *(*state)(struct joule_sensor *source);
    bool (*resume)(struct joule_sensor *source,
                   const struct joule_fused_state *state);
    /* required */
    void (*destroy)(struct joule_sensor *source);
};

/* The head of every source; filled at creation, constant afterwards. */
struct joule_sensor {
    const struct joule_sensor_ops *ops;
    const struct joule_domain *domains;
    size_t domain_count;
    int64_t wrap_ns; /* sources of energy: of the counters within, the shortest
                        time to wrap; 0: none */
};

static inline bool joule_sensor_is_power(const struct joule_sensor *source)
{
    return !source->ops->read;
}

/* It measures energy, though it is a power source to all who follow it. */
static inline bool joule_sensor_has_energy(const struct joule_sensor *source)
{
    return source->ops->state;
}

/* It can be asked whenever a step begins or ends. */
static inline bool joule_sensor_is_prompt(const struct joule_sensor *source)
{
    return source->ops->read || source->ops->state;
}

/* Power sources that have been interrupted: what must not outlive the thread
 * that reads is put away.  [out] is overwritten. */
void joule_sensor_end(struct joule_sensor *source, struct joule_power *out);

static inline void joule_sensor_read(struct joule_sensor *source,
                                     struct joule_reading *out)
{
    source->ops->read(source, out);
}

/*
 * Read all domains of the source and return the time at which that was, to
 * 1 ms: a thread that was off the CPU between reading and clock reads again.
 * (A late time would make the next interval short and its power absurd.)
 */
int64_t joule_sensor_read_all(struct joule_sensor *source,
                              const struct joule_clock *clock,
                              struct joule_reading *readings);

/* NULL is a no-op; errno is kept. */
void joule_sensor_destroy(struct joule_sensor *source);

#endif
