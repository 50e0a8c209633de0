/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * steps.h - the steps of the node at each sample: read their CPU times,
 * attribute the interval (step_rows.h), and free the rows of processes that are
 * dead.
 *
 * The parts of the node are its packages if each package has a counter,
 * otherwise the node is one part.  Belongs to one thread at a time (the
 * sampler's).
 */
#ifndef JOULE_DAEMON_STEPS_H
#define JOULE_DAEMON_STEPS_H

#include "common/node/ledger.h"
#include "common/sensors/sensor.h"

struct joule_steps_options {
    const struct joule_sensor *sensor; /* borrowed: its domains */
    int root_fd;                       /* borrowed */
    const char *node;                  /* NodeName; not kept */
    enum joule_attribution attribution;
    uint64_t idle_uw; /* idle power of the node; 0: learned */
};

struct joule_steps;

/* Open the ledger of the node as its writer, and go on with what is in it.  NULL
 * with errno and a sentence: of joule_ledger_create and joule_step_rows_create,
 * or ENOMEM. */
struct joule_steps *joule_steps_create(const struct joule_steps_options *opt,
                                       struct joule_error *err);
void joule_steps_destroy(struct joule_steps *steps); /* NULL is a no-op */

/* The ledger: for the node and its tickets. */
struct joule_ledger *joule_steps_ledger(struct joule_steps *steps);

/* Attribute the energy up to a snapshot, which is staged in the ledger, and
 * publish.  Without a valid total there is nothing to attribute.  Returns the
 * totals, which live until the next call, or NULL. */
const struct joule_ledger_totals *
joule_steps_sample(struct joule_steps *steps,
                   const struct joule_snapshot *snapshot);

/* What the log should say of jobs; 0: nothing. */
struct joule_steps_remarks {
    bool is_spoiled;       /* the rows made no sense, and began anew */
    uint32_t stray_job;    /* a job that used CPU time without a step */
    uint32_t foreign_job;  /* a job with groups that Slurm has not made, */
    size_t foreign_groups; /* and how many */
};

struct joule_steps_remarks joule_steps_remarks(const struct joule_steps *steps);

/* The rows as published with the last sample, by slot. */
const struct joule_row *joule_steps_rows(const struct joule_steps *steps,
                                         size_t *ret_count);

#endif
