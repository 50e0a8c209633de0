/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attribution.h - divide the energy of one interval among jobs, and the energy
 * of a job among its steps, in whole microjoules.
 *
 *     a = joule_attributor_create(words, part_cpus, part_count);
 *     joule_attribute(a, how, interval_ns, parts, jobs, count, energies, &rest);
 *     joule_attribute_steps(a, i, &jobs[i], &energies[i], steps, n, step_uj);
 *     joule_attributor_destroy(a);
 *
 * The sum of the results is always the sum of the input.  All input is defined;
 * 128-bit integers where needed, no floating point.  Rounding is by largest
 * remainder: of equal remainders the first one gets the microjoule.  Rules and
 * reasons: doc/architecture.md.
 */
#ifndef JOULE_ENERGY_ATTRIBUTION_H
#define JOULE_ENERGY_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOULE_PARTS_MAX 32   /* of a node: packages or dies */
#define JOULE_JOBS_MAX  1024 /* jobs on a node, steps of a job */

/* What energy can be told apart by, beside the rest (fans, boards, disks, losses). */
enum joule_component {
    JOULE_COMPONENT_CPU,
    JOULE_COMPONENT_MEMORY,
    JOULE_COMPONENTS
};

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

/*
 * Of [uj], which are some of [whole_uj], what is of each component, if it is made
 * as the whole is, which has [component_uj] of them, in sum no more than itself;
 * added to ret_uj.  Rounded as a whole: of [uj] nothing is lost to the rest.
 */
void joule_divide_components(uint64_t uj, uint64_t whole_uj,
                             const uint64_t *component_uj, uint64_t *ret_uj);

/* A part of the node's energy. */
struct joule_node_part {
    uint64_t delta_uj; /* of the interval */
    uint64_t idle_uj;  /* idle energy of the interval; cut to delta_uj */
    uint64_t component_uj[JOULE_COMPONENTS]; /* of delta_uj; in sum no more */
    uint64_t busy_ns; /* CPU time used on its CPUs, valid if busy_known */
    bool busy_known;
    /* Kept by the caller from interval to interval, 0 at first: CPU time that
     * jobs have used beyond busy_ns; read together they never quite agree. */
    uint64_t debt_ns;
};

/* What a job has of the node, in one interval. */
struct joule_job_use {
    const uint64_t *cpus;    /* bitmap of the attributor's words; NULL: none */
    uint32_t cpu_count;      /* used where the bitmap has no CPU of the node */
    int64_t present_ns;      /* how long of the interval it was there */
    uint64_t cpu_ns;         /* CPU time it is known to have used */
    const uint64_t *part_ns; /* the same in each part; NULL: by its CPUs */
    uint64_t unknown_ns;     /* that it may have used beyond it, at most */
};

/* The energy of a job, all parts together. */
struct joule_job_energy {
    uint64_t idle_uj;                        /* by its CPUs: idle energy, with
                              JOULE_ATTRIBUTION_ALLOC and _NODE all energy */
    uint64_t active_uj;                      /* by CPU time */
    uint64_t component_uj[JOULE_COMPONENTS]; /* of both: as in the parts */
    uint64_t estimated_ns; /* CPU time estimated beyond cpu_ns */
    uint64_t other_ns;     /* CPU time within cpu_ns that belongs to none of its
                              steps: joule_attribute sets 0, the caller may set it
                              for joule_attribute_steps */
};

/* The energy that belongs to no job. */
struct joule_attribution_rest {
    uint64_t unallocated_uj; /* idle energy of CPUs that no job has */
    uint64_t system_uj;      /* CPU time that no job used */
    uint64_t multiple_uj; /* JOULE_ATTRIBUTION_NODE: attributed twice or more */
};

struct joule_attributor;

/*
 * [part_cpus] are [part_count] bitmaps (1 to JOULE_PARTS_MAX) of [words] 64-bit
 * words, one after the other: the CPUs of each part, copied.  A CPU in no part
 * is not a CPU of the node.  NULL with errno EINVAL or ENOMEM.
 */
struct joule_attributor *joule_attributor_create(size_t words,
                                                 const uint64_t *part_cpus,
                                                 size_t part_count);
void joule_attributor_destroy(struct joule_attributor *s); /* NULL is a no-op */

/* How many CPUs a part has. */
uint32_t joule_attributor_cpus(const struct joule_attributor *s, size_t part);

/*
 * Divide an interval of [interval_ns] > 0 among up to JOULE_JOBS_MAX jobs; a
 * job's present_ns is cut to the interval.  Afterwards sum of idle_uj +
 * active_uj of all jobs + unallocated_uj + system_uj = sum of delta_uj of all
 * parts + multiple_uj, which must stay below 2^64.
 */
void joule_attribute(struct joule_attributor *s, enum joule_attribution how,
                     int64_t interval_ns, struct joule_node_part *parts,
                     const struct joule_job_use *jobs, size_t count,
                     struct joule_job_energy *ret_energies,
                     struct joule_attribution_rest *ret_rest);

enum joule_step_kind {
    JOULE_STEP_NUMBERED,
    JOULE_STEP_EXTERN,
    JOULE_STEP_OTHER, /* batch, interactive */
};

/* What a step has of its job, in the interval of the last joule_attribute. */
struct joule_step_use {
    enum joule_step_kind kind;
    const uint64_t *cpus; /* bitmap of the attributor's words; NULL, or without
                             a CPU of the job: not known */
    uint32_t cpu_count;   /* used where the CPUs are not known */
    int64_t present_ns;
    uint64_t cpu_ns;
    bool cpu_unknown;
};

/*
 * Divide the energy of job [i] of the last joule_attribute among its steps,
 * [count] of them (1 to JOULE_JOBS_MAX).  The idle energy of a CPU goes to the
 * numbered steps that hold it, for as long as they run; the remainder to batch
 * and interactive steps that hold it; steps that hold the same CPU get equal
 * parts.  Active energy goes by CPU time.  What belongs to no step goes to the
 * extern step, without one to the numbered steps, without these to the others.
 * The sum of ret_uj is idle_uj + active_uj, which must stay below 2^64.
 */
void joule_attribute_steps(struct joule_attributor *s, size_t i,
                           const struct joule_job_use *job,
                           const struct joule_job_energy *energy,
                           const struct joule_step_use *steps, size_t count,
                           uint64_t *ret_uj);

#endif
