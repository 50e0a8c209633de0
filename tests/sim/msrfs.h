/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * msrfs.h - the /dev/cpu/N/msr files of the node, through FUSE.
 *
 * As the kernel's msr driver does: a read of 8 bytes at offset R is rdmsr of
 * register R at that moment, a read of several times 8 bytes repeats the
 * register, any other size is EINVAL, an unknown register EIO.  Writing is
 * refused with EPERM.  Offline CPUs have no device.  The files are regular
 * ones of mode 0600 and 4 GiB: character devices cannot be served.
 *
 * Beside them, but in no list, is a file "stat" for everybody to read, if
 * there is something to be told (procstat.h).  It shows the moment in which it
 * is read from its beginning.
 */
#ifndef SIM_MSRFS_H
#define SIM_MSRFS_H

#include "common/base/error.h"
#include "tests/sim/node.h"

struct sim_msrfs;

/*
 * Mount at [path].  A dead mount of an earlier run there is taken away.
 * [node] must outlive the file system.  NULL with errno and a sentence.
 */
struct sim_msrfs *sim_msrfs_create(const char *path, struct sim_node *node,
                                   struct joule_error *err);
/* Unmount.  NULL is a no-op. */
void sim_msrfs_destroy(struct sim_msrfs *fs);

/* Poll for POLLIN, then call serve. */
int sim_msrfs_fd(const struct sim_msrfs *fs);

/* Answer what is waiting.  0, or -1 with errno when the file system is gone
 * (ENODEV: somebody unmounted it). */
int sim_msrfs_serve(struct sim_msrfs *fs);

#endif
