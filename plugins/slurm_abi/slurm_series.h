/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slurm_series.h - the energy series of a profiled step, by Slurm's own timer:
 * the columns of common/step/energy_columns.h, given to the configured profile
 * plugin.
 */
#ifndef JOULE_SLURM_ABI_SLURM_SERIES_H
#define JOULE_SLURM_ABI_SLURM_SERIES_H

#include <stdbool.h>
#include <time.h>

#include "common/step/node_energy.h"
#include "common/step/energy_columns.h"
#include "common/step/step_energy.h"

struct joule_slurm_series;

/* NULL with errno ENOMEM. */
struct joule_slurm_series *
joule_slurm_series_create(const struct joule_sensor *sensor,
                          enum joule_energy_columns_of of);
void joule_slurm_series_destroy(struct joule_slurm_series *series);

/* Whether a sample is worth taking: not where there is no such series, nor
 * where joule_hdf5 takes its own. */
bool joule_slurm_series_wanted(struct joule_slurm_series *series);

/* Give the sample to the configured profile plugin; [share] as in
 * energy_columns.h. */
void joule_slurm_series_add(
    struct joule_slurm_series *series,
    const struct joule_node_energy_reading *reading,
    const struct joule_step_energy_reading *step_reading, time_t sample_time);

/*
 * The same of a job that shares the node: nothing but its share.  Samples of
 * the ledger come when any step begins or ends, too: one that is less than a
 * second (or a little less) newer than the one that was shown last, or than the
 * step's beginning, is not shown, and the row's power is not known.
 */
void joule_slurm_series_add_step(
    struct joule_slurm_series *series,
    const struct joule_step_energy_reading *step_reading, time_t sample_time);

#endif
