/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * typeencode.h - write the columns of a table as they stand in a file.
 */
#ifndef JOULE_STORE_TYPEENCODE_H
#define JOULE_STORE_TYPEENCODE_H

#include <stddef.h>

#include "common/store/rowtype.h"

/*
 * A message of type 0x0003 (HDF5 File Format Specification 3.0, IV.A.2.d), byte
 * for byte what libhdf5 makes of such a type, in memory that the caller frees.
 * [type] keeps joule_rowtype_check's bounds.  NULL: ENOMEM, or EINVAL: two
 * columns have the same name or overlap, which libhdf5 does not read.
 */
unsigned char *joule_rowtype_encode(const struct joule_rowtype *type,
                                    size_t *ret_size);

#endif
