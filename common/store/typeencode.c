/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/typeencode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/little.h"
#include "common/store/typeform.h"

#define DIMENSION 12 /* of an array: their number, one length, its place */

#define TAG "bytes\0\0" /* of an opaque type, filled up to 8 */

/* The most that a column takes: an array of the longest kind. */
#define COLUMN_MAX                                                             \
    (JOULE_STORE_NAME_MAX + JOULE_HDF_MEMBER_OFFSET +                          \
     JOULE_HDF_MEMBER_DIMENSIONS + JOULE_HDF_TYPE_HEAD + DIMENSION +           \
     JOULE_HDF_TYPE_HEAD + JOULE_HDF_REAL_SIZE)

static unsigned char *put_head(unsigned char *at, unsigned class,
                               unsigned version, unsigned bits, uint32_t size)
{
    at[0] = (unsigned char)(version << 4 | class);
    joule_little_put(at + 1, bits, 3);
    joule_little_put(at + 4, size, 4);
    return at + JOULE_HDF_TYPE_HEAD;
}

static unsigned char *put_integer(unsigned char *at,
                                  const struct joule_column *column)
{
    unsigned bits = column->big_endian ? JOULE_HDF_BIT_BIG : 0;

    if (column->kind == JOULE_KIND_SIGNED)
        bits |= JOULE_HDF_BIT_SIGNED;
    at = put_head(at, JOULE_HDF_INTEGER, 1, bits, column->size);
    joule_little_put(at, 0, 2);
    joule_little_put(at + 2, column->size * 8, 2);
    return at + 4;
}

static unsigned char *put_real(unsigned char *at,
                               const struct joule_column *column)
{
    unsigned sign = column->size * 8 - 1;
    unsigned bits = column->big_endian ? JOULE_HDF_BIT_BIG : 0;

    at = put_head(at, JOULE_HDF_REAL, 1,
                  bits | JOULE_HDF_BIT_IMPLIED | sign << 8, column->size);
    memcpy(at, joule_hdf_ieee(column->size), JOULE_HDF_REAL_SIZE);
    return at + JOULE_HDF_REAL_SIZE;
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
        return put_head(at, JOULE_HDF_STRING, 1,
                        column->pad | (unsigned)column->cset << 4,
                        column->size);
    default:
        at = put_head(at, JOULE_HDF_OPAQUE, 1, sizeof(TAG), column->size);
        memcpy(at, TAG, sizeof(TAG));
        return at + sizeof(TAG);
    }
}

static unsigned char *put_column(unsigned char *at,
                                 const struct joule_column *column)
{
    if (column->count > 1) {
        at = put_head(at, JOULE_HDF_ARRAY, 2, 0, column->size * column->count);
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
    joule_little_put(at, column->offset, JOULE_HDF_MEMBER_OFFSET);
    at += JOULE_HDF_MEMBER_OFFSET;
    if (version == 1) {
        memset(at, 0, JOULE_HDF_MEMBER_DIMENSIONS);
        at += JOULE_HDF_MEMBER_DIMENSIONS;
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
    bytes = malloc(JOULE_HDF_TYPE_HEAD + (size_t)type->count * COLUMN_MAX);
    if (!bytes)
        return NULL;
    at = bytes;
    if (!type->is_compound) {
        at = put_column(at, &type->column[0]);
    } else {
        at = put_head(at, JOULE_HDF_COMPOUND, version, type->count, type->size);
        for (uint32_t i = 0; i < type->count; i++)
            at = put_member(at, version, &type->column[i]);
    }
    *ret_size = (size_t)(at - bytes);
    return bytes;
}
