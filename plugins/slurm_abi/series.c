/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/slurm_abi/slurm_abi.h"

/* Power, node_uJ, and a column for each domain; or two for each label and
 * node_uJ. */
#define COLUMNS_MAX (2 * JOULE_DOMAINS_MAX + 2)
#define NAME_SIZE   (32 + sizeof("Power"))

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
    union cell row[COLUMNS_MAX];
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

struct columns {
    acct_gather_profile_dataset_t field[COLUMNS_MAX + 1]; /* the last: none */
    char name[COLUMNS_MAX][NAME_SIZE];
    size_t count;
};

static void add_column(struct columns *c, int type, const char *stem,
                       const char *suffix)
{
    char *name = c->name[c->count];

    snprintf(name, NAME_SIZE, "%s%s", stem, suffix);
    c->field[c->count].name = name;
    c->field[c->count].type = type;
    c->count++;
}

static void add_columns(struct columns *c, const struct joule_source *source)
{
    char stem[sizeof(source->domains[0].name)];
    size_t i;
    char *p;

    if (joule_source_is_power(source)) {
        for (i = 0; i < source->domain_count; i++)
            add_column(c, JOULE_PROFILE_FIELD_UINT64, source->domains[i].name,
                       "Power");
    } else {
        add_column(c, JOULE_PROFILE_FIELD_UINT64, "Power", "");
    }
    add_column(c, JOULE_PROFILE_FIELD_UINT64, "node_uJ", "");
    for (i = 0; i < source->domain_count; i++) {
        memcpy(stem, source->domains[i].name, sizeof(stem));
        for (p = stem; *p; p++) {
            if (*p == '-')
                *p = '_';
        }
        add_column(c, JOULE_PROFILE_FIELD_DOUBLE, stem, "_mW");
    }
}

static void make_dataset(struct joule_series *series)
{
    struct columns *c = calloc(1, sizeof(*c));

    series->tried = true;
    series->dataset = -1;
    if (c) {
        add_columns(c, series->source);
        series->dataset = acct_gather_profile_g_create_dataset(
            "Energy", JOULE_PROFILE_NO_PARENT, c->field);
    }
    free(c);
    if (series->dataset < 0)
        slurm_error("slurm-joule: the profile plugin refuses the energy "
                    "series; this step has none");
}

static uint64_t w_of(uint64_t mw)
{
    return (mw + 500) / 1000;
}

static double domain_mw(const struct joule_series *series,
                        const struct joule_account_reading *reading, size_t i,
                        int64_t ns)
{
    if (reading->domain_mw && reading->domain_mw[i] == JOULE_MW_UNKNOWN)
        return NAN;
    return (double)(reading->domain_uj[i] - series->domain_before_uj[i]) * 1e6 /
           (double)ns;
}

static void fill_row(struct joule_series *series,
                     const struct joule_account_reading *reading, int64_t ns)
{
    const struct joule_source *source = series->source;
    union cell *cell = series->row;
    size_t i;

    if (joule_source_is_power(source)) {
        for (i = 0; i < source->domain_count; i++) {
            double mw = domain_mw(series, reading, i, ns);

            (cell++)->u = isnan(mw) ? 0 : w_of((uint64_t)mw);
        }
    } else {
        (cell++)->u =
            w_of(joule_power_mw(reading->used_uj - series->before_uj, ns));
    }
    (cell++)->u = reading->used_uj;
    for (i = 0; i < source->domain_count; i++)
        (cell++)->d = domain_mw(series, reading, i, ns);
}

void joule_series_add(struct joule_series *series,
                      const struct joule_account_reading *reading,
                      time_t sample_time)
{
    int64_t ns = reading->mono_ns - series->before_ns;

    /* Both are in libslurmfull, which every host of a profile links. */
    if (!acct_gather_profile_g_create_dataset ||
        !acct_gather_profile_g_add_sample_data)
        return;
    if (!series->tried)
        make_dataset(series);
    if (series->dataset < 0 || (series->primed && ns < INTERVAL_MIN_NS))
        return;
    if (joule_source_is_power(series->source) &&
        reading->node_mw == JOULE_MW_UNKNOWN) {
        series->primed = false;
        return;
    }
    if (series->primed) {
        fill_row(series, reading, ns);
        acct_gather_profile_g_add_sample_data(series->dataset, series->row,
                                              sample_time);
    }
    series->primed = true;
    series->before_ns = reading->mono_ns;
    series->before_uj = reading->used_uj;
    memcpy(series->domain_before_uj, reading->domain_uj,
           series->source->domain_count * sizeof(reading->domain_uj[0]));
}
