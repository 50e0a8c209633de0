/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge.h - make one file of the node-step files of a job.
 *
 * The merged file appears when it is whole and on disk; only then are
 * node-step files removed, and only those that their writer has closed and of
 * which everything was taken: no age and no lock is proof of that, for clocks
 * differ and file systems are without locks.  If there is a merged file already,
 * its nodes are kept beside the new ones, so that a merge that was interrupted at
 * any moment is completed by the next.
 */
#ifndef JOULE_SH5UTIL_MERGE_H
#define JOULE_SH5UTIL_MERGE_H

#include "tools/sh5util/options.h"

/* Of options: dir, user, save, unfinished and verbose.  Returns the exit status;
 * says on stderr what is to be said. */
int joule_merge(const struct joule_sh5_options *options,
                const struct joule_job *job, const char *output);

#endif
