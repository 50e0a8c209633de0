/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/libhdf5/readattr.h"

#include <stddef.h>
#include <string.h>

#include "common/libhdf5/readtype.h"

/* It is a scalar or has one element. */
static int read_text(hid_t id, hid_t type, struct joule_attribute *a)
{
    char *text = NULL;
    size_t len;

    if (H5Aread(id, type, &text) < 0 || !text)
        return -1;
    len = strnlen(text, JOULE_ATTRIBUTE_MAX);
    a->type.count = 1;
    a->type.column[0].kind = JOULE_KIND_STRING;
    a->type.column[0].count = 1;
    a->type.column[0].cset = (uint8_t)H5Tget_cset(type);
    a->bytes = a->type.size = a->type.column[0].size =
        (uint32_t)(len > 0 ? len : 1);
    memcpy(a->data, text, len > 0 ? len : 1);
    H5free_memory(text);
    return len < JOULE_ATTRIBUTE_MAX ? 0 : -1;
}

static int read_typed(hid_t id, hid_t type, hid_t space,
                      struct joule_attribute *a)
{
    hsize_t elements = 1;
    H5T_class_t class = H5Tget_class(type);
    int rank = H5Sget_simple_extent_ndims(space);

    memset(&a->type, 0,
           offsetof(struct joule_rowtype, column) + sizeof(a->type.column[0]));
    if (rank < 0 || rank > 1 || H5Sget_simple_extent_type(space) == H5S_NULL ||
        H5Sget_simple_extent_dims(space, &elements, NULL) < 0)
        return -1;
    a->elements = rank == 0 ? 0 : (uint32_t)elements;
    if (class == H5T_STRING && H5Tis_variable_str(type) > 0)
        return elements == 1 ? read_text(id, type, a) : -1;
    if ((class != H5T_INTEGER && class != H5T_STRING && class != H5T_FLOAT &&
         (H5Tdetect_class(type, H5T_VLEN) != 0 ||
          H5Tdetect_class(type, H5T_REFERENCE) != 0)) ||
        joule_rowtype_read(type, &a->type, NULL) < 0 || elements == 0 ||
        elements > JOULE_ATTRIBUTE_MAX / a->type.size)
        return -1;
    a->bytes = (uint32_t)elements * a->type.size;
    return H5Aread(id, type, a->data) < 0 ? -1 : 0;
}

int joule_readattr(hid_t object, const char *name, struct joule_attribute *a)
{
    hid_t id = H5Aopen(object, name, H5P_DEFAULT), type = -1, space = -1;
    int rc = -1;

    if (id >= 0) {
        type = H5Aget_type(id);
        space = H5Aget_space(id);
    }
    if (type >= 0 && space >= 0)
        rc = read_typed(id, type, space, a);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (id >= 0)
        H5Aclose(id);
    H5Eclear2(H5E_DEFAULT);
    return rc;
}
