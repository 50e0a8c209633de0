/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fusemount.h - a FUSE session that is served by hand: mounted, polled,
 * answered and unmounted by a simulator's one thread.
 *
 * FUSE_USE_VERSION and fuse_lowlevel.h come before this header.
 */
#ifndef SIM_FUSEMOUNT_H
#define SIM_FUSEMOUNT_H

#include <stdint.h>

#include "common/base/error.h"

struct sim_fusemount;

/*
 * Mount at [path] what [operations] serve, with [options] of mount(8) and
 * [userdata] for the requests.  A dead mount of an earlier run there is taken
 * away.  NULL with errno and a sentence.
 */
struct sim_fusemount *
sim_fusemount_create(const char *path, const char *options,
                     const struct fuse_lowlevel_ops *operations, void *userdata,
                     struct joule_error *err);
/* Unmount.  NULL is a no-op; errno is kept. */
void sim_fusemount_destroy(struct sim_fusemount *mount);

/* Poll for POLLIN, then call serve. */
int sim_fusemount_fd(const struct sim_fusemount *mount);

/* Answer one request if it is waiting; served counts them.  0, or -1 with errno
 * when the file system is gone (ENODEV: somebody unmounted it). */
int sim_fusemount_serve(struct sim_fusemount *mount);
uint64_t sim_fusemount_served(const struct sim_fusemount *mount);

/* For the init operation: answers are a few bytes, pipes would only cost. */
void sim_fusemount_init(void *userdata, struct fuse_conn_info *conn);

#endif
