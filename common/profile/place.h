/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * place.h - a job user's directory of profiles, and new files in it.
 *
 * What is below ProfileHDF5Dir is the user's, and hostile.  Files are made with
 * the user's rights, relative to directories that were opened and looked at, no
 * symbolic link is followed, and nothing that is there is opened or written
 * over.  A directory that is missing is made as root and given to the user;
 * where root has no rights (a root-squashed share), the user makes it.
 */
#ifndef JOULE_PROFILE_PLACE_H
#define JOULE_PROFILE_PLACE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
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
 * Open the user's directory.  If the process is root, the calling thread has the
 * user's file system ids from now on; else the process must be the user.  -1 with
 * a sentence and errno EINVAL (dir is not absolute, or the name is not one of a
 * directory), EPERM (somebody else could change what is in there; not the
 * user's), or of the file system.
 */
int joule_place_open(const struct joule_place *place, struct joule_error *err);

#define JOULE_PLACE_RUNS_MAX 1000

/*
 * A new file "BASE.log" in [dir_fd], or if that or "BASE.h5" is there,
 * "BASE.r1.log" and so on; ret_run is the number, 0 without one, and name[size]
 * the name.  -1 with a sentence and errno: EEXIST (all are taken), EPERM (the
 * new file is not the user's own), or of the file system.
 */
int joule_place_create(const struct joule_place *place, int dir_fd,
                       const char *base, char *name, size_t size,
                       uint32_t *ret_run, struct joule_error *err);

/*
 * The names that belong to a log "BASE.log": its HDF5 file is "BASE.h5", and
 * ".BASE.h5.tmp" while it is made.  Either may be NULL.
 * -1 with errno EINVAL if it is not the name of a log in a directory.
 */
int joule_place_names(const char *log, char hdf5[NAME_MAX + 1],
                      char temporary[NAME_MAX + 1]);

#endif
