/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/libhdf5/hdftable.h"

#include <errno.h>
#include <stdlib.h>

#include "common/libhdf5/hdferror.h"
#include "common/libhdf5/readlayout.h"

struct table {
    hid_t dataset, space, type;
    struct joule_layout layout; /* large */
};

static void table_close(void *arg)
{
    struct table *t = arg;

    if (t->type >= 0)
        H5Tclose(t->type);
    if (t->space >= 0)
        H5Sclose(t->space);
    if (t->dataset >= 0)
        H5Dclose(t->dataset);
    H5Eclear2(H5E_DEFAULT);
    free(t);
}

/* Bytes of the chunk at row [first], with its filters on; 0: there is none. */
static size_t stored_size(const struct table *t, uint64_t first)
{
    hsize_t offset = first, size = 0;

    if (H5Dget_chunk_storage_size(t->dataset, &offset, &size) >= 0)
        return (size_t)size;
    H5Eclear2(H5E_DEFAULT);
    return 0;
}

static size_t table_chunk(void *arg, uint64_t first, void *buf, size_t room,
                          uint32_t *ret_mask)
{
    const struct table *t = arg;
    hsize_t offset = first;
    size_t size = stored_size(t, first);

    if (size == 0 || size > room)
        return 0;
    if (H5Dread_chunk(t->dataset, H5P_DEFAULT, &offset, ret_mask, buf) >= 0)
        return size;
    H5Eclear2(H5E_DEFAULT);
    return 0;
}

/* Whether there is data at row [first] at all: libhdf5 makes up rows where
 * there is none. */
static bool is_stored(const struct table *t, uint64_t first)
{
    if (t->layout.chunk_rows > 0)
        return stored_size(t, first) > 0;
    return H5Dget_storage_size(t->dataset) > 0;
}

static int table_rows(void *arg, uint64_t first, uint64_t count, void *out)
{
    const struct table *t = arg;
    hsize_t start = first, length = count;
    herr_t rc = -1;
    hid_t memory;

    if (!is_stored(t, first))
        return -1;
    memory = H5Screate_simple(1, &length, NULL);
    if (memory >= 0 && H5Sselect_hyperslab(t->space, H5S_SELECT_SET, &start,
                                           NULL, &length, NULL) >= 0)
        rc = H5Dread(t->dataset, t->type, memory, t->space, H5P_DEFAULT, out);
    if (memory >= 0)
        H5Sclose(memory);
    if (rc < 0)
        H5Eclear2(H5E_DEFAULT);
    return rc < 0 ? -1 : 0;
}

static const struct joule_rows_reader table_reader = {
    .chunk = table_chunk,
    .rows = table_rows,
    .close = table_close,
};

static bool has_pointers(hid_t type)
{
    return H5Tdetect_class(type, H5T_VLEN) != 0 ||
           H5Tdetect_class(type, H5T_REFERENCE) != 0 ||
           (H5Tdetect_class(type, H5T_STRING) != 0 &&
            H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) != 0);
}

static int open_table(struct table *t, hid_t parent, const char *name,
                      struct joule_error *err)
{
    hid_t list = -1;
    int rc = -1;

    t->dataset = H5Dopen2(parent, name, H5P_DEFAULT);
    if (t->dataset >= 0) {
        list = H5Dget_create_plist(t->dataset);
        t->space = H5Dget_space(t->dataset);
        t->type = H5Dget_type(t->dataset);
    }
    if (list < 0 || t->space < 0 || t->type < 0)
        joule_hdf_error(err, EBADMSG, "it cannot be opened");
    else if (has_pointers(t->type))
        joule_error_set(err, ENOTSUP, "its rows are of no fixed length");
    else
        rc = joule_layout_read(list, t->space, t->type, &t->layout, err);
    if (list >= 0)
        H5Pclose(list);
    return rc;
}

/* Where its object header is; 0: not known. */
static uint64_t header_of(hid_t dataset)
{
    H5O_info_t info;

#if H5_VERSION_GE(1, 10, 3)
    if (H5Oget_info2(dataset, &info, H5O_INFO_BASIC) >= 0)
#else
    if (H5Oget_info(dataset, &info) >= 0)
#endif
        return info.addr;
    H5Eclear2(H5E_DEFAULT);
    return 0;
}

struct joule_rows *joule_hdftable_open(hid_t parent, const char *name,
                                       struct joule_windows *windows,
                                       bool has_places, hid_t *ret_dataset,
                                       struct joule_error *err)
{
    struct table *t = calloc(1, sizeof(*t));

    if (!t) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    t->dataset = t->space = t->type = -1;
    if (open_table(t, parent, name, err) < 0) {
        int saved = errno;

        table_close(t);
        errno = saved;
        return NULL;
    }
    if (ret_dataset)
        *ret_dataset = t->dataset;
    return joule_rows_create_read(&t->layout, windows,
                                  has_places ? header_of(t->dataset) : 0,
                                  &table_reader, t, err);
}
