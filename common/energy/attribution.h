/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * split.h - the energy of one interval among jobs, and a job's among its
 * steps: integer arithmetic, in which nothing is lost and nothing made.
 *
 * See doc/ledger.md for the rules and their reasons.  Defined for all input;
 * 128 bits where needed, no floating point.  Rounded by largest remainder: of
 * those with the same remainder the first one gets the microjoule.
 */
#ifndef JOULE_ENERGY_ATTRIBUTION_H
#define JOULE_ENERGY_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOULE_PARTS_MAX 32   /* of a node: packages or dies */
#define JOULE_JOBS_MAX  1024 /* jobs on a node, steps of a job */

/* CPU time of an interval is cut off above this (104 days). */
#define JOULE_CPU_NS_MAX (UINT64_C(1) << 53)

enum joule_attribution {
    JOULE_ATTRIBUTION_CPUTIME,
    JOULE_ATTRIBUTION_ALLOC,
    JOULE_ATTRIBUTION_NODE,
};

/*
 * Divide [total] by weights (each at most JOULE_CPU_NS_MAX; count at most
 * JOULE_JOBS_MAX + 2) into ret[], whose sum is [total] and of which none is
 * a whole unit or more from its exact value.  false: the weights are all 0,
 * and ret[] is.
 */
bool joule_apportion(uint64_t total, const uint64_t *weight, size_t count,
                     uint64_t *ret);

/* A part of the node's energy. */
struct joule_node_part {
    uint64_t delta_uj; /* of the interval */
    uint64_t idle_uj;  /* idle floor over the interval; cut to delta_uj */
    uint64_t busy_ns;  /* CPU time used on its CPUs, valid if busy_known */
    bool busy_known;
    /* Kept by the caller from interval to interval, 0 at first: CPU time that
     * jobs have used beyond busy_ns; read together they never quite agree. */
    uint64_t debt_ns;
};

/* What a job has on the node, in one interval. */
struct joule_job_use {
    const uint64_t *cpus;    /* bitmap of the splitter's words; NULL: none */
    uint32_t cpu_count;      /* used where the bitmap has no CPU of the node */
    int64_t present_ns;      /* part of the interval that it was there */
    uint64_t cpu_ns;         /* CPU time it is known to have used */
    const uint64_t *part_ns; /* the same in each part; NULL: by its CPUs */
    uint64_t unknown_ns;     /* that it may have used beyond it, at most */
};

/* What a job is charged, all parts together. */
struct joule_job_energy {
    uint64_t idle_uj;      /* by CPUs it has (attribution by CPU time: of the
                               floor, else all of it) */
    uint64_t active_uj;    /* by CPU time */
    uint64_t estimated_ns; /* taken for its CPU time beyond cpu_ns */
    uint64_t other_ns; /* of its cpu_ns, what none of its steps accounts for: 0
                          from joule_attribute, for who calls
                          joule_attribute_steps */
};

struct joule_attribution_rest {
    uint64_t unallocated_uj;
    uint64_t system_uj;
    uint64_t multiple_uj; /* JOULE_ATTRIBUTION_NODE: charged more than once */
};

struct joule_attributor;

/*
 * The CPUs of a node, [words] of 64 each, in [part_count] parts (1 to
 * JOULE_PARTS_MAX): bitmaps one after the other, copied.  A CPU that is in
 * no part is none of the node.  NULL with errno EINVAL or ENOMEM.
 */
struct joule_attributor *joule_attributor_create(size_t words,
                                                 const uint64_t *part_cpus,
                                                 size_t part_count);
void joule_attributor_destroy(struct joule_attributor *s); /* NULL is a no-op */

/* The CPUs of a part. */
uint32_t joule_attributor_cpus(const struct joule_attributor *s, size_t part);

/*
 * Split an interval of [interval_ns] (> 0; a claim's presence is cut to it):
 * afterwards the sum of shares + unallocated + system is the sum of delta_uj +
 * multiple.  That sum must stay below 2^64.  count: at most
 * JOULE_JOBS_MAX.
 */
void joule_attribute(struct joule_attributor *s, enum joule_attribution how,
                     int64_t interval_ns, struct joule_node_part *parts,
                     const struct joule_job_use *claims, size_t count,
                     struct joule_job_energy *ret_shares,
                     struct joule_attribution_rest *ret_rest);

enum joule_step_kind {
    JOULE_STEP_NUMBERED,
    JOULE_STEP_EXTERN,
    JOULE_STEP_OTHER, /* batch, interactive */
};

/* A step of a job, in the interval that was split last. */
struct joule_step_use {
    enum joule_step_kind kind;
    const uint64_t *cpus; /* those it holds, a bitmap of the splitter's words;
                             NULL, or none of its job's: not known */
    uint32_t cpu_count;   /* used where they are not known */
    int64_t present_ns;
    uint64_t cpu_ns;
    bool cpu_unknown;
};

/*
 * The idle energy of a job among its steps: what claim [i] of the last
 * joule_attribute was charged by the CPUs it has, in each part.  A CPU's goes
 * to the numbered steps that hold it, for as long as they were there; what
 * these leave, to the other steps that hold it, but an extern step.  Steps that
 * hold the same CPU share it.  Sets ret_uj[count] and returns what no step
 * holds.
 */
uint64_t joule_attribute_idle(struct joule_attributor *s, size_t i,
                              const struct joule_job_use *claim,
                              const struct joule_step_use *steps, size_t count,
                              uint64_t *ret_uj);

/* The same of all that claim [i] was charged: the idle energy by CPUs, what
 * is above it by CPU time.  What no step holds or accounts for goes to the
 * extern step, else to numbered steps, else to the others.  count from 1 to
 * JOULE_JOBS_MAX.  The sum of ret_uj is idle_uj + active_uj, which must stay
 * below 2^64. */
void joule_attribute_steps(struct joule_attributor *s, size_t i,
                           const struct joule_job_use *claim,
                           const struct joule_job_energy *share,
                           const struct joule_step_use *steps, size_t count,
                           uint64_t *ret_uj);

#endif
