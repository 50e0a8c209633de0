/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hdf5_read.h - the tables of a profile file: one-dimensional data sets of a
 * compound type, read with libhdf5.
 *
 *     table = joule_hdf5_table_open(file, "/n1/Energy", &err);
 *     while ((count = joule_hdf5_table_read(table, rows, room)) > 0)
 *         ...
 *     joule_hdf5_table_close(table);
 *
 * A chunk that is missing, cut off or damaged is passed over and its rows are
 * counted as lost; the rows behind it follow.  Memory is bounded by the largest
 * chunk that is read, whatever the header of a file says.
 *
 * libhdf5 crashes on some damaged files: a file of somebody else's is read in a
 * worker (worker.h).  One thread at a time.
 */
#ifndef JOULE_PROFILE_HDF5_READ_H
#define JOULE_PROFILE_HDF5_READ_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/profile/rowtype.h"

/* The largest chunk that is read, in bytes without filters. */
#define JOULE_CHUNK_MAX ((size_t)8 << 20)

/* The longest path of a table below the group of its node, with the NUL. */
#define JOULE_PROFILE_PATH_MAX 256

struct joule_hdf5_table;

/*
 * [path] below [parent], a file or a group.  NULL with a sentence: ENOTSUP (no
 * table; columns, chunks or filters that are not read; data in another file),
 * EBADMSG (damaged), ENOMEM.  Close the table before its file.
 */
struct joule_hdf5_table *joule_hdf5_table_open(hid_t parent, const char *path,
                                               struct joule_error *err);
void joule_hdf5_table_close(struct joule_hdf5_table *table);

/* The columns; valid until the table is closed. */
const struct joule_rowtype *
joule_hdf5_table_type(const struct joule_hdf5_table *table);

/* Rows as the header says, and rows of a chunk (0: the table is in one piece).
 */
uint64_t joule_hdf5_table_rows(const struct joule_hdf5_table *table);
uint64_t joule_hdf5_table_chunk_rows(const struct joule_hdf5_table *table);

/* Rows for which the table has no chunk at all. */
uint64_t joule_hdf5_table_missing(const struct joule_hdf5_table *table);

/* Copy up to [room] of the next rows to [buf].  Returns their number; 0 at the
 * end.  A chunk is unpacked once for each call that takes rows from it: ask for
 * whole chunks where there is memory. */
size_t joule_hdf5_table_read(struct joule_hdf5_table *table, void *buf,
                             size_t room);

/* The row that is read next, and to go on at another one.  libhdf5 has some 30
 * KB for an open table: who reads thousands side by side closes them in
 * between. */
uint64_t joule_hdf5_table_tell(const struct joule_hdf5_table *table);
void joule_hdf5_table_seek(struct joule_hdf5_table *table, uint64_t row);

/* Rows passed over so far. */
uint64_t joule_hdf5_table_lost(const struct joule_hdf5_table *table);

/* The data set; it stays the table's. */
hid_t joule_hdf5_table_id(const struct joule_hdf5_table *table);

struct joule_hdf5_visitor {
    /* Of joule_hdf5_walk_job alone: the tables of a node follow. */
    int (*node)(void *arg, const char *step, const char *name, hid_t group,
                struct joule_error *err);
    /* Each returns 0, or -1 with errno and a sentence, which ends the walk. */
    int (*table)(void *arg, const char *path,
                 const struct joule_hdf5_table *table, struct joule_error *err);
    /* [path] cannot be read, or is no group and no table.  NULL: [sentence] is
     * about what was not even found. */
    int (*note)(void *arg, const char *path, const char *sentence,
                struct joule_error *err);
    void *arg;
};

/*
 * Visit the tables below [group], whose paths begin there: "Energy", "Tasks/0".
 * Links to other places are noted and not followed.  0, or -1 with a sentence:
 * what a visitor returned, or E2BIG (too many objects, or too many groups
 * within each other).
 */
int joule_hdf5_walk(hid_t group, const struct joule_hdf5_visitor *visitor,
                    struct joule_error *err);

/* The same of a job file: /Steps/STEP/Nodes/NODE.  What cannot be read of one
 * node or step is noted, and the others are visited. */
int joule_hdf5_walk_job(hid_t file, const struct joule_hdf5_visitor *visitor,
                        struct joule_error *err);

/* The attribute [name] of [object], an unsigned number.  -1 with errno: ENOENT
 * (there is none, or it is of another type). */
int joule_hdf5_read_number(hid_t object, const char *name, uint64_t *ret);

/* Whether a name can stand in a path: not empty, not ".", without '/', and
 * shorter than JOULE_PROFILE_NAME_MAX. */
bool joule_hdf5_is_name(const char *name);

#endif
