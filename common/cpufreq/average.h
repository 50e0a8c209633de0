/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * average.h - at which frequency CPUs really ran over some time.
 *
 * A thread looks once a second: at the CPUs' own count of cycles where there
 * is an MSR device that has it (cycles.h), else at scaling_cur_freq of their
 * policies.  With many of either it looks at some of them.
 */
#ifndef JOULE_CPUFREQ_AVERAGE_H
#define JOULE_CPUFREQ_AVERAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/cpus.h"

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

/* Begin.  NULL with errno and a sentence. */
struct joule_average *
joule_average_create(const struct joule_average_options *opt,
                     struct joule_error *err);

/* End, after one more look.  Frees it; NULL is a no-op that gives nothing. */
void joule_average_destroy(struct joule_average *a,
                           struct joule_average_result *ret);

#endif
