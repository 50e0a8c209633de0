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
#include <string.h>

#include "common/base/error.h"

/* The largest chunk that is read, in bytes without filters. */
#define JOULE_CHUNK_MAX ((size_t)8 << 20)

/* The longest path of a table below the group of its node, with the NUL. */
#define JOULE_PROFILE_PATH_MAX 256

#define JOULE_COLUMNS_MAX      256
#define JOULE_PROFILE_NAME_MAX 128   /* with the NUL */
#define JOULE_ROW_MAX          65536 /* bytes */

/* ---- columns ---- */

/* A number of any width and byte order is read as one of 8 bytes; what is
 * neither number nor text of a fixed length is only bytes. */
enum joule_kind {
    JOULE_KIND_UNSIGNED,
    JOULE_KIND_SIGNED,
    JOULE_KIND_FLOAT,
    JOULE_KIND_STRING,
    JOULE_KIND_OPAQUE,
};

struct joule_column {
    char name[JOULE_PROFILE_NAME_MAX];
    uint32_t offset, size; /* in a row that was read, bytes */
    uint32_t kind;         /* enum joule_kind */
};

/* A plain struct that may cross from a process that reads a hostile file: no
 * pointers, every bound checked by joule_rowtype_check. */
struct joule_rowtype {
    uint32_t size;        /* of a row that was read, bytes */
    uint32_t count;       /* columns */
    uint32_t is_compound; /* 0: one column without a name */
    struct joule_column column[JOULE_COLUMNS_MAX]; /* count of them are set */
};

/* The bytes of [type] that are set. */
static inline size_t joule_rowtype_bytes(const struct joule_rowtype *type)
{
    return offsetof(struct joule_rowtype, column) +
           type->count * sizeof(type->column[0]);
}

/* Whether [type], of [bytes] bytes, is sound: columns within the row, sizes that
 * fit the kind, names that end.  -1 with EBADMSG. */
int joule_rowtype_check(const struct joule_rowtype *type, size_t bytes);

/* The column of that name, or NULL. */
const struct joule_column *joule_rowtype_find(const struct joule_rowtype *type,
                                              const char *name);

/* The 8 bytes of a number. */
static inline uint64_t joule_column_u64(const struct joule_column *column,
                                        const void *row)
{
    uint64_t value;

    memcpy(&value, (const char *)row + column->offset, sizeof(value));
    return value;
}

static inline double joule_column_double(const struct joule_column *column,
                                         const void *row)
{
    double value;

    memcpy(&value, (const char *)row + column->offset, sizeof(value));
    return value;
}

/* ---- tables ---- */

/* Only [next] may be changed: to go on at another row.  libhdf5 has some 30 KB
 * for an open table: close thousands that are read side by side in between. */
struct joule_hdf5_table {
    hid_t dataset, space;
    hid_t memory; /* type of a row that was read */
    const struct joule_rowtype *row;
    uint64_t rows;       /* as the header says */
    uint64_t chunk_rows; /* of a chunk; 0: the table is in one piece */
    uint64_t next;       /* the row that is read next */
    uint64_t lost;       /* rows passed over so far */
    size_t file_row;     /* bytes of a row in the file */
    uint64_t bytes_left; /* that may still come out of such a file */
    unsigned misses;     /* chunks passed over, one behind the other */
    bool is_stored;      /* in one piece: there is data at all */
};

/*
 * [path] below [parent], a file or a group.  NULL with a sentence: ENOTSUP (no
 * table; columns, chunks or filters that are not read; data in another file),
 * EBADMSG (damaged), ENOMEM.  Close the table before its file.
 */
struct joule_hdf5_table *joule_hdf5_table_open(hid_t parent, const char *path,
                                               struct joule_error *err);
void joule_hdf5_table_close(struct joule_hdf5_table *table);

/* Rows for which the table has no chunk at all. */
uint64_t joule_hdf5_table_missing(const struct joule_hdf5_table *table);

/* Read up to [room] of the next rows into [buf].  Returns their number; 0 at the
 * end.  A chunk is unpacked once for each call that takes rows from it: ask for
 * whole chunks where there is memory. */
size_t joule_hdf5_table_read(struct joule_hdf5_table *table, void *buf,
                             size_t room);

/* Of [table] a worker's batch: rows of about [bytes], and whole chunks. */
size_t joule_hdf5_table_batch(const struct joule_hdf5_table *table,
                              size_t bytes);

/* ---- what is in a file ---- */

struct joule_hdf5_visitor {
    /* Of joule_hdf5_walk_job alone: the tables of a node follow. */
    int (*node)(void *arg, const char *step, const char *name, hid_t group,
                struct joule_error *err);
    /* Each returns 0, or -1 with errno and a sentence, which ends the walk. */
    int (*table)(void *arg, const char *path, struct joule_hdf5_table *table,
                 struct joule_error *err);
    /* Optional: [path] cannot be read, or is no group and no table.  NULL:
     * [sentence] is about what was not even found. */
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
