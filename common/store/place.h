/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * place.h - a job user's directory of profiles, and new files in it.
 *
 * Everything below ProfileHDF5Dir is the user's, and hostile.  Files are made
 * with the user's rights (the file system ids of the calling thread, which
 * stay the user's), relative to directories that were opened and looked at, no
 * symbolic link is followed, and nothing that is there is opened or written
 * over.  A directory that is missing is made as root and given to the user;
 * where root has no rights (a root-squashed share), the user makes it.
 *
 * The calls may wait for the file system as long as that takes.
 */
#ifndef JOULE_STORE_PLACE_H
#define JOULE_STORE_PLACE_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/error.h"

struct joule_place {
    const char *dir;  /* ProfileHDF5Dir: absolute */
    const char *user; /* name of the directory in it */
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    size_t group_count;
    uid_t admin; /* besides root, may own dir and what is above it */
};

/*
 * The user's directory.  What is refused is tried again for a tenth of a second:
 * the thread's ids may be set by others of its process in between.  The thread
 * has the user's file system ids from now
 * on, if the process is root; else the process must be the user.  -1 with a
 * sentence and errno
 *   EINVAL  dir is not absolute, or the name is not one of a directory
 *   EPERM   somebody else could change what is in there; not the user's
 *   other   of the file system
 */
int joule_place_open(const struct joule_place *place, struct joule_error *err);

#define JOULE_PLACE_RUNS_MAX 1000

/*
 * A new file "BASE.h5" in [dir_fd], or if that is there, "BASE.r1.h5" and so
 * on; ret_run is the number, 0 without one, and name[size] the name.  -1 with
 * a sentence and errno: EEXIST (all are taken), EPERM (the new file is not the
 * user's own), or of the file system.
 */
int joule_place_create(const struct joule_place *place, int dir_fd,
                       const char *base, char *name, size_t size,
                       unsigned *ret_run, struct joule_error *err);

/* A new file that readers pass over, to be put in the place of [name]. */
int joule_place_create_copy(const struct joule_place *place, int dir_fd,
                            const char *name, struct joule_error *err);

/* Put it there, if [name] is still the file [fd]; or drop it.  -1 with errno;
 * ESTALE: it is another file now.  The copy is gone in any case. */
int joule_place_replace(int dir_fd, const char *name, int fd);
void joule_place_drop_copy(int dir_fd, const char *name);

#endif
