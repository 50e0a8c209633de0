/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fusednode.h - a node with random jobs, its wattmeter, its RAPL and its BMC,
 * with a clock of its own, and the energy of each job by each of them; the
 * fused figure is that of common/energy/fused.h.
 *
 * What the node draws is that of nodeload.h.  RAPL is two counters of 32 bits,
 * read about once a second and when a job begins or ends; the BMC is read about
 * once a second, at other times.
 */
#ifndef JOULE_TESTS_FUSEDNODE_H
#define JOULE_TESTS_FUSEDNODE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/energy/fused.h"
#include "common/sensors/sensor.h"
#include "tests/unit/nodeload.h"

struct fake;

enum fused_lag { FUSED_NONE, FUSED_FIRST, FUSED_BOXCAR, FUSED_HOLD };

struct fused_bmc {
    const char *name;
    enum fused_lag lag;
    double seconds; /* constant, width, or how long a value is held */
    double delay_s;
    double scale; /* of what it reads; 1: right */
};

enum { FUSED_LENGTHS = 5, FUSED_JOBS = 4096 };

/* Errors in percent of the wattmeter. */
struct fused_errors {
    unsigned count;
    double fused[FUSED_JOBS], bmc[FUSED_JOBS], rapl[FUSED_JOBS];
};

struct fused_node {
    /* set by the test */
    struct fused_bmc bmc;
    double step_w;         /* of the BMC's reading */
    double noise_w;        /* of it, standard deviation */
    double lost;           /* part of the readings that never come */
    bool bmc_away;         /* none comes */
    int rapl_error;        /* that the first counter answers with; 0: none */
    struct node_load load; /* of it the accelerator */

    /* the state of it */
    struct fake *counters; /* RAPL */
    struct joule_sensor *sensor;
    struct joule_node_total rapl;
    struct joule_fused_state state;
    struct joule_fused_interval interval; /* the last one */
    struct joule_power power;             /* that has not been used yet */
    bool has_power;
    double next_bmc_s;
    double node_j, fused_j, bmc_j, rapl_j;
    double bmc_w, read_w, next_tick_s;
    double past_w[1 << 11], lagged_w, held_w, next_held_s;
    uint64_t past;
    double job_end_s, begun_s, begun_j[4];
    int length; /* of the job that runs; -1: none */

    double checked_from_s; /* jobs that begin earlier are not counted */
    struct fused_errors errors[FUSED_LENGTHS];
};

extern const int fused_lengths[FUSED_LENGTHS]; /* s */

/* The time at which it begins. */
#define FUSED_BEGIN_NS INT64_C(1000000000000)
#define FUSED_GAP_NS   INT64_C(3000000000)

/* A node with a BMC; the rest of what a test sets is 0 and its own.  Where
 * there is no memory the program ends. */
void fused_node_init(struct fused_node *n, const struct fused_bmc *bmc,
                     uint64_t seed);
void fused_node_clear(struct fused_node *n);

int64_t fused_node_ns(const struct fused_node *n);

/* Another process goes on with what this one has published. */
void fused_node_restart(struct fused_node *n);

/* Time passes. */
void fused_node_run(struct fused_node *n, double seconds);

/* The same without a job. */
void fused_node_rest(struct fused_node *n, double seconds);

struct fused_summary {
    double mean, p95, most;
};

/* Of values in percent, which are sorted. */
struct fused_summary fused_summary(double *values, unsigned count);

#endif
