/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/attribute.h"

#include <string.h>

static int make(hid_t object, const char *name, hid_t file_type,
                hid_t memory_type, const void *value)
{
    hsize_t one = 1;
    hid_t space = H5Screate_simple(1, &one, &one), attribute = -1;
    int rc = -1;

    if (space < 0)
        return -1;
    attribute =
        H5Acreate2(object, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute >= 0 && H5Awrite(attribute, memory_type, value) >= 0)
        rc = 0;
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    return rc;
}

int joule_attribute_i32(hid_t object, const char *name, int32_t value)
{
    return make(object, name, H5T_STD_I32LE, H5T_NATIVE_INT32, &value);
}

int joule_attribute_u64(hid_t object, const char *name, uint64_t value)
{
    return make(object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value);
}

int joule_attribute_text(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    size_t length = strlen(text);
    int rc = -1;

    if (type < 0)
        return -1;
    /* As Slurm's: of the length of the text.  There is no string of none. */
    if (H5Tset_size(type, length ? length : 1) >= 0)
        rc = make(object, name, type, type, text);
    H5Tclose(type);
    return rc;
}

int joule_attribute_set_u64(hid_t object, const char *name, uint64_t value)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    int rc = -1;

    if (attribute < 0)
        return -1;
    if (H5Awrite(attribute, H5T_NATIVE_UINT64, &value) >= 0)
        rc = 0;
    H5Aclose(attribute);
    return rc;
}
