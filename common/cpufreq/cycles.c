/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/cycles.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/cpufreq/request.h"

#define CPUS_MAX  16
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

struct joule_cycles {
    struct cpu cpu[CPUS_MAX];
    size_t count;
};

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

static void add_cpu(struct joule_cycles *c, int root_fd, unsigned id)
{
    struct cpu *cpu = &c->cpu[c->count];
    char path[32];

    snprintf(path, sizeof(path), "dev/cpu/%u/msr", id);
    cpu->fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (cpu->fd >= 0 && read_cpu(cpu->fd, &cpu->first) == 0) {
        cpu->last = cpu->first;
        c->count++;
    } else {
        joule_close(cpu->fd);
    }
}

struct joule_cycles *joule_cycles_create(int root_fd,
                                         const struct joule_cpus *cpus)
{
    struct joule_cycles *c = calloc(1, sizeof(*c));
    struct joule_cpus some = *cpus;
    unsigned id;

    joule_cpus_thin(&some, CPUS_MAX);
    for (id = joule_cpus_next(&some, 0); c && id < JOULE_CPUS_MAX;
         id = joule_cpus_next(&some, id + 1))
        add_cpu(c, root_fd, id);
    if (c && c->count > 0)
        return c;
    free(c);
    return NULL;
}

void joule_cycles_destroy(struct joule_cycles *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++)
        close(c->cpu[i].fd);
    free(c);
}

void joule_cycles_look(struct joule_cycles *c, struct joule_cycles_sum *sum)
{
    for (size_t i = 0; i < c->count; i++) {
        struct cpu *cpu = &c->cpu[i];
        struct joule_cycles_reading now;

        if (read_cpu(cpu->fd, &now) < 0 ||
            !joule_cycles_is_sharp(&cpu->last, &now))
            continue;
        joule_cycles_add(sum, &cpu->first, &cpu->last, &now);
        /* A CPU that was offline, or a machine that slept. */
        if (now.tsc < cpu->last.tsc)
            cpu->first = now;
        cpu->last = now;
    }
}
