/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plaintype.h - types as they stand in a file, read without libhdf5.
 *
 * Those that nearly all profiles are made of (HDF5 File Format Specification
 * 3.0, IV.A.2.d): integers and IEEE 754 numbers of low byte first, strings of
 * fixed length, and compounds of them in the first version of their format.
 */
#ifndef JOULE_STORE_PLAINTYPE_H
#define JOULE_STORE_PLAINTYPE_H

#include <stddef.h>

#include "common/store/rowtype.h"

/* What joule_rowtype_read says of the type that the [size] bytes of a message
 * describe.  -1 with ENOTSUP: another one, or damaged. */
int joule_plaintype_read(const unsigned char *bytes, size_t size,
                         struct joule_rowtype *ret);

#endif
