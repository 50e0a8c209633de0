/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of drivers is described in "HDF5 Virtual File Layer"
 * (docs.hdfgroup.org), H5FDpublic.h and, from 1.14 on, H5FDdevelop.h.
 */
#include "common/profile/hdf5_driver.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name of no file.  libhdf5 2.x asks where a name that is not absolute
 * belongs, and aborts where that cannot be said. */
#define NAME "/joule"

/* The largest address, less than any signed offset. */
#define ADDRESS_MAX ((haddr_t)INT64_MAX / 2)

/* The most that is written at once of what is written in pieces. */
#define BUFFER_SIZE ((size_t)64 << 10)

#define ERROR_TEXTS 160
#define CACHE_MAX   ((size_t)1 << 20)

/* What the file access list hands to file_open. */
struct access_info {
    int fd;
    bool is_written; /* or only read */
    bool is_cut;     /* open the file although its end is missing */
};

struct file {
    H5FD_t pub; /* libhdf5's part comes first */
    int fd;
    bool is_written, is_cut;
    haddr_t eoa; /* end of what libhdf5 has allocated */
    haddr_t eof; /* end of what has been written */
    int error;   /* errno of the first write that failed */
    /* Writing: the bytes that go to [at]; reading: those that are there. */
    unsigned char buffer[BUFFER_SIZE];
    haddr_t at;
    size_t used;
};

/* All of it, at [at]. */
static void write_disk(struct file *file, haddr_t at, const void *buf,
                       size_t size)
{
    const unsigned char *from = buf;

    while (size > 0 && file->error == 0) {
        ssize_t n = pwrite(file->fd, from, size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            file->error = n < 0 && errno ? errno : ENOSPC;
        else {
            from += n;
            at += (haddr_t)n;
            size -= (size_t)n;
        }
    }
}

static void write_buffer(struct file *file)
{
    write_disk(file, file->at, file->buffer, file->used);
    file->used = 0;
}

/* Bytes behind the end are zeros, as in libhdf5's own drivers. */
static int read_disk(const struct file *file, haddr_t at, unsigned char *to,
                     size_t size)
{
    while (size > 0) {
        ssize_t n = pread(file->fd, to, size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        to += n;
        at += (haddr_t)n;
        size -= (size_t)n;
    }
    memset(to, 0, size);
    return 0;
}

static herr_t file_read(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t at,
                        size_t size, void *buf)
{
    struct file *file = (struct file *)pub;

    (void)type;
    (void)dxpl;
    /* What was dropped cannot be read back, and what is missing is no zero. */
    if (file->error || at > ADDRESS_MAX || size > ADDRESS_MAX - at ||
        (file->is_cut && at + size > file->eof))
        return -1;
    if (file->is_written) {
        write_buffer(file);
        return read_disk(file, at, buf, size);
    }
    if (size > BUFFER_SIZE)
        return read_disk(file, at, buf, size);
    if (at < file->at || at + size > file->at + file->used) {
        file->at = at - at % BUFFER_SIZE;
        if (at + size > file->at + BUFFER_SIZE)
            file->at = at;
        file->used = 0;
        if (read_disk(file, file->at, file->buffer, BUFFER_SIZE) < 0)
            return -1;
        file->used = BUFFER_SIZE;
    }
    memcpy(buf, file->buffer + (at - file->at), size);
    return 0;
}

/* Writes that follow one another are put together. */
static herr_t file_write(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t at,
                         size_t size, const void *buf)
{
    struct file *file = (struct file *)pub;

    (void)type;
    (void)dxpl;
    if (at > ADDRESS_MAX || size > ADDRESS_MAX - at || !file->is_written)
        return -1;
    if (at < file->at || at > file->at + file->used ||
        size > BUFFER_SIZE - (size_t)(at - file->at)) {
        write_buffer(file);
        file->at = at;
    }
    if (size > BUFFER_SIZE) {
        write_disk(file, at, buf, size);
    } else {
        memcpy(file->buffer + (at - file->at), buf, size);
        if (file->used < at + size - file->at)
            file->used = (size_t)(at + size - file->at);
    }
    if (file->eof < at + size)
        file->eof = at + size;
    return 0;
}

static herr_t file_flush(H5FD_t *pub, hid_t dxpl, hbool_t is_closing)
{
    (void)dxpl;
    (void)is_closing;
    write_buffer((struct file *)pub);
    return 0;
}

/* Make the file as long as libhdf5 has allocated. */
static herr_t file_truncate(H5FD_t *pub, hid_t dxpl, hbool_t is_closing)
{
    struct file *file = (struct file *)pub;

    (void)dxpl;
    (void)is_closing;
    write_buffer(file);
    if (file->error || file->eof == file->eoa)
        return 0;
    if (ftruncate(file->fd, (off_t)file->eoa) < 0)
        file->error = errno;
    else
        file->eof = file->eoa;
    return 0;
}

static herr_t file_close(H5FD_t *pub)
{
    free(pub);
    return 0;
}

static H5FD_t *file_open(const char *name, unsigned flags, hid_t fapl,
                         haddr_t maxaddr)
{
    const struct access_info *info = H5Pget_driver_info(fapl);
    struct file *file;
    struct stat st;

    (void)name;
    (void)flags;
    (void)maxaddr;
    if (!info || fstat(info->fd, &st) < 0)
        return NULL;
    file = calloc(1, sizeof(*file));
    if (!file)
        return NULL;
    file->fd = info->fd;
    file->is_written = info->is_written;
    file->is_cut = info->is_cut;
    file->eof = (haddr_t)st.st_size;
    return &file->pub;
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
        *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
                 H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
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
    return file->is_cut ? ADDRESS_MAX : file->eof;
}

/* For joule_hdf5_write_error. */
static herr_t file_get_handle(H5FD_t *pub, hid_t fapl, void **ret_handle)
{
    (void)fapl;
    *ret_handle = pub;
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
    .get_handle = file_get_handle,
    .read = file_read,
    .write = file_write,
    .flush = file_flush,
    .truncate = file_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* Objects of a file that libhdf5 keeps: by itself up to 32 MiB as they are in
 * the file, which is several times as much in memory, and slower than fewer. */
static herr_t bound_cache(hid_t list)
{
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};

    if (H5Pget_mdc_config(list, &config) < 0)
        return -1;
    config.max_size = CACHE_MAX;
    config.initial_size = config.min_size = CACHE_MAX / 2;
    return H5Pset_mdc_config(list, &config);
}

/* A file access list that makes H5Fopen and H5Fcreate use the descriptor of
 * [info].  An open file has its own reference to the driver. */
static hid_t access_list(const struct access_info *info)
{
    hid_t driver = H5FDregister(&driver_class);
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);

    /* For a file that is marked as open by a writer, libhdf5 would read what is
     * damaged a hundred times, and sleep in between for the writer to mend it:
     * one attempt is enough.  Of a file that is read, no chunks are kept: each
     * open table would have its own.  Whatever libhdf5 it is, files are laid out as
     * by Slurm's: from 2.0 on it would by itself take a newer form, which old readers
     * refuse, and which has the time of writing in it. */
    if (list >= 0 &&
        (driver < 0 || H5Pset_driver(list, driver, info) < 0 ||
         H5Pset_metadata_read_attempts(list, 1) < 0 || bound_cache(list) < 0 ||
         H5Pset_libver_bounds(list, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST) <
             0 ||
         (!info->is_written && H5Pset_cache(list, 0, 0, 0, 0.0) < 0))) {
        H5Pclose(list);
        list = -1;
    }
    if (driver >= 0)
        H5FDunregister(driver);
    return list;
}

void joule_hdf5_prepare(void)
{
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
}

static int check_file(int fd, bool is_new, struct joule_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return joule_error_set(err, errno, "the file cannot be examined: %m");
    if (is_new && st.st_size != 0)
        return joule_error_set(err, EINVAL, "the file is not empty");
    return 0;
}

hid_t joule_hdf5_create_fd(int fd, struct joule_error *err)
{
    const struct access_info info = {.fd = fd, .is_written = true};
    hid_t list, file = -1;

    if (check_file(fd, true, err) < 0)
        return -1;
    list = access_list(&info);
    if (list < 0)
        return joule_hdf5_error(err, ENOMEM, "cannot set up libhdf5");
    file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    H5Pclose(list);
    if (file < 0)
        joule_hdf5_error(err, EIO, "cannot begin an HDF5 file");
    return file;
}

static hid_t try_open(int fd, unsigned flags, bool is_cut)
{
    const struct access_info info = {
        .fd = fd, .is_cut = is_cut, .is_written = flags & H5F_ACC_RDWR};
    hid_t list = access_list(&info), file = -1;

    H5Eclear2(H5E_DEFAULT);
    if (list >= 0) {
        file = H5Fopen(NAME, flags, list);
        H5Pclose(list);
    }
    return file;
}

hid_t joule_hdf5_open_fd(int fd, struct joule_error *err)
{
    hid_t file;

    if (check_file(fd, false, err) < 0)
        return -1;
    file = try_open(fd, H5F_ACC_RDONLY, false);
    if (file < 0) /* perhaps marked as open by a writer that is gone */
        file = try_open(fd, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, false);
    if (file < 0)
        file = try_open(fd, H5F_ACC_RDONLY, true);
    if (file < 0)
        joule_hdf5_error(err, EBADMSG, "it is no HDF5 file or is damaged");
    return file;
}

hid_t joule_hdf5_change_fd(int fd, struct joule_error *err)
{
    hid_t file = -1;

    if (check_file(fd, false, err) < 0)
        return -1;
    file = try_open(fd, H5F_ACC_RDWR, false);
    if (file < 0)
        joule_hdf5_error(err, EBADMSG,
                         "it is no HDF5 file, damaged or being written");
    return file;
}

static const struct file *file_of(hid_t id)
{
    void *handle = NULL;

    if (H5Fget_vfd_handle(id, H5P_DEFAULT, &handle) >= 0)
        return handle;
    H5Eclear2(H5E_DEFAULT);
    return NULL;
}

int joule_hdf5_write_error(hid_t id)
{
    const struct file *file = file_of(id);

    return file ? file->error : EIO;
}

bool joule_hdf5_is_cut(hid_t id)
{
    const struct file *file = file_of(id);

    return file && file->is_cut;
}

uint64_t joule_hdf5_size(hid_t object)
{
    hid_t id = H5Iget_file_id(object);
    const struct file *file = id < 0 ? NULL : file_of(id);
    uint64_t size = file ? file->eof : 0;

    joule_hdf5_release(id);
    return size;
}

int joule_hdf5_close(hid_t id, struct joule_error *err)
{
    const struct file *file;
    int error = 0;

    if (id < 0)
        return 0;
    file = file_of(id);
    if (file && file->is_written) {
        /* Cuts the file to its length, too. */
        if (H5Fflush(id, H5F_SCOPE_GLOBAL) < 0)
            error = EIO;
        if (file->error)
            error = file->error;
    }
    if (H5Fclose(id) < 0 && error == 0)
        error = EIO;
    if (error == EIO)
        return joule_hdf5_error(err, EIO, "the HDF5 file cannot be written");
    H5Eclear2(H5E_DEFAULT);
    if (error)
        return joule_error_set(
            err, error, "the HDF5 file cannot be written: %s", strerror(error));
    return 0;
}

int joule_hdf5_put_attribute(hid_t object, const char *name, hid_t type,
                             hid_t memory, const void *value)
{
    hsize_t one = 1;
    hid_t space = H5Screate_simple(1, &one, NULL);
    hid_t id = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    herr_t rc = id < 0 ? -1 : H5Awrite(id, memory, value);

    joule_hdf5_release(id);
    H5Sclose(space);
    return rc < 0 ? -1 : 0;
}

int joule_hdf5_append(hid_t set, hid_t type, uint64_t at, const void *rows,
                      uint64_t count)
{
    hsize_t size = at + count, first = at, length = count;
    hid_t memory = H5Screate_simple(1, &length, NULL), space = -1;
    herr_t rc = H5Dset_extent(set, &size);

    if (rc >= 0)
        space = H5Dget_space(set);
    if (space < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL,
                                         &length, NULL) < 0)
        rc = -1;
    if (rc >= 0)
        rc = H5Dwrite(set, type, memory, space, H5P_DEFAULT, rows);
    joule_hdf5_release(space);
    H5Sclose(memory);
    return rc < 0 ? -1 : 0;
}

/* Called for each line of the stack; the first one is the innermost. */
static herr_t take_first(unsigned n, const H5E_error2_t *line, void *arg)
{
    char *reason = arg;

    if (n == 0 && line->desc)
        snprintf(reason, ERROR_TEXTS, "%s", line->desc);
    return 0;
}

int joule_hdf5_error(struct joule_error *err, int errnum, const char *fmt, ...)
{
    char what[JOULE_ERROR_MAX], reason[ERROR_TEXTS] = "";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, reason);
    H5Eclear2(H5E_DEFAULT);
    return joule_error_set(err, errnum, "%s%s%s", what, *reason ? ": " : "",
                           reason);
}
