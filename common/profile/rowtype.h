/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rowtype.h - the columns of a table, in words of our own.
 *
 * A plain struct that may cross from a process that reads a hostile file: no
 * pointers, every bound checked by joule_rowtype_check.  It describes a
 * compound of numbers, strings of fixed length and arrays of them; what else
 * a file may have (nested compounds, enumerations, bit columns) is kept as
 * bytes.  References and strings of variable length point into their file;
 * their bytes mean nothing elsewhere.
 */
#ifndef JOULE_PROFILE_ROWTYPE_H
#define JOULE_PROFILE_ROWTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define JOULE_COLUMNS_MAX      256
#define JOULE_PROFILE_NAME_MAX 128   /* with the NUL */
#define JOULE_ROW_MAX          65536 /* bytes */

enum joule_kind {
    JOULE_KIND_UNSIGNED, /* 1, 2, 4 or 8 bytes */
    JOULE_KIND_SIGNED,
    JOULE_KIND_FLOAT,  /* IEEE 754, 4 or 8 bytes */
    JOULE_KIND_STRING, /* of fixed size */
    JOULE_KIND_OPAQUE,
};

struct joule_column {
    char name[JOULE_PROFILE_NAME_MAX];
    uint32_t offset; /* in the row, bytes */
    uint32_t size;   /* of one element, bytes */
    uint32_t count;  /* elements: 1, or the length of an array */
    uint8_t kind;    /* enum joule_kind */
    uint8_t big_endian;
    uint8_t spare[2];
};

struct joule_rowtype {
    uint32_t size;        /* of a row, bytes */
    uint32_t count;       /* columns */
    uint32_t is_compound; /* 0: one column without a name */
    uint32_t spare;
    struct joule_column column[JOULE_COLUMNS_MAX]; /* count of them are set */
};

/* The bytes of [type] that are set. */
static inline size_t joule_rowtype_bytes(const struct joule_rowtype *type)
{
    return sizeof(*type) - sizeof(type->column) +
           type->count * sizeof(type->column[0]);
}

/* Of integers, in bytes. */
static inline bool joule_is_number_size(size_t size)
{
    return size == 1 || size == 2 || size == 4 || size == 8;
}

/* Whether [type], of [bytes] bytes, keeps the bounds of this header: columns
 * within the row, sizes that fit the kind, names that end.  -1 with EBADMSG. */
int joule_rowtype_check(const struct joule_rowtype *type, size_t bytes);

/* The column of that name, or NULL. */
const struct joule_column *joule_rowtype_find(const struct joule_rowtype *type,
                                              const char *name);

/* The values of a number at [at] of the file's own width and byte order. */
uint64_t joule_column_u64(const struct joule_column *column, const void *row);
int64_t joule_column_i64(const struct joule_column *column, const void *row);

/* Of any number, rounded to double. */
double joule_column_double(const struct joule_column *column, const void *row);

#endif
