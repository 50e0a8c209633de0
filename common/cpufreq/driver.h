/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * driver.h - what cpufreq drivers make of the same files: one row each.
 */
#ifndef JOULE_CPUFREQ_DRIVER_H
#define JOULE_CPUFREQ_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cpufreq/policy.h"
#include "common/cpufreq/request.h"

struct joule_cpufreq_driver {
    const char *name; /* scaling_driver; NULL: all others */
    const char *mode; /* that it must be in; NULL: any */
    /*
     * A frequency is held by governor userspace and scaling_setspeed, where
     * there is that governor.  Else, and always if not set, by lower limit =
     * upper limit, which holds under every governor.
     */
    bool has_setspeed;
    /*
     * The hardware chooses the frequency, told by a preference: the only
     * governors are performance and powersave, and this powersave is a governor
     * that follows the load.
     */
    bool is_autonomous;
    uint32_t step_khz; /* between two frequencies where none are listed */
};

const struct joule_cpufreq_driver *
joule_cpufreq_driver_find(const struct joule_cpufreq_policy *p);

/* How an autonomous driver does what a governor of others would. */
struct joule_cpufreq_stand_in {
    enum joule_governor asked;
    const char *governor;
    const char *epp; /* NULL: governor performance brings its own */
};

/* NULL: it has nothing of that kind (userspace). */
const struct joule_cpufreq_stand_in *
joule_cpufreq_stand_in_find(enum joule_governor asked);

#endif
