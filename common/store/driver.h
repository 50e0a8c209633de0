/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * driver.h - HDF5's way to an image: a virtual file driver.
 *
 * HDF5 never sees an error of the disk, because it never writes to it.
 */
#ifndef JOULE_STORE_DRIVER_H
#define JOULE_STORE_DRIVER_H

#include <hdf5.h>

#include "common/store/image.h"

/*
 * A new HDF5 file in an empty image, which must outlive it; an invalid id
 * (negative) if HDF5 refuses.  Its objects have the oldest format, so that
 * every release of HDF5 from 1.8 on reads them.  Unless the image is compact,
 * HDF5 never uses a place again by itself.
 */
hid_t joule_driver_create(struct joule_image *image, bool compact);

#endif
