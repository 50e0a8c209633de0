/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nodes.h - the nodes of a job's steps whose profiles are read: of a merged file,
 * or of the node-step files in the user's profile directory.
 *
 *     nodes = joule_nodes_find(&request, &err);
 *     joule_nodes_read(nodes, &reading, &err);
 *     joule_nodes_free(nodes);
 *
 * Files are read in a sandboxed worker (common/profile/worker.h).  One thread.
 */
#ifndef JOULE_REPORT_NODES_H
#define JOULE_REPORT_NODES_H

#include <hdf5.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/profile/worker.h"

struct joule_nodes_request {
    const char *job;   /* "7", "7.0,8"; of one job */
    const char *input; /* a merged file; NULL: the node-step files, and where
                          there are none, ./job_JOB.h5 */
    const char *dir, *user; /* NULL: ProfileHDF5Dir, who runs this */
};

struct joule_node {
    const char *step, *name; /* as in a job file: "0", "batch"; "n1" */
};

struct joule_nodes;

/* NULL with a sentence. */
struct joule_nodes *joule_nodes_find(const struct joule_nodes_request *request,
                                     struct joule_error *err);
void joule_nodes_free(struct joule_nodes *nodes);

size_t joule_nodes_count(const struct joule_nodes *nodes);

/* In the order of steps and names. */
struct joule_node joule_nodes_get(const struct joule_nodes *nodes, size_t i);

/* On stderr: the command [who] cannot read node [i], or not all of it. */
void joule_nodes_complain(const struct joule_nodes *nodes, size_t i,
                          const char *who, const char *sentence);

struct joule_nodes_reading {
    /* In a worker: read [group], of node [i], and send what comes of it.  -1
     * with a sentence. */
    int (*read)(void *arg, size_t i, hid_t group, struct joule_out *out,
                struct joule_error *err);
    /* A part of what was sent, as committed; it is not to be believed. -1 with
     * EBADMSG and a sentence ends the node. */
    int (*take)(void *arg, size_t i, const void *data, size_t size,
                struct joule_error *err);
    /* Node [i] cannot be read, or not all of it. */
    void (*failed)(void *arg, size_t i, const char *sentence);
    void *arg;
};

/* All nodes, in order.  -1 with a sentence: nothing can be read at all. */
int joule_nodes_read(struct joule_nodes *nodes,
                     const struct joule_nodes_reading *reading,
                     struct joule_error *err);

/*
 * Of a table below [group] the columns [column][columns], unsigned numbers, row by
 * row into one array, which the caller frees.  0; -1 with a sentence and errno
 * ENOENT (there is no such table), EINVAL (a column is missing), E2BIG (more than
 * [rows_max] rows) or ENOMEM.
 */
int joule_nodes_table(hid_t group, const char *table, const char *const *column,
                      size_t columns, size_t rows_max, uint64_t **ret,
                      size_t *ret_rows, struct joule_error *err);

/* Names of regions, by their numbers: each up to 255 bytes of any content, and a
 * NUL.  The caller frees them.  As joule_nodes_table. */
typedef char joule_region_text[256];

int joule_nodes_names(hid_t group, joule_region_text **ret, size_t *ret_count,
                      struct joule_error *err);

#endif
