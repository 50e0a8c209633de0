/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/slurm_abi/slurm_abi.h"

#define FIXED_COLUMNS 2 /* Power, node_uJ */

/* Slurm's timer signals twice at the start; an interval this short says
 * nothing about power. */
#define INTERVAL_MIN_NS (5 * JOULE_NS_PER_MS)

union cell {
    uint64_t u;
    double d;
};

struct joule_series {
    const struct joule_source *source;
    bool tried; /* to make the data set; then dataset says how it went */
    int dataset;
    bool primed;
    int64_t before_ns;
    uint64_t before_uj;
    uint64_t domain_before_uj[JOULE_DOMAINS_MAX];
    union cell row[FIXED_COLUMNS + JOULE_DOMAINS_MAX];
};

_Static_assert(sizeof(union cell) == 8, "a column is eight bytes");

struct joule_series *joule_series_create(const struct joule_source *source)
{
    struct joule_series *series = calloc(1, sizeof(*series));

    if (series)
        series->source = source;
    return series;
}

void joule_series_destroy(struct joule_series *series)
{
    free(series);
}

static void make_dataset(struct joule_series *series)
{
    acct_gather_profile_dataset_t field[FIXED_COLUMNS + JOULE_DOMAINS_MAX + 1];
    char names[JOULE_DOMAINS_MAX][sizeof("_mW") + 32];
    const struct joule_source *source = series->source;
    size_t i;
    char *c;

    memset(field, 0, sizeof(field));
    field[0].name = (char *)"Power";
    field[0].type = JOULE_PROFILE_FIELD_UINT64;
    field[1].name = (char *)"node_uJ";
    field[1].type = JOULE_PROFILE_FIELD_UINT64;
    for (i = 0; i < source->domain_count; i++) {
        snprintf(names[i], sizeof(names[i]), "%s_mW", source->domains[i].name);
        for (c = names[i]; *c; c++) {
            if (*c == '-')
                *c = '_';
        }
        field[FIXED_COLUMNS + i].name = names[i];
        field[FIXED_COLUMNS + i].type = JOULE_PROFILE_FIELD_DOUBLE;
    }
    series->tried = true;
    series->dataset = acct_gather_profile_g_create_dataset(
        "Energy", JOULE_PROFILE_NO_PARENT, field);
    if (series->dataset < 0)
        slurm_error("slurm-joule: the profile plugin refuses the energy "
                    "series; this step has none");
}

void joule_series_add(struct joule_series *series,
                      const struct joule_account_reading *reading,
                      time_t sample_time)
{
    int64_t ns = reading->mono_ns - series->before_ns;
    size_t i, count = series->source->domain_count;

    /* Both are in libslurmfull, which every host of a profile links. */
    if (!acct_gather_profile_g_create_dataset ||
        !acct_gather_profile_g_add_sample_data)
        return;
    if (!series->tried)
        make_dataset(series);
    if (series->dataset < 0 || (series->primed && ns < INTERVAL_MIN_NS))
        return;
    if (series->primed) {
        uint64_t mw = joule_power_mw(reading->used_uj - series->before_uj, ns);

        series->row[0].u = (mw + 500) / 1000;
        series->row[1].u = reading->used_uj;
        for (i = 0; i < count; i++)
            series->row[FIXED_COLUMNS + i].d =
                (double)(reading->domain_uj[i] - series->domain_before_uj[i]) *
                1e6 / (double)ns;
        acct_gather_profile_g_add_sample_data(series->dataset, series->row,
                                              sample_time);
    }
    series->primed = true;
    series->before_ns = reading->mono_ns;
    series->before_uj = reading->used_uj;
    memcpy(series->domain_before_uj, reading->domain_uj,
           count * sizeof(reading->domain_uj[0]));
}
