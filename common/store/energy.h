/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * energy.h - the energy series of a step, sampled by a thread of its own.
 *
 * The thread reads the step's account at the multiples of the period since the
 * step began, and once more when the step ends, so that the rows cover all
 * of the step's time.  A row is labelled with the moment of its reading; one
 * that comes late by more than a period is taken all the same, and the
 * multiples that were missed are left out.  The columns are those of the
 * energy plugin's own series (doc/hdf5-format.md).
 */
#ifndef JOULE_STORE_ENERGY_H
#define JOULE_STORE_ENERGY_H

#include "common/board/account.h"
#include "common/store/writer.h"

struct joule_energy_series;

struct joule_energy_series_options {
    const struct joule_clock *clock;
    const struct joule_source *source; /* whose domains name the columns */
    struct joule_account *account;     /* begun; the thread's until destroy */
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

/* Take the last row and end the thread.  NULL is a no-op. */
void joule_energy_series_destroy(struct joule_energy_series *series);

#endif
