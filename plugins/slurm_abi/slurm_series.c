/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/slurm_series.h"

#include <math.h>
#include <stdlib.h>

#include "plugins/slurm_abi/slurm_abi.h"

/* Slurm's timer signals twice at the start; an interval this short says
 * nothing about power. */
#define INTERVAL_MIN_NS (5 * JOULE_NS_PER_MS)

/* The shortest time whose energy a job that shares the node is shown: a second,
 * less what a sample of each second may come early. */
#define SHARED_MIN_NS (900 * JOULE_NS_PER_MS)

struct joule_slurm_series {
    struct joule_energy_columns *columns;
    bool tried; /* to make the data set; then dataset says how it went */
    int dataset;
    int64_t before_ns;
    /* of the step, as it was shown last */
    int64_t shown_ns;
    uint64_t shown_uj;
};

struct joule_slurm_series *
joule_slurm_series_create(const struct joule_sensor *sensor,
                          enum joule_energy_columns_of of)
{
    struct joule_slurm_series *series = calloc(1, sizeof(*series));

    if (!series)
        return NULL;
    series->columns = joule_energy_columns_create(sensor, of);
    if (series->columns)
        return series;
    free(series);
    return NULL;
}

void joule_slurm_series_destroy(struct joule_slurm_series *series)
{
    if (!series)
        return;
    joule_energy_columns_destroy(series->columns);
    free(series);
}

static void make_dataset(struct joule_slurm_series *series)
{
    acct_gather_profile_dataset_t *fields;
    const struct joule_energy_column *columns;
    size_t count, i;

    series->tried = true;
    series->dataset = -1;
    columns = joule_energy_columns_list(series->columns, &count);
    fields = calloc(count + 1, sizeof(*fields)); /* the last: none */
    if (fields) {
        for (i = 0; i < count; i++) {
            fields[i].name = (char *)columns[i].name;
            fields[i].type = columns[i].is_double ? JOULE_PROFILE_FIELD_DOUBLE
                                                  : JOULE_PROFILE_FIELD_UINT64;
        }
        series->dataset = acct_gather_profile_g_create_dataset(
            "Energy", JOULE_PROFILE_NO_PARENT, fields);
    }
    free(fields);
    if (series->dataset < 0)
        slurm_error("slurm-joule: the profile plugin refuses the energy "
                    "series; this step has none");
}

/* slurmstepd of 22.05 ends the profile with a lock for which the functions of a
 * profile wait from then on, and waits for its energy thread: that must not
 * call them any more. */
static bool is_running(void)
{
    return !acct_gather_profile_test || acct_gather_profile_test();
}

bool joule_slurm_series_wanted(struct joule_slurm_series *series)
{
    /* Both are in libslurmfull, which every host of a profile links. */
    if (!acct_gather_profile_g_create_dataset ||
        !acct_gather_profile_g_add_sample_data || !is_running())
        return false;
    if (!series->tried)
        make_dataset(series);
    return series->dataset >= 0 && series->dataset != JOULE_PROFILE_FILLED;
}

void joule_slurm_series_add(
    struct joule_slurm_series *series,
    const struct joule_node_energy_reading *reading,
    const struct joule_step_energy_reading *step_reading, time_t sample_time)
{
    void *row;

    if (!joule_slurm_series_wanted(series) ||
        reading->mono_ns - series->before_ns < INTERVAL_MIN_NS)
        return;
    series->before_ns = reading->mono_ns;
    row = joule_energy_columns_row(series->columns, reading, step_reading);
    if (row && is_running())
        acct_gather_profile_g_add_sample_data(series->dataset, row,
                                              sample_time);
}

/* The mean power since what was shown before, or NaN: there is nothing new that
 * may be shown. */
static double show(struct joule_slurm_series *series,
                   const struct joule_step_energy_reading *step_reading)
{
    int64_t since_ns = series->shown_ns;
    uint64_t since_uj = series->shown_uj;

    if (!step_reading)
        return NAN;
    if (since_ns == 0)
        since_ns = step_reading->mono_ns - step_reading->elapsed_ns;
    if (step_reading->mono_ns - since_ns < SHARED_MIN_NS)
        return NAN;
    series->shown_ns = step_reading->mono_ns;
    if (step_reading->used_uj > since_uj)
        series->shown_uj = step_reading->used_uj;
    return (double)(series->shown_uj - since_uj) * 1e6 /
           (double)(step_reading->mono_ns - since_ns);
}

void joule_slurm_series_add_step(
    struct joule_slurm_series *series,
    const struct joule_step_energy_reading *step_reading, time_t sample_time)
{
    void *row;
    double mw;

    if (!joule_slurm_series_wanted(series))
        return;
    row = joule_energy_columns_step_row(series->columns);
    mw = show(series, step_reading);
    joule_energy_columns_set_step(series->columns, row, series->shown_uj, mw);
    if (is_running())
        acct_gather_profile_g_add_sample_data(series->dataset, row,
                                              sample_time);
}
