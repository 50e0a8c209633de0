/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log.h - the profile log: the rows of one step on one node, appended to a file
 * that can be read up to the last flush whatever happens to its writer.
 *
 *     log = joule_log_create(fd, &facts, &err);
 *     joule_log_add_table(log, &table);
 *     joule_log_flush(log, rows, size, &state);          again and again
 *     joule_log_destroy(log);
 *
 *     reader = joule_log_open(fd, &err);
 *     while ((rc = joule_log_next(reader, &block)) > 0)
 *         if (block.kind == JOULE_LOG_ROWS)
 *             while ((row = joule_log_row(reader, &table)))
 *                 ...
 *     joule_log_close(reader);
 *
 * The file is a sequence of blocks, each with a checksum (doc/hdf5-format.md):
 * facts first, a table before its rows, and of several states the last one
 * counts.  The first block that is not sound ends the log: the writer was killed
 * while it wrote that block.
 *
 * The file belongs to a user, who may have put anything into it.
 * A log or a reader belongs to one thread at a time.
 */
#ifndef JOULE_PROFILE_LOG_H
#define JOULE_PROFILE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define JOULE_FIELDS_MAX 512
#define JOULE_TABLES_MAX 65536
#define JOULE_NAME_MAX   255

/* Columns of time that each row has besides those of its table. */
#define JOULE_ROW_TIMES 3

/* Room that a log keeps behind its last block: the block of the end fits in
 * there when the disk is full. */
#define JOULE_LOG_SPARE 4096

/* The most that may be flushed at once, in bytes of rows. */
#define JOULE_LOG_ROWS_MAX ((size_t)64 * 1024 * 1024)

/* A field is one cell of 8 bytes; a text has JOULE_TEXT_CELLS of them: its bytes,
 * the first in the lowest byte of the first cell, and NULs behind them. */
enum joule_field_type {
    JOULE_FIELD_U64,
    JOULE_FIELD_DOUBLE,
    JOULE_FIELD_TEXT,
};

#define JOULE_TEXT_CELLS 32

/* A column between "EpochTime" and "ElapsedTimeNs". */
struct joule_field {
    const char *name;
    enum joule_field_type type;
};

/* A series: "Energy", or "Tasks/0" in a group. */
struct joule_log_table {
    const char *name;
    const struct joule_field *fields;
    size_t count;
    int64_t period_ns; /* 0: sampled by Slurm's timer */
};

/* How the tables are compressed in the HDF5 file. */
struct joule_pack {
    int level;    /* 0: not compressed; 1 to 9 as zlib's */
    bool shuffle; /* first bytes of all rows first, then the second ... */
};

/* What is known of a step when it begins. */
struct joule_profile_facts {
    const char *node;   /* "Node Name" */
    const char *writer; /* "slurm-joule 0.1.0" */
    const char *start;  /* "Start Time", as of ctime(3) */
    uint32_t node_index;
    uint32_t tasks; /* of the step on this node */
    uint32_t cpus_per_task;
    uint32_t run;        /* N of ".rN" in the file's name, else 0 */
    uint64_t chunk_rows; /* 0: by the table's period */
    struct joule_pack pack;
    int64_t start_wall_ns;
    int64_t start_boot_ns;
};

/* What a log lacks, and when the step has ended. */
struct joule_log_state {
    uint64_t missed; /* periods of the energy series that have no row */
    uint64_t lost_rows;
    uint64_t lost_first_ns; /* since the step began */
    uint64_t lost_last_ns;
    int lost_error;          /* errno, or 0 */
    int64_t end_ns;          /* since the step began; 0: it runs */
    int64_t end_wall_ns;     /* 0 likewise */
    const uint64_t *lost_of; /* rows lost of each table */
    size_t table_count;
};

/* 0, or -1 with errno if it cannot be in a profile: EINVAL (the name is not
 * "NAME" or "GROUP/NAME", two columns have one name, a name has control
 * characters, or there is none), E2BIG (too many columns). */
int joule_log_check_table(const struct joule_log_table *table);

/* The cells of a row, without those of its times. */
size_t joule_log_cells(const struct joule_log_table *table);

/* Bytes of a row in memory and in the log: cells with their head. */
static inline size_t joule_log_row_bytes(size_t cells)
{
    return (1 + JOULE_ROW_TIMES + cells) * 8;
}

/* Lay a row of [count] cells at [to]: joule_log_row_bytes, aligned to 8. */
void joule_log_put_row(void *to, uint32_t table, uint64_t elapsed_s,
                       uint64_t epoch_s, const void *cells, size_t count,
                       uint64_t ns);

/* The table of the row at [row] (joule_log_put_row), its bytes and
 * ElapsedTimeNs. */
uint32_t joule_log_row_table(const void *row, size_t *ret_bytes,
                             uint64_t *ret_ns);

/* ---- writing ---- */

struct joule_log;

/*
 * In the empty file [fd], which is borrowed and stays locked (fcntl(2),
 * F_OFD_SETLK, the whole of it, for writing) until all copies of the descriptor
 * are closed, where the file system has locks: sh5util leaves a locked log where
 * it is.  Texts are borrowed for the call.  NULL with a sentence
 * and errno EINVAL (the node's name cannot be a group's), ENOMEM, or of
 * write(2).
 */
struct joule_log *joule_log_create(int fd,
                                   const struct joule_profile_facts *facts,
                                   struct joule_error *err);
void joule_log_destroy(struct joule_log *log);

/* The table with the next number, with the next flush.  -1 with errno of
 * joule_log_check_table, ENOSPC (there are JOULE_TABLES_MAX) or ENOMEM. */
int joule_log_add_table(struct joule_log *log,
                        const struct joule_log_table *table);

/*
 * Append tables that were added, [size] bytes of rows and, unless it is NULL,
 * the state, and wait for the disk.  On failure nothing of it is in the log,
 * and the tables wait for the next flush.  -1 with errno of write(2),
 * fdatasync(2), ENOMEM or EFBIG.
 */
int joule_log_flush(struct joule_log *log, const void *rows, size_t size,
                    const struct joule_log_state *state);

/* ---- reading ---- */

enum joule_log_kind {
    JOULE_LOG_TABLE = 2,
    JOULE_LOG_ROWS,
    JOULE_LOG_STATE,
};

struct joule_log_block {
    enum joule_log_kind kind;
    uint32_t number;              /* of TABLE */
    struct joule_log_table table; /* valid until the next call */
    struct joule_log_state state; /* likewise */
};

struct joule_log_reader;

/* The regular file [fd], which is borrowed; its offset is not used.  NULL with
 * a sentence and errno EBADMSG (no log, or of a later version), ENOMEM, or of
 * read(2). */
struct joule_log_reader *joule_log_open(int fd, struct joule_error *err);
void joule_log_close(struct joule_log_reader *reader);

/* Valid until the reader is closed. */
const struct joule_profile_facts *
joule_log_facts(const struct joule_log_reader *reader);

/* The next block: 1; 0 at the end of what is sound; -1 with a sentence and
 * errno ENOMEM, or of read(2). */
int joule_log_next(struct joule_log_reader *reader, struct joule_log_block *ret,
                   struct joule_error *err);

/* Of the ROWS that were just read, the next row and the number of its table;
 * NULL: there is none.  The cells are low byte first, and there are as many as
 * the table has. */
const void *joule_log_row(struct joule_log_reader *reader, uint32_t *ret_table);

/* After the end: bytes behind the last sound block, but for zeros that the
 * writer has put there. */
uint64_t joule_log_left_out(const struct joule_log_reader *reader);

#endif
