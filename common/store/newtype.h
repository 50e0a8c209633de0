/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * newtype.h - types as they stand in HDF5 files: those that profiles are
 * written with (HDF5 File Format Specification 3.0, IV.A.2.d).
 */
#ifndef JOULE_STORE_NEWTYPE_H
#define JOULE_STORE_NEWTYPE_H

#include <stdbool.h>

#include "common/store/newheader.h"

extern const struct joule_type_bytes joule_newtype_i32; /* H5T_STD_I32LE */
extern const struct joule_type_bytes joule_newtype_u64; /* H5T_STD_U64LE */
extern const struct joule_type_bytes joule_newtype_f64; /* H5T_IEEE_F64LE */

/* A text of fixed length, in ASCII and padded with NULs. */
#define JOULE_NEWTYPE_TEXT_SIZE 8
struct joule_type_bytes
joule_newtype_text(unsigned char room[JOULE_NEWTYPE_TEXT_SIZE], size_t length);

/* A compound in the making; begins with all zeros. */
struct joule_newtype_row {
    unsigned char *bytes;
    size_t used, room;
    unsigned members;
    size_t row_size;
};

/* One more member, behind those before it without a gap.  -1: ENOMEM; EINVAL
 * (no name, or there is one of this name); E2BIG. */
int joule_newtype_add(struct joule_newtype_row *row, const char *name,
                      struct joule_type_bytes type);

/* It is complete; good until it is freed or added to. */
struct joule_type_bytes joule_newtype_seal(struct joule_newtype_row *row);

void joule_newtype_free(struct joule_newtype_row *row);

#endif
