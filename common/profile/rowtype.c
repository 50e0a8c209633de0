/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/rowtype.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static bool column_is_sound(const struct joule_column *column,
                            uint32_t row_size, bool is_named)
{
    if (!memchr(column->name, '\0', sizeof(column->name)) ||
        (column->name[0] != '\0') != is_named)
        return false;
    if (column->size == 0 || column->count == 0 || column->size > row_size ||
        column->count > row_size || column->offset >= row_size ||
        (uint64_t)column->size * column->count > row_size - column->offset)
        return false;
    switch (column->kind) {
    case JOULE_KIND_UNSIGNED:
    case JOULE_KIND_SIGNED:
        return joule_is_number_size(column->size) && column->big_endian <= 1;
    case JOULE_KIND_FLOAT:
        return (column->size == 4 || column->size == 8) &&
               column->big_endian <= 1;
    case JOULE_KIND_STRING:
    case JOULE_KIND_OPAQUE:
        return true;
    default:
        return false;
    }
}

int joule_rowtype_check(const struct joule_rowtype *type, size_t bytes)
{
    const size_t head = offsetof(struct joule_rowtype, column);
    bool sound = bytes >= head && type->count >= 1 &&
                 type->count <= JOULE_COLUMNS_MAX && type->size >= 1 &&
                 type->size <= JOULE_ROW_MAX && type->is_compound <= 1 &&
                 (type->is_compound || type->count == 1) &&
                 bytes == joule_rowtype_bytes(type);

    for (uint32_t i = 0; sound && i < type->count; i++)
        sound = column_is_sound(&type->column[i], type->size,
                                type->is_compound == 1);
    if (sound)
        return 0;
    errno = EBADMSG;
    return -1;
}

const struct joule_column *joule_rowtype_find(const struct joule_rowtype *type,
                                              const char *name)
{
    for (uint32_t i = 0; i < type->count; i++)
        if (strcmp(type->column[i].name, name) == 0)
            return &type->column[i];
    return NULL;
}

uint64_t joule_column_u64(const struct joule_column *column, const void *row)
{
    const unsigned char *at = (const unsigned char *)row + column->offset;
    uint64_t value = 0;

    if (!column->big_endian && column->size == sizeof(value)) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        memcpy(&value, at, sizeof(value));
        return value;
#endif
    }
    for (uint32_t i = 0; i < column->size; i++)
        value = value << 8 | at[column->big_endian ? i : column->size - 1 - i];
    return value;
}

int64_t joule_column_i64(const struct joule_column *column, const void *row)
{
    uint64_t value = joule_column_u64(column, row);
    unsigned bits = column->size * 8;

    if (bits < 64 && (value >> (bits - 1) & 1))
        value |= UINT64_MAX << bits;
    return (int64_t)value;
}

double joule_column_double(const struct joule_column *column, const void *row)
{
    uint64_t bits;

    if (column->kind == JOULE_KIND_SIGNED)
        return (double)joule_column_i64(column, row);
    bits = joule_column_u64(column, row);
    if (column->kind == JOULE_KIND_UNSIGNED)
        return (double)bits;
    if (column->size == 4) {
        uint32_t half = (uint32_t)bits;
        float value;

        memcpy(&value, &half, sizeof(value));
        return (double)value;
    } else {
        double value;

        memcpy(&value, &bits, sizeof(value));
        return value;
    }
}
