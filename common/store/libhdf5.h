/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libhdf5.h - what reads the files of which there is no outline (outline.h):
 * of another program's form, cut off, or damaged.
 *
 * libhdf5 comes with the libraries of whatever it can read files from; Debian's
 * needs 34 of them, for authentication and encryption most of all, and to load
 * them takes three times as long as to start a program.  What needs it is a
 * module of its own, which is loaded when there is such a file.
 *
 * The module is of the same build as its program: it has the same structs
 * (windows, layouts, tables) and its own copy of their functions.
 *
 * libhdf5 is not safe against hostile files: all but load and prepare belong
 * into a process that may crash (pool.h).  One thread at a time.
 */
#ifndef JOULE_STORE_LIBHDF5_H
#define JOULE_STORE_LIBHDF5_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/reader.h"
#include "common/store/rows.h"
#include "common/store/visitor.h"
#include "common/store/windows.h"

/* Raised with each change of a struct that both sides know. */
#define JOULE_LIBHDF5_VERSION 1

/* The module exports one, of this name. */
#define JOULE_LIBHDF5_SYMBOL "joule_libhdf5"

struct joule_libhdf5_file;

struct joule_libhdf5 {
    uint32_t version; /* JOULE_LIBHDF5_VERSION, which comes first for good */
    /* Before anything else, and before children that use it are forked. */
    void (*prepare)(void);
    /* The windows stay the caller's and must outlive the file.  NULL with a
     * sentence: EBADMSG (not an HDF5 file, or too damaged), ENOMEM. */
    struct joule_libhdf5_file *(*open)(struct joule_windows *windows,
                                       struct joule_error *err);
    void (*close)(struct joule_libhdf5_file *file);
    /* These are as joule_reader_is_cut, _walk and _table say. */
    bool (*is_cut)(const struct joule_libhdf5_file *file);
    int (*walk)(struct joule_libhdf5_file *file, const char *path,
                enum joule_walk how, const struct joule_visitor *visitor,
                struct joule_error *err);
    struct joule_rows *(*table)(struct joule_libhdf5_file *file,
                                const char *path, struct joule_error *err);
};

/* The one of this program, prepared.  Not in a sandbox.
 * NULL with a sentence: ENOENT and others (there is no module), EPROTO (it is
 * of another version).  A program has one of two: a module is loaded
 * (tools/sh5util/loadhdf5.c), or it is linked with libhdf5
 * (common/libhdf5/linked.c). */
const struct joule_libhdf5 *joule_libhdf5_load(struct joule_error *err);

#endif
