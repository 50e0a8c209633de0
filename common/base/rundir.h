/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rundir.h - our directories in /run, and which boot they belong to.
 *
 * Nothing there is trusted unless root, or the effective user, made it and
 * nobody else may write it; symbolic links are not followed.
 */
#ifndef JOULE_BASE_RUNDIR_H
#define JOULE_BASE_RUNDIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/error.h"

#define JOULE_BOOT_ID_MAX 40

/*
 * Open run/slurm-joule/NAME below root_fd.  If [create], it and the
 * directories above it are made where missing: run/slurm-joule may be listed
 * by anybody, NAME has the permissions [mode].  A directory of ours that lacks
 * some of them is given them.  -1 with EPERM (a symbolic link, another owner,
 * others may write) or what the file system gave, and a sentence.
 *
 * Who may not list NAME gets a descriptor that is good for looking names up
 * in it (O_PATH).  The caller closes it.
 */
int joule_rundir_open(int root_fd, const char *name, mode_t mode, bool create,
                      struct joule_error *err);

/* The same for the directory [name] in [dir_fd]. */
int joule_rundir_enter(int dir_fd, const char *name, mode_t mode, bool create,
                       struct joule_error *err);

/* The id of this boot; the rest of boot_id is 0.  -1 with a sentence. */
int joule_rundir_boot_id(int root_fd, char boot_id[JOULE_BOOT_ID_MAX],
                         struct joule_error *err);

#endif
