/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger.h - the file of a node, /run/slurm-joule/<NodeName>/ledger: the node's
 * total and the state of its sensor, a row for each step with what it has been
 * charged, and the registrations and tickets of steps.
 *
 *     l = joule_ledger_create(root_fd, node, words, &err);   slurmd
 *     joule_ledger_stage_node(l, &snapshot, state);
 *     joule_ledger_stage(l, slot, &row);
 *     joule_ledger_publish(l, &totals);
 *
 *     l = joule_ledger_open(root_fd, node, &err);            everybody else
 *     joule_ledger_register(l, ...); joule_ledger_ask(l, timeout_ns);
 *     joule_ledger_read_node(l, &snapshot, NULL); joule_ledger_read_row(l, ...);
 *
 * One writer (its process stands in the file and keeps a second one out), any
 * number of processes that register, ask and read.  Nobody waits for a lock.
 * Of all that is published there are two versions and a generation: the writer
 * fills the one that is not published and then publishes it, so that a writer
 * killed at any instruction leaves the last whole publication behind.  The file
 * outlives its writer: a restarted slurmd goes on with it.
 *
 * The file and its directory belong to the effective user (root) and nobody
 * else may read them: the numbers are finer than users may see (CVE-2020-8694).
 *
 * A handle belongs to one thread at a time, but for joule_ledger_read_node and
 * joule_ledger_wake.
 */
#ifndef JOULE_NODE_LEDGER_H
#define JOULE_NODE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"
#include "common/energy/attribution.h"
#include "common/energy/idle_power.h"
#include "common/energy/node_total.h"
#include "common/energy/sensor_state.h"

#define JOULE_LEDGER_SLOTS_MAX 1024
#define JOULE_LEDGER_STEPS_MAX 768 /* of them, without extern steps */
#define JOULE_LEDGER_USER_MAX  512 /* of those, of one user */
#define JOULE_LEDGER_SEGMENT   64  /* slots that are added at a time */
#define JOULE_LEDGER_PATH_MAX  128 /* with the NUL */
#define JOULE_LEDGER_WORDS_MAX 128 /* of CPU bitmaps: 8192 CPUs */

/* The node at a sample: plain data, a whole number of 64-bit words. */
struct joule_snapshot {
    int64_t wall_ns;     /* label of total.mono_ns */
    int64_t since_ns;    /* monotonic: since when the total counts */
    int64_t period_ns;   /* of the sampler */
    uint64_t samples;    /* taken since the total began */
    uint64_t average_mw; /* node_uj over the time since since_ns, or
                            JOULE_MW_UNKNOWN */
    struct joule_node_total
        total; /* last: only total.count domains are copied */
};

/* A step, as its slurmstepd registers it.  With it come two bitmaps of
 * joule_ledger_words: the CPUs that its job has on this node, and those of them
 * that the step has; empty if they are not known. */
struct joule_registration {
    uint64_t owner; /* the process: process.h; never 0 */
    uint32_t job, step, uid;
    uint32_t kind;                    /* enum joule_step_kind */
    uint32_t cpu_count;               /* of the step */
    uint32_t job_cpu_count;           /* of the job on this node */
    int64_t began_ns;                 /* joule_clock_mono_ns */
    int64_t ended_ns;                 /* 0: it has not */
    char path[JOULE_LEDGER_PATH_MAX]; /* of its cgroup, as /proc/PID/cgroup
                                         has it; "": not known */
};

/* Power in rows is the mean over so much time at least: two samples may be nearer
 * than a counter's own quantum. */
#define JOULE_LEDGER_POWER_NS INT64_C(250000000)

enum joule_row_state {
    JOULE_ROW_NONE,
    JOULE_ROW_RUNNING,
    JOULE_ROW_ENDED, /* charged to its end: uj is final */
};

#define JOULE_CPU_UNKNOWN UINT64_MAX

/* Plain data, a whole number of 64-bit words. */
struct joule_row {
    uint64_t owner; /* as in its registration; 0: there is no row */
    uint32_t job, step, uid;
    uint16_t kind, state;
    uint32_t cpu_count, job_cpu_count;
    int64_t began_ns, ended_ns; /* ended_ns 0: it has not */
    uint64_t uj;                /* energy of this step, never falls */
    uint64_t components; /* that were measured apart: 1 << joule_component */
    uint64_t component_uj[JOULE_COMPONENTS]; /* of uj */
    uint64_t job_uj; /* energy of its job, since the job's first row; the same
                        in all of its rows that have not ended */
    uint32_t mw, job_mw; /* mean of JOULE_LEDGER_POWER_NS or a little more */
    uint64_t cpu_ns;     /* the counter at the last sample; JOULE_CPU_UNKNOWN:
                            it could not be read */
    uint64_t job_cpu_ns; /* the same of the job's group */
    uint64_t stepd_ns;   /* slurmstepd's, where the job's counter includes it */
    uint32_t backwards;  /* times that the counter went back */
    uint32_t unknown;    /* intervals in which CPU time was not known */
};

struct joule_ledger_part {
    uint64_t uj;                             /* its energy at the last sample */
    uint64_t component_uj[JOULE_COMPONENTS]; /* and that of its components */
    uint64_t busy_ns;    /* CPU time of its CPUs at the last sample */
    uint64_t busy_known; /* 1: busy_ns is set */
    uint64_t debt_ns;    /* attribution.h */
    struct joule_idle_power idle_power;
};

/* Plain data.  jobs + unallocated + system = charged + multiple, and jobs = sum
 * of the rows + gone. */
struct joule_ledger_totals {
    int64_t mono_ns;       /* of the last interval's end; 0: none yet */
    int64_t begun_ns;      /* of the first interval's begin */
    uint64_t charged_uj;   /* energy of the node in between */
    uint64_t node_uj;      /* node total at mono_ns */
    int64_t node_since_ns; /* when that total began */
    uint64_t jobs_uj, unallocated_uj, system_uj, multiple_uj;
    uint64_t gone_uj; /* of jobs_uj, that of rows that have gone */
    uint64_t intervals;
    uint64_t node_mw;   /* as in the rows */
    uint64_t faults;    /* intervals in which the identity did not hold */
    uint64_t backwards; /* as in the rows, of all rows there were */
    uint64_t unknown;
    uint64_t refused;    /* registrations that made no sense, at each sample */
    uint64_t surplus;    /* steps that were refused a slot: EDQUOT */
    uint64_t foreign;    /* jobs with groups that Slurm has not made */
    uint64_t stray_ns;   /* CPU time of jobs that had no step */
    uint64_t part_key;   /* tells one set of parts from another */
    uint64_t sensor_key; /* and the sensors that the node total is made of, of
                            which the idle power is; 0: not told */
    uint64_t how; /* enum joule_attribution + 1: by which rule; 0: not said */
    uint64_t components; /* that part[].component_uj has: as in the rows */
    uint64_t part_count;
    struct joule_ledger_part part[JOULE_PARTS_MAX]; /* last: only part_count
                                                       of them are copied */
};

struct joule_ledger;

/*
 * Open the ledger of [node] below root_fd for writing, for bitmaps of at least
 * [words] (1 to JOULE_LEDGER_WORDS_MAX); it and its directory are made where
 * missing.  A file of this boot and version with room for so many CPUs or more
 * is continued; any other is replaced, and processes that have the old one open
 * get no answer any more.  Where only the room was too little, the node goes on
 * in the new file, and the rows do not.  On failure the old file stays.  NULL
 * with errno and a sentence:
 *   EINVAL      [words], or [node] is empty, too long, or holds '/' or starts
 *               with '.'
 *   EWOULDBLOCK the process that writes it lives
 *   EPERM       a symbolic link, another owner, others may write
 *   ENOSPC, or of the file system
 */
struct joule_ledger *joule_ledger_create(int root_fd, const char *node,
                                         size_t words, struct joule_error *err);

/* The same for registering and reading.  ENOENT: no sampler has run, ESTALE:
 * the file is of another boot or version.  Where it may be read but not
 * written, registering and asking fail with EACCES. */
struct joule_ledger *joule_ledger_open(int root_fd, const char *node,
                                       struct joule_error *err);

/* NULL is a no-op; errno is kept.  The file stays.  In a child of fork, which
 * has nothing mapped, the ledger is good for this alone. */
void joule_ledger_destroy(struct joule_ledger *ledger);

/* Of its bitmaps: the writer may have asked for fewer. */
size_t joule_ledger_words(const struct joule_ledger *ledger);

/* Slots in the file now: 0 to JOULE_LEDGER_SLOTS_MAX, never fewer than before. */
size_t joule_ledger_slots(struct joule_ledger *ledger);

/* No slot from this number on is taken at this moment.  Steps take the first free
 * slot, so this is little more than the number of steps. */
size_t joule_ledger_taken(struct joule_ledger *ledger);

/* -- registrations ------------------------------------------------------ */

/*
 * Register a step: take a free slot (one whose row waits for its last interval
 * only if there is no other), or else one of a process that is dead (looked up
 * in proc below root_fd).  -1 with a sentence: EACCES, EINVAL
 * (what joule_ledger_registered would refuse), EDQUOT (no extern step, and its
 * job has as many slots as would be left free, or its user
 * JOULE_LEDGER_USER_MAX), ENOSPC (JOULE_LEDGER_SLOTS_MAX steps live, or /run is
 * full).
 */
int joule_ledger_register(struct joule_ledger *ledger, int root_fd,
                          const struct joule_registration *r,
                          const uint64_t *job_cpus, const uint64_t *step_cpus,
                          unsigned *ret_slot, struct joule_error *err);

/* Count a step that has no slot for EDQUOT, and how many there were. */
void joule_ledger_add_surplus(struct joule_ledger *ledger);
uint64_t joule_ledger_surplus(struct joule_ledger *ledger);

/* The tasks of the step begin: the node's load changes. */
void joule_ledger_begin_tasks(struct joule_ledger *ledger, unsigned slot,
                              uint64_t owner, int64_t ns);

/* When the tasks of a step began or ended last, on the whole node, not later
 * than [by_ns]; 0: not known. */
int64_t joule_ledger_last_edge(struct joule_ledger *ledger, int64_t by_ns);

/* The step has ended; it stays registered. */
void joule_ledger_end(struct joule_ledger *ledger, unsigned slot,
                      uint64_t owner, int64_t ended_ns);

/* Note the CPU time that the step has used up to now, for a sampler that was away
 * and comes when the step has let go. */
void joule_ledger_report_cpu(struct joule_ledger *ledger, unsigned slot,
                             uint64_t owner, uint64_t cpu_ns);

/* Free the slot, if it still is [owner]'s. */
void joule_ledger_release(struct joule_ledger *ledger, unsigned slot,
                          uint64_t owner);

/* Free the slot if its process is dead.  true: it was.  Where the ledger may not
 * be written it is not freed. */
bool joule_ledger_sweep(struct joule_ledger *ledger, int root_fd,
                        unsigned slot);

/*
 * Copy what is registered in a slot; the bitmaps may be NULL.  -1 with ENOENT:
 * nothing; EBADMSG: what is there makes no sense.
 */
int joule_ledger_registered(struct joule_ledger *ledger, unsigned slot,
                            struct joule_registration *ret,
                            uint64_t *ret_job_cpus, uint64_t *ret_step_cpus);

/* Whose registration is in a slot; 0: nobody's. */
uint64_t joule_ledger_owner_of(struct joule_ledger *ledger, unsigned slot);

/* When [owner]'s step ended, also after it freed the slot; 0: unknown. */
int64_t joule_ledger_ended(struct joule_ledger *ledger, unsigned slot,
                           uint64_t owner);

/* The CPUs that [owner] registered, also after it freed the slot.  -1 with
 * ENOENT: the slot has been another's since. */
int joule_ledger_cpus_of(struct joule_ledger *ledger, unsigned slot,
                         uint64_t owner, uint64_t *ret_job_cpus,
                         uint64_t *ret_step_cpus);

/* What [owner] has reported, also after it freed the slot; or
 * JOULE_CPU_UNKNOWN. */
uint64_t joule_ledger_reported_cpu(struct joule_ledger *ledger, unsigned slot,
                                   uint64_t owner);

/* -- rows --------------------------------------------------------------- */

/* The writer: prepare a row (owner 0: the slot has none any more) for the next
 * publication. */
void joule_ledger_stage(struct joule_ledger *ledger, unsigned slot,
                        const struct joule_row *row);

/* The writer: the same for the node and the state of its sensor. */
void joule_ledger_stage_node(struct joule_ledger *ledger,
                             const struct joule_snapshot *snapshot,
                             const struct joule_sensor_state *state);

/* The writer: publish what is staged, with [totals] (NULL: as before). */
void joule_ledger_publish(struct joule_ledger *ledger,
                          const struct joule_ledger_totals *totals);

/* -- the node ----------------------------------------------------------- */

/* Number of the last publication; 0: there is none.  Costs one load. */
uint64_t joule_ledger_generation(const struct joule_ledger *ledger);

/* Copy the node, and the state of its sensor (may be NULL), of one publication.
 * -1 with ENODATA (none is published) or EBADMSG.  Any thread. */
int joule_ledger_read_node(const struct joule_ledger *ledger,
                           struct joule_snapshot *ret_snapshot,
                           struct joule_sensor_state *ret_state);

/*
 * Copy totals and rows of one publication; rows may be NULL, else rows[i] is
 * that of slot i, *count in: at most so many, out: so many slots there are.
 * -1 with ENODATA (no interval has been attributed) or EBADMSG.
 */
int joule_ledger_read(struct joule_ledger *ledger,
                      struct joule_ledger_totals *ret_totals,
                      struct joule_row *ret_rows, size_t *count);

/* One row, and the time of its sample.  -1 with ENOENT: [owner] has none. */
int joule_ledger_read_row(struct joule_ledger *ledger, unsigned slot,
                          uint64_t owner, struct joule_row *ret_row,
                          int64_t *ret_mono_ns);

/* -- fresh samples ------------------------------------------------------ */

/* Take a ticket for a sample that begins now, and wait for its publication.  -1
 * with ETIMEDOUT (no answer in time), EACCES. */
int joule_ledger_ask(struct joule_ledger *ledger, int64_t timeout_ns);

/* The sampler: the newest ticket.  A sample that begins after this call answers
 * it. */
uint32_t joule_ledger_asked(struct joule_ledger *ledger);

/* Sleep until a ticket beyond [answered] is asked for, joule_ledger_wake is
 * called or [timeout_ns] have passed.  true: there is one. */
bool joule_ledger_wait(struct joule_ledger *ledger, uint32_t answered,
                       int64_t timeout_ns);
void joule_ledger_wake(struct joule_ledger *ledger);

/* After the publication: all tickets up to [ticket] are answered. */
void joule_ledger_answer(struct joule_ledger *ledger, uint32_t ticket);

#endif
