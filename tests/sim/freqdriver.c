/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/freq.h"

#include <string.h>
#include <strings.h>

const struct sim_freq_driver sim_freq_drivers[] = {
    {.name = "acpi-cpufreq",
     .scaling_driver = "acpi-cpufreq",
     .latency_ns = 10000,
     .table = true,
     .get = true,
     .bios_limit = true,
     .freqdomain = true,
     .boost = true},
    {.name = "cppc_cpufreq",
     .scaling_driver = "cppc_cpufreq",
     .latency_ns = 20000,
     .get = true,
     .freqdomain = true,
     .boost = true,
     .boost_moves_max = true},
    {.name = "pcc-cpufreq",
     .scaling_driver = "pcc-cpufreq",
     .latency_ns = 0,
     .get = true,
     .few_cpus = true},
    {.name = "intel_pstate",
     .scaling_driver = "intel_pstate",
     .family = SIM_INTEL_PSTATE,
     .mode = "active",
     .step_khz = 100000,
     .setpolicy = true,
     .energy_preference = true},
    {.name = "intel_cpufreq",
     .scaling_driver = "intel_cpufreq",
     .family = SIM_INTEL_PSTATE,
     .mode = "passive",
     .latency_ns = 20000,
     .step_khz = 100000,
     .energy_preference = true},
    {.name = "amd-pstate",
     .scaling_driver = "amd-pstate",
     .family = SIM_AMD_PSTATE,
     .mode = "passive",
     .latency_ns = 20000,
     .boost = true,
     .boost_moves_max = true},
    {.name = "amd-pstate-guided",
     .scaling_driver = "amd-pstate",
     .family = SIM_AMD_PSTATE,
     .mode = "guided",
     .latency_ns = 20000,
     .boost = true,
     .boost_moves_max = true},
    {.name = "amd-pstate-epp",
     .scaling_driver = "amd-pstate-epp",
     .family = SIM_AMD_PSTATE,
     .mode = "active",
     .setpolicy = true,
     .energy_preference = true},
    {.name = NULL},
};

const struct sim_freq_driver *sim_freq_driver_find(const char *name)
{
    const struct sim_freq_driver *d = sim_freq_drivers;

    while (d->name && strcmp(d->name, name))
        d++;
    return d->name ? d : NULL;
}

const char *const sim_governor_names[SIM_GOVERNORS] = {
    [SIM_PERFORMANCE] = "performance",   [SIM_POWERSAVE] = "powersave",
    [SIM_USERSPACE] = "userspace",       [SIM_ONDEMAND] = "ondemand",
    [SIM_CONSERVATIVE] = "conservative", [SIM_SCHEDUTIL] = "schedutil",
};

int sim_governor_find(const char *name)
{
    for (int i = 0; i < SIM_GOVERNORS; i++)
        if (!strcasecmp(sim_governor_names[i], name))
            return i;
    return -1;
}
