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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/profile/rowtype.h"
#include "tools/sh5util/number.h"

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

/* Text of [len] bytes, quoted where it has to be. */
void joule_cells_text(struct joule_cells *c, const char *text, size_t len);

/* What is in a column of a row. */
void joule_cells_column(struct joule_cells *c,
                        const struct joule_column *column, const void *row);

/* The bytes of strings that a row may come to. */
size_t joule_cells_text_bytes(const struct joule_rowtype *type);

#endif
