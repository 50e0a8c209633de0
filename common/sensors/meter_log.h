/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * meter_log.h - what an admin should know of a power meter: each state once,
 * and that it is over.
 *
 *     joule_meter_log_mail(&log, &mail);
 *     while (joule_meter_log_next(&log, &event, &text))
 *         log it
 *
 * Plain data; one thread at a time.
 */
#ifndef JOULE_SENSORS_METER_LOG_H
#define JOULE_SENSORS_METER_LOG_H

#include "common/sensors/meter_thread.h"
#include "common/sensors/sensor.h"

#define JOULE_METER_LOG_TEXTS 8 /* different failures in one outage */
#define JOULE_METER_LOG_QUEUE 8 /* sentences that wait */

/* A power that does not change for so long is told of, once. */
#define JOULE_METER_LOG_UNCHANGED_NS (3600 * JOULE_NS_PER_S)

struct joule_meter_log {
    /* set by who begins; all else is 0 */
    const struct joule_domain *domains; /* the meter's */
    size_t domain_count;
    int64_t gap_ns;
    bool has_counters;   /* they go on while the meter does not answer */
    int64_t measured_ns; /* the node, last; 0: never */

    uint64_t text[JOULE_METER_LOG_TEXTS]; /* of this outage, a number each */
    unsigned texts;
    bool fault[JOULE_POWER_STATUS_COUNT]; /* told, and not over */
    double watts[JOULE_DOMAINS_MAX];
    int64_t changed_ns[JOULE_DOMAINS_MAX];
    bool unchanged[JOULE_DOMAINS_MAX]; /* told */
    struct {
        enum joule_event event;
        struct joule_error text;
    } queue[JOULE_METER_LOG_QUEUE];
    size_t first, count;
};

void joule_meter_log_mail(struct joule_meter_log *log,
                          const struct joule_meter_mail *mail);

/* The next sentence: 1, or 0. */
int joule_meter_log_next(struct joule_meter_log *log,
                         enum joule_event *ret_event,
                         struct joule_error *ret_text);

#endif
