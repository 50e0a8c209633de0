/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of drivers is described in "HDF5 Virtual File Layer"
 * (docs.hdfgroup.org) and H5FDpublic.h.
 */
#include "common/libhdf5/filedriver.h"

#include <stdlib.h>

/* The largest address, less than any signed offset. */
#define ADDRESS_MAX ((haddr_t)INT64_MAX / 2)

struct access_info {
    struct joule_filedriver *driver;
};

struct file {
    H5FD_t pub; /* libhdf5's part comes first */
    struct joule_filedriver *driver;
    haddr_t eoa;
};

static H5FD_t *file_open(const char *name, unsigned flags, hid_t fapl,
                         haddr_t maxaddr)
{
    const struct access_info *info = H5Pget_driver_info(fapl);
    struct file *file;

    (void)name;
    (void)flags;
    (void)maxaddr;
    if (!info)
        return NULL;
    file = calloc(1, sizeof(*file));
    if (!file)
        return NULL;
    file->driver = info->driver;
    return &file->pub;
}

static herr_t file_close(H5FD_t *pub)
{
    free(pub);
    return 0;
}

/* A descriptor is one file: two of them are never taken to be the same. */
static int file_compare(const H5FD_t *a, const H5FD_t *b)
{
    return a < b ? -1 : a > b;
}

static herr_t file_query(const H5FD_t *pub, unsigned long *flags)
{
    (void)pub;
    if (flags)
        *flags = H5FD_FEAT_SUPPORTS_SWMR_IO;
    return 0;
}

static haddr_t file_get_eoa(const H5FD_t *pub, H5FD_mem_t type)
{
    (void)type;
    return ((const struct file *)pub)->eoa;
}

static herr_t file_set_eoa(H5FD_t *pub, H5FD_mem_t type, haddr_t addr)
{
    (void)type;
    ((struct file *)pub)->eoa = addr;
    return 0;
}

static haddr_t file_get_eof(const H5FD_t *pub, H5FD_mem_t type)
{
    const struct file *file = (const struct file *)pub;

    (void)type;
    return file->driver->is_cut ? ADDRESS_MAX
                                : joule_windows_size(file->driver->windows);
}

static herr_t file_read(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t at,
                        size_t size, void *buf)
{
    struct file *file = (struct file *)pub;

    (void)type;
    (void)dxpl;
    return joule_windows_read(file->driver->windows, at, size, buf);
}

/* libhdf5 wants one of every driver. */
static herr_t file_write(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t at,
                         size_t size, const void *buf)
{
    (void)pub;
    (void)type;
    (void)dxpl;
    (void)at;
    (void)size;
    (void)buf;
    return -1;
}

static const H5FD_class_t driver_class = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600,
#endif
    .name = "joule",
    .maxaddr = ADDRESS_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(struct access_info),
    .open = file_open,
    .close = file_close,
    .cmp = file_compare,
    .query = file_query,
    .get_eoa = file_get_eoa,
    .set_eoa = file_set_eoa,
    .get_eof = file_get_eof,
    .read = file_read,
    .write = file_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t joule_filedriver_list(struct joule_filedriver *driver, hid_t *ret_driver)
{
    struct access_info info = {driver};
    hid_t id = H5FDregister(&driver_class);
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);

    if (id < 0 || list < 0 || H5Pset_driver(list, id, &info) < 0) {
        if (list >= 0)
            H5Pclose(list);
        if (id >= 0)
            H5FDunregister(id);
        return -1;
    }
    *ret_driver = id;
    return list;
}
