/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/average.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/ticker.h"
#include "common/cpufreq/policy.h"
#include "common/cpufreq/request.h"

#define CPUS_MAX     16
#define POLICIES_MAX 16
#define PERIOD_NS    JOULE_NS_PER_S
#define FIRST_NS     (50 * JOULE_NS_PER_MS) /* governors have acted by then */

#define MSR_TSC   0x10
#define MSR_MPERF 0xe7
#define MSR_APERF 0xe8

/* It is tried again if reading took longer; a real device takes 5 us. */
#define SPREAD_NS  (JOULE_NS_PER_MS / 2)
#define READ_TRIES 5

/* An error of 2 % at most. */
#define SHARP 50

struct cpu {
    int fd;
    struct joule_cycles_reading first, last;
};

struct joule_average {
    struct joule_average_options opt;
    struct joule_ticker *ticker;
    struct cpu cpu[CPUS_MAX];
    size_t cpu_count; /* 0: policies are looked at */
    struct joule_cycles_sum counted;
    uint64_t sum_khz; /* of looks at policies */
    unsigned looks;   /* at policies */
    unsigned readings;
};

/* ---- cycles ---- */

bool joule_cycles_is_sharp(const struct joule_cycles_reading *before,
                           const struct joule_cycles_reading *now)
{
    return (before->spread_ns + now->spread_ns) * SHARP <= now->ns - before->ns;
}

void joule_cycles_add(struct joule_cycles_sum *sum,
                      const struct joule_cycles_reading *first,
                      const struct joule_cycles_reading *before,
                      const struct joule_cycles_reading *now)
{
    if (now->ns <= first->ns || now->tsc <= first->tsc ||
        now->mperf < before->mperf || now->aperf < before->aperf)
        return;
    sum->actual_khz += (double)(now->aperf - before->aperf) *
                       (double)(now->tsc - first->tsc) * 1e6 /
                       (double)(now->ns - first->ns);
    sum->reference += (double)(now->mperf - before->mperf);
}

uint32_t joule_cycles_khz(const struct joule_cycles_sum *sum)
{
    double khz = sum->reference > 0 ? sum->actual_khz / sum->reference : 0;

    return khz >= 1 && khz <= JOULE_KHZ_MAX ? (uint32_t)(khz + 0.5) : 0;
}

static int read_once(int fd, struct joule_cycles_reading *ret)
{
    const size_t size = sizeof(uint64_t);

    ret->ns = joule_clock_mono_ns(&joule_clock_system);
    if (pread(fd, &ret->tsc, size, MSR_TSC) != (ssize_t)size ||
        pread(fd, &ret->mperf, size, MSR_MPERF) != (ssize_t)size ||
        pread(fd, &ret->aperf, size, MSR_APERF) != (ssize_t)size)
        return -1;
    ret->spread_ns = joule_clock_mono_ns(&joule_clock_system) - ret->ns;
    return 0;
}

/* The sharpest of some tries. */
static int read_cpu(int fd, struct joule_cycles_reading *ret)
{
    struct joule_cycles_reading r;

    if (read_once(fd, ret) < 0)
        return -1;
    for (int i = 1; i < READ_TRIES && ret->spread_ns > SPREAD_NS; i++) {
        if (read_once(fd, &r) < 0)
            return -1;
        if (r.spread_ns < ret->spread_ns)
            *ret = r;
    }
    return 0;
}

/* Those that have the counters. */
static void open_cpus(struct joule_average *a)
{
    unsigned id;

    joule_cpus_thin(&a->opt.cpus, CPUS_MAX);
    for (id = joule_cpus_next(&a->opt.cpus, 0); id < JOULE_CPUS_MAX;
         id = joule_cpus_next(&a->opt.cpus, id + 1)) {
        struct cpu *cpu = &a->cpu[a->cpu_count];
        char path[32];

        snprintf(path, sizeof(path), "dev/cpu/%u/msr", id);
        cpu->fd = openat(a->opt.root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (cpu->fd >= 0 && read_cpu(cpu->fd, &cpu->first) == 0) {
            cpu->last = cpu->first;
            a->cpu_count++;
        } else {
            joule_close(cpu->fd);
        }
    }
}

static void free_all(struct joule_average *a)
{
    for (size_t i = 0; i < a->cpu_count; i++)
        close(a->cpu[i].fd);
    free(a);
}

/* The mean over the CPUs since the last look, or 0: they slept.  What a CPU did
 * that could not be read sharply is in the next look. */
static uint32_t look_at_cycles(struct joule_average *a)
{
    struct joule_cycles_sum sum = {0};

    for (size_t i = 0; i < a->cpu_count; i++) {
        struct cpu *cpu = &a->cpu[i];
        struct joule_cycles_reading now;

        if (read_cpu(cpu->fd, &now) < 0 ||
            !joule_cycles_is_sharp(&cpu->last, &now))
            continue;
        joule_cycles_add(&sum, &cpu->first, &cpu->last, &now);
        /* A CPU that was offline, or a machine that slept. */
        if (now.tsc < cpu->last.tsc)
            cpu->first = now;
        cpu->last = now;
    }
    a->counted.actual_khz += sum.actual_khz;
    a->counted.reference += sum.reference;
    return joule_cycles_khz(&sum);
}

/* ---- policies ---- */

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

static void look(void *arg)
{
    struct joule_average *a = arg;
    uint32_t khz = a->cpu_count ? look_at_cycles(a) : look_at_policies(a);

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
    open_cpus(a);
    a->ticker = joule_ticker_create(FIRST_NS, PERIOD_NS, look, a, err);
    if (a->ticker)
        return a;
    free_all(a);
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
    if (a->cpu_count)
        look(a);
    ret->is_counted = a->cpu_count > 0;
    ret->readings = a->readings;
    if (a->cpu_count)
        ret->khz = joule_cycles_khz(&a->counted);
    else if (a->looks)
        ret->khz = (uint32_t)(a->sum_khz / a->looks);
    free_all(a);
}
