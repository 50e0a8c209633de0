/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/average.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/ticker.h"
#include "common/cpufreq/policy.h"

#define POLICIES_MAX 16
#define PERIOD_NS    JOULE_NS_PER_S
#define FIRST_NS     (50 * JOULE_NS_PER_MS) /* governors have acted by then */

struct joule_average {
    int root_fd;
    unsigned policy[POLICIES_MAX], count;
    struct joule_ticker *ticker;
    uint64_t sum_khz;
    unsigned readings;
};

/* Evenly spread over the set. */
static void choose(struct joule_average *a, const struct joule_cpus *policies)
{
    unsigned total = joule_cpus_count(policies), n = 0, id;

    for (id = joule_cpus_next(policies, 0); id < JOULE_CPUS_MAX;
         id = joule_cpus_next(policies, id + 1), n++)
        if (total <= POLICIES_MAX ||
            n * POLICIES_MAX / total != (n + 1) * POLICIES_MAX / total)
            a->policy[a->count++] = id;
}

static void look(void *arg)
{
    struct joule_average *a = arg;

    for (unsigned i = 0; i < a->count; i++) {
        uint32_t khz = joule_cpufreq_current_khz(a->root_fd, a->policy[i]);

        if (khz == 0)
            continue;
        a->sum_khz += khz;
        a->readings++;
    }
}

struct joule_average *joule_average_create(int root_fd,
                                           const struct joule_cpus *policies,
                                           struct joule_error *err)
{
    struct joule_average *a = calloc(1, sizeof(*a));

    if (!a) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    a->root_fd = root_fd;
    choose(a, policies);
    a->ticker = joule_ticker_create(FIRST_NS, PERIOD_NS, look, a, err);
    if (a->ticker)
        return a;
    free(a);
    return NULL;
}

void joule_average_destroy(struct joule_average *a, uint32_t *ret_khz,
                           unsigned *ret_readings)
{
    *ret_khz = 0;
    *ret_readings = 0;
    if (!a)
        return;
    joule_ticker_destroy(a->ticker);
    *ret_readings = a->readings;
    if (a->readings)
        *ret_khz = (uint32_t)(a->sum_khz / a->readings);
    free(a);
}
