/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hdftable.h - open a table with libhdf5.
 */
#ifndef JOULE_LIBHDF5_HDFTABLE_H
#define JOULE_LIBHDF5_HDFTABLE_H

#include <hdf5.h>
#include <stdbool.h>

#include "common/store/rows.h"

/*
 * [name] in group [parent] of the file of [windows].  [has_places]: libhdf5's
 * addresses count from the beginning of the file; then chunks are read without
 * libhdf5 where they can be.  *ret_dataset (for its attributes; optional) stays
 * the table's.  NULL with a sentence: ENOTSUP (not a table, filters or sizes
 * that are not read, data outside of the file), EBADMSG (damaged), ENOMEM.
 */
struct joule_rows *joule_hdftable_open(hid_t parent, const char *name,
                                       struct joule_windows *windows,
                                       bool has_places, hid_t *ret_dataset,
                                       struct joule_error *err);

#endif
