/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/libhdf5/readtype.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/libhdf5/hdferror.h"

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
    return joule_is_number_size(size) && H5Tget_precision(type) == size * 8 &&
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
