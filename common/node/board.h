/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * board.h - the node's published totals: one file in
 * /run/slurm-joule/<NodeName>/board, mapped by every process that reads it.
 *
 * One writer (the sampler in slurmd; its process stands in the file and keeps a
 * second one out), any number of readers, no system call on either side once it
 * is mapped.  The file outlives its writer: a restarted slurmd goes on with the
 * same total. There are two slots and a generation: the writer fills the slot
 * that is not published and then publishes it, so that a writer killed at any
 * instruction leaves the last whole snapshot behind.
 *
 * One page of the file is the readers': there a step that begins or ends says
 * when it did, so that the energy of a power that is sampled now and then is
 * split there.  The writer only compares these times, whatever they are.
 *
 * The file and its directory belong to the effective user (root) and nobody
 * else may read them: the numbers are finer than users may see
 * (CVE-2020-8694).
 */
#ifndef JOULE_NODE_BOARD_H
#define JOULE_NODE_BOARD_H

#include "common/base/error.h"
#include "common/energy/fused.h"
#include "common/energy/node_total.h"

/* What is published: plain data, a whole number of 64-bit words. */
struct joule_snapshot {
    int64_t wall_ns;     /* label of total.mono_ns */
    int64_t since_ns;    /* monotonic: when the total began in this boot;
                            power: when the node was first measured */
    int64_t period_ns;   /* of the sampler */
    uint64_t samples;    /* taken since the total began */
    uint64_t node_mw;    /* mean of the last interval, for power sources the
                            last power; JOULE_MW_UNKNOWN */
    uint64_t average_mw; /* node_uj over the time since since_ns; as above */
    uint64_t stale;      /* 1: joule_node_total_stale, for power sources
                            joule_node_total_overdue, when this was published */
    /* Readings of power since the total began, one for each label, by what
     * they were; [JOULE_POWER_OK] counts the measurements. */
    uint64_t power_faults[JOULE_POWER_STATUS_COUNT];
    struct joule_node_total
        total; /* last: only total.count domains are copied */
};

#define JOULE_MW_UNKNOWN UINT64_MAX

struct joule_board;

/*
 * Open the board of [node] below root_fd ("run/slurm-joule/NODE/board") for
 * writing; directories and file are made where missing.  A file of another
 * boot or version is started anew, one of this boot is continued.
 * Returns NULL with errno and a sentence:
 *   EINVAL      [node] is empty, too long, or holds '/' or starts with '.'
 *   EWOULDBLOCK the process that writes it lives
 *   EPERM       something on the path is a symbolic link, has another owner
 *               or may be written by others
 *   other       of the file system
 */
struct joule_board *joule_board_create(int root_fd, const char *node,
                                       struct joule_error *err);

/* The same for reading; ENOENT: no sampler has run, ESTALE: the file is of
 * another boot or version.  Where the file may be read but not written,
 * joule_board_edge does nothing. */
struct joule_board *joule_board_open(int root_fd, const char *node,
                                     struct joule_error *err);

/* NULL is a no-op; errno is kept.  The file stays.  In a child of fork, which
 * has nothing mapped, the board is good for this alone. */
void joule_board_destroy(struct joule_board *board);

/* Publish a snapshot (writer only, one thread at a time). */
void joule_board_publish(struct joule_board *board,
                         const struct joule_snapshot *snapshot);

/* The same with what a source of energy keeps (NULL: there is none). */
void joule_board_publish_fused(struct joule_board *board,
                               const struct joule_snapshot *snapshot,
                               const struct joule_fused_state *state);

/*
 * Copy the last snapshot.  Returns 0, or -1 with errno ENODATA (nothing is
 * published) or EBADMSG (what is there makes no sense).  Lock-free, any
 * thread; a reader never waits for the writer.
 */
int joule_board_read(const struct joule_board *board,
                     struct joule_snapshot *ret_snapshot);

/* Copy what was published with the last snapshot.  As above; ENODATA also if
 * there was none. */
int joule_board_read_fused(const struct joule_board *board,
                           struct joule_fused_state *ret_state);

/* Say that the load of the node changes at [ns]: a step begins or ends.  The
 * last JOULE_BOARD_EDGES are kept.  Lock-free, any thread of any process. */
#define JOULE_BOARD_EDGES 16
void joule_board_edge(struct joule_board *board, int64_t ns);

/* The latest edge that is not later than [by_ns]; 0: none.  As above. */
int64_t joule_board_last_edge(const struct joule_board *board, int64_t by_ns);

#endif
