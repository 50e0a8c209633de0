/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * state_series.h - the C-states and P-states of a step's CPUs over time: the tables
 * CStates and PStates of a profile, a row for each CPU and period.
 *
 *     series = joule_state_series_create(&opt, &err);
 *     ...
 *     joule_state_series_destroy(series);
 *
 * A thread reads sysfs once in a period (common/sensors/cpu_states.h).
 */
#ifndef JOULE_STEP_STATE_SERIES_H
#define JOULE_STEP_STATE_SERIES_H

#include "common/base/clock.h"
#include "common/base/cpus.h"
#include "common/base/error.h"
#include "common/profile/writer.h"

struct joule_state_series;

struct joule_state_series_options {
    int root_fd; /* duplicated */
    const struct joule_clock *clock;
    struct joule_writer *writer;
    const struct joule_cpus *cpus; /* copied */
    int64_t period_ns;
};

/* NULL with a sentence: the node has neither, or errno ENOMEM or as pthread_create
 * has it.  A node that has one of them has that table. */
struct joule_state_series *
joule_state_series_create(const struct joule_state_series_options *opt,
                          struct joule_error *err);

/* What there is since the last row gets one.  NULL is a no-op. */
void joule_state_series_destroy(struct joule_state_series *series);

#endif
