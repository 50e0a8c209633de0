/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of drivers is described in "HDF5 Virtual File Layer"
 * (docs.hdfgroup.org) and H5FDpublic.h.
 */
#include "common/store/filedriver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOWS     4
#define WINDOW_SIZE ((size_t)256 << 10)

#define WRITEBACK_SIZE ((haddr_t)8 << 20)

/* The largest address, less than any signed offset. */
#define ADDRESS_MAX ((haddr_t)INT64_MAX / 2)

/* A stretch of the file in memory, read only. */
struct window {
    unsigned char *data; /* NULL: not yet */
    haddr_t start;
    size_t length;
    unsigned used; /* the larger, the later */
};

struct access_info {
    struct joule_filedriver *driver;
};

struct file {
    H5FD_t pub; /* libhdf5's part comes first */
    struct joule_filedriver *driver;
    haddr_t eoa, size;
    bool is_writable;
    haddr_t unsent; /* written since the disk was last told to begin */
    unsigned now;
    struct window window[WINDOWS];
};

static H5FD_t *file_open(const char *name, unsigned flags, hid_t fapl,
                         haddr_t maxaddr)
{
    const struct access_info *info = H5Pget_driver_info(fapl);
    struct file *file;
    struct stat st;

    (void)name;
    (void)maxaddr;
    if (!info || fstat(info->driver->fd, &st) < 0)
        return NULL;
    file = calloc(1, sizeof(*file));
    if (!file)
        return NULL;
    file->driver = info->driver;
    file->is_writable = (flags & H5F_ACC_RDWR) != 0;
    file->size = (haddr_t)st.st_size;
    return &file->pub;
}

static herr_t file_close(H5FD_t *pub)
{
    struct file *file = (struct file *)pub;

    for (int i = 0; i < WINDOWS; i++)
        free(file->window[i].data);
    free(file);
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
        *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA |
                 H5FD_FEAT_ACCUMULATE_METADATA_WRITE |
                 H5FD_FEAT_SUPPORTS_SWMR_IO;
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
    return file->driver->is_cut ? ADDRESS_MAX : file->size;
}

/* Exactly [size] bytes. */
static int read_exactly(int fd, void *buf, size_t size, haddr_t at)
{
    char *to = buf;

    while (size > 0) {
        ssize_t n = pread(fd, to, size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        to += n;
        size -= (size_t)n;
        at += (haddr_t)n;
    }
    return 0;
}

/* The window that begins at or before [at] and holds it, else the one that was
 * used longest ago, filled anew.  NULL: it cannot be read. */
static struct window *find_window(struct file *file, haddr_t at, size_t size)
{
    struct window *oldest = &file->window[0];
    size_t length = WINDOW_SIZE;

    for (int i = 0; i < WINDOWS; i++) {
        struct window *w = &file->window[i];

        if (at >= w->start && at + size <= w->start + w->length) {
            w->used = ++file->now;
            return w;
        }
        if (w->used < oldest->used)
            oldest = w;
    }
    if (length > file->size - at)
        length = (size_t)(file->size - at);
    if (!oldest->data)
        oldest->data = malloc(WINDOW_SIZE);
    oldest->length = 0;
    if (!oldest->data ||
        read_exactly(file->driver->fd, oldest->data, length, at) < 0)
        return NULL;
    oldest->start = at;
    oldest->length = length;
    oldest->used = ++file->now;
    return oldest;
}

static herr_t file_read(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t at,
                        size_t size, void *buf)
{
    struct file *file = (struct file *)pub;
    struct window *w;

    (void)type;
    (void)dxpl;
    if (file->is_writable || size > WINDOW_SIZE / 2) {
        ssize_t n;

        if (at > ADDRESS_MAX || size > SSIZE_MAX)
            return -1;
        if (!file->is_writable)
            return at > file->size || size > file->size - at
                       ? -1
                       : read_exactly(file->driver->fd, buf, size, at);
        /* What has not been written yet is zero. */
        n = pread(file->driver->fd, buf, size, (off_t)at);
        if (n < 0)
            return -1;
        memset((char *)buf + n, 0, size - (size_t)n);
        return 0;
    }
    if (at > file->size || size > file->size - at)
        return -1;
    w = find_window(file, at, size);
    if (!w)
        return -1;
    memcpy(buf, w->data + (at - w->start), size);
    return 0;
}

/* The disk begins before all is written: who syncs the file in the end does
 * not wait for all of it. */
static void start_writeback(struct file *file, haddr_t bytes)
{
    file->unsent += bytes;
    if (file->unsent < WRITEBACK_SIZE)
        return;
    file->unsent = 0;
    sync_file_range(file->driver->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static herr_t file_write(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t at,
                         size_t size, const void *buf)
{
    struct file *file = (struct file *)pub;
    const char *from = buf;
    haddr_t start = at;

    (void)type;
    (void)dxpl;
    if (!file->is_writable || at > ADDRESS_MAX)
        return -1;
    while (size > 0) {
        ssize_t n = pwrite(file->driver->fd, from, size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (file->driver->write_errno == 0)
                file->driver->write_errno = n < 0 ? errno : ENOSPC;
            return -1;
        }
        from += n;
        size -= (size_t)n;
        at += (haddr_t)n;
    }
    if (at > file->size)
        file->size = at;
    start_writeback(file, at - start);
    return 0;
}

static herr_t file_truncate(H5FD_t *pub, hid_t dxpl, hbool_t closing)
{
    struct file *file = (struct file *)pub;

    (void)dxpl;
    (void)closing;
    if (!file->is_writable || file->eoa == file->size)
        return 0;
    if (ftruncate(file->driver->fd, (off_t)file->eoa) < 0) {
        if (file->driver->write_errno == 0)
            file->driver->write_errno = errno;
        return -1;
    }
    file->size = file->eoa;
    return 0;
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
    .truncate = file_truncate,
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
