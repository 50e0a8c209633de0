/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/cores.h"

#include <stdlib.h>

/* 1 kHz x 1 ns is a millionth of a cycle. */
#define CYCLE 1000000u

struct core {
    uint64_t khz;
    int64_t uw;        /* while it is busy at that */
    uint64_t since_ns; /* its CPU time when they were set */
    sim_fj fj, cycles; /* of the CPU time before; cycles in CYCLE-th parts */
};

struct sim_cores {
    size_t count;
    int64_t busy_uw;
    uint64_t ref_khz;
    struct core core[];
};

struct sim_cores *sim_cores_create(size_t count, int64_t busy_uw,
                                   uint64_t ref_khz, const uint64_t *cpu_ns)
{
    struct sim_cores *cores =
        calloc(1, sizeof(*cores) + count * sizeof(cores->core[0]));

    if (!cores)
        return NULL;
    cores->count = count;
    cores->busy_uw = busy_uw;
    cores->ref_khz = ref_khz;
    for (size_t i = 0; i < count; i++) {
        cores->core[i].khz = ref_khz;
        cores->core[i].uw = busy_uw;
        cores->core[i].since_ns = cpu_ns[i];
    }
    return cores;
}

void sim_cores_destroy(struct sim_cores *cores)
{
    free(cores);
}

static uint64_t used(const struct core *core, uint64_t cpu_ns)
{
    return cpu_ns > core->since_ns ? cpu_ns - core->since_ns : 0;
}

sim_fj sim_cores_fj(const struct sim_cores *cores, const uint64_t *cpu_ns)
{
    sim_fj fj = 0;

    for (size_t i = 0; i < cores->count; i++) {
        const struct core *core = &cores->core[i];

        fj += core->fj + (sim_fj)core->uw * used(core, cpu_ns[i]);
    }
    return fj;
}

static void settle(struct sim_cores *cores, struct core *core, uint64_t khz,
                   uint64_t cpu_ns)
{
    core->fj += (sim_fj)core->uw * used(core, cpu_ns);
    core->cycles += (sim_fj)core->khz * used(core, cpu_ns);
    core->since_ns += used(core, cpu_ns);
    core->khz = khz;
    core->uw = sim_busy_at(cores->busy_uw, khz, cores->ref_khz);
}

void sim_cores_set_khz(struct sim_cores *cores, size_t i, uint64_t khz,
                       const uint64_t *cpu_ns)
{
    settle(cores, &cores->core[i], khz, cpu_ns[i]);
}

void sim_cores_set_busy(struct sim_cores *cores, int64_t busy_uw,
                        const uint64_t *cpu_ns)
{
    cores->busy_uw = busy_uw;
    for (size_t i = 0; i < cores->count; i++)
        settle(cores, &cores->core[i], cores->core[i].khz, cpu_ns[i]);
}

uint64_t sim_cores_aperf(const struct sim_cores *cores, size_t i,
                         const uint64_t *cpu_ns)
{
    const struct core *core = &cores->core[i];

    return (
        uint64_t)((core->cycles + (sim_fj)core->khz * used(core, cpu_ns[i])) /
                  CYCLE);
}

uint64_t sim_cores_mperf(const struct sim_cores *cores, size_t i,
                         const uint64_t *cpu_ns)
{
    return (uint64_t)((sim_fj)cores->ref_khz * cpu_ns[i] / CYCLE);
}
