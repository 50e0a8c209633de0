/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nodedir.h - the directory of a node, /run/slurm-joule/<NodeName>, and the
 * files in it that several processes map: the board and the ledger.
 *
 * Users pass through it to what is theirs (userview.h), and may not list it;
 * all other files in it are 0600.
 */
#ifndef JOULE_BOARD_NODEDIR_H
#define JOULE_BOARD_NODEDIR_H

#include <stdbool.h>

#include "common/base/rundir.h"

/*
 * Open the directory of [node] below root_fd, made where missing if [create],
 * and say which boot this is.  -1 with a sentence: EINVAL ([node] is empty, too
 * long, or holds '/' or starts with '.'), and as joule_rundir_open.
 */
int joule_nodedir_open(int root_fd, const char *node, bool create,
                       char boot_id[JOULE_BOOT_ID_MAX],
                       struct joule_error *err);

/*
 * Open the file [name] in the directory of [node] (O_CREAT: 0600).  -1 with a
 * sentence: EPERM if it is a symbolic link, of another owner, or others may
 * write it.
 */
int joule_nodedir_file(int dir_fd, const char *node, const char *name,
                       int flags, struct joule_error *err);

/* For reading and writing, or where it must not be written for reading. */
int joule_nodedir_reader(int dir_fd, const char *node, const char *name,
                         bool *ret_writable, struct joule_error *err);

#endif
