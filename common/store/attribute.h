/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attribute.h - attributes as Slurm's profile files have them: simple data
 * spaces of one element.
 *
 * 0, or -1 if HDF5 refuses.  [object] is a group or data set.
 */
#ifndef JOULE_STORE_ATTRIBUTE_H
#define JOULE_STORE_ATTRIBUTE_H

#include <hdf5.h>
#include <stdint.h>

int joule_attribute_i32(hid_t object, const char *name, int32_t value);
int joule_attribute_u64(hid_t object, const char *name, uint64_t value);
int joule_attribute_text(hid_t object, const char *name, const char *text);

/* Change one that is there. */
int joule_attribute_set_u64(hid_t object, const char *name, uint64_t value);

#endif
