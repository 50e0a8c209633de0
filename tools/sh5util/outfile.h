/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outfile.h - a file that appears under its name when it is whole.
 *
 * It is written as .NAME.tmp in the directory of NAME, synced, renamed, and
 * the directory synced.  Whoever is killed leaves the temporary file behind;
 * the next one for the same NAME takes it over.  Two at a time exclude each
 * other by a lock on it.
 *
 * Nobody but its owner reads it before it is whole, and then only who may read
 * all that it was made of.
 */
#ifndef JOULE_SH5UTIL_OUTFILE_H
#define JOULE_SH5UTIL_OUTFILE_H

#include <limits.h>
#include <sys/stat.h>

#include "common/base/error.h"

struct joule_outfile {
    int fd;      /* empty at first; -1: none is open */
    int dir_fd;  /* -1: the output is a descriptor, not a file */
    mode_t mode; /* that it is to have when it is whole */
    char name[NAME_MAX + 1], temporary[NAME_MAX + 1];
};

/*
 * Begin to write what will be [path]; "-" is standard output.  -1 with errno
 * and a sentence: EBUSY (another one writes it), EISDIR, ENAMETOOLONG, EPERM
 * (the temporary file is somebody else's), or as open(2) says.
 */
int joule_outfile_open(struct joule_outfile *out, const char *path,
                       struct joule_error *err);

/* It is made of a file that is like this: give nobody more rights to it than to
 * that one. */
void joule_outfile_limit(struct joule_outfile *out, const struct stat *input);

/* Take from the file [fd] what has been written to it.  -1 with errno. */
int joule_outfile_empty(int fd);

/* A file without a name beside it, for what is needed in between.  The caller
 * closes it.  -1 with errno and a sentence. */
int joule_outfile_scratch(const struct joule_outfile *out,
                          struct joule_error *err);

/* It is whole.  After a failure the old file of that name is still there, and
 * the temporary one gone. */
int joule_outfile_commit(struct joule_outfile *out, struct joule_error *err);

/* Never mind; nothing if it was committed. */
void joule_outfile_abandon(struct joule_outfile *out);

#endif
