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

/* A node of a step. */
struct joule_source {
    char step[JOULE_PROFILE_NAME_MAX]; /* as in a job file */
    char node[JOULE_PROFILE_NAME_MAX]; /* "n1", or "n1.r1" of a second run */
    char name[NAME_MAX + 1];           /* of its file; empty: it has none */
    bool is_log; /* the file is a profile log (log.h), not an HDF5 file */
    const struct joule_plan_node *old; /* in the merged file; NULL: not there */
    enum {
        JOULE_TAKE_FILE,
        JOULE_TAKE_OLD, /* the node of the merged file */
        JOULE_TAKE_NOTHING,
    } take;
    struct stat st; /* of what is taken, when it was opened */
    bool is_busy;   /* the writer of the file has it locked */
    uint64_t rows;  /* that were taken from the file */
    char *why; /* the file is not whole; NULL: everything was taken from it,
                       and its writer has closed it */
};

/* Begins with all zeros, but for descriptors of -1. */
struct joule_sources {
    int dir_fd;
    struct joule_plan old; /* the merged file */
    int old_fd;            /* -1: there is none yet */
    struct stat old_st;
    bool unfinished; /* take files that are still being written */
    struct joule_source *source;
    size_t count;
    size_t files;   /* of them have a file */
    uint64_t bytes; /* to read from files */
};

/* Root becomes [user] for good: whatever lies in the user's directories is then
 * read, written and removed with the user's rights.  Others stay who they are.  -1
 * with a sentence. */
int joule_sources_become(const char *user, struct joule_error *err);

/*
 * The files of [job] (of its steps that are meant) for [user] below [dir], by
 * step and node.  None is no failure.  -1 with a sentence: EINVAL (a user name
 * that is none), EPERM (the user's directory is a link or somebody else's),
 * ENOMEM, or from open(2).
 */
int joule_sources_find(struct joule_sources *s, const char *dir,
                       const char *user, const struct joule_job *job,
                       struct joule_error *err);

/* Add the nodes of the merged file: every node once, from its file if that may
 * be taken, in the order of the merged file.  -1 with ENOMEM and a sentence. */
int joule_sources_add_old(struct joule_sources *s, struct joule_error *err);
void joule_sources_free(struct joule_sources *s);

/* Whether the step is in any of them. */
bool joule_sources_have(const struct joule_sources *s, const char *step);

/* Open [source] for a worker.  -1 with a sentence: EPERM (no regular file, a
 * link, somebody else's), EBUSY (it is being written, and that is not wanted),
 * or from open(2). */
int joule_source_open(const struct joule_sources *s,
                      struct joule_source *source, struct joule_error *err);

/* Take the node of the merged file, which has one, in place of the file. */
void joule_source_keep_old(const struct joule_sources *s,
                           struct joule_source *source);

/* Say why a file is not whole; NULL: it is. */
void joule_source_set_why(struct joule_source *source, const char *sentence);

/* What there is to read of a file: one that is being written ends with a hole. */
uint64_t joule_source_bytes(const struct joule_source *source);

/* Remove a file, if it still is what it was when it was opened.  A log beside it
 * stays: the next merge takes it.  One that is gone is no failure.  -1 with EBUSY
 * (it has changed) or errno of unlink(2), and a sentence. */
int joule_source_remove(const struct joule_sources *s,
                        const struct joule_source *source,
                        struct joule_error *err);

#endif
