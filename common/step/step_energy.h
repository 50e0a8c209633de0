/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * step_energy.h - the energy of a step, from its row in the ledger: what
 * slurmstepd does with the ledger.
 *
 *     s = joule_step_energy_create(&clock, root_fd, node, &registration, ...);
 *     joule_step_energy_begin_tasks(s);
 *     joule_step_energy_read(s, &reading, &err);        polls
 *     joule_step_energy_end(s);
 *     joule_step_energy_read_now(s, &reading, &err);    the last figure
 *     joule_step_energy_destroy(s);
 *
 * While slurmd is away the row stands still: the reading is carried on with the
 * power of the row.  When slurmd is back, a step's figure does not fall; an
 * extern step's is the job's figure in the ledger, which may be less than what
 * was carried on, because steps have ended meanwhile.  Where there is no ledger
 * yet, each reading tries again.
 *
 * Belongs to one thread at a time.  See doc/architecture.md.
 */
#ifndef JOULE_STEP_STEP_ENERGY_H
#define JOULE_STEP_STEP_ENERGY_H

#include "common/base/clock.h"
#include "common/node/ledger.h"

/* The longest wait for a sample that was asked for. */
#define JOULE_STEP_ENERGY_WAIT_NS (50 * JOULE_NS_PER_MS)

/* The longest time that a row is carried on. */
#define JOULE_STEP_ENERGY_CARRY_NS (300 * JOULE_NS_PER_S)

struct joule_step_energy;

struct joule_step_energy_reading {
    int64_t mono_ns;    /* up to when energy is attributed, or carried on */
    int64_t elapsed_ns; /* since the step began */
    uint64_t used_uj;   /* the step's, never falls; of an extern step its
                           job's, because Slurm takes it for that, which
                           falls at most by what was carried on */
    uint64_t mw;        /* power of the same, now */
    uint64_t
        average_mw; /* since it began; JOULE_MW_UNKNOWN in the first 5 ms */
    bool carried;   /* carried on: slurmd is away */
};

/*
 * Register the step in the ledger of [node] below root_fd (duplicated), and
 * wait for the sample in which it begins.  owner, began_ns and ended_ns of [r]
 * are filled in here: this process, and now.  The bitmaps have [words] of 64:
 * what is beyond the ledger's words is cut off.  NULL with ENOMEM; a ledger
 * that is not there, or full, is tried again at each reading.  A step that is
 * one too many of its job (EDQUOT) stays without a row: a part of its energy
 * would be taken for all of it.
 */
struct joule_step_energy *
joule_step_energy_create(const struct joule_clock *clock, int root_fd,
                         const char *node, const struct joule_registration *r,
                         const uint64_t *job_cpus, const uint64_t *step_cpus,
                         size_t words);

/* Figures are those of the whole node since the first reading, as the step's job
 * is charged them: for JouleAttribution=node. */
void joule_step_energy_count_node(struct joule_step_energy *step_energy);

/*
 * The row of the step that this process has registered, or will register, for
 * another thread of the process.  It cannot end the step.  NULL with ENOMEM.
 */
struct joule_step_energy *
joule_step_energy_watch(const struct joule_clock *clock, int root_fd,
                        const char *node);

/* The energy up to the last sample; asks for none.  -1 with a sentence: ENODATA
 * (the energy of the node is not known), or why the step cannot be registered
 * (ENOENT: not yet; EDQUOT: it never will be). */
int joule_step_energy_read(struct joule_step_energy *step_energy,
                           struct joule_step_energy_reading *ret,
                           struct joule_error *err);

/* The energy up to now: take a ticket, and wait for its sample for
 * JOULE_STEP_ENERGY_WAIT_NS at most; if none comes, the row is carried on.
 * ENODATA also if slurmd answers, but no longer knows the node's energy. */
int joule_step_energy_read_now(struct joule_step_energy *step_energy,
                               struct joule_step_energy_reading *ret,
                               struct joule_error *err);

/* Take a ticket, and wait for its sample for [wait_ns] at most.  -1: none came,
 * or the step is not registered. */
int joule_step_energy_ask(struct joule_step_energy *step_energy,
                          int64_t wait_ns);

/* Wait for [wait_ns] at most until no other step of this job runs on the node.
 * -1 with ETIMEDOUT: one still does. */
int joule_step_energy_await_others(struct joule_step_energy *step_energy,
                                   int64_t wait_ns);

/* Whether the step is registered by now. */
bool joule_step_energy_is_registered(struct joule_step_energy *step_energy);

/* Whether the job of the step has the node alone: it was given all online CPUs,
 * and there is no other job now.  false also before the step is registered, and
 * where it is not known. */
bool joule_step_energy_is_alone(struct joule_step_energy *step_energy);

/* Whether a step of another job than [job] runs on the node; also before the
 * step is registered.  true where it is not known. */
bool joule_step_energy_has_other_job(struct joule_step_energy *step_energy,
                                     uint32_t job);

/* Note the CPU time that the step has used up to now, for a slurmd that is away
 * until the step is over. */
void joule_step_energy_report_cpu(struct joule_step_energy *step_energy,
                                  uint64_t cpu_ns);

/* The step's tasks are about to run: the load of the node changes now. */
void joule_step_energy_begin_tasks(struct joule_step_energy *step_energy);

/* The step ends now: later energy is not its own.  Further calls do nothing. */
void joule_step_energy_end(struct joule_step_energy *step_energy);

/* End the step if it has not ended, wait for the sample, and let go of the slot.
 * NULL is a no-op. */
void joule_step_energy_destroy(struct joule_step_energy *step_energy);

#endif
