/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outline.h - what groups, tables and attributes a file has, without libhdf5.
 *
 * libhdf5 takes 150 microseconds to open a node-step file and to look at its
 * two dozen objects, more than it takes to copy its rows; a large job has
 * thousands of such files.  This reads the formats that Slurm's plugin and ours
 * write, the oldest of each (HDF5 File Format Specification 3.0, II.A, III.A.1,
 * III.B to III.E, IV.A): whatever else it finds, or finds damaged, it gives up
 * the whole file, for libhdf5 to be asked instead.
 *
 * One thread at a time.
 */
#ifndef JOULE_STORE_OUTLINE_H
#define JOULE_STORE_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/layout.h"
#include "common/store/visitor.h"
#include "common/store/windows.h"

/* A type as it stands in the file; see plaintype.h. */
struct joule_outline_type {
    const unsigned char *bytes;
    size_t size;
};

struct joule_outline_attribute {
    const char *name;
    struct joule_outline_type type;
    uint32_t elements; /* 0: a scalar */
    uint32_t bytes;    /* of data */
    const unsigned char *data;
};

struct joule_outline_object {
    const char *name; /* of the outermost group: "" */
    uint64_t header;  /* where its object header is */
    unsigned depth;   /* 0: the outermost group */
    bool is_table;
    size_t attribute, attributes; /* the first one, and how many */
    /* Of a table; its chunks are in a chunkmap's kind of index. */
    struct joule_outline_type type;
    uint64_t rows, chunk_rows;
    struct joule_pipeline pipeline;
};

/* Groups before what is in them, in the order of names; attributes of an
 * object in that order too. */
struct joule_outline {
    struct joule_outline_object *object;
    size_t objects;
    struct joule_outline_attribute *attribute;
    size_t attributes;
    /* Private: what names and data point into. */
    struct joule_outline_block *blocks;
    size_t kept;
};

/* All of it belongs to the outline and is freed with it.  NULL with ENOTSUP:
 * the file has something else, or is damaged; ENOMEM. */
struct joule_outline *joule_outline_read(struct joule_windows *windows);
void joule_outline_destroy(struct joule_outline *outline);

/* The object of that path ("/", "/Node", "Node/Energy"), or NULL. */
const struct joule_outline_object *
joule_outline_find(const struct joule_outline *outline, const char *path);

/* They have been looked at before, and cannot fail. */
void joule_outline_layout(const struct joule_outline_object *table,
                          struct joule_layout *ret);
void joule_outline_value(const struct joule_outline_attribute *attribute,
                         struct joule_attribute *ret);

#endif
