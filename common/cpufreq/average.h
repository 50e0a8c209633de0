/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * average.h - at which frequency CPUs really ran over some time.
 *
 * A thread looks once a second: at the CPUs' own count of cycles where there is
 * an MSR device that has it, else at scaling_cur_freq of their policies.  With
 * many of either it looks at some of them.
 *
 * IA32_MPERF (0xE7) counts at the rate of the time stamp counter (0x10) while
 * the CPU is not asleep, IA32_APERF (0xE8) at the rate it really has; Intel SDM
 * volume 3, 15.2, AMD APM volume 2, 17.3.  Both begin anew when a CPU is taken
 * offline: such an interval is left out.
 */
#ifndef JOULE_CPUFREQ_AVERAGE_H
#define JOULE_CPUFREQ_AVERAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cpus.h"
#include "common/base/error.h"

struct joule_average;

struct joule_average_options {
    int root_fd; /* the caller's, and open until the end */
    struct joule_cpus cpus, policies;
    /* Called in the thread with the mean since the call before, of which
     * nothing is known if it is 0; or NULL. */
    void (*tell)(void *arg, uint32_t khz);
    void *arg;
};

struct joule_average_result {
    uint32_t khz;      /* 0: nothing is known */
    unsigned readings; /* looks that gave a frequency */
    bool is_counted;   /* by the CPUs, in all of the time that they ran */
};

/* NULL with errno and a sentence.  dev/cpu/N/msr is opened here: reading it
 * then needs no rights of root. */
struct joule_average *
joule_average_create(const struct joule_average_options *opt,
                     struct joule_error *err);

/* One more look, and the end.  NULL is a no-op that gives nothing. */
void joule_average_destroy(struct joule_average *a,
                           struct joule_average_result *ret);

/* ---- arithmetic ---- */

/* One look at one CPU. */
struct joule_cycles_reading {
    uint64_t tsc, mperf, aperf;
    int64_t ns;        /* just before; any monotonic clock */
    int64_t spread_ns; /* until just after */
};

/* Cycles over some time and some CPUs; all 0: none. */
struct joule_cycles_sum {
    double actual_khz; /* of aperf x kHz of the time stamp counter */
    double reference;  /* of mperf */
};

/* Whether the time between two readings is long beside what each of them took:
 * the reader may lose the CPU between one counter and the next. */
bool joule_cycles_is_sharp(const struct joule_cycles_reading *before,
                           const struct joule_cycles_reading *now);

/* Add what a CPU did between two readings; the rate of the time stamp counter
 * is its mean since [first], which may be older than [before]. */
void joule_cycles_add(struct joule_cycles_sum *sum,
                      const struct joule_cycles_reading *first,
                      const struct joule_cycles_reading *before,
                      const struct joule_cycles_reading *now);

/* 0: no cycles, or no frequency that a CPU could have. */
uint32_t joule_cycles_khz(const struct joule_cycles_sum *sum);

#endif
