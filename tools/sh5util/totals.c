/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/totals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct total {
    const struct joule_column *column; /* NULL: nothing to sum */
    uint64_t count;
    __int128 least, largest, sum;
    double least_double, largest_double, sum_double;
    bool is_elapsed;
};

struct joule_totals {
    uint64_t rows;
    size_t count;
    struct total total[];
};

static bool is_number(const struct joule_column *column)
{
    return column && column->count == 1 && column->kind <= JOULE_KIND_FLOAT;
}

struct joule_totals *joule_totals_create(const struct joule_column **column,
                                         const char *const *name, size_t count)
{
    struct joule_totals *t =
        calloc(1, sizeof(*t) + count * sizeof(t->total[0]));

    if (!t)
        return NULL;
    t->count = count;
    for (size_t i = 0; i < count; i++) {
        t->total[i].is_elapsed = strcmp(name[i], "ElapsedTime") == 0;
        if (is_number(column[i]))
            t->total[i].column = column[i];
    }
    return t;
}

void joule_totals_destroy(struct joule_totals *t)
{
    free(t);
}

static void add_double(struct total *t, double value)
{
    if (isnan(value))
        return;
    if (t->count == 0 || value < t->least_double)
        t->least_double = value;
    if (t->count == 0 || value > t->largest_double)
        t->largest_double = value;
    t->sum_double += value;
    t->count++;
}

static void add_whole(struct total *t, __int128 value)
{
    if (t->count == 0 || value < t->least)
        t->least = value;
    if (t->count == 0 || value > t->largest)
        t->largest = value;
    t->sum += value;
    t->count++;
}

void joule_totals_add(struct joule_totals *totals, const void *rows,
                      size_t count, size_t row_size)
{
    for (size_t i = 0; i < totals->count; i++) {
        struct total *t = &totals->total[i];
        const unsigned char *row = rows;

        if (!t->column)
            continue;
        if (t->is_elapsed)
            row += (count - 1) * row_size; /* the last one */
        for (; row < (const unsigned char *)rows + count * row_size;
             row += row_size)
            if (t->column->kind == JOULE_KIND_FLOAT)
                add_double(t, joule_column_double(t->column, row));
            else if (t->column->kind == JOULE_KIND_SIGNED)
                add_whole(t, joule_column_i64(t->column, row));
            else
                add_whole(t, joule_column_u64(t->column, row));
        if (t->is_elapsed)
            t->least = t->largest =
                joule_column_u64(t->column, (const unsigned char *)rows +
                                                (count - 1) * row_size);
    }
    totals->rows += count;
}

uint64_t joule_totals_rows(const struct joule_totals *t)
{
    return t->rows;
}

static void put_whole(struct joule_cells *c, __int128 value)
{
    joule_cells_next(c);
    c->at = joule_number_i128(c->at, value);
}

static void put_total(const struct total *t, struct joule_cells *c)
{
    if (t->column->kind == JOULE_KIND_FLOAT) {
        bool none = t->count == 0;

        joule_cells_double(c, none ? NAN : t->least_double);
        joule_cells_double(c, none ? NAN : t->largest_double);
        joule_cells_double(c, none ? NAN : t->sum_double);
        joule_cells_double(c, none ? NAN : t->sum_double / (double)t->count);
        return;
    }
    put_whole(c, t->least);
    put_whole(c, t->largest);
    put_whole(c, t->sum);
    joule_cells_double(c, (double)t->sum / (double)t->count);
}

void joule_totals_put(const struct joule_totals *totals, struct joule_cells *c)
{
    for (size_t i = 0; i < totals->count; i++) {
        const struct total *t = &totals->total[i];

        if (t->column && t->is_elapsed)
            put_whole(c, t->largest);
        else if (t->column)
            put_total(t, c);
        else
            for (int part = t->is_elapsed ? 3 : 0; part < 4; part++)
                joule_cells_missing(c);
    }
}
