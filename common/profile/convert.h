/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * convert.h - an HDF5 file of a profile log, laid out as doc/hdf5-format.md
 * says.  Of libjoule_hdf5: needs libhdf5.
 */
#ifndef JOULE_PROFILE_CONVERT_H
#define JOULE_PROFILE_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

struct joule_convert_result {
    bool is_ended;           /* the log has all rows of the step, or counts
                                them as lost */
    uint64_t rows;           /* of all tables */
    uint64_t bytes_left_out; /* of the log, that could not be read */
};

/*
 * Convert the profile log open at [log_fd] into an HDF5 file on the empty file
 * open at [out_fd], for reading and writing.  All rows up to the first bad block
 * are taken.  Opens no file, and may run in a sandbox; joule_hdf5_prepare must
 * have been called.
 *
 * Memory: libhdf5's 2 to 10 MB, a chunk of each table, and a block of the log.
 * 0, or -1 with a sentence and errno: EBADMSG (no log), ENOMEM, of read(2) or
 * write(2), or EIO (libhdf5).  What is in [out_fd] is then of no use.
 */
int joule_profile_convert(int log_fd, int out_fd,
                          struct joule_convert_result *ret,
                          struct joule_error *err);

#endif
