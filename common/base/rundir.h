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

#include "common/base/error.h"

#define JOULE_BOOT_ID_MAX 40

/*
 * Open run/slurm-joule/NAME below root_fd; it and the directories above it are
 * made where missing if [create]: run/slurm-joule may be listed by anybody,
 * NAME may not.  -1 with EPERM (a symbolic link, another owner, others may
 * write) or what the file system gave, and a sentence.  The caller closes it.
 */
int joule_rundir_open(int root_fd, const char *name, bool create,
                      struct joule_error *err);

/* The id of this boot; the rest of boot_id is 0.  -1 with a sentence. */
int joule_rundir_boot_id(int root_fd, char boot_id[JOULE_BOOT_ID_MAX],
                         struct joule_error *err);

#endif
