/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * visitor.h - what is in a profile file, one thing after the other.
 *
 * A reader calls the functions in the order of the tree; what they are is
 * decided by who wants it: one sends it to another process (record.h), one
 * writes it into another file (copy.h).  Each returns 0, or -1 with errno and
 * a sentence, which ends the walk.  Names have no '/' and at most
 * JOULE_STORE_NAME_MAX - 1 bytes.
 */
#ifndef JOULE_STORE_VISITOR_H
#define JOULE_STORE_VISITOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/error.h"
#include "common/store/rows.h"
#include "common/store/rowtype.h"

/* Rows are handed on in about so many bytes. */
#define JOULE_BATCH_SIZE ((size_t)256 << 10)

/* The largest attribute. */
#define JOULE_ATTRIBUTE_MAX 16384

struct joule_attribute {
    char name[JOULE_STORE_NAME_MAX];
    uint32_t elements; /* 0: a scalar data space, else its length */
    uint32_t bytes;    /* of data */
    unsigned char data[JOULE_ATTRIBUTE_MAX];
    struct joule_rowtype type; /* of one element */
};

/* What another reader, and a path, can do with. */
static inline bool joule_store_is_name(const char *name)
{
    return *name != '\0' && strcmp(name, ".") != 0 &&
           strlen(name) < JOULE_STORE_NAME_MAX && !strchr(name, '/');
}

struct joule_visitor {
    /* All required, but rows, chunk and room where no rows are wanted. */
    int (*group)(void *arg, const char *name, struct joule_error *err);
    int (*leave)(void *arg, struct joule_error *err);
    /* Of the group or table that was entered last. */
    int (*attribute)(void *arg, const struct joule_attribute *attribute,
                     struct joule_error *err);
    /* [stored]: chunks follow as they are, else rows. */
    int (*table)(void *arg, const char *name, const struct joule_layout *layout,
                 bool stored, struct joule_error *err);
    int (*table_end)(void *arg, uint64_t lost_rows, struct joule_error *err);
    /* Something is there that cannot be read or kept; the walk goes on. */
    int (*note)(void *arg, const char *sentence, struct joule_error *err);

    /* Memory of [size] bytes to read the next rows or chunk into. */
    void *(*room)(void *arg, size_t size, struct joule_error *err);
    int (*rows)(void *arg, const void *rows, uint64_t count, size_t bytes,
                struct joule_error *err);
    /* [rows]: how many of the table's are in it (the last chunk is padded). */
    int (*chunk)(void *arg, uint64_t rows, uint32_t mask, const void *data,
                 size_t len, struct joule_error *err);
    /* Optional, between chunks: some that nobody can check, and that therefore
     * were not read. */
    int (*run)(void *arg, const struct joule_run *run, struct joule_error *err);
    void *arg;
};

/* How many rows are handed on at a time; a copy's chunks are of this size. */
static inline uint64_t joule_batch_rows(const struct joule_layout *layout)
{
    uint64_t most = JOULE_BATCH_SIZE / layout->type.size;
    uint64_t pieces, even;

    if (most < 1)
        most = 1;
    if (layout->rows <= most)
        return layout->rows > 0 ? layout->rows : 1;
    /* Pieces of one size, so that the last one is not mostly padding ... */
    pieces = (layout->rows - 1) / most + 1;
    even = (layout->rows - 1) / pieces + 1;
    /* ... and of whole chunks, so that they need not be cut. */
    if (layout->chunk_rows > 1 && layout->chunk_rows < even)
        even = (even + layout->chunk_rows - 1) / layout->chunk_rows *
               layout->chunk_rows;
    return even;
}

#endif
