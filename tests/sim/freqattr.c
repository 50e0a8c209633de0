/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of a policy. */
#include "tests/sim/freqfile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static struct sim_freq_policy *policy(struct sim_freq *freq, size_t i)
{
    return &freq->policies[i];
}

#define SHOW_KHZ(name, field)                                                  \
    static ssize_t name(struct sim_freq *freq, size_t i, char *buf)            \
    {                                                                          \
        return sprintf(buf, "%u\n", policy(freq, i)->field);                   \
    }

SHOW_KHZ(show_low, low)
SHOW_KHZ(show_high, high)
SHOW_KHZ(show_min, min)
SHOW_KHZ(show_max, max)
SHOW_KHZ(show_cur, cur)

static ssize_t show_latency(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    return sprintf(buf, "%u\n", freq->driver->latency_ns);
}

static ssize_t show_driver(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    return sprintf(buf, "%s\n", freq->driver->scaling_driver);
}

static ssize_t cpus_print(const struct sim_freq *freq, size_t i, bool offline,
                          char *buf)
{
    const struct sim_freq_policy *p = &freq->policies[i];
    size_t used = 0;

    for (size_t j = p->first; j < p->first + p->count && used < 4000; j++)
        if (offline || freq->cpus[j].online)
            used += (size_t)sprintf(buf + used, "%u ", freq->cpus[j].number);
    if (used)
        used--;
    buf[used++] = '\n';
    return (ssize_t)used;
}

static ssize_t show_affected(struct sim_freq *freq, size_t i, char *buf)
{
    return cpus_print(freq, i, false, buf);
}

static ssize_t show_related(struct sim_freq *freq, size_t i, char *buf)
{
    return cpus_print(freq, i, true, buf);
}

static ssize_t show_bios_limit(struct sim_freq *freq, size_t i, char *buf)
{
    const struct sim_freq_policy *p = policy(freq, i);

    return sprintf(buf, "%u\n",
                   p->firmware_max < p->high ? p->firmware_max : p->high);
}

static ssize_t show_frequencies(struct sim_freq *freq, size_t i, char *buf)
{
    size_t used = 0;

    (void)i;
    /* Descending: the order of ACPI's states. */
    for (size_t j = freq->table_count; j-- > 0;)
        used += (size_t)sprintf(buf + used, "%u ", freq->table[j]);
    return (ssize_t)used + sprintf(buf + used, "\n");
}

static ssize_t show_governors(struct sim_freq *freq, size_t i, char *buf)
{
    size_t used = 0;

    (void)i;
    if (freq->driver->setpolicy)
        return sprintf(buf, "performance powersave\n");
    /* The one that was registered last comes first. */
    for (int g = SIM_GOVERNORS; g-- > 0;)
        if (freq->governors & 1u << g)
            used += (size_t)sprintf(buf + used, "%s ", sim_governor_names[g]);
    return (ssize_t)used + sprintf(buf + used, "\n");
}

static ssize_t show_governor(struct sim_freq *freq, size_t i, char *buf)
{
    return sprintf(buf, "%s\n", sim_governor_names[policy(freq, i)->governor]);
}

static int store_governor(struct sim_freq *freq, size_t i, const char *buf,
                          size_t count)
{
    char word[16];
    int governor;

    (void)count;
    if (sim_kernel_word(buf, 15, word))
        return -EINVAL;
    governor = sim_governor_find(word);
    if (governor < 0)
        return -EINVAL;
    if (freq->driver->setpolicy) {
        if (governor > SIM_POWERSAVE)
            return -EINVAL;
    } else {
        freq->governors |= freq->opt.loadable & 1u << governor;
        if (!(freq->governors & 1u << governor))
            return -EINVAL;
    }
    sim_freq_govern(freq, policy(freq, i), (enum sim_governor)governor);
    return 0;
}

/* Before 5.3 min above max is refused, and what is written holds at once;
 * since then each is a request of its own, and work that is put off brings
 * all requests into effect. */
static int store_limit(struct sim_freq *freq, struct sim_freq_policy *p,
                       const char *buf, bool is_max)
{
    int64_t *user = is_max ? &p->user_max : &p->user_min;
    uint64_t value;
    int rc;

    if (freq->opt.kernel >= SIM_LINUX_6_12) {
        if ((rc = sim_kernel_whole_number(buf, 0, ULONG_MAX, &value)))
            return rc;
    } else if (sim_kernel_number(buf, &value)) {
        return -EINVAL;
    }
    if (freq->opt.kernel == SIM_LINUX_4_18) {
        value = (uint32_t)value;
        if (is_max ? value < p->min : value > p->max)
            return -EINVAL;
        *user = (int64_t)value;
        sim_freq_refresh(freq, p);
        return 0;
    }
    if ((int32_t)value < 0)
        return -EINVAL;
    *user = (int32_t)value;
    if (!freq->opt.limits_ns)
        sim_freq_refresh(freq, p);
    else if (!p->due_ns)
        p->due_ns = joule_clock_mono_ns(freq->clock) + freq->opt.limits_ns;
    return 0;
}

static int store_min(struct sim_freq *freq, size_t i, const char *buf,
                     size_t count)
{
    (void)count;
    return store_limit(freq, policy(freq, i), buf, false);
}

static int store_max(struct sim_freq *freq, size_t i, const char *buf,
                     size_t count)
{
    (void)count;
    return store_limit(freq, policy(freq, i), buf, true);
}

static ssize_t show_setspeed(struct sim_freq *freq, size_t i, char *buf)
{
    if (freq->driver->setpolicy || policy(freq, i)->governor != SIM_USERSPACE)
        return sprintf(buf, "<unsupported>\n");
    if (freq->opt.kernel >= SIM_LINUX_7_2)
        return sprintf(buf, "%u\n", policy(freq, i)->setspeed);
    return show_cur(freq, i, buf);
}

static int store_setspeed(struct sim_freq *freq, size_t i, const char *buf,
                          size_t count)
{
    uint64_t value;
    int rc;

    (void)count;
    if (freq->driver->setpolicy || policy(freq, i)->governor != SIM_USERSPACE)
        return -EINVAL;
    if (freq->opt.kernel >= SIM_LINUX_7_2) {
        if ((rc = sim_kernel_whole_number(buf, 0, UINT_MAX, &value)))
            return rc;
    } else if (sim_kernel_number(buf, &value)) {
        return -EINVAL;
    }
    sim_freq_setspeed(freq, policy(freq, i), (uint32_t)value);
    return 0;
}

/* Energy preferences: 0 is what a policy began with. */

static const struct {
    const char *name;
    unsigned epp;
} preferences[] = {
    {"default", 128},       {"performance", 0}, {"balance_performance", 128},
    {"balance_power", 192}, {"power", 255},
};

#define PREFERENCES (sizeof(preferences) / sizeof(preferences[0]))

static ssize_t show_preferences(struct sim_freq *freq, size_t i, char *buf)
{
    size_t used = 0;

    if (freq->family == SIM_AMD_PSTATE &&
        policy(freq, i)->governor == SIM_PERFORMANCE)
        return sprintf(buf, "performance\n");
    for (size_t j = 0; j < PREFERENCES; j++)
        used += (size_t)sprintf(buf + used, "%s ", preferences[j].name);
    return (ssize_t)used + sprintf(buf + used, "\n");
}

static ssize_t show_preference(struct sim_freq *freq, size_t i, char *buf)
{
    for (size_t j = 1; j < PREFERENCES; j++)
        if (preferences[j].epp == policy(freq, i)->epp)
            return sprintf(buf, "%s\n", preferences[j].name);
    return sprintf(buf, "%u\n", policy(freq, i)->epp);
}

/* Intel takes numbers too. */
static int preference_number(const char *s, unsigned *ret_epp)
{
    uint64_t value;
    int rc = sim_kernel_whole_number(s, 10, UINT_MAX, &value);

    if (rc || value > 255)
        return rc ? rc : -EINVAL;
    *ret_epp = (unsigned)value;
    return 0;
}

static int store_preference(struct sim_freq *freq, size_t i, const char *buf,
                            size_t count)
{
    struct sim_freq_policy *p = policy(freq, i);
    unsigned epp = 0;
    char word[21];
    size_t j = 0;
    int rc;

    (void)count;
    if (sim_kernel_word(buf, 20, word))
        return -EINVAL;
    while (j < PREFERENCES && strcmp(preferences[j].name, word))
        j++;
    if (j < PREFERENCES) {
        epp = preferences[j].epp;
    } else {
        rc = freq->family == SIM_INTEL_PSTATE ? preference_number(buf, &epp)
                                              : -EINVAL;
        if (rc)
            return rc;
    }
    if (epp && freq->driver->setpolicy && p->governor == SIM_PERFORMANCE)
        return -EBUSY;
    p->epp = epp;
    return 0;
}

static ssize_t show_nominal(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    return sprintf(buf, "%u\n", freq->opt.nominal_khz);
}

static ssize_t show_highest(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    return sprintf(buf, "%u\n", freq->opt.max_khz);
}

static ssize_t show_nonlinear(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    return sprintf(buf, "%u\n",
                   freq->opt.min_khz +
                       (freq->opt.nominal_khz - freq->opt.min_khz) / 3);
}

static ssize_t show_highest_perf(struct sim_freq *freq, size_t i, char *buf)
{
    (void)freq;
    (void)i;
    return sprintf(buf, "166\n");
}

static bool has_get(const struct sim_freq *freq, size_t i)
{
    (void)i;
    return freq->driver->get;
}

static bool has_bios_limit(const struct sim_freq *freq, size_t i)
{
    (void)i;
    return freq->driver->bios_limit;
}

static bool has_freqdomain(const struct sim_freq *freq, size_t i)
{
    (void)i;
    return freq->driver->freqdomain;
}

static bool has_table(const struct sim_freq *freq, size_t i)
{
    (void)i;
    return freq->driver->table;
}

static bool has_preference(const struct sim_freq *freq, size_t i)
{
    (void)i;
    return freq->driver->energy_preference &&
           (freq->family == SIM_AMD_PSTATE || !freq->opt.no_hwp);
}

static bool has_base(const struct sim_freq *freq, size_t i)
{
    return freq->family == SIM_INTEL_PSTATE && has_preference(freq, i);
}

static bool has_amd(const struct sim_freq *freq, size_t i)
{
    (void)i;
    return freq->family == SIM_AMD_PSTATE;
}

const struct sim_freq_file sim_freq_policy_files[] = {
    {"affected_cpus", 0444, false, NULL, show_affected, NULL},
    {"amd_pstate_highest_perf", 0444, false, has_amd, show_highest_perf, NULL},
    {"amd_pstate_lowest_nonlinear_freq", 0444, false, has_amd, show_nonlinear,
     NULL},
    {"amd_pstate_max_freq", 0444, false, has_amd, show_highest, NULL},
    {"base_frequency", 0444, false, has_base, show_nominal, NULL},
    {"bios_limit", 0444, false, has_bios_limit, show_bios_limit, NULL},
    {"cpuinfo_cur_freq", 0400, false, has_get, show_cur, NULL},
    {"cpuinfo_max_freq", 0444, false, NULL, show_high, NULL},
    {"cpuinfo_min_freq", 0444, false, NULL, show_low, NULL},
    {"cpuinfo_transition_latency", 0444, false, NULL, show_latency, NULL},
    {"energy_performance_available_preferences", 0444, false, has_preference,
     show_preferences, NULL},
    {"energy_performance_preference", 0644, true, has_preference,
     show_preference, store_preference},
    {"freqdomain_cpus", 0444, false, has_freqdomain, show_related, NULL},
    {"related_cpus", 0444, false, NULL, show_related, NULL},
    {"scaling_available_frequencies", 0444, false, has_table, show_frequencies,
     NULL},
    {"scaling_available_governors", 0444, false, NULL, show_governors, NULL},
    {"scaling_cur_freq", 0444, false, NULL, show_cur, NULL},
    {"scaling_driver", 0444, false, NULL, show_driver, NULL},
    {"scaling_governor", 0644, true, NULL, show_governor, store_governor},
    {"scaling_max_freq", 0644, true, NULL, show_max, store_max},
    {"scaling_min_freq", 0644, true, NULL, show_min, store_min},
    {"scaling_setspeed", 0644, true, NULL, show_setspeed, store_setspeed},
    {NULL, 0, false, NULL, NULL, NULL},
};
