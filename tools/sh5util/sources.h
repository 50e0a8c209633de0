/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sources.h - where the nodes of a merged file come from: node-step files, and
 * the merged file that is there already.
 */
#ifndef JOULE_SH5UTIL_SOURCES_H
#define JOULE_SH5UTIL_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/error.h"
#include "tools/sh5util/plan.h"
#include "tools/sh5util/stepfiles.h"

struct joule_source {
    const char *step, *node;
    const struct joule_stepfile *file; /* NULL: the merged file */
    /* Of the merged file, because this one is still being written; or NULL. */
    const struct joule_stepfile *later;
    struct stat st;
    int fd;        /* while it is open; -1 */
    bool is_busy;  /* its writer has it locked */
    bool is_whole; /* everything was taken from it, and its writer closed it */
};

/* Begins with all zeros, but for descriptors of -1. */
struct joule_sources {
    struct joule_stepfiles files;
    struct joule_plan old; /* the merged file */
    int old_fd;            /* -1: there is none yet */
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

/* Open [source]: a descriptor for the caller, and another one, [source]->fd,
 * until it is closed.  -1 as joule_stepfile_open says. */
int joule_source_open(const struct joule_sources *s,
                      struct joule_source *source, struct joule_error *err);
void joule_source_close(struct joule_source *source);

/* What there is to read of a node-step file. */
uint64_t joule_source_bytes(const struct joule_source *source);

/* Remove a node-step file, if it still is what it was when it was opened.  One
 * that is gone is no failure.  -1 with EBUSY (it has changed) or errno of
 * unlink(2), and a sentence. */
int joule_source_remove(const struct joule_sources *s,
                        const struct joule_source *source,
                        struct joule_error *err);

#endif
