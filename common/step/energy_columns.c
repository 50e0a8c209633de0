/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/energy_columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Power, node_uJ, and a column for each domain; or two for each label and
 * node_uJ; the share's two. */
#define COLUMNS_MAX (2 * JOULE_DOMAINS_MAX + 4)

union cell {
    uint64_t u;
    double d;
};

_Static_assert(sizeof(union cell) == 8, "a column is eight bytes");

struct joule_energy_columns {
    const struct joule_sensor *sensor;
    enum joule_energy_columns_of of;
    bool primed;
    uint64_t step_uj; /* that was known last */
    int64_t before_ns;
    uint64_t before_uj;
    uint64_t domain_before_uj[JOULE_DOMAINS_MAX];
    union cell row[COLUMNS_MAX];
    size_t count;
    struct joule_energy_column column[COLUMNS_MAX];
};

static void add(struct joule_energy_columns *c, bool is_double,
                const char *stem, const char *suffix)
{
    struct joule_energy_column *column = &c->column[c->count++];

    snprintf(column->name, sizeof(column->name), "%.31s%s", stem, suffix);
    column->is_double = is_double;
}

/* The name of a domain in the name of a column. */
static const char *stem_of(const struct joule_domain *domain, char *stem)
{
    char *p;

    memcpy(stem, domain->name, sizeof(domain->name));
    for (p = stem; *p; p++) {
        if (*p == '-')
            *p = '_';
    }
    return stem;
}

/* Where there are labels of a meter, a row has the power of each, as Slurm's own
 * plugin. */
static bool has_labels(const struct joule_sensor *sensor)
{
    return sensor->domains[0].kind == JOULE_DOMAIN_POWER;
}

static void add_step_columns(struct joule_energy_columns *c)
{
    add(c, false, "step_uJ", "");
    add(c, true, "step_mW", "");
}

static void add_all(struct joule_energy_columns *c)
{
    const struct joule_sensor *sensor = c->sensor;
    char stem[sizeof(sensor->domains[0].name)];
    size_t i;

    if (c->of == JOULE_ENERGY_COLUMNS_STEP) {
        add(c, false, "Power", "");
        add_step_columns(c);
        return;
    }
    if (has_labels(sensor)) {
        for (i = 0; i < sensor->domain_count; i++)
            add(c, false,
                sensor->domains[i].kind == JOULE_DOMAIN_POWER
                    ? sensor->domains[i].name
                    : stem_of(&sensor->domains[i], stem),
                "Power");
    } else {
        add(c, false, "Power", "");
    }
    add(c, false, "node_uJ", "");
    for (i = 0; i < sensor->domain_count; i++)
        add(c, true, stem_of(&sensor->domains[i], stem), "_mW");
    if (c->of != JOULE_ENERGY_COLUMNS_NODE)
        add_step_columns(c);
}

struct joule_energy_columns *
joule_energy_columns_create(const struct joule_sensor *sensor,
                            enum joule_energy_columns_of of)
{
    struct joule_energy_columns *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->sensor = sensor;
    c->of = of;
    add_all(c);
    return c;
}

void joule_energy_columns_destroy(struct joule_energy_columns *c)
{
    free(c);
}

const struct joule_energy_column *
joule_energy_columns_list(const struct joule_energy_columns *c,
                          size_t *ret_count)
{
    *ret_count = c->count;
    return c->column;
}

static double domain_mw(const struct joule_energy_columns *c,
                        const struct joule_node_energy_reading *reading,
                        size_t i, int64_t ns)
{
    if (!reading->domain_known[i])
        return NAN;
    return (double)(reading->domain_uj[i] - c->domain_before_uj[i]) * 1e6 /
           (double)ns;
}

static uint64_t watts(double mw)
{
    return mw >= 0 && mw < 1e12 ? (uint64_t)(mw / 1000 + 0.5) : 0;
}

static void fill_row(struct joule_energy_columns *c,
                     const struct joule_node_energy_reading *reading,
                     const struct joule_step_energy_reading *step_reading,
                     int64_t ns)
{
    const struct joule_sensor *sensor = c->sensor;
    union cell *cell = c->row;
    size_t i;

    if (has_labels(sensor)) {
        for (i = 0; i < sensor->domain_count; i++)
            (cell++)->u = watts(domain_mw(c, reading, i, ns));
    } else {
        (cell++)->u =
            watts((double)(reading->used_uj - c->before_uj) * 1e6 / (double)ns);
    }
    (cell++)->u = reading->used_uj;
    for (i = 0; i < sensor->domain_count; i++)
        (cell++)->d = domain_mw(c, reading, i, ns);
    if (c->of == JOULE_ENERGY_COLUMNS_NODE)
        return;
    if (step_reading && step_reading->used_uj > c->step_uj)
        c->step_uj = step_reading->used_uj;
    (cell++)->u = c->step_uj;
    cell->d = step_reading ? (double)step_reading->mw : NAN;
}

void joule_energy_columns_set_step(const struct joule_energy_columns *c,
                                   void *row, uint64_t uj, double mw)
{
    union cell *cell = row;

    if (c->of == JOULE_ENERGY_COLUMNS_STEP)
        cell[0].u = watts(mw);
    cell[c->count - 2].u = uj;
    cell[c->count - 1].d = mw;
}

void *joule_energy_columns_step_row(struct joule_energy_columns *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->column[i].is_double)
            c->row[i].d = NAN;
        else
            c->row[i].u = 0;
    return c->row;
}

void *
joule_energy_columns_row(struct joule_energy_columns *c,
                         const struct joule_node_energy_reading *reading,
                         const struct joule_step_energy_reading *step_reading)
{
    int64_t ns = reading->mono_ns - c->before_ns;
    void *row = NULL;

    if (reading->is_stale) {
        c->primed = false;
        return NULL;
    }
    if (c->primed && ns <= 0)
        return NULL;
    if (c->primed) {
        fill_row(c, reading, step_reading, ns);
        row = c->row;
    }
    c->primed = true;
    c->before_ns = reading->mono_ns;
    c->before_uj = reading->used_uj;
    memcpy(c->domain_before_uj, reading->domain_uj,
           c->sensor->domain_count * sizeof(reading->domain_uj[0]));
    return row;
}
