/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/driver.h"

#include <string.h>

#define MHZ_100 100000

/*
 * Sources: Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate}.rst,
 * Documentation/cpu-freq/pcc-cpufreq.txt, drivers/cpufreq/.  intel_pstate in
 * passive mode calls itself intel_cpufreq.
 */
static const struct joule_cpufreq_driver drivers[] = {
    {.name = "acpi-cpufreq", .has_setspeed = true, .step_khz = MHZ_100},
    {.name = "cppc_cpufreq", .has_setspeed = true, .step_khz = MHZ_100},
    {.name = "pcc-cpufreq", .has_setspeed = true, .step_khz = MHZ_100},
    {.name = "intel_cpufreq", .has_setspeed = true, .step_khz = MHZ_100},
    {.name = "intel_pstate", .is_autonomous = true, .step_khz = MHZ_100},
    {.name = "amd-pstate-epp", .is_autonomous = true, .step_khz = MHZ_100},
    /* Guided: the firmware chooses between the limits, setspeed or not. */
    {.name = "amd-pstate", .mode = "guided", .step_khz = MHZ_100},
    {.name = "amd-pstate", .has_setspeed = true, .step_khz = MHZ_100},
    {.name = NULL, .has_setspeed = true, .step_khz = MHZ_100},
};

const struct joule_cpufreq_driver *
joule_cpufreq_driver_find(const struct joule_cpufreq_policy *p)
{
    const struct joule_cpufreq_driver *d = drivers;

    while (d->name && (strcmp(d->name, p->driver) != 0 ||
                       (d->mode && strcmp(d->mode, p->mode) != 0)))
        d++;
    return d;
}

static const struct joule_cpufreq_stand_in stand_ins[] = {
    {JOULE_GOVERNOR_PERFORMANCE, "performance", NULL},
    {JOULE_GOVERNOR_ONDEMAND, "powersave", "balance_performance"},
    {JOULE_GOVERNOR_SCHEDUTIL, "powersave", "balance_performance"},
    {JOULE_GOVERNOR_CONSERVATIVE, "powersave", "balance_power"},
    {JOULE_GOVERNOR_POWERSAVE, "powersave", "power"},
};

const struct joule_cpufreq_stand_in *
joule_cpufreq_stand_in_find(enum joule_governor asked)
{
    for (size_t i = 0; i < sizeof(stand_ins) / sizeof(stand_ins[0]); i++)
        if (stand_ins[i].asked == asked)
            return &stand_ins[i];
    return NULL;
}
