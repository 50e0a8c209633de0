/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stepfiles.h - the node-step files of a job in <ProfileHDF5Dir>/<user>.
 *
 * The directory is the user's: names in it are taken for what they are, links
 * are not followed, and what is no regular file of this user is refused.
 */
#ifndef JOULE_SH5UTIL_STEPFILES_H
#define JOULE_SH5UTIL_STEPFILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "common/base/error.h"
#include "common/store/rowtype.h"
#include "tools/sh5util/jobid.h"

struct joule_stepfile {
    char step[JOULE_STEP_TEXT_MAX];  /* as in a job file */
    char node[JOULE_STORE_NAME_MAX]; /* "n1", or "n1.r1" of a second run */
    char name[NAME_MAX + 1];
};

struct joule_stepfiles {
    int dir_fd;
    struct joule_stepfile *file; /* by step, then node */
    size_t count;
};

/*
 * Those of [job] (of its steps that are meant) for [user] below [dir].  None
 * is no failure.  -1 with a sentence: EINVAL (a user name that is none), ENOENT
 * and the like from open(2), EPERM (the user's directory is a link or somebody
 * else's).
 */
int joule_stepfiles_find(const char *dir, const char *user, uint32_t id,
                         const struct joule_job *job,
                         struct joule_stepfiles *ret, struct joule_error *err);
void joule_stepfiles_free(struct joule_stepfiles *files);

/*
 * Open one for reading; *ret_st is what it was then, and *ret_is_busy whether
 * its writer has it locked.  -1 with a sentence: EPERM (no regular file, a
 * link, somebody else's), EBUSY (locked, and [ret_is_busy] is NULL), or from
 * open(2).
 */
int joule_stepfile_open(const struct joule_stepfiles *files,
                        const struct joule_stepfile *file, struct stat *ret_st,
                        bool *ret_is_busy, struct joule_error *err);

#endif
