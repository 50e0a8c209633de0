/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/store/libhdf5.h"
#include "common/store/outlinewalk.h"

struct joule_reader {
    struct joule_windows *windows;
    struct joule_outline *outline; /* NULL: libhdf5 is asked */
    struct joule_libhdf5_file *file;
};

static const struct joule_libhdf5 *libhdf5;

int joule_reader_equip(struct joule_error *err)
{
    if (!libhdf5)
        libhdf5 = joule_libhdf5_load(err);
    return libhdf5 ? 0 : -1;
}

static int open_file(struct joule_reader *r, bool with_outline,
                     struct joule_error *err)
{
    if (with_outline)
        r->outline = joule_outline_read(r->windows);
    if (r->outline)
        return 0;
    if (!libhdf5)
        return joule_error_set(err, ELIBACC, "libhdf5 is not loaded");
    r->file = libhdf5->open(r->windows, err);
    return r->file ? 0 : -1;
}

static int check_file(int fd, uint64_t *ret_size, struct joule_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return joule_error_set(err, errno, "it cannot be examined: %m");
    if (!S_ISREG(st.st_mode))
        return joule_error_set(err, EINVAL, "it is no regular file");
    if (st.st_size == 0)
        return joule_error_set(err, ENODATA, "it is empty");
    *ret_size = (uint64_t)st.st_size;
    return 0;
}

static struct joule_reader *open_reader(int fd, bool with_outline,
                                        struct joule_error *err)
{
    struct joule_reader *r;
    uint64_t size = 0;

    if (check_file(fd, &size, err) < 0)
        return NULL;
    r = calloc(1, sizeof(*r));
    if (r)
        r->windows = joule_windows_create(fd, size);
    if (!r || !r->windows) {
        free(r);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    if (open_file(r, with_outline, err) < 0) {
        int saved = errno;

        joule_reader_close(r);
        errno = saved;
        return NULL;
    }
    return r;
}

struct joule_reader *joule_reader_open(int fd, struct joule_error *err)
{
    return open_reader(fd, true, err);
}

struct joule_reader *joule_reader_open_slowly(int fd, struct joule_error *err)
{
    return open_reader(fd, false, err);
}

void joule_reader_close(struct joule_reader *r)
{
    if (!r)
        return;
    if (r->file)
        libhdf5->close(r->file);
    joule_outline_destroy(r->outline);
    joule_windows_destroy(r->windows);
    free(r);
}

bool joule_reader_has_outline(const struct joule_reader *r)
{
    return r->outline != NULL;
}

bool joule_reader_is_cut(const struct joule_reader *r)
{
    return r->file && libhdf5->is_cut(r->file);
}

int joule_reader_walk(struct joule_reader *r, const char *path,
                      enum joule_walk how, const struct joule_visitor *visitor,
                      struct joule_error *err)
{
    if (r->outline)
        return joule_outline_walk(r->outline, r->windows, path, how, visitor,
                                  err);
    return libhdf5->walk(r->file, path, how, visitor, err);
}

struct joule_rows *joule_reader_table(struct joule_reader *r, const char *path,
                                      struct joule_error *err)
{
    if (r->outline)
        return joule_outline_rows(r->outline, r->windows, path, err);
    return libhdf5->table(r->file, path, err);
}
