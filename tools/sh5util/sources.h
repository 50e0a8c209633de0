/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sources.h - where the nodes of a merged file come from: node-step files in
 * <ProfileHDF5Dir>/<user>, profile logs of which none was made yet, and the
 * merged file that is there already.
 *
 * The directory is the user's: names in it are taken for what they are, links
 * are not followed, and what is no regular file of this user is refused.
 */
#ifndef JOULE_SH5UTIL_SOURCES_H
#define JOULE_SH5UTIL_SOURCES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/error.h"
#include "tools/sh5util/jobid.h"
#include "tools/sh5util/jobtables.h"

/* ---- files of the job ---- */

struct joule_stepfile {
    char step[JOULE_STEP_TEXT_MAX];    /* as in a job file */
    char node[JOULE_PROFILE_NAME_MAX]; /* "n1", or "n1.r1" of a second run */
    char name[NAME_MAX + 1];
    bool is_log; /* a profile log (log.h), not an HDF5 file */
};

struct joule_stepfiles {
    int dir_fd;
    struct joule_stepfile *file; /* by step, then node; a log comes last */
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

/* ---- what is merged ---- */

struct joule_source {
    const char *step, *node;
    const struct joule_stepfile *file; /* NULL: the merged file */
    /* The merged file has this node, too; or NULL. */
    const struct joule_plan_node *old;
    /* The node of the merged file is taken, because this one is still being
     * written, or [why] tells; or NULL. */
    const struct joule_stepfile *later;
    struct stat st;
    bool is_busy;  /* its writer has it locked */
    uint64_t rows; /* that were taken from it */
    char *why;   /* it is not whole; NULL: everything was taken from it, and its
                    writer has closed it */
    bool is_bad; /* its reader died: leave it out */
};

/* Begins with all zeros, but for descriptors of -1. */
struct joule_sources {
    struct joule_stepfiles files;
    struct joule_plan old; /* the merged file */
    int old_fd;            /* -1: there is none yet */
    struct stat old_st;
    bool unfinished;       /* take files that are still being written */
    struct joule_source *source;
    size_t count;
    uint64_t bytes; /* to read from node-step files */
};

/* Of files and old: every node once, from its file if there is one that may
 * be taken, in the order of the merged file.  -1 with ENOMEM and a sentence. */
int joule_sources_list(struct joule_sources *s, struct joule_error *err);
void joule_sources_free(struct joule_sources *s);

/* Whether the step is in any of them. */
bool joule_sources_have(const struct joule_sources *s, const char *step);

/* Open [source] for a worker.  -1 as joule_stepfile_open says. */
int joule_source_open(const struct joule_sources *s,
                      struct joule_source *source, struct joule_error *err);

/* Take the node of the merged file, which has one, in place of the file. */
void joule_source_keep_old(const struct joule_sources *s,
                           struct joule_source *source);

/* Say why a source is not whole; NULL: it is. */
void joule_source_set_why(struct joule_source *source, const char *sentence);

/* What there is to read of a node-step file. */
uint64_t joule_source_bytes(const struct joule_source *source);

/* Remove a node-step file, if it still is what it was when it was opened.  A log
 * beside it stays: the next merge takes it.  One that is gone is no failure.  -1 with
 * EBUSY (it has changed) or errno of unlink(2), and a sentence. */
int joule_source_remove(const struct joule_sources *s,
                        const struct joule_source *source,
                        struct joule_error *err);

#endif
