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
 * Each period has a row.  One whose reading comes late is read late; if the
 * thread has been away for longer than a period, the ones that were missed are
 * made up for at twice the rate, up to JOULE_ENERGY_CATCH_UP of them.  Of more
 * than that, only the last is read and the others are counted as missed: rows
 * that lie so near together, so long after their time, say no more than the
 * first of them.  A period of which nothing is known (a BMC that does not
 * answer) has no row, and is counted likewise.
 *
 * Of a step that gets its share alone (JOULE_ENERGY_COLUMNS_STEP, or _ALONE
 * once another job is there), nothing is read but the ledger, and a row ends at
 * each multiple of the period of the node's clock, for all steps of the node at
 * the same moments.  The first row covers one to two periods.  The last, which
 * the step's end makes shorter, has whole joules and no power: with
 * microjoules, steps of any length would show the power of times that are as
 * short.  Within a sample of the ledger the share grows evenly.
 *
 * The step's share is in the rows as row_queue.h says.  For that they wait for
 * the next sample of the ledger, for 20 seconds at most; the last of them is
 * asked for at the end, and carried on as Slurm is told (step_energy.h) where
 * slurmd is away.
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
