/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * readtype.h - the columns of a table, by libhdf5.
 */
#ifndef JOULE_LIBHDF5_READTYPE_H
#define JOULE_LIBHDF5_READTYPE_H

#include <hdf5.h>

#include "common/store/rowtype.h"

/* What [type] of a file is.  ENOTSUP with a sentence if it has more columns,
 * longer names or longer rows than there is room for here. */
int joule_rowtype_read(hid_t type, struct joule_rowtype *ret,
                       struct joule_error *err);

#endif
