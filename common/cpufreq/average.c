/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/average.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/ticker.h"
#include "common/cpufreq/cycles.h"
#include "common/cpufreq/policy.h"

#define POLICIES_MAX 16
#define PERIOD_NS    JOULE_NS_PER_S
#define FIRST_NS     (50 * JOULE_NS_PER_MS) /* governors have acted by then */

struct joule_average {
    struct joule_average_options opt;
    struct joule_cycles *cycles; /* NULL: policies are looked at */
    struct joule_ticker *ticker;
    struct joule_cycles_sum counted;
    uint64_t sum_khz; /* of looks at policies */
    unsigned looks;   /* at policies */
    unsigned readings;
};

/* The mean over the policies now, or 0. */
static uint32_t look_at_policies(struct joule_average *a)
{
    const struct joule_cpus *ids = &a->opt.policies;
    uint64_t sum = 0;
    unsigned count = 0, id;

    for (id = joule_cpus_next(ids, 0); id < JOULE_CPUS_MAX;
         id = joule_cpus_next(ids, id + 1)) {
        uint32_t khz = joule_cpufreq_current_khz(a->opt.root_fd, id);

        sum += khz;
        count += khz != 0;
    }
    a->sum_khz += sum;
    a->looks += count;
    return count ? (uint32_t)(sum / count) : 0;
}

/* The mean over the CPUs since the last look, or 0: they slept. */
static uint32_t look_at_cycles(struct joule_average *a)
{
    struct joule_cycles_sum sum = {0};

    joule_cycles_look(a->cycles, &sum);
    a->counted.actual_khz += sum.actual_khz;
    a->counted.reference += sum.reference;
    return joule_cycles_khz(&sum);
}

static void look(void *arg)
{
    struct joule_average *a = arg;
    uint32_t khz = a->cycles ? look_at_cycles(a) : look_at_policies(a);

    a->readings += khz != 0;
    if (a->opt.tell)
        a->opt.tell(a->opt.arg, khz);
}

struct joule_average *
joule_average_create(const struct joule_average_options *opt,
                     struct joule_error *err)
{
    struct joule_average *a = calloc(1, sizeof(*a));

    if (!a) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    a->opt = *opt;
    joule_cpus_thin(&a->opt.policies, POLICIES_MAX);
    a->cycles = joule_cycles_create(opt->root_fd, &opt->cpus);
    a->ticker = joule_ticker_create(FIRST_NS, PERIOD_NS, look, a, err);
    if (a->ticker)
        return a;
    joule_cycles_destroy(a->cycles);
    free(a);
    return NULL;
}

void joule_average_destroy(struct joule_average *a,
                           struct joule_average_result *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (!a)
        return;
    joule_ticker_destroy(a->ticker);
    /* What a step did that was over at once has not been counted yet; a policy
     * says nothing new at its end. */
    if (a->cycles)
        look(a);
    ret->is_counted = a->cycles != NULL;
    ret->readings = a->readings;
    if (a->cycles)
        ret->khz = joule_cycles_khz(&a->counted);
    else if (a->looks)
        ret->khz = (uint32_t)(a->sum_khz / a->looks);
    joule_cycles_destroy(a->cycles);
    free(a);
}
