/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/freq.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "common/base/parse.h"

static enum sim_governor default_governor(const struct sim_freq *freq)
{
    static const enum sim_governor order[] = {SIM_SCHEDUTIL,   SIM_ONDEMAND,
                                              SIM_PERFORMANCE, SIM_CONSERVATIVE,
                                              SIM_POWERSAVE,   SIM_USERSPACE};

    if (freq->opt.governor >= 0 &&
        (!freq->driver->setpolicy || freq->opt.governor <= SIM_POWERSAVE))
        return (enum sim_governor)freq->opt.governor;
    if (freq->driver->setpolicy)
        return SIM_POWERSAVE;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (freq->governors & 1u << order[i])
            return order[i];
    return SIM_PERFORMANCE;
}

void sim_freq_policy_init(struct sim_freq *freq, struct sim_freq_policy *p)
{
    p->low = freq->opt.min_khz;
    p->high = freq->driver->boost_moves_max && !freq->boost
                  ? freq->opt.nominal_khz
                  : freq->opt.max_khz;
    p->user_min = 0;
    p->user_max = INT_MAX;
    p->firmware_max = UINT_MAX;
    p->setspeed = p->cur = p->min = p->low;
    p->max = p->high;
    p->epp = p->epp_saved = 128; /* balance_performance */
    p->governor = SIM_GOVERNORS;
    sim_freq_refresh(freq, p);
    sim_freq_govern(freq, p, default_governor(freq));
}

void sim_freq_driver_load(struct sim_freq *freq,
                          const struct sim_freq_driver *driver)
{
    freq->driver = driver;
    freq->no_turbo = false;
    freq->boost = true;
    freq->hwp_boost = false;
    freq->max_pct = 100;
    freq->min_pct = 100 * freq->opt.min_khz / freq->opt.max_khz;
    for (size_t i = 0; driver && i < freq->policy_count; i++)
        sim_freq_policy_init(freq, &freq->policies[i]);
}

void sim_freq_options_init(struct sim_freq_options *opt)
{
    *opt = (struct sim_freq_options){
        .driver = sim_freq_drivers,
        .cpus = "0-1",
        .per_policy = 1,
        .min_khz = 1200000,
        .max_khz = 3000000,
        .nominal_khz = 2400000,
        .governors = (1u << SIM_GOVERNORS) - 1,
        .governor = -1,
        .kernel = SIM_LINUX_6_1,
    };
}

static int khz_compare(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

    return x < y ? -1 : x > y;
}

static int table_make(struct sim_freq *freq, struct joule_error *err)
{
    static const unsigned usual[] = {1500000, 2000000, 2600000, 3000000, 0};
    struct sim_freq_options *opt = &freq->opt;
    const unsigned *from = opt->table_khz[0] ? opt->table_khz : usual;

    if (!opt->driver->table) {
        if (opt->table_khz[0])
            return joule_error_set(err, EINVAL,
                                   "driver %s has no list of frequencies",
                                   opt->driver->name);
    } else {
        while (freq->table_count < SIM_FREQ_TABLE && from[freq->table_count]) {
            freq->table[freq->table_count] = from[freq->table_count];
            freq->table_count++;
        }
        qsort(freq->table, freq->table_count, sizeof(freq->table[0]),
              khz_compare);
        opt->min_khz = freq->table[0];
        opt->max_khz = freq->table[freq->table_count - 1];
        if (opt->nominal_khz > opt->max_khz || opt->nominal_khz < opt->min_khz)
            opt->nominal_khz = opt->max_khz;
    }
    if (!opt->min_khz || opt->min_khz > opt->nominal_khz ||
        opt->nominal_khz > opt->max_khz || opt->max_khz > 10000000)
        return joule_error_set(err, EINVAL,
                               "0 < minimum %u <= nominal %u <= maximum %u "
                               "<= 10000000 kHz does not hold",
                               opt->min_khz, opt->nominal_khz, opt->max_khz);
    return 0;
}

static int cpus_make(struct sim_freq *freq, struct joule_error *err)
{
    unsigned *list = NULL, per = freq->opt.per_policy;
    size_t count = 0;

    if (joule_parse_cpulist(freq->opt.cpus, &list, &count) || !count ||
        count > SIM_FREQ_CPUS) {
        free(list);
        return joule_error_set(err, EINVAL, "\"%s\" is not a list of CPUs",
                               freq->opt.cpus);
    }
    freq->policy_count = (count + per - 1) / per;
    freq->cpus = calloc(count, sizeof(*freq->cpus));
    freq->policies = calloc(freq->policy_count, sizeof(*freq->policies));
    if (!freq->cpus || !freq->policies) {
        free(list);
        return joule_error_set(err, ENOMEM, "out of memory");
    }
    freq->cpu_count = count;
    for (size_t i = 0; i < count; i++) {
        struct sim_freq_policy *p = &freq->policies[i / per];

        freq->cpus[i] = (struct sim_freq_cpu){.number = list[i],
                                              .online = true,
                                              .load_pct = freq->opt.load_pct,
                                              .policy = i / per};
        if (!p->count) {
            p->number = list[i];
            p->first = i;
        }
        p->count++;
    }
    free(list);
    return 0;
}

struct sim_freq *sim_freq_create(const struct sim_freq_options *opt,
                                 const struct joule_clock *clock,
                                 struct joule_error *err)
{
    struct sim_freq *freq = calloc(1, sizeof(*freq));

    if (!freq) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    freq->clock = clock;
    freq->opt = *opt;
    freq->family = opt->driver->family;
    freq->governors = opt->governors;
    if (opt->governor >= 0)
        freq->governors |= 1u << opt->governor;
    if (table_make(freq, err) || cpus_make(freq, err)) {
        sim_freq_destroy(freq);
        return NULL;
    }
    sim_freq_driver_load(freq, opt->driver);
    return freq;
}

void sim_freq_destroy(struct sim_freq *freq)
{
    int saved = errno;

    if (!freq)
        return;
    free(freq->cpus);
    free(freq->policies);
    free(freq);
    errno = saved;
}
