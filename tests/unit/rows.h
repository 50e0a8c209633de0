/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rows.h - rows that tell their own number, to be found again in a file by
 * HDF5's own means.
 *
 * A failure of these functions ends the test, unless they say otherwise.
 */
#ifndef JOULE_TESTS_ROWS_H
#define JOULE_TESTS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile/log.h"

#define ROWS_FIELDS 3

/* "Power" and "node_uJ" unsigned, "package_0_mW" double. */
extern const struct joule_field rows_fields[ROWS_FIELDS];

/* The whole row [i] of table [table]; its cells for joule_writer_append lie behind
 * the first two columns. */
void rows_make(uint64_t row[ROWS_FIELDS + 3], unsigned table, uint64_t i);

/* An HDF5 file at [path] of a profile log, as far as that goes.  false: there is
 * none. */
bool rows_convert(const char *log, const char *path);

/*
 * How many rows data set [name] of the file has, all of them checked; -1 if the
 * file cannot be opened, -2 if there is no such data set, -3 if it cannot be
 * read, -4 if a row is not what rows_make made.  [cells_only]: the columns of
 * time are not compared.
 */
long rows_count(const char *path, const char *name, unsigned table,
                int cells_only);

/* The same of several data sets of a file that is opened once; rows_open returns
 * -1 if it cannot be, and rows_count_in -1 of that. */
int64_t rows_open(const char *path);
long rows_count_in(int64_t file, const char *name, unsigned table,
                   int cells_only);
void rows_close(int64_t file);

/* Attribute of one number of an object of a file; fails the test if it is not
 * there. */
uint64_t rows_attribute(const char *path, const char *object, const char *name);

/* Fails the test unless that attribute is this text, of this size. */
void rows_has_text(const char *path, const char *object, const char *name,
                   const char *text);

#endif
