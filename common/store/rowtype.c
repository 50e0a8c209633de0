/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/rowtype.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/hdferror.h"

static bool is_number_size(size_t size)
{
    return size == 1 || size == 2 || size == 4 || size == 8;
}

/* The formats of IEEE 754, bit for bit, and nothing that only looks alike. */
static bool is_ieee(hid_t type, size_t size, bool big_endian)
{
    hid_t standard;

    if (size == 4)
        standard = big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE;
    else if (size == 8)
        standard = big_endian ? H5T_IEEE_F64BE : H5T_IEEE_F64LE;
    else
        return false;
    return H5Tequal(type, standard) > 0;
}

static bool is_plain_integer(hid_t type, size_t size)
{
    return is_number_size(size) && H5Tget_precision(type) == size * 8 &&
           H5Tget_offset(type) == 0;
}

/* One element: a number or a string, else bytes. */
static void read_element(hid_t type, struct joule_column *column)
{
    size_t size = H5Tget_size(type);
    H5T_class_t class = H5Tget_class(type);
    H5T_order_t order;

    column->size = (uint32_t)size;
    column->kind = JOULE_KIND_OPAQUE;
    if (class == H5T_STRING && H5Tis_variable_str(type) == 0) {
        column->kind = JOULE_KIND_STRING;
        column->pad = (uint8_t)H5Tget_strpad(type);
        column->cset = (uint8_t)H5Tget_cset(type);
        return;
    }
    if (class != H5T_INTEGER && class != H5T_FLOAT)
        return;
    order = H5Tget_order(type);
    if (order != H5T_ORDER_LE && order != H5T_ORDER_BE)
        return;
    column->big_endian = order == H5T_ORDER_BE;
    if (class == H5T_FLOAT && is_ieee(type, size, column->big_endian))
        column->kind = JOULE_KIND_FLOAT;
    else if (class == H5T_INTEGER && is_plain_integer(type, size))
        column->kind = H5Tget_sign(type) == H5T_SGN_NONE ? JOULE_KIND_UNSIGNED
                                                         : JOULE_KIND_SIGNED;
}

/* An array of one dimension is a column of several elements. */
static void read_column(hid_t type, struct joule_column *column)
{
    hsize_t length = 0;
    hid_t base;

    memset(column, 0, sizeof(*column));
    column->count = 1;
    if (H5Tget_class(type) != H5T_ARRAY || H5Tget_array_ndims(type) != 1 ||
        H5Tget_array_dims2(type, &length) < 0) {
        read_element(type, column);
        return;
    }
    base = H5Tget_super(type);
    if (base < 0) {
        read_element(type, column);
        return;
    }
    read_element(base, column);
    H5Tclose(base);
    if (length > 0 && length * column->size == H5Tget_size(type)) {
        column->count = (uint32_t)length;
        return;
    }
    column->kind = JOULE_KIND_OPAQUE;
    column->size = (uint32_t)H5Tget_size(type);
}

static int read_name(hid_t type, unsigned i, struct joule_column *column,
                     struct joule_error *err)
{
    char *name = H5Tget_member_name(type, i);
    size_t len;

    if (!name)
        return joule_hdf_error(err, EBADMSG, "a column has no name");
    len = strlen(name);
    if (len > 0 && len < sizeof(column->name))
        memcpy(column->name, name, len + 1);
    H5free_memory(name);
    if (len == 0 || len >= sizeof(column->name))
        return joule_error_set(err, ENOTSUP,
                               "the name of a column is too long or empty");
    return 0;
}

/* Text whose bytes lie elsewhere in the file; inside of a compound or an array
 * it cannot be told apart, and is not looked for. */
static bool is_elsewhere(hid_t type)
{
    if (H5Tget_class(type) == H5T_STRING)
        return H5Tis_variable_str(type) != 0;
    return H5Tdetect_class(type, H5T_STRING) != 0;
}

static int read_members(hid_t type, struct joule_rowtype *ret,
                        struct joule_error *err)
{
    int count = H5Tget_nmembers(type);

    if (count <= 0 || count > JOULE_COLUMNS_MAX)
        return joule_error_set(err, ENOTSUP,
                               "a table has %d columns (up to %d are read)",
                               count, JOULE_COLUMNS_MAX);
    for (int i = 0; i < count; i++) {
        struct joule_column *column = &ret->column[i];
        hid_t member = H5Tget_member_type(type, (unsigned)i);

        if (member < 0)
            return joule_hdf_error(err, EBADMSG, "a column has no type");
        read_column(member, column);
        if (is_elsewhere(member)) {
            H5Tclose(member);
            return joule_error_set(err, ENOTSUP,
                                   "a column is of no fixed length");
        }
        H5Tclose(member);
        column->offset = (uint32_t)H5Tget_member_offset(type, (unsigned)i);
        if (read_name(type, (unsigned)i, column, err) < 0)
            return -1;
    }
    ret->count = (uint32_t)count;
    return 0;
}

int joule_rowtype_read(hid_t type, struct joule_rowtype *ret,
                       struct joule_error *err)
{
    size_t size = H5Tget_size(type);

    /* It is large: columns are cleared as they are filled. */
    memset(ret, 0, offsetof(struct joule_rowtype, column));
    if (size == 0 || size > JOULE_ROW_MAX)
        return joule_error_set(err, ENOTSUP,
                               "a row of %zu bytes (up to %d are read)", size,
                               JOULE_ROW_MAX);
    ret->size = (uint32_t)size;
    if (H5Tget_class(type) == H5T_COMPOUND) {
        ret->is_compound = 1;
        if (read_members(type, ret, err) < 0)
            return -1;
    } else {
        read_column(type, &ret->column[0]);
        ret->count = 1;
    }
    if (joule_rowtype_check(ret, joule_rowtype_bytes(ret)) < 0)
        return joule_error_set(err, EBADMSG,
                               "the columns of a table overlap "
                               "or leave its rows");
    return 0;
}

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
        return is_number_size(column->size) && column->big_endian <= 1;
    case JOULE_KIND_FLOAT:
        return (column->size == 4 || column->size == 8) &&
               column->big_endian <= 1;
    case JOULE_KIND_STRING:
        return column->pad <= H5T_STR_SPACEPAD && column->cset <= H5T_CSET_UTF8;
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

static hid_t make_element(const struct joule_column *column)
{
    hid_t type;

    switch (column->kind) {
    case JOULE_KIND_UNSIGNED:
    case JOULE_KIND_SIGNED:
        type = H5Tcopy(column->kind == JOULE_KIND_SIGNED ? H5T_STD_I8LE
                                                         : H5T_STD_U8LE);
        break;
    case JOULE_KIND_FLOAT:
        type = H5Tcopy(column->size == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE);
        break;
    case JOULE_KIND_STRING:
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, column->size);
        H5Tset_strpad(type, (H5T_str_t)column->pad);
        H5Tset_cset(type, (H5T_cset_t)column->cset);
        return type;
    default:
        type = H5Tcreate(H5T_OPAQUE, column->size);
        H5Tset_tag(type, "bytes");
        return type;
    }
    if (column->kind != JOULE_KIND_FLOAT) {
        H5Tset_size(type, column->size);
        H5Tset_precision(type, column->size * 8);
    }
    if (column->big_endian)
        H5Tset_order(type, H5T_ORDER_BE);
    return type;
}

static hid_t make_column(const struct joule_column *column)
{
    hsize_t length = column->count;
    hid_t element = make_element(column);
    hid_t array;

    if (length == 1)
        return element;
    array = H5Tarray_create2(element, 1, &length);
    H5Tclose(element);
    return array;
}

hid_t joule_rowtype_make(const struct joule_rowtype *type)
{
    hid_t compound;

    if (!type->is_compound)
        return make_column(&type->column[0]);
    compound = H5Tcreate(H5T_COMPOUND, type->size);
    for (uint32_t i = 0; i < type->count; i++) {
        const struct joule_column *column = &type->column[i];
        hid_t member = make_column(column);

        if (H5Tinsert(compound, column->name, column->offset, member) < 0) {
            H5Tclose(member);
            H5Tclose(compound);
            return -1;
        }
        H5Tclose(member);
    }
    return compound;
}

unsigned char *joule_rowtype_encode(const struct joule_rowtype *type,
                                    size_t *ret_size)
{
    /* H5Tencode puts the kind of message and a version in front. */
    const size_t front = 2;
    hid_t id = joule_rowtype_make(type);
    unsigned char *bytes = NULL;
    size_t size = 0;

    if (id < 0)
        return NULL;
    if (H5Tencode(id, NULL, &size) >= 0 && size > front)
        bytes = malloc(size);
    if (bytes && (H5Tencode(id, bytes, &size) < 0 || bytes[0] != 3)) {
        free(bytes);
        bytes = NULL;
    }
    H5Tclose(id);
    if (!bytes)
        return NULL;
    *ret_size = size - front;
    memmove(bytes, bytes + front, *ret_size);
    return bytes;
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
