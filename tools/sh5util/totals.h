/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * totals.h - least, largest, sum and mean of the columns of a table.
 *
 * Whole numbers are summed exactly, in 128 bits; of doubles, NaN (not
 * measured) counts for nothing.
 */
#ifndef JOULE_SH5UTIL_TOTALS_H
#define JOULE_SH5UTIL_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "common/profile/rowtype.h"
#include "tools/sh5util/cells.h"

struct joule_totals;

/* Of the columns with these names (NULL: the table has it not), which must
 * outlive it.  NULL: ENOMEM. */
struct joule_totals *joule_totals_create(const struct joule_column **column,
                                         const char *const *name, size_t count);
void joule_totals_destroy(struct joule_totals *totals);

void joule_totals_add(struct joule_totals *totals, const void *rows,
                      size_t count, size_t row_size);
uint64_t joule_totals_rows(const struct joule_totals *totals);

/* Four cells a column, but "ElapsedTime": its last value. */
void joule_totals_put(const struct joule_totals *totals,
                      struct joule_cells *cells);

#endif
