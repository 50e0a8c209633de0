/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * copy.h - write a job file: what Slurm's sh5util makes of node-step files.
 *
 * "/" has the attribute "Number of Steps", /Steps/S "Number of Nodes", and
 * /Steps/S/Nodes/NODE is what the group of that name is in the node-step file,
 * with all its attributes, groups and tables.  Tables made of small chunks are
 * written in large ones; large ones are taken over as they are.  It is written
 * from its beginning to its end, without libhdf5 (object.h).
 *
 * Nothing is known of the file until joule_copy_finish: write into a temporary
 * one.  Memory grows with the nodes of a step by their names alone.  One thread
 * at a time.
 */
#ifndef JOULE_STORE_COPY_H
#define JOULE_STORE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/visitor.h"

struct joule_copy;

/* Into the empty file [fd], which stays the caller's.  NULL with a sentence:
 * ENOMEM. */
struct joule_copy *joule_copy_create(int fd, struct joule_error *err);

/* What has become of a node. */
struct joule_copy_state {
    uint64_t tables, rows;
    uint64_t lost_rows; /* that could not be read */
    uint64_t left_out;  /* things that could not be kept */
    bool is_empty;      /* nothing of the node was there */
    bool is_open;       /* "Joule End ns" is 0: not closed by its writer */
    char note[JOULE_ERROR_MAX]; /* the first of them */
};

/*
 * A visitor for one node of a step: the group [node] at the top is copied,
 * others are left out.  It is the copy's, until the next call.  Both names
 * have no '/'.  [fd] is the file that is visited, for chunks that are copied
 * from there without being looked at; -1: they must come with their bytes.
 * Nodes of a step follow one another.  NULL with EEXIST: the step has such a
 * node already; EINVAL: it was complete; ENOMEM, errno of write(2).
 */
const struct joule_visitor *joule_copy_begin(struct joule_copy *copy,
                                             const char *step, const char *node,
                                             int fd, struct joule_error *err);

/* The node is complete (or as complete as it gets).  *ret_state says what has
 * come of it; a node of which nothing came is not counted. */
int joule_copy_end(struct joule_copy *copy, struct joule_copy_state *ret_state,
                   struct joule_error *err);

/* Write the counts and what begins the file; [fd] is to be synced then.
 * -1 with errno of the write that failed. */
int joule_copy_finish(struct joule_copy *copy, struct joule_error *err);

/* Without finishing, the file is of no use. */
void joule_copy_destroy(struct joule_copy *copy);

#endif
