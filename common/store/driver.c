/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/driver.h"

#include <stdlib.h>
#include <string.h>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

/* Of drivers that are not registered with the HDF Group: 256 to 511. */
#define DRIVER_VALUE 411

/* What HDF5 keeps of an open file; it wants its own struct first. */
struct file {
    H5FD_t base;
    struct joule_image *image;
};

struct info {
    struct joule_image *image;
};

static enum joule_image_kind kind_of(H5FD_mem_t type)
{
    switch (type) {
    case H5FD_MEM_DRAW:
        return JOULE_IMAGE_DATA;
    case H5FD_MEM_SUPER:
        return JOULE_IMAGE_SUPER;
    case H5FD_MEM_LHEAP:
    case H5FD_MEM_GHEAP:
        return JOULE_IMAGE_NAME;
    case H5FD_MEM_BTREE:
        return JOULE_IMAGE_INDEX;
    default:
        return JOULE_IMAGE_HEADER;
    }
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl,
                           haddr_t maxaddr)
{
    const struct info *info = H5Pget_driver_info(fapl);
    struct file *file;

    (void)name;
    (void)flags;
    (void)maxaddr;
    if (!info)
        return NULL;
    file = calloc(1, sizeof(*file));
    if (!file)
        return NULL;
    file->image = info->image;
    return &file->base;
}

static herr_t driver_close(H5FD_t *base)
{
    free((struct file *)base);
    return 0;
}

static int driver_cmp(const H5FD_t *a, const H5FD_t *b)
{
    uintptr_t x = (uintptr_t)((const struct file *)a)->image;
    uintptr_t y = (uintptr_t)((const struct file *)b)->image;

    return (x > y) - (x < y);
}

static herr_t driver_query(const H5FD_t *base, unsigned long *flags)
{
    (void)base;
    *flags = 0;
    return 0;
}

static haddr_t driver_alloc(H5FD_t *base, H5FD_mem_t type, hid_t dxpl,
                            hsize_t size)
{
    (void)dxpl;
    return joule_image_alloc(((struct file *)base)->image, kind_of(type), size);
}

/* Places that may be used again are told to the image by who knows that
 * nothing on disk refers to them. */
static herr_t driver_free(H5FD_t *base, H5FD_mem_t type, hid_t dxpl,
                          haddr_t addr, hsize_t size)
{
    (void)base;
    (void)type;
    (void)dxpl;
    (void)addr;
    (void)size;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return joule_image_end(((const struct file *)base)->image);
}

static herr_t driver_set_eoa(H5FD_t *base, H5FD_mem_t type, haddr_t addr)
{
    (void)type;
    joule_image_set_end(((struct file *)base)->image, addr);
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return joule_image_end(((const struct file *)base)->image);
}

static herr_t driver_read(H5FD_t *base, H5FD_mem_t type, hid_t dxpl,
                          haddr_t addr, size_t size, void *buffer)
{
    (void)type;
    (void)dxpl;
    return joule_image_read(((struct file *)base)->image, addr, buffer, size);
}

static herr_t driver_write(H5FD_t *base, H5FD_mem_t type, hid_t dxpl,
                           haddr_t addr, size_t size, const void *buffer)
{
    (void)dxpl;
    return joule_image_write(((struct file *)base)->image, kind_of(type), addr,
                             buffer, size);
}

static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 13, 2)
    .version = H5FD_CLASS_VERSION,
#endif
#if H5_VERSION_GE(1, 13, 0)
    .value = (H5FD_class_value_t)DRIVER_VALUE,
#endif
    .name = "joule",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(struct info),
    .open = driver_open,
    .close = driver_close,
    .cmp = driver_cmp,
    .query = driver_query,
    .alloc = driver_alloc,
    .free = driver_free,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .fl_map = H5FD_FLMAP_SINGLE,
};

/* No metadata is written before a flush asks for it: the order of writes is
 * the image's. */
static int keep_metadata(hid_t fapl)
{
    H5AC_cache_config_t cache = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};

    if (H5Pget_mdc_config(fapl, &cache) < 0)
        return -1;
    cache.evictions_enabled = false;
    cache.incr_mode = H5C_incr__off;
    cache.flash_incr_mode = H5C_flash_incr__off;
    cache.decr_mode = H5C_decr__off;
    return H5Pset_mdc_config(fapl, &cache);
}

/*
 * Nothing moves within a file that is read while it grows: no place is used
 * again by HDF5, and nodes hold as much as a page takes, 100 names and 120
 * chunks, so that they are hardly ever split.
 */
static int make_steady(hid_t fcpl)
{
    if (H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_NONE, false, 1) <
            0 ||
        H5Pset_sym_k(fcpl, 16, 50) < 0)
        return -1;
    return H5Pset_istore_k(fcpl, 60);
}

static hid_t create_with(hid_t driver, hid_t fapl, hid_t fcpl,
                         struct joule_image *image, bool compact)
{
    struct info info = {.image = image};

    if (H5Pset_driver(fapl, driver, &info) < 0 || keep_metadata(fapl) < 0 ||
        H5Pset_libver_bounds(fapl, H5F_LIBVER_EARLIEST, H5F_LIBVER_V110) < 0 ||
        H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) < 0)
        return -1;
    if (!compact && make_steady(fcpl) < 0)
        return -1;
    /* libhdf5 2.x asks for the working directory of a name that is not absolute,
     * and aborts where there is none. */
    return H5Fcreate("/joule", H5F_ACC_TRUNC, fcpl, fapl);
}

hid_t joule_driver_create(struct joule_image *image, bool compact)
{
    hid_t driver = H5FDregister(&driver_class);
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
    hid_t file = -1;

    if (driver >= 0 && fapl >= 0 && fcpl >= 0)
        file = create_with(driver, fapl, fcpl, image, compact);
    if (fcpl >= 0)
        H5Pclose(fcpl);
    if (fapl >= 0)
        H5Pclose(fapl);
    if (driver >= 0)
        H5FDunregister(driver);
    return file;
}
