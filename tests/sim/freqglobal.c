/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files that there are once, and those of a CPU. */
#include "tests/sim/freqfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* CPUs. */

ssize_t sim_freq_cpulist(const struct sim_freq *freq, bool online, bool offline,
                         char *buf)
{
    const struct sim_freq_cpu *cpus = freq->cpus;
    size_t used = 0, i, end;

    for (i = 0; i < freq->cpu_count && used < SIM_FREQ_PAGE - 32; i = end) {
        end = i + 1;
        if (!(cpus[i].online ? online : offline))
            continue;
        while (end < freq->cpu_count && (cpus[end].online ? online : offline) &&
               cpus[end].number == cpus[i].number + (end - i))
            end++;
        used += (size_t)sprintf(buf + used, end - i > 1 ? "%s%u-%u" : "%s%u",
                                used ? "," : "", cpus[i].number,
                                cpus[end - 1].number);
    }
    buf[used++] = '\n';
    return (ssize_t)used;
}

static ssize_t show_possible(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    return sim_freq_cpulist(freq, true, true, buf);
}

static ssize_t show_online_list(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    return sim_freq_cpulist(freq, true, false, buf);
}

static ssize_t show_offline_list(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    return sim_freq_cpulist(freq, false, true, buf);
}

static ssize_t show_kernel_max(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    return sprintf(buf, "%u\n", freq->cpus[freq->cpu_count - 1].number);
}

static ssize_t show_online(struct sim_freq *freq, size_t i, char *buf)
{
    return sprintf(buf, "%d\n", freq->cpus[i].online);
}

/* kstrtobool(): the first characters decide. */
static int store_online(struct sim_freq *freq, size_t i, const char *buf,
                        size_t count)
{
    (void)count;
    if (strchr("yYtT1", buf[0]) || !strncasecmp(buf, "on", 2))
        return -sim_freq_hotplug(freq, i, true);
    if (strchr("nNfF0", buf[0]) || !strncasecmp(buf, "of", 2))
        return -sim_freq_hotplug(freq, i, false);
    return -EINVAL;
}

/* x86 does not let go of CPU 0. */
static bool not_zero(const struct sim_freq *freq, size_t i)
{
    return freq->cpus[i].number != 0;
}

const struct sim_freq_file sim_freq_top_files[] = {
    {"kernel_max", 0444, false, NULL, show_kernel_max, NULL},
    {"offline", 0444, false, NULL, show_offline_list, NULL},
    {"online", 0444, false, NULL, show_online_list, NULL},
    {"possible", 0444, false, NULL, show_possible, NULL},
    {"present", 0444, false, NULL, show_possible, NULL},
    {NULL, 0, false, NULL, NULL, NULL},
};

const struct sim_freq_file sim_freq_cpu_files[] = {
    {"online", 0644, true, not_zero, show_online, store_online},
    {NULL, 0, false, NULL, NULL, NULL},
};

/* cpufreq/boost. */

static bool has_boost(const struct sim_freq *freq, size_t i)
{
    (void)i;
    return freq->driver && freq->driver->boost;
}

static ssize_t show_boost(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    return sprintf(buf, "%d\n", freq->boost);
}

static int store_boost(struct sim_freq *freq, size_t i, const char *buf,
                       size_t count)
{
    uint64_t value;

    (void)i;
    (void)count;
    if (sim_kernel_number(buf, &value) || value > 1)
        return -EINVAL;
    if (freq->boost == value)
        return 0;
    freq->boost = value;
    for (size_t j = 0; freq->driver->boost_moves_max && j < freq->policy_count;
         j++) {
        struct sim_freq_policy *p = &freq->policies[j];

        if (!sim_freq_active(freq, p))
            continue;
        p->high = value ? freq->opt.max_khz : freq->opt.nominal_khz;
        /* cppc_cpufreq puts it in the place of what the user has asked for;
         * amd-pstate has a request of its own. */
        if (freq->family == SIM_PLAIN)
            p->user_max = p->high;
        sim_freq_refresh(freq, p);
    }
    return 0;
}

const struct sim_freq_file sim_freq_boost_files[] = {
    {"boost", 0644, true, has_boost, show_boost, store_boost},
    {NULL, 0, false, NULL, NULL, NULL},
};

/* status of intel_pstate and amd_pstate. */

static ssize_t show_status(struct sim_freq *freq, size_t i, char *buf)
{
    (void)i;
    if (freq->driver)
        return sprintf(buf, "%s\n", freq->driver->mode);
    return sprintf(buf,
                   freq->family == SIM_INTEL_PSTATE ? "off\n" : "disable\n");
}

static const struct sim_freq_driver *
driver_of_mode(const struct sim_freq *freq, const char *word, size_t len)
{
    const struct sim_freq_driver *d;

    for (d = sim_freq_drivers; d->name; d++)
        if (d->family == freq->family && strlen(d->mode) == len &&
            !strncmp(d->mode, word, len))
            return d;
    return NULL;
}

static int store_status(struct sim_freq *freq, size_t i, const char *buf,
                        size_t count)
{
    const char *end = memchr(buf, '\n', count);
    size_t len = end ? (size_t)(end - buf) : count;
    const struct sim_freq_driver *d = driver_of_mode(freq, buf, len);
    const char *off = freq->family == SIM_INTEL_PSTATE ? "off" : "disable";

    (void)i;
    if (!d && (len != strlen(off) || strncmp(buf, off, len)))
        return -EINVAL;
    if (d == freq->driver)
        return d || freq->family == SIM_AMD_PSTATE ? 0 : -EINVAL;
    if (!d && freq->family == SIM_INTEL_PSTATE && !freq->opt.no_hwp)
        return -EBUSY;
    /* passive and guided are one driver, which stays. */
    if (d && freq->driver &&
        !strcmp(d->scaling_driver, freq->driver->scaling_driver))
        freq->driver = d;
    else
        sim_freq_driver_load(freq, d);
    return 0;
}

const struct sim_freq_file sim_freq_amd_files[] = {
    {"status", 0644, true, NULL, show_status, store_status},
    {NULL, 0, false, NULL, NULL, NULL},
};

/* intel_pstate. */

static ssize_t show_pct(const struct sim_freq *freq, unsigned value, char *buf)
{
    return freq->driver ? sprintf(buf, "%u\n", value) : -EAGAIN;
}

#define SHOW_PCT(name, value)                                                  \
    static ssize_t name(struct sim_freq *freq, size_t i, char *buf)            \
    {                                                                          \
        (void)i;                                                               \
        return show_pct(freq, value, buf);                                     \
    }

/* Ratios are multiples of 100 MHz. */
static unsigned ratios(const struct sim_freq *freq, unsigned khz)
{
    return khz / 100000 - freq->opt.min_khz / 100000 + 1;
}

SHOW_PCT(show_max_pct, freq->max_pct)
SHOW_PCT(show_min_pct, freq->min_pct)
SHOW_PCT(show_no_turbo, freq->no_turbo)
SHOW_PCT(show_hwp_boost, freq->hwp_boost)
SHOW_PCT(show_num_pstates, ratios(freq, freq->opt.max_khz))
SHOW_PCT(show_turbo_pct, 100 - 100 * ratios(freq, freq->opt.nominal_khz) /
                                   ratios(freq, freq->opt.max_khz))

/* Before the range is looked at; above INT_MAX the kernel sees a negative
 * number. */
static int pct_parse(const struct sim_freq *freq, const char *buf,
                     int32_t *ret_value)
{
    uint64_t value;

    if (sim_kernel_number(buf, &value))
        return -EINVAL;
    if (!freq->driver)
        return -EAGAIN;
    *ret_value = (int32_t)value;
    return 0;
}

static int store_max_pct(struct sim_freq *freq, size_t i, const char *buf,
                         size_t count)
{
    int32_t value;
    int rc = pct_parse(freq, buf, &value);

    (void)i;
    (void)count;
    if (rc)
        return rc;
    freq->max_pct = value < (int32_t)freq->min_pct ? freq->min_pct
                    : value > 100                  ? 100
                                                   : (unsigned)value;
    sim_freq_refresh_all(freq);
    return 0;
}

static int store_min_pct(struct sim_freq *freq, size_t i, const char *buf,
                         size_t count)
{
    int32_t value,
        least = (int32_t)(100 * freq->opt.min_khz / freq->opt.max_khz);
    int rc = pct_parse(freq, buf, &value);

    (void)i;
    (void)count;
    if (rc)
        return rc;
    if (value < least)
        value = least;
    freq->min_pct =
        value > (int32_t)freq->max_pct ? freq->max_pct : (unsigned)value;
    sim_freq_refresh_all(freq);
    return 0;
}

static int store_no_turbo(struct sim_freq *freq, size_t i, const char *buf,
                          size_t count)
{
    unsigned pct =
        100 * (freq->opt.nominal_khz / 100000) / (freq->opt.max_khz / 100000);
    int32_t value;
    int rc = pct_parse(freq, buf, &value);

    (void)i;
    (void)count;
    if (rc)
        return rc;
    freq->no_turbo = value > 0;
    if (freq->no_turbo && freq->min_pct > pct)
        freq->min_pct = pct;
    sim_freq_refresh_all(freq);
    return 0;
}

static int store_hwp_boost(struct sim_freq *freq, size_t i, const char *buf,
                           size_t count)
{
    uint64_t value;

    (void)i;
    (void)count;
    if (sim_kernel_number(buf, &value))
        return -EINVAL;
    freq->hwp_boost = value != 0;
    return 0;
}

static bool has_hwp_boost(const struct sim_freq *freq, size_t i)
{
    (void)i;
    return freq->driver && freq->driver->setpolicy && !freq->opt.no_hwp;
}

const struct sim_freq_file sim_freq_intel_files[] = {
    {"hwp_dynamic_boost", 0644, true, has_hwp_boost, show_hwp_boost,
     store_hwp_boost},
    {"max_perf_pct", 0644, true, NULL, show_max_pct, store_max_pct},
    {"min_perf_pct", 0644, true, NULL, show_min_pct, store_min_pct},
    {"no_turbo", 0644, true, NULL, show_no_turbo, store_no_turbo},
    {"num_pstates", 0444, false, NULL, show_num_pstates, NULL},
    {"status", 0644, true, NULL, show_status, store_status},
    {"turbo_pct", 0444, false, NULL, show_turbo_pct, NULL},
    {NULL, 0, false, NULL, NULL, NULL},
};
