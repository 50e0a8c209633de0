/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keeper_log.h - a line in slurmd's log, where an administrator looks for it.
 *
 * The file is opened for each line, so that it is the one of that name after
 * logs were rotated, too.  slurmd writes its lines in the same way: with one
 * write at the end of the file.
 */
#ifndef JOULE_KEEPER_LOG_H
#define JOULE_KEEPER_LOG_H

#include "common/base/error.h"

/*
 * Append "[time] joule_cpufreq: TEXT" to the file at absolute [path] below
 * root_fd.  It must be there, a regular file of root's that others may not
 * write, and no symbolic link: -1 with EPERM, ENOENT ... and a sentence if it
 * is not, or cannot be written.
 */
int joule_keeper_log(int root_fd, const char *path, const char *text,
                     struct joule_error *err);

#endif
