/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cores.h - CPUs that each have a frequency: what their CPU time costs, and
 * the cycles that it took.
 *
 *   energy = sum over CPUs and their frequencies f of
 *            busy watts x (f / f_ref)^3 x CPU seconds at f
 *
 * CPU time is a cumulative counter for each CPU, so the sum is exact, however
 * seldom it is looked at.
 */
#ifndef SIM_CORES_H
#define SIM_CORES_H

#include <stddef.h>

#include "tests/sim/model.h"

struct sim_cores;

/* [count] CPUs at ref_khz, which have used cpu_ns.  NULL with errno ENOMEM. */
struct sim_cores *sim_cores_create(size_t count, int64_t busy_uw,
                                   uint64_t ref_khz, const uint64_t *cpu_ns);
/* NULL is a no-op. */
void sim_cores_destroy(struct sim_cores *cores);

/* All functions below take the CPU time of each CPU until now. */

sim_fj sim_cores_fj(const struct sim_cores *cores, const uint64_t *cpu_ns);

/* CPU time above that costs what it does at another frequency, or with
 * another power of a busy CPU. */
void sim_cores_set_khz(struct sim_cores *cores, size_t i, uint64_t khz,
                       const uint64_t *cpu_ns);
void sim_cores_set_busy(struct sim_cores *cores, int64_t busy_uw,
                        const uint64_t *cpu_ns);

/* MSRs 0xe8 and 0xe7: cycles at its frequency, and at ref_khz, while CPU [i]
 * was busy. */
uint64_t sim_cores_aperf(const struct sim_cores *cores, size_t i,
                         const uint64_t *cpu_ns);
uint64_t sim_cores_mperf(const struct sim_cores *cores, size_t i,
                         const uint64_t *cpu_ns);

#endif
