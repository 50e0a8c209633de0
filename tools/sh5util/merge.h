/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge.h - make one file of the node-step files of a job.
 *
 * The merged file appears when it is whole and on disk; only then are
 * node-step files removed, and only those that their writer has closed and of
 * which everything was taken: no age and no lock is proof of that, for clocks
 * differ and file systems are without locks.  If
 * there is a merged file already, its nodes are kept beside the new ones, so
 * that a merge that was interrupted at any moment is completed by the next.
 */
#ifndef JOULE_SH5UTIL_MERGE_H
#define JOULE_SH5UTIL_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/sh5util/jobid.h"

struct joule_merge_request {
    const char *dir, *user, *output;
    const struct joule_job *job;
    uint32_t id;     /* of the job, as in the files' names */
    bool save;       /* remove nothing */
    bool unfinished; /* take files that are still being written, too */
    unsigned readers, verbose;
};

/* Returns the exit status; says on stderr what is to be said. */
int joule_merge(const struct joule_merge_request *request);

#endif
