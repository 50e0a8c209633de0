/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hdf5_driver.h - libhdf5 on a descriptor that the caller has opened and
 * checked.
 *
 *     joule_hdf5_prepare();
 *     file = joule_hdf5_create_fd(fd, &err);
 *     ... H5Gcreate2(file, ...), H5Dwrite(...) ...
 *     joule_hdf5_close(file, &err);
 *
 * libhdf5 opens files by name, and follows the names that stand in a file
 * (external links, external storage).  This file driver gives it one descriptor
 * and no name: whatever a file says, no other file is opened.  It works where
 * open(2) is forbidden (worker.h): it reads, writes and cuts that descriptor
 * and nothing else.
 *
 * Small reads and writes, of which libhdf5 does dozens for an object, go
 * through a buffer of 64 KiB.
 *
 * A write that fails is remembered, and later ones are dropped: libhdf5 1.10
 * leaks its metadata cache when a file cannot be flushed.  joule_hdf5_close
 * reports the first error; joule_hdf5_write_error tells it before that.
 *
 * All functions but the first two take files that were opened here.
 * The descriptor stays the caller's, must outlive the file, and its offset is
 * not used.  libhdf5 is not thread-safe: one thread at a time.
 */
#ifndef JOULE_PROFILE_HDF5_DRIVER_H
#define JOULE_PROFILE_HDF5_DRIVER_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

/* Before the first use of libhdf5 in a process: it prints nothing on stderr and
 * loads no code (filters) that a file asks for. */
void joule_hdf5_prepare(void);

/* H5Fcreate on the empty regular file [fd], open for reading and writing.
 * Negative with errno and a sentence: EINVAL (the file is not empty), EIO,
 * ENOMEM or errno of fstat(2). */
hid_t joule_hdf5_create_fd(int fd, struct joule_error *err);

/*
 * H5Fopen on [fd], for reading.  A file that its writer has not closed, or
 * whose end is missing, is opened, too: objects behind the end cannot be read,
 * others can.  Negative with errno and a sentence: EBADMSG (no HDF5 file, or
 * damaged), ENOMEM or errno of fstat(2).
 */
hid_t joule_hdf5_open_fd(int fd, struct joule_error *err);

/* H5Fopen on [fd], for reading and writing, of a file that is whole and closed:
 * whoever is interrupted leaves a file that is neither.  Negative as above. */
hid_t joule_hdf5_change_fd(int fd, struct joule_error *err);

/* Whether the end of an opened file is missing. */
bool joule_hdf5_is_cut(hid_t file);

/* Bytes of the file that an object is in, without an end that is missing. */
uint64_t joule_hdf5_size(hid_t object);

/* Write out what is buffered and close the file and all objects of it that are
 * still open.  A negative [file] is no failure.  -1 with a sentence and errno
 * of the first write that failed, or EIO if libhdf5 could not close the file.
 */
int joule_hdf5_close(hid_t file, struct joule_error *err);

/* errno of the first write that failed; 0: none has. */
int joule_hdf5_write_error(hid_t file);

/* Close an object; a negative one is no failure. */
static inline void joule_hdf5_release(hid_t object)
{
    if (object >= 0)
        H5Idec_ref(object);
}

/* A new attribute of one element, of [type] in the file.  -1: see libhdf5. */
int joule_hdf5_put_attribute(hid_t object, const char *name, hid_t type,
                             hid_t memory, const void *value);

/* [count] rows of [type] in memory to the end of a table that has [at].  -1: see
 * libhdf5. */
int joule_hdf5_append(hid_t set, hid_t type, uint64_t at, const void *rows,
                      uint64_t count);

/* "WHAT: REASON", where REASON is the innermost line of libhdf5's error stack,
 * which is cleared.  Sets errno to [errnum] and returns -1. */
int joule_hdf5_error(struct joule_error *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
