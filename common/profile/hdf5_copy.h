/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hdf5_copy.h - write a job file: what Slurm's sh5util makes of node-step files
 * (doc/hdf5-format.md, "Merged file").
 *
 *     copy = joule_hdf5_copy_create(out_fd, &err);
 *     for each node of each step
 *         joule_hdf5_copy_node(copy, &node, &result, &err);
 *     joule_hdf5_copy_finish(copy, &err);
 *     joule_hdf5_copy_destroy(copy);
 *
 * A node is copied by H5Ocopy: chunks are taken over as they are stored, also
 * damaged ones, which are noticed when they are read.  Where H5Ocopy fails, the
 * end of a file is missing, or there is what is no table, rows are copied one
 * batch after the other, without those that cannot be read.
 *
 * libhdf5 crashes on some damaged files: this belongs into a worker (worker.h).
 * One thread at a time.
 */
#ifndef JOULE_PROFILE_HDF5_COPY_H
#define JOULE_PROFILE_HDF5_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

struct joule_hdf5_copy;

/* Into the empty file [fd], which stays the caller's.  NULL with errno and a
 * sentence. */
struct joule_hdf5_copy *joule_hdf5_copy_create(int fd, struct joule_error *err);

struct joule_hdf5_node {
    int fd;           /* of the file that has it */
    const char *path; /* of its group there: "/n1", "/Steps/0/Nodes/n1" */
    const char *step, *name; /* in the job file */
    bool is_node_file;       /* there should be nothing else in it */
};

/* What has become of a node. */
struct joule_hdf5_copied {
    uint64_t rows;
    uint64_t lost_rows; /* that could not be read */
    uint64_t left_out;  /* things that could not be kept */
    int32_t is_there;   /* the file has such a group */
    int32_t is_open;    /* "Joule End ns" is 0: its writer has not closed it */
    int32_t is_cut;     /* the end of the file is missing */
    int32_t has_start;
    uint64_t
        start_wall_ns;   /* "Joule Start Wall ns": tells runs of a step apart */
    int32_t write_error; /* errno: the job file cannot be written any more */
    char note[JOULE_ERROR_MAX]; /* the first of what was left out */
};

/*
 * Copy a node.  The nodes of a step follow one another.  *ret is set in all
 * cases.  -1 with errno and a sentence: nothing of the node is in the job file:
 * EBADMSG (no HDF5 file, or damaged), EEXIST (the step has such a node), EINVAL
 * (the step was complete), or errno of a write (ret->write_error).
 */
int joule_hdf5_copy_node(struct joule_hdf5_copy *copy,
                         const struct joule_hdf5_node *node,
                         struct joule_hdf5_copied *ret,
                         struct joule_error *err);

/* Write the numbers of steps and nodes, and close the job file; then it is the
 * caller's to sync.  -1 with errno of the write that failed and a sentence. */
int joule_hdf5_copy_finish(struct joule_hdf5_copy *copy,
                           struct joule_error *err);

/* Without finishing, the file is of no use. */
void joule_hdf5_copy_destroy(struct joule_hdf5_copy *copy);

#endif
