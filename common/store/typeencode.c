/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/typeencode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/little.h"

/* Classes. */
#define INTEGER  0
#define REAL     1
#define STRING   3
#define OPAQUE   5
#define COMPOUND 6
#define ARRAY    10

#define HEAD 8 /* class and version, bits, bytes of a value */

/* Bits. */
#define BIG_ENDIAN_BIT 0x01
#define SIGNED_BIT     0x08
#define IMPLIED_BIT    0x20 /* the mantissa's first bit is not stored */

/* Behind the name of a member.  In version 1 arrays are members with
 * dimensions, in version 2 they are types. */
#define OFFSET        4
#define NO_DIMENSIONS 28

#define DIMENSION 12 /* of an array: their number, one length, its place */

#define TAG "bytes\0\0" /* of an opaque type, filled up to 8 */

/* The most that a column takes: an array of the longest kind. */
#define COLUMN_MAX                                                             \
    (JOULE_STORE_NAME_MAX + OFFSET + NO_DIMENSIONS + HEAD + DIMENSION + HEAD + \
     12)

static unsigned char *put_head(unsigned char *at, unsigned class,
                               unsigned version, unsigned bits, uint32_t size)
{
    at[0] = (unsigned char)(version << 4 | class);
    joule_little_put(at + 1, bits, 3);
    joule_little_put(at + 4, size, 4);
    return at + HEAD;
}

static unsigned char *put_integer(unsigned char *at,
                                  const struct joule_column *column)
{
    unsigned bits = column->big_endian ? BIG_ENDIAN_BIT : 0;

    if (column->kind == JOULE_KIND_SIGNED)
        bits |= SIGNED_BIT;
    at = put_head(at, INTEGER, 1, bits, column->size);
    joule_little_put(at, 0, 2);
    joule_little_put(at + 2, column->size * 8, 2);
    return at + 4;
}

/* The formats of IEEE 754: bits of all, where the exponent begins and how long
 * it is, the same of the mantissa; the bias. */
static unsigned char *put_real(unsigned char *at,
                               const struct joule_column *column)
{
    static const unsigned char f32[] = {0, 0,  32,  0, 23, 8,
                                        0, 23, 127, 0, 0,  0};
    static const unsigned char f64[] = {0, 0,  64,   0,    52, 11,
                                        0, 52, 0xff, 0x03, 0,  0};
    unsigned sign = column->size * 8 - 1;
    unsigned bits = column->big_endian ? BIG_ENDIAN_BIT : 0;

    at = put_head(at, REAL, 1, bits | IMPLIED_BIT | sign << 8, column->size);
    memcpy(at, column->size == 8 ? f64 : f32, sizeof(f64));
    return at + sizeof(f64);
}

static unsigned char *put_element(unsigned char *at,
                                  const struct joule_column *column)
{
    switch (column->kind) {
    case JOULE_KIND_UNSIGNED:
    case JOULE_KIND_SIGNED:
        return put_integer(at, column);
    case JOULE_KIND_FLOAT:
        return put_real(at, column);
    case JOULE_KIND_STRING:
        return put_head(at, STRING, 1,
                        column->pad | (unsigned)column->cset << 4,
                        column->size);
    default:
        at = put_head(at, OPAQUE, 1, sizeof(TAG), column->size);
        memcpy(at, TAG, sizeof(TAG));
        return at + sizeof(TAG);
    }
}

static unsigned char *put_column(unsigned char *at,
                                 const struct joule_column *column)
{
    if (column->count > 1) {
        at = put_head(at, ARRAY, 2, 0, column->size * column->count);
        memset(at, 0, DIMENSION);
        at[0] = 1;
        joule_little_put(at + 4, column->count, 4);
        at += DIMENSION;
    }
    return put_element(at, column);
}

static unsigned char *put_member(unsigned char *at, unsigned version,
                                 const struct joule_column *column)
{
    size_t length = strlen(column->name), padded = joule_hdf_padded(length + 1);

    memset(at, 0, padded);
    memcpy(at, column->name, length);
    at += padded;
    joule_little_put(at, column->offset, OFFSET);
    at += OFFSET;
    if (version == 1) {
        memset(at, 0, NO_DIMENSIONS);
        at += NO_DIMENSIONS;
    }
    return put_column(at, column);
}

static bool are_apart(const struct joule_column *a,
                      const struct joule_column *b)
{
    return (a->offset + a->size * a->count <= b->offset ||
            b->offset + b->size * b->count <= a->offset) &&
           strcmp(a->name, b->name) != 0;
}

/* Each column against those before it. */
static bool is_sound(const struct joule_rowtype *type)
{
    for (uint32_t i = 1; i < type->count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (!are_apart(&type->column[i], &type->column[j]))
                return false;
    return true;
}

static bool has_array(const struct joule_rowtype *type)
{
    for (uint32_t i = 0; i < type->count; i++)
        if (type->column[i].count > 1)
            return true;
    return false;
}

unsigned char *joule_rowtype_encode(const struct joule_rowtype *type,
                                    size_t *ret_size)
{
    unsigned version = has_array(type) ? 2 : 1;
    unsigned char *bytes, *at;

    if (!is_sound(type)) {
        errno = EINVAL;
        return NULL;
    }
    bytes = malloc(HEAD + (size_t)type->count * COLUMN_MAX);
    if (!bytes)
        return NULL;
    at = bytes;
    if (!type->is_compound) {
        at = put_column(at, &type->column[0]);
    } else {
        at = put_head(at, COMPOUND, version, type->count, type->size);
        for (uint32_t i = 0; i < type->count; i++)
            at = put_member(at, version, &type->column[i]);
    }
    *ret_size = (size_t)(at - bytes);
    return bytes;
}
