/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * readattr.h - read an attribute with libhdf5, of whatever type it is.
 */
#ifndef JOULE_LIBHDF5_READATTR_H
#define JOULE_LIBHDF5_READATTR_H

#include <hdf5.h>

#include "common/store/visitor.h"

/* All of [attribute] but its name, from the attribute [name] of [object].  Text
 * of variable length becomes text of fixed length.  -1: it cannot be read, or
 * is more than fits. */
int joule_readattr(hid_t object, const char *name,
                   struct joule_attribute *attribute);

#endif
