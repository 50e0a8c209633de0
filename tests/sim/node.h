/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * node.h - the node at this moment: machine, model, CPU time, registers and
 * clock put together.  One thread.
 *
 * Registers move in steps: they show the energy of the last multiple of the
 * update step.  CPU time is sampled at most once a step, and everything that
 * is asked for within a step sees the same sample.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "common/base/clock.h"
#include "tests/sim/cores.h"
#include "tests/sim/drive.h"
#include "tests/sim/jobs.h"
#include "tests/sim/machine.h"
#include "tests/sim/model.h"
#include "tests/sim/registers.h"

/* The kernel brings CPU time up to date at its ticks, so the power of busy CPUs
 * is a mean over the last one to two of these. */
#define SIM_POWER_NS (50 * JOULE_NS_PER_MS)

struct sim_node {
    const struct joule_clock *clock;
    int64_t start_ns; /* of the clock, when the node began */
    int64_t step_ns;
    struct sim_machine *machine;
    struct sim_model *model;
    struct sim_drive *drive;
    struct sim_registers registers;
    int64_t sampled_step; /* in which cpu_ns was read; -1 never */
    uint64_t cpu_ns;
    struct sim_cores *cores; /* of CPUs with frequencies of their own, or NULL:
                                then the model has the cost of CPU time */
    struct sim_jobs *jobs;   /* or NULL */
    bool own_stat;           /* /proc/stat, also without jobs */
    struct {
        int64_t mono_ns;
        uint64_t cpu_ns;
        sim_fj priced_fj;
    } older, newer;  /* earlier samples, SIM_POWER_NS apart */
    int64_t busy_uw; /* at ref_khz */
    uint64_t khz, ref_khz;
};

/* Takes machine, model and drive: sim_node_clear destroys them. */
void sim_node_init(struct sim_node *node, const struct joule_clock *clock,
                   int64_t step_ns, struct sim_machine *machine,
                   struct sim_model *model, struct sim_drive *drive,
                   uint32_t dram_ppm);
void sim_node_clear(struct sim_node *node);

/* The jobs of the node (taken): each CPU second of them costs what it does at
 * the node's frequency, times the job's intensity. */
void sim_node_set_jobs(struct sim_node *node, struct sim_jobs *jobs);

/* Take in all CPU time that has been used until [mono_ns], which must be now,
 * also within a step. */
void sim_node_update(struct sim_node *node, int64_t mono_ns);

/* The exact energy at [mono_ns] of the clock, which must be now. */
struct sim_energy sim_node_exact(struct sim_node *node, int64_t mono_ns);

/* The part of it that is not the jobs': of the floor, and of cgroups and
 * processes beside them.  t_ns as in sim_energy. */
uint64_t sim_node_floor_nj(const struct sim_node *node, int64_t t_ns);

/* The power at that moment.  The load's part is that of the moment; what CPU
 * time adds is a mean over SIM_POWER_NS or twice as long, or since the node was
 * last asked for anything if that is longer. */
int64_t sim_node_uw(struct sim_node *node, int64_t mono_ns);

/* What the counters are about to show: the energy at the last step. */
struct sim_energy sim_node_stepped(struct sim_node *node);

/* rdmsr on machine->cpus[cpu]: 0, EIO or ENXIO.  APERF, MPERF and the time
 * stamp counter are there once CPUs have frequencies of their own. */
int sim_node_rdmsr(struct sim_node *node, size_t cpu, uint32_t reg,
                   uint64_t *ret_value);

/* From now on a CPU second costs node->busy_uw at node->khz, or at the
 * frequency that its CPU has. */
void sim_node_busy_changed(struct sim_node *node);

/* From now on CPU [number] runs at [khz], and each CPU's time costs what it
 * does at its own frequency.  -1 with errno (ENOENT: no such CPU; ENOTSUP: the
 * node has jobs; that of sim_drive_split) and a sentence. */
int sim_node_cpu_khz(struct sim_node *node, unsigned number, uint64_t khz,
                     struct joule_error *err);

#endif
