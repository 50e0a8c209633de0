/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hdffile.h - libhdf5.h's functions.
 */
#ifndef JOULE_LIBHDF5_HDFFILE_H
#define JOULE_LIBHDF5_HDFFILE_H

#include "common/store/libhdf5.h"

extern const struct joule_libhdf5 joule_libhdf5
    __attribute__((visibility("default")));

#endif
