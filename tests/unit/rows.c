/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/rows.h"

#include <check.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/profile/convert.h"
#include "common/profile/hdf5_driver.h"

const struct joule_field rows_fields[ROWS_FIELDS] = {
    {"Power", JOULE_FIELD_U64},
    {"node_uJ", JOULE_FIELD_U64},
    {"package_0_mW", JOULE_FIELD_DOUBLE},
};

#define WIDTH (ROWS_FIELDS + 3)

void rows_make(uint64_t row[WIDTH], unsigned table, uint64_t i)
{
    double mw = (double)i * 1.5 + table;

    row[0] = i;
    row[1] = 1700000000 + i;
    row[2] = (i * 2654435761u) % 400 + table;
    row[3] = i * 1000003 + table;
    memcpy(&row[4], &mw, sizeof(mw));
    row[5] = i * 10000000 + (i * 40503u) % 65536;
}

static long check(const uint64_t *rows, hsize_t count, unsigned table,
                  int cells_only)
{
    uint64_t row[WIDTH];
    hsize_t i;

    for (i = 0; i < count; i++) {
        rows_make(row, table, i);
        if (cells_only ? memcmp(rows + i * WIDTH + 2, row + 2,
                                ROWS_FIELDS * sizeof(*row))
                       : memcmp(rows + i * WIDTH, row, sizeof(row)))
            return -4;
    }
    return (long)count;
}

static long read_set(hid_t set, unsigned table, int cells_only)
{
    hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    hssize_t count = H5Sget_simple_extent_npoints(space);
    long rc = -3;
    uint64_t *rows;

    ck_assert_uint_eq(H5Tget_size(type), WIDTH * 8);
    ck_assert_int_eq(H5Tget_nmembers(type), WIDTH);
    rows = calloc((size_t)count + 1, WIDTH * 8);
    ck_assert_ptr_nonnull(rows);
    if (count == 0)
        rc = 0;
    else if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0)
        rc = check(rows, (hsize_t)count, table, cells_only);
    free(rows);
    H5Tclose(type);
    H5Sclose(space);
    return rc;
}

bool rows_convert(const char *log, const char *path)
{
    struct joule_convert_result result;
    struct joule_error err;
    int from, to, rc;

    from = open(log, O_RDONLY);
    if (from < 0)
        return false;
    to = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(to, 0);
    joule_hdf5_prepare();
    rc = joule_profile_convert(from, to, &result, &err);
    close(to);
    close(from);
    return rc == 0;
}

int64_t rows_open(const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
}

long rows_count_in(int64_t file, const char *name, unsigned table,
                   int cells_only)
{
    hid_t set;
    long rc;

    if (file < 0)
        return -1;
    set = H5Dopen2(file, name, H5P_DEFAULT);
    if (set < 0)
        return -2;
    rc = read_set(set, table, cells_only);
    H5Dclose(set);
    return rc;
}

void rows_close(int64_t file)
{
    if (file >= 0)
        H5Fclose(file);
}

long rows_count(const char *path, const char *name, unsigned table,
                int cells_only)
{
    int64_t file = rows_open(path);
    long rc = rows_count_in(file, name, table, cells_only);

    rows_close(file);
    return rc;
}

uint64_t rows_attribute(const char *path, const char *object, const char *name)
{
    hid_t file, attribute;
    uint64_t value = 0;

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_msg(file >= 0, "cannot open %s", path);
    attribute = H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_msg(attribute >= 0, "no attribute %s of %s", name, object);
    ck_assert(H5Aread(attribute, H5T_NATIVE_UINT64, &value) >= 0);
    H5Aclose(attribute);
    H5Fclose(file);
    return value;
}

void rows_has_text(const char *path, const char *object, const char *name,
                   const char *text)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t attribute =
        H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute);
    char is[64] = "";

    ck_assert_uint_eq(H5Tget_size(type), strlen(text));
    ck_assert(H5Aread(attribute, type, is) >= 0);
    ck_assert_str_eq(is, text);
    H5Tclose(type);
    H5Aclose(attribute);
    H5Fclose(file);
}
