/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reader.h - walk a node-step file or a job file, of Slurm's plugin or ours.
 *
 * A file that was cut off is read as far as it goes.  Links out of the file
 * are named in a note and not followed, objects that can be reached twice are
 * visited once.
 *
 * libhdf5 is not safe against hostile files: this belongs into a process that
 * may crash (pool.h).  One thread at a time.
 */
#ifndef JOULE_STORE_READER_H
#define JOULE_STORE_READER_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/store/visitor.h"

struct joule_reader;

/* Load what reads the files that cannot be read without libhdf5 (libhdf5.h).
 * Not in a sandbox: it takes effect in the children that are forked from here
 * on.  -1 with a sentence. */
int joule_reader_equip(struct joule_error *err);

/*
 * [fd], open for reading, stays the caller's and must outlive the reader.
 * NULL with a sentence: EINVAL (not a regular file), ENODATA (empty),
 * EBADMSG (not an HDF5 file, or too damaged), ELIBACC (it takes libhdf5, which
 * is not loaded), ENOMEM.
 */
struct joule_reader *joule_reader_open(int fd, struct joule_error *err);

/* Whether libhdf5 is not asked: it keeps more with each object that is read. */
bool joule_reader_has_outline(const struct joule_reader *reader);
/* The same with libhdf5 alone, where else what is usual is read without it
 * (outline.h). */
struct joule_reader *joule_reader_open_slowly(int fd, struct joule_error *err);
void joule_reader_close(struct joule_reader *reader);

/* The end of the file is missing. */
bool joule_reader_is_cut(const struct joule_reader *reader);

enum joule_walk {
    JOULE_WALK_TABLES = 0, /* with their rows, from small chunks put together */
    JOULE_WALK_DESCRIBE,   /* without rows */
};

/*
 * Visit everything below [path] ("/" or a group without the '/' at its end);
 * the group itself is not entered, but its attributes are visited.  0, or -1
 * with what a visitor's function said, ENOENT if there is no such group, or
 * EBADMSG.
 */
int joule_reader_walk(struct joule_reader *reader, const char *path,
                      enum joule_walk how, const struct joule_visitor *visitor,
                      struct joule_error *err);

/* A table by its path.  Belongs to the caller and must be closed before the
 * reader is.  NULL as joule_rows_open says. */
struct joule_rows *joule_reader_table(struct joule_reader *reader,
                                      const char *path,
                                      struct joule_error *err);

#endif
