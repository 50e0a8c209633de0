/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sensor_log.h - what the log of slurmd is told about a power source: each
 * state once, and that it is over.
 *
 * A BMC that comes and goes all day must not fill the log: after a number of
 * lines there is one in ten minutes at most.
 * Belongs to one thread at a time (the sampler's).
 */
#ifndef JOULE_DAEMON_SENSOR_LOG_H
#define JOULE_DAEMON_SENSOR_LOG_H

#include "common/daemon/sampler.h"

#define JOULE_SENSOR_LOG_LINES 24 /* before there is a limit */
#define JOULE_SENSOR_LOG_REFILL_NS                                             \
    (600 * JOULE_NS_PER_S)       /* one line in this time                      \
                                  */
#define JOULE_SENSOR_LOG_TEXTS 8 /* different sentences in one outage */

/* A power that does not change for so long is told of, once. */
#define JOULE_SENSOR_LOG_UNCHANGED_NS (3600 * JOULE_NS_PER_S)

struct joule_sensor_log {
    const struct joule_sampler_options *opt; /* whom to tell */
    uint64_t lines;                          /* that may still be told */
    int64_t refilled_ns;
    uint64_t
        text[JOULE_SENSOR_LOG_TEXTS]; /* of this outage, as a number each */
    unsigned texts;
    bool fault[JOULE_POWER_STATUS_COUNT]; /* told, and not over */
    bool unchanged[JOULE_DOMAINS_MAX];    /* told */
    int64_t measured_ns; /* the node, before the reading that is looked at */
};

/* [opt] is borrowed.  [measured_ns]: of the last measurement before, or 0. */
void joule_sensor_log_start(struct joule_sensor_log *w,
                            const struct joule_sampler_options *opt,
                            int64_t measured_ns, int64_t now_ns);

/* The source could not be read; [sentence] says why. */
void joule_sensor_log_failure(struct joule_sensor_log *w, const char *sentence,
                              int64_t now_ns);

/* The sensor was read, and [total] has the readings. */
void joule_sensor_log_readings(struct joule_sensor_log *w,
                               const struct joule_power *power,
                               const struct joule_node_total *total,
                               int64_t now_ns);

/* What the source has to say by itself. */
void joule_sensor_log_remark(struct joule_sensor_log *w, const char *sentence,
                             int64_t now_ns);

#endif
