/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For a program that is linked with libhdf5.
 */
#include "common/libhdf5/hdffile.h"

const struct joule_libhdf5 *joule_libhdf5_load(struct joule_error *err)
{
    (void)err;
    joule_libhdf5.prepare();
    return &joule_libhdf5;
}
