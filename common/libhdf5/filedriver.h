/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filedriver.h - libhdf5 on a file that the caller has opened and checked.
 *
 * libhdf5 opens files by name, and follows the names that stand in a file
 * (external links, external storage).  This driver gives it one file and no
 * name: whatever that says, no other file is read.  It only reads, and lets a
 * file be read that is shorter than its header says: what lies behind the end
 * cannot be read, everything else can.
 *
 * One thread at a time.
 */
#ifndef JOULE_LIBHDF5_FILEDRIVER_H
#define JOULE_LIBHDF5_FILEDRIVER_H

#include <hdf5.h>
#include <stdbool.h>

#include "common/store/windows.h"

struct joule_filedriver {
    struct joule_windows *windows; /* stay the caller's */
    bool is_cut;                   /* go on although the end is missing */
};

/*
 * A file access list that makes H5Fopen use [driver], whatever
 * name they are given; the struct must outlive the file.  *ret_driver is to be
 * unregistered with H5FDunregister after the file is closed; the caller closes
 * the list.  Negative: no memory.
 */
hid_t joule_filedriver_list(struct joule_filedriver *driver, hid_t *ret_driver);

#endif
