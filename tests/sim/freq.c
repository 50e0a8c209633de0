/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/freq.h"

#include <errno.h>

/* In what direction a frequency that is not there is replaced: the kernel's
 * CPUFREQ_RELATION_L, _H and _C. */
enum relation { AT_LEAST, AT_MOST, CLOSEST };

static unsigned clamp(int64_t value, unsigned low, unsigned high)
{
    return value < low ? low : value > high ? high : (unsigned)value;
}

bool sim_freq_active(const struct sim_freq *freq,
                     const struct sim_freq_policy *policy)
{
    for (size_t i = 0; i < policy->count; i++)
        if (freq->cpus[policy->first + i].online)
            return true;
    return false;
}

bool sim_freq_there(const struct sim_freq *freq,
                    const struct sim_freq_policy *policy)
{
    return freq->driver && !policy->gone;
}

static unsigned table_find(const struct sim_freq *freq, unsigned khz,
                           enum relation relation)
{
    size_t above = 0; /* the first that is not below khz */

    while (above < freq->table_count && freq->table[above] < khz)
        above++;
    if (above == freq->table_count)
        return freq->table[above - 1];
    if (freq->table[above] == khz || above == 0 || relation == AT_LEAST)
        return freq->table[above];
    if (relation == AT_MOST ||
        khz - freq->table[above - 1] <= freq->table[above] - khz)
        return freq->table[above - 1];
    return freq->table[above];
}

static unsigned resolve(const struct sim_freq *freq, int64_t khz, unsigned min,
                        unsigned max, enum relation relation)
{
    unsigned target = clamp(khz, min, max);

    return freq->table_count ? table_find(freq, target, relation) : target;
}

/* Multiples of 100 MHz are all that Intel's ratios can say. */
static unsigned step_round(unsigned khz, unsigned step, enum relation relation)
{
    if (relation == AT_LEAST)
        khz += step - 1;
    else if (relation == CLOSEST)
        khz += step / 2;
    return khz / step * step;
}

/* intel_pstate's percentages of the highest turbo frequency, where they are
 * no limits of the policy. */
static unsigned percent(const struct sim_freq *freq, unsigned pct)
{
    return (freq->opt.max_khz * pct + 99) / 100;
}

static void target(const struct sim_freq *freq, struct sim_freq_policy *p,
                   int64_t khz, enum relation relation)
{
    unsigned step = freq->driver->step_khz;
    unsigned cur = resolve(freq, khz, p->min, p->max, relation);

    if (step)
        cur = clamp(step_round(cur, step, relation), p->min / step * step,
                    p->max / step * step);
    if (freq->family == SIM_INTEL_PSTATE && freq->driver->setpolicy) {
        unsigned low = percent(freq, freq->min_pct);
        unsigned high = percent(freq, freq->max_pct);

        high = clamp(high / step * step, p->min / step * step, p->max);
        low = clamp(low / step * step, p->min / step * step, high);
        cur = clamp(cur, low, high);
    }
    p->cur = cur;
}

static unsigned load_of(const struct sim_freq *freq,
                        const struct sim_freq_policy *p)
{
    unsigned load = 0;

    for (size_t i = 0; i < p->count; i++) {
        const struct sim_freq_cpu *cpu = &freq->cpus[p->first + i];

        if (cpu->online && cpu->load_pct > load)
            load = cpu->load_pct;
    }
    return load;
}

/* What the governor makes of the limits and the load. */
static void run(const struct sim_freq *freq, struct sim_freq_policy *p)
{
    unsigned load = load_of(freq, p);

    switch (p->governor) {
    case SIM_PERFORMANCE:
        target(freq, p, p->max, AT_MOST);
        break;
    case SIM_POWERSAVE:
        if (freq->driver->setpolicy) /* the driver's, which follows the load */
            target(freq, p, p->min + (int64_t)(p->max - p->min) * load / 100,
                   CLOSEST);
        else
            target(freq, p, p->min, AT_LEAST);
        break;
    case SIM_USERSPACE:
        target(freq, p, p->setspeed, p->max < p->setspeed ? AT_MOST : AT_LEAST);
        break;
    case SIM_ONDEMAND: /* up_threshold 80 */
        target(freq, p,
               load > 80 ? (int64_t)p->max
                         : p->low + (int64_t)(p->high - p->low) * load / 100,
               load > 80 ? AT_MOST : CLOSEST);
        break;
    case SIM_CONSERVATIVE: /* down_threshold 20; where it comes to rest */
        target(freq, p,
               load > 80   ? p->max
               : load < 20 ? p->min
                           : p->cur,
               CLOSEST);
        break;
    case SIM_SCHEDUTIL: /* 1.25 x the utilisation */
    default:
        target(freq, p, (int64_t)p->high * load / 80, AT_LEAST);
        break;
    }
}

/* No frequency of the table within the limits: the next larger one may be
 * used. */
static void table_verify(const struct sim_freq *freq,
                         const struct sim_freq_policy *p, unsigned *min,
                         unsigned *max)
{
    unsigned next = p->high;

    for (size_t i = freq->table_count; i-- > 0;) {
        if (freq->table[i] >= *min && freq->table[i] <= *max)
            return;
        if (freq->table[i] > *max)
            next = freq->table[i];
    }
    *max = clamp(next, p->low, p->high);
    *min = clamp(*min, p->low, *max);
}

void sim_freq_refresh(struct sim_freq *freq, struct sim_freq_policy *p)
{
    unsigned high = p->high, min, max;
    int64_t wanted_min = p->user_min, wanted_max = p->user_max;

    p->due_ns = 0;
    if (!sim_freq_there(freq, p) || !sim_freq_active(freq, p))
        return;
    if (freq->family == SIM_INTEL_PSTATE && freq->no_turbo)
        high = freq->opt.nominal_khz;
    if (freq->family == SIM_INTEL_PSTATE && !freq->driver->setpolicy) {
        if (percent(freq, freq->max_pct) < wanted_max)
            wanted_max = percent(freq, freq->max_pct);
        if (percent(freq, freq->min_pct) > wanted_min)
            wanted_min = percent(freq, freq->min_pct);
    }
    if (p->firmware_max < wanted_max)
        wanted_max = p->firmware_max;
    max = clamp(wanted_max, p->low, high);
    min = clamp(wanted_min, p->low, max);
    if (freq->table_count && freq->opt.kernel < SIM_LINUX_6_12)
        table_verify(freq, p, &min, &max);
    if (freq->opt.kernel == SIM_LINUX_4_18) {
        p->max = max;
        p->min = min;
    } else {
        p->max = resolve(freq, max, min, max, AT_MOST);
        p->min = resolve(freq, min, min, max, AT_LEAST);
        if (p->min > p->max)
            p->min = p->max;
    }
    run(freq, p);
}

void sim_freq_refresh_all(struct sim_freq *freq)
{
    for (size_t i = 0; i < freq->policy_count; i++)
        sim_freq_refresh(freq, &freq->policies[i]);
}

int64_t sim_freq_settle(struct sim_freq *freq, bool now)
{
    int64_t ns = -1, mono_ns = joule_clock_mono_ns(freq->clock);

    for (size_t i = 0; i < freq->policy_count; i++) {
        struct sim_freq_policy *p = &freq->policies[i];

        if (!p->due_ns)
            continue;
        if (now || p->due_ns <= mono_ns)
            sim_freq_refresh(freq, p);
        else if (ns < 0 || p->due_ns - mono_ns < ns)
            ns = p->due_ns - mono_ns;
    }
    return ns;
}

/*
 * Energy preferences.  intel_pstate keeps the one of before "performance" and
 * puts it back if it is still 0 afterwards; amd-pstate does not put it back.
 */
static void preference_follow(const struct sim_freq *freq,
                              struct sim_freq_policy *p, enum sim_governor to)
{
    if (!freq->driver->setpolicy || p->governor == to)
        return;
    if (to == SIM_PERFORMANCE) {
        p->epp_saved = p->epp;
        p->epp = 0;
    } else if (freq->family == SIM_INTEL_PSTATE && !p->epp) {
        p->epp = p->epp_saved;
    }
}

static bool dynamic(enum sim_governor governor)
{
    return governor >= SIM_ONDEMAND;
}

void sim_freq_govern(struct sim_freq *freq, struct sim_freq_policy *p,
                     enum sim_governor governor)
{
    /* pcc-cpufreq: "performance" in their place. */
    if (freq->driver->few_cpus && freq->cpu_count > 4 && dynamic(governor))
        governor = SIM_PERFORMANCE;
    preference_follow(freq, p, governor);
    /* A governor that stays is not started again. */
    if (governor == SIM_USERSPACE && p->governor != SIM_USERSPACE)
        p->setspeed = p->cur;
    p->governor = governor;
    sim_freq_refresh(freq, p);
}

void sim_freq_setspeed(struct sim_freq *freq, struct sim_freq_policy *p,
                       unsigned khz)
{
    p->setspeed = khz;
    target(freq, p, khz, AT_LEAST);
}

void sim_freq_vanish(struct sim_freq *freq, struct sim_freq_policy *p,
                     bool gone)
{
    if (p->gone && !gone && freq->driver) {
        p->gone = false;
        sim_freq_policy_init(freq, p);
    }
    p->gone = gone;
}

int sim_freq_hotplug(struct sim_freq *freq, size_t i, bool online)
{
    struct sim_freq_policy *p = &freq->policies[freq->cpus[i].policy];
    bool active;
    size_t others = 0;

    for (size_t j = 0; j < freq->cpu_count; j++)
        others += j != i && freq->cpus[j].online;
    if (!online && !others)
        return EBUSY;
    if (freq->cpus[i].online == online)
        return 0;
    active = sim_freq_active(freq, p);
    freq->cpus[i].online = online;
    if (!sim_freq_there(freq, p))
        return 0;
    /* The limits outlast it; the governor is started anew. */
    if (!active) {
        p->cur = p->low;
        p->setspeed = p->cur;
    }
    sim_freq_refresh(freq, p);
    return 0;
}
