/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * readlayout.h - how a table lies in its file, by libhdf5.
 */
#ifndef JOULE_LIBHDF5_READLAYOUT_H
#define JOULE_LIBHDF5_READLAYOUT_H

#include <hdf5.h>

#include "common/store/layout.h"

/* Of the data set with that creation list, space and type, into *ret, which is
 * all zeros.  -1 with a sentence: ENOTSUP (no table, or sizes or filters that
 * are not read, or data outside of the file), EBADMSG (damaged). */
int joule_layout_read(hid_t list, hid_t space, hid_t type,
                      struct joule_layout *ret, struct joule_error *err);

#endif
