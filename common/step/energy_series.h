/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * energy_series.h - the energy series of a step, sampled by a thread of its
 * own.
 *
 * The thread reads at the multiples of the period since the step began, and
 * once more when the step ends, so that the rows cover all of the step's time.
 * The columns are those of the energy plugin's own series (doc/hdf5-format.md).
 * A row is labelled with the moment of its reading.
 *
 * Each period has a row.  If the thread comes late by more than a period, it
 * makes up for missed rows at twice the rate, up to JOULE_ENERGY_CATCH_UP of
 * them.  Of more, only the last is read, and the others are counted as missed: so
 * long after their time they would say nothing.  A period in which the node's
 * power is not known has no row, and is counted, too.
 *
 * A job that shares its node (JOULE_ENERGY_COLUMNS_STEP, or _ALONE once another
 * job is there) gets the step's columns alone.  Its rows end at multiples of the
 * period of the node's clock, at the same moments for all steps of the node, and
 * nothing but the ledger is read for them.  The first row covers one to two
 * periods.  The last one is shorter: it has whole joules and no power, because
 * microjoules of steps of any length would show the power of times as short.
 * Within a sample of the ledger the energy grows evenly.
 *
 * For the step's columns (row_queue.h) rows wait for the next sample of the
 * ledger, 20 seconds at most.  The last sample is asked for at the end; where
 * slurmd is away, it is carried on as for Slurm (step_energy.h).
 */
#ifndef JOULE_STEP_ENERGY_SERIES_H
#define JOULE_STEP_ENERGY_SERIES_H

#include "common/step/node_energy.h"
#include "common/step/energy_columns.h"
#include "common/profile/writer.h"

/* Periods. */
#define JOULE_ENERGY_CATCH_UP 4

struct joule_energy_series;

struct joule_energy_series_options {
    const struct joule_clock *clock;
    const struct joule_sensor *sensor; /* whose domains name the columns */
    struct joule_node_energy
        *node_energy; /* begun; the thread's until destroy */
    struct joule_step_energy *step_energy; /* the same: the step's share; NULL:
                                  the series   has no such columns */
    /* NODE without step_energy, and only then.  ALONE: if the job turns out to
     * have the node alone when the step is registered, else STEP. */
    enum joule_energy_columns_of columns;
    uint32_t job; /* the step's: all others hide the node */
    struct joule_writer *writer;
    int64_t sample_period_ns; /* slurmd's, which a step's share has at best */
    int64_t period_ns;
    /* Where period_ns is 0: asked once, a second after the beginning; 0: there
     * is no series. */
    int64_t (*ask_period_ns)(void);
};

/* All is borrowed until destroy.  NULL with errno ENOMEM or what
 * pthread_create gave. */
struct joule_energy_series *
joule_energy_series_create(const struct joule_energy_series_options *opt);

/* The process is in the cgroups that it stays in: the thread may take
 * real-time priority (joule_pace_hurry).  Any thread. */
void joule_energy_series_launched(struct joule_energy_series *series);

/* Take the last row and end the thread.  NULL is a no-op. */
void joule_energy_series_destroy(struct joule_energy_series *series);

#endif
