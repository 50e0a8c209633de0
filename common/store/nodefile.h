/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nodefile.h - the file of one step on one node, as doc/hdf5-format.md says.
 *
 * An HDF5 file, written without libhdf5: that takes 9 MB of memory and 25 ms in
 * every slurmstepd, and has to be told not to write in an order in which a file
 * that is cut off cannot be read.
 *
 * Nothing is on disk before joule_nodefile_commit.  All functions belong to
 * one thread.
 */
#ifndef JOULE_STORE_NODEFILE_H
#define JOULE_STORE_NODEFILE_H

#include <stdint.h>

#include "common/base/error.h"
#include "common/store/table.h"

struct joule_nodefile;

/* Attributes of the node's group.  Texts are borrowed for the call. */
struct joule_nodefile_facts {
    const char *node;   /* "Node Name" */
    const char *writer; /* "slurm-joule 0.1.0" */
    uint32_t node_index;
    uint32_t tasks; /* of the step on this node */
    uint32_t cpus_per_task;
    uint32_t run; /* N of ".rN" in the file's name, else 0 */
    int64_t start_wall_ns;
    int64_t start_boot_ns;
    char start[32]; /* "Start Time", by joule_nodefile_date */
};

/*
 * Set [start] from [start_wall_ns].  The C library's lock of the time zone is
 * taken: call it from the thread that forks, where there is one, or a child
 * may be born with the lock held.
 */
void joule_nodefile_date(struct joule_nodefile_facts *facts);

/* What is missing. */
struct joule_loss {
    uint64_t rows;
    uint64_t first_ns; /* since the step began */
    uint64_t last_ns;
    int error; /* errno, or 0 */
};

/*
 * In the empty file [fd], which is borrowed.  It is locked (fcntl(2), the whole
 * of it, for writing) until [fd] is closed, if the file system has locks: by
 * that, sh5util knows that somebody still writes it.  NULL with a sentence and
 * errno ENOMEM EINVAL  the node's name cannot be a group's
 */
struct joule_nodefile *
joule_nodefile_create(int fd, const struct joule_nodefile_facts *facts,
                      struct joule_error *err);

/* Without a word to the disk. */
void joule_nodefile_destroy(struct joule_nodefile *file);

/*
 * A series "NAME" or "GROUP/NAME"; a group is made as needed.  The number of
 * the table, from 0, or -1 with errno ENOMEM, EINVAL (not such a name, or it
 * is taken; two columns of one name), E2BIG (too many columns or tables).
 */
int joule_nodefile_add_table(struct joule_nodefile *file, const char *name,
                             const struct joule_table_options *opt);

struct joule_table *joule_nodefile_table(struct joule_nodefile *file,
                                         int table);

/* Say what is missing; on disk with the next commit. */
void joule_nodefile_set_loss(struct joule_nodefile *file,
                             const struct joule_loss *loss);

/* How many periods of the energy series have no row; likewise. */
void joule_nodefile_set_missed(struct joule_nodefile *file, uint64_t periods);

/*
 * Bring everything to the file, as joule_image_commit does: safe from the end
 * of this process now, and from a loss of power with the next commit.  -1 with
 * errno: of the disk (the next commit tries again), or ENOMEM.
 */
int joule_nodefile_commit(struct joule_nodefile *file);

/* The file is whole: pack the last chunks, note when, commit and wait for the
 * disk. */
int joule_nodefile_finish(struct joule_nodefile *file, int64_t end_ns,
                          int64_t end_wall_ns);

/* When commits fail for want of room: set_loss, on disk, and nothing else.  No
 * commit may follow.  -1 with errno. */
int joule_nodefile_rescue(struct joule_nodefile *file,
                          const struct joule_loss *loss);

/* Whether a copy would save a tenth of it, or it is no more than a few pages.
 */
bool joule_nodefile_is_loose(const struct joule_nodefile *file);

/* After finish: the same contents without holes into the empty file [fd].
 * -1 with errno; what is in fd is then of no use. */
int joule_nodefile_copy(struct joule_nodefile *file, int fd);

#endif
