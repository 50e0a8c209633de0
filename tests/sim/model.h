/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * model.h - the power model of the node, as the exact integral of it.
 *
 *   node energy(t) = integral of the load from 0 to t
 *                  + busy watts x (f / f_ref)^3 x CPU seconds used until t
 *
 * The load is the idle floor, or a generator or trace in its place.  CPU
 * time is itself a cumulative counter, so the second term needs no sampling
 * rate.  That of CPUs with frequencies of their own is in cores.h in its
 * place; jobs (jobs.h) add what they cost.  The energy of the node is split
 * evenly over its packages (and dies, and cores), whichever CPU was busy; that
 * of jobs is the packages' where it was used.
 *
 * Times are ns since the model's start and come from the caller.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <stdint.h>

#include "tests/sim/load.h"

struct sim_model;

/* Takes [load], also on failure.  NULL with errno ENOMEM. */
struct sim_model *sim_model_create(struct sim_load *load, int64_t busy_uw);
/* NULL is a no-op. */
void sim_model_destroy(struct sim_model *model);

/* Energy until t_ns in nJ.  Never falls while t_ns and cpu_ns do not, also
 * across the two changes below. */
uint64_t sim_model_nj(const struct sim_model *model, int64_t t_ns,
                      uint64_t cpu_ns);

/* The power at t_ns where the CPU time of the last dt_ns was cpu_ns; dt_ns 0:
 * that of the load alone. */
int64_t sim_model_uw(const struct sim_model *model, int64_t t_ns,
                     uint64_t cpu_ns, int64_t dt_ns);

/* From t_ns on the power is [load]'s, beginning at its time 0.  Takes
 * [load]. */
void sim_model_set_load(struct sim_model *model, struct sim_load *load,
                        int64_t t_ns);

/* CPU time above cpu_ns costs busy_uw. */
void sim_model_set_busy(struct sim_model *model, int64_t busy_uw,
                        uint64_t cpu_ns);

/* Dynamic power at [khz] of one CPU that draws busy_uw at ref_khz: it goes
 * with f V^2, and V about with f. */
int64_t sim_busy_at(int64_t busy_uw, uint64_t khz, uint64_t ref_khz);

/*
 * Part [i] of [n] of an energy.  The parts add up to the whole exactly
 * (Hermite's identity) and none ever falls while the whole grows; the
 * difference of two rounded multiples would.
 */
static inline uint64_t sim_part(uint64_t energy, unsigned i, unsigned n)
{
    return (energy + i) / n;
}

/* ppm millionths of an energy; energy minus it does not fall either. */
static inline uint64_t sim_share(uint64_t energy, uint32_t ppm)
{
    return (uint64_t)((sim_fj)energy * ppm / 1000000);
}

#endif
