/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * simfreq.h - a struct sim_freq under test: made, written to and read by the
 * paths of its files, with a clock of its own.
 */
#ifndef UNIT_SIMFREQ_H
#define UNIT_SIMFREQ_H

#include <check.h>
#include <errno.h>
#include <string.h>

#include "tests/sim/freqfile.h"

extern int64_t simfreq_now_ns;
extern const struct joule_clock simfreq_clock;

struct sim_freq *simfreq_make(const struct sim_freq_options *opt);
/* The defaults for a driver. */
struct sim_freq_options simfreq_options(const char *driver);
struct sim_freq *simfreq_simple(const char *driver);

/* Bytes or -errno; -ENOENT where there is no such file. */
ssize_t simfreq_put(struct sim_freq *freq, const char *path, const char *value);

/* In a buffer of its own, newline and all; an errno's name. */
const char *simfreq_get(struct sim_freq *freq, const char *path);

#define GOV  "cpufreq/policy0/scaling_governor"
#define SET  "cpufreq/policy0/scaling_setspeed"
#define MIN  "cpufreq/policy0/scaling_min_freq"
#define MAX  "cpufreq/policy0/scaling_max_freq"
#define CUR  "cpufreq/policy0/scaling_cur_freq"
#define EPP  "cpufreq/policy0/energy_performance_preference"
#define EPPS "cpufreq/policy0/energy_performance_available_preferences"

#define OK(path, value)                                                        \
    ck_assert_int_eq(simfreq_put(freq, path, value), (ssize_t)strlen(value))
#define REFUSED(path, value, error)                                            \
    ck_assert_int_eq(simfreq_put(freq, path, value), -(error))
#define SHOWS(path, value) ck_assert_str_eq(simfreq_get(freq, path), value)

#endif
