/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * headers.h - the messages of an object header of version 1, as they stand in a
 * file (HDF5 File Format Specification 3.0, IV.A.1.a and IV.A.2).
 *
 * Nothing is believed: all is within the bytes that were read.  One thread at
 * a time.
 */
#ifndef JOULE_STORE_HEADERS_H
#define JOULE_STORE_HEADERS_H

#include "common/store/outline.h"

/* The message of a group: its tree of names, and their heap. */
struct joule_header_group {
    bool is_there;
    uint64_t tree, heap;
};

/*
 * Add the object of the header at [at], with its attributes, to the outline.
 * *ret: its members, if it is a group.  -1: ENOTSUP, ENOMEM.
 */
int joule_headers_read(struct joule_outline *outline,
                       struct joule_windows *windows, uint64_t at,
                       const char *name, unsigned depth,
                       struct joule_header_group *ret);

/* A copy of [size] bytes of the file that the outline keeps, with a NUL behind
 * them.  NULL: ENOTSUP (too much, or not in the file), ENOMEM. */
const unsigned char *joule_outline_keep(struct joule_outline *outline,
                                        struct joule_windows *windows,
                                        uint64_t at, uint64_t size);

#endif
