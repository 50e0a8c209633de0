/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * matcher.h - find what each MPI call of a program has waited for: sends and their
 * receives, and the members of collective operations, are brought together.
 *
 *     m = joule_matcher_create(&config, &err);
 *     joule_matcher_call(m, &call);        of each process, in its order
 *     joule_matcher_match(m, part);        now and then, of all parts
 *     joule_matcher_finish(m);
 *     joule_matcher_counts(m, &counts);
 *     joule_matcher_destroy(m);
 *
 * Rules:
 *  - On a channel (communicator, source, destination, tag) the k-th send that was
 *    posted belongs to the k-th receive that was posted.  The source and tag of a
 *    receive are known when it completes; until all receives that were posted
 *    before have completed or were cancelled, it is held.  So are sends.
 *  - The k-th collective operation of each member of a communicator is the same
 *    operation.
 *  - A call that completes several operations has one Late Sender wait, the
 *    longest, and one Late Receiver wait only where it has no Late Sender wait
 *    (Scalasca 2.5).  What MPI_Test* completes has not been waited for.
 *  - Cancelled operations are dropped.
 *
 * Memory grows with what is open: operations that are not complete or not matched.
 * A process whose oldest open request stays open holds at most held_max later ones;
 * then that request is passed over, and takes part where it completes.
 *
 * Threads: the work is divided into parts.  Each process belongs to one of them
 * (joule_matcher_part); joule_matcher_call and joule_matcher_collect are called for a part's processes by
 * one thread, joule_matcher_match(part) by one thread.  No thread may match while
 * another one calls or collects: a round is calls of all parts, a barrier, matching
 * of all parts, a barrier.  The waits are the same whatever the number of parts and
 * however calls are divided into rounds; their order is not.
 *
 * Units: ns of one clock.  Errors: ENOMEM.
 */
#ifndef JOULE_WAITS_MATCHER_H
#define JOULE_WAITS_MATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/waits/patterns.h"
#include "common/waits/slack.h"

#define JOULE_MATCHER_PARTS_MAX 16

/* One wait of one process.  Numbers are the caller's. */
struct joule_wait {
    enum joule_wait_pattern pattern;
    uint32_t process;
    uint32_t path; /* of the call that waits */
    uint32_t communicator;
    uint64_t begin_ns, end_ns;
    uint64_t wait_ns; /* end_ns - begin_ns, more than 0 */
};

/* A send that has found its receive. */
struct joule_delivery {
    uint32_t source, destination; /* processes */
    uint32_t tag;
    uint32_t bytes;            /* at most UINT32_MAX */
    uint64_t send_ns, post_ns; /* enter of the calls that posted both */
    uint64_t received_ns; /* leave of the call that completed the receive */
};

enum joule_operation_kind {
    JOULE_SEND,      /* complete when the call is left */
    JOULE_RECEIVE,   /* likewise */
    JOULE_SEND_POST, /* MPI_Isend, MPI_Start: a request */
    JOULE_SEND_DONE,
    JOULE_RECEIVE_POST, /* from whom and with what tag is told when it is done */
    JOULE_RECEIVE_DONE,
    JOULE_CANCELLED, /* a request of either kind */
    JOULE_COLLECTIVE,
    JOULE_COMPUTED, /* before the call, for slack alone: path, computed_ns */
};

/* What a call posts, completes or takes part in. */
struct joule_operation {
    enum joule_operation_kind kind;
    union {
        uint32_t communicator;
        uint32_t path;
    };
    uint32_t
        peer; /* process: of a send where to, of a receive (when it is done)
                      where from */
    uint32_t tag;
    uint64_t bytes; /* of a send */
    union {
        uint64_t request; /* of POST, DONE and CANCELLED: a number of the
                             process's own, which may be used again after it is
                             done */
        uint64_t computed_ns;
    };
    /* Collective operations. */
    enum joule_collective collective;
    uint32_t rank, size; /* of the process in the communicator; its size */
    bool is_root, has_sent, has_received;
};

/* A call, told when it is left. */
struct joule_call {
    uint32_t process; /* 0 to processes - 1 */
    uint32_t path;
    uint64_t enter_ns, leave_ns;
    bool is_test;            /* MPI_Test*: it does not wait */
    bool waits_for_receiver; /* MPI_Send, MPI_Ssend: its JOULE_SEND */
    const struct joule_operation *operation;
    size_t operations;
};

struct joule_matcher_config {
    uint32_t processes; /* at least 1 */
    unsigned parts;     /* 1 to JOULE_MATCHER_PARTS_MAX */
    size_t held_max;    /* 0: what is good for so many processes */
    bool with_slack;
    /* A wait, in the thread that matches or collects [part]. */
    void (*take)(void *arg, unsigned part, const struct joule_wait *wait);
    /* Optional, likewise. */
    void (*message)(void *arg, unsigned part,
                    const struct joule_delivery *message);
    void *arg;
};

struct joule_matcher_counts {
    uint64_t messages;    /* sends that have found their receive */
    uint64_t collectives; /* operations, all of whose members were there */
    /* Clock condition: times that cannot be, of messages and of members. */
    uint64_t clock_violations, clock_violation_ns; /* the longest */
    uint64_t unmatched_sends, unmatched_receives;  /* at the end */
    uint64_t open_requests;          /* not completed at the end */
    uint64_t incomplete_collectives; /* some members were not there */
    uint64_t
        inconsistent_collectives; /* of members that call different ones, or
                                          not of one root */
    uint64_t passed_over;         /* requests: see held_max */
    uint64_t without_post; /* completions of requests that nobody posted */
    uint64_t cancelled;
};

struct joule_matcher;

/* NULL with a sentence: ENOMEM, or EINVAL. */
struct joule_matcher *
joule_matcher_create(const struct joule_matcher_config *config,
                     struct joule_error *err);
void joule_matcher_destroy(struct joule_matcher *m);

/* The part of a process: neighbours are of one part, as far as possible. */
unsigned joule_matcher_part(const struct joule_matcher *m, uint32_t process);

/* 0, or -1 with ENOMEM: then the matcher is of no more use.  [call] is not kept. */
int joule_matcher_call(struct joule_matcher *m, const struct joule_call *call);

/* Take what matching has found for the processes of [part]; at the begin of each
 * round.  It cannot fail. */
void joule_matcher_collect(struct joule_matcher *m, unsigned part);

/* Bring together what all parts' calls have told.  0, or -1 with ENOMEM. */
int joule_matcher_match(struct joule_matcher *m, unsigned part);

/* After the last round, in one thread: what is held takes part, and the last waits
 * are told.  0, or -1 with ENOMEM. */
int joule_matcher_finish(struct joule_matcher *m);

/* After joule_matcher_finish; NULL: without slack. */
const struct joule_slack *joule_matcher_slack(const struct joule_matcher *m,
                                              uint32_t process);

/* After joule_matcher_finish. */
void joule_matcher_counts(const struct joule_matcher *m,
                          struct joule_matcher_counts *ret);

#endif
