/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cells.h - rows of a table as CSV (RFC 4180) or JSON, cell by cell.
 *
 * A row of CSV ends with a newline; one of JSON is an array and begins with a
 * comma and a newline, of which the comma is cut from the first row of all.
 * The caller has the room: joule_cells_room is an upper bound.
 */
#ifndef JOULE_SH5UTIL_CELLS_H
#define JOULE_SH5UTIL_CELLS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/profile/hdf5_read.h"

/* ---- numbers: several times faster than printf and to the same digits; they
 * write at [at] without a NUL and return what is behind the last digit ---- */

/* The longest of them: a double of 309 digits and six decimals. */
#define JOULE_NUMBER_MAX 336

char *joule_number_u64(char *at, uint64_t value);

/* Of 128 bits: sums do not wrap. */
char *joule_number_i128(char *at, __int128 value);

/* As "%.6f" in the C locale; "nan" whatever its sign. */
char *joule_number_fixed(char *at, double value);

/* The shortest text that strtod reads as this value; JSON has no infinity and
 * no NaN: "null". */
char *joule_number_json(char *at, double value);

/* A number of a table: a whole one, or [real] alone in a column of doubles. */
struct joule_value {
    bool is_there; /* NaN is not */
    __int128 whole;
    double real;
};

static inline struct joule_value
joule_value_of(const struct joule_column *column, const void *row)
{
    uint64_t whole = joule_column_u64(column, row);
    struct joule_value v = {.is_there = true};

    if (column->kind == JOULE_KIND_FLOAT) {
        v.real = joule_column_double(column, row);
        v.is_there = !isnan(v.real);
    } else if (column->kind == JOULE_KIND_SIGNED) {
        v.whole = (int64_t)whole;
        v.real = (double)(int64_t)whole;
    } else {
        v.whole = whole;
        v.real = (double)whole;
    }
    return v;
}

/* ---- cells ---- */

struct joule_cells {
    char *at;
    bool json, is_first;
};

/* [count] cells of numbers and [text] bytes of strings. */
static inline size_t joule_cells_room(size_t count, size_t text)
{
    return count * (JOULE_NUMBER_MAX + 4) + text * 6 + 16;
}

static inline void joule_cells_begin(struct joule_cells *c, char *at, bool json)
{
    c->at = at;
    c->json = json;
    c->is_first = true;
    if (json) {
        memcpy(c->at, ",\n[", 3);
        c->at += 3;
    }
}

static inline void joule_cells_end(struct joule_cells *c)
{
    *c->at++ = c->json ? ']' : '\n';
}

static inline void joule_cells_next(struct joule_cells *c)
{
    if (!c->is_first)
        *c->at++ = ',';
    c->is_first = false;
}

/* Empty in CSV, null in JSON. */
static inline void joule_cells_missing(struct joule_cells *c)
{
    joule_cells_next(c);
    if (c->json) {
        memcpy(c->at, "null", 4);
        c->at += 4;
    }
}

static inline void joule_cells_u64(struct joule_cells *c, uint64_t value)
{
    joule_cells_next(c);
    c->at = joule_number_u64(c->at, value);
}

static inline void joule_cells_double(struct joule_cells *c, double value)
{
    joule_cells_next(c);
    c->at = c->json ? joule_number_json(c->at, value)
                    : joule_number_fixed(c->at, value);
}

/* Of a column of doubles, or of whole numbers. */
void joule_cells_value(struct joule_cells *c, const struct joule_value *value,
                       bool is_float);

/* Text of [len] bytes, quoted where it has to be. */
void joule_cells_text(struct joule_cells *c, const char *text, size_t len);

/* What is in a column of a row. */
void joule_cells_column(struct joule_cells *c,
                        const struct joule_column *column, const void *row);

/* The bytes of strings that a row may come to. */
size_t joule_cells_text_bytes(const struct joule_rowtype *type);

#endif
