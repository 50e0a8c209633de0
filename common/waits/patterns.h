/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * patterns.h - how long a process waits in an MPI call, as Scalasca defines it
 * (source of Scalasca 1.4 and 2.5, pattern reference).
 *
 * Times are ns of one clock.  "enter" and "leave" are those of the call that
 * waits; a wait is a part of that call.  All functions are pure.
 *
 * The clock condition: what a process waits for happens before it stops waiting.
 * Where corrected clocks say otherwise, the wait ends with its call, and
 * [violated_ns] is not 0.
 */
#ifndef JOULE_WAITS_PATTERNS_H
#define JOULE_WAITS_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum joule_wait_pattern {
    JOULE_LATE_SENDER,
    JOULE_LATE_RECEIVER,
    JOULE_WAIT_AT_BARRIER,
    JOULE_WAIT_AT_NXN,
    JOULE_LATE_BROADCAST,
    JOULE_EARLY_REDUCE,
    JOULE_EARLY_SCAN,
    /* Not waiting: from the last enter, or the first leave, to the own leave. */
    JOULE_BARRIER_COMPLETION,
    JOULE_NXN_COMPLETION,
    JOULE_WAIT_PATTERNS,
};

/* Patterns before this one are waits, the others completions. */
#define JOULE_WAIT_COMPLETIONS JOULE_BARRIER_COMPLETION

/* "Late Sender" and so on, as in Scalasca; and "late_sender". */
const char *joule_wait_pattern_name(enum joule_wait_pattern pattern);
const char *joule_wait_pattern_id(enum joule_wait_pattern pattern);

/* What a collective operation is to the patterns. */
enum joule_collective {
    JOULE_COLLECTIVE_BARRIER,
    JOULE_COLLECTIVE_NXN,   /* Allreduce, Allgather(v), Alltoall,
                               Reduce_scatter(_block) */
    JOULE_COLLECTIVE_1XN,   /* Bcast, Scatter(v) */
    JOULE_COLLECTIVE_NX1,   /* Reduce, Gather(v) */
    JOULE_COLLECTIVE_SCAN,  /* Scan, Exscan */
    JOULE_COLLECTIVE_OTHER, /* no pattern knows it */
};

/* A part of a call's time; begin == end: no wait. */
struct joule_wait_span {
    uint64_t begin_ns, end_ns;
    uint64_t violated_ns; /* the clock condition, by so much; 0: not */
};

/*
 * A receiver waits for the send: [send_enter_ns] is the enter of the call that
 * posted it (of MPI_Isend, not of its wait); enter and leave are those of the
 * call that completed the receive.
 */
struct joule_wait_span joule_wait_late_sender(uint64_t send_enter_ns,
                                              uint64_t enter_ns,
                                              uint64_t leave_ns);

/*
 * A sender waits for the receive to be posted, at [post_ns] (the enter of
 * MPI_Recv or MPI_Irecv); enter and leave are those of the call that completed
 * the send.  A send that is over before has not waited.
 */
struct joule_wait_span joule_wait_late_receiver(uint64_t post_ns,
                                                uint64_t enter_ns,
                                                uint64_t leave_ns);

/* One process of a collective operation. */
struct joule_collective_member {
    uint64_t enter_ns, leave_ns;
    uint32_t rank; /* in the communicator */
    bool is_root;
    bool has_sent, has_received; /* more than 0 bytes */
};

/*
 * What all members of a collective operation have in common, made member by
 * member, in any order:
 *
 *     struct joule_collective_times t = joule_collective_begin();
 *     joule_collective_add(&t, kind, &member);              of each member
 *     n = joule_collective_waits(&t, kind, &member, waits); of each member
 */
struct joule_collective_times {
    uint64_t last_enter_ns;   /* of all */
    uint64_t last_sender_ns;  /* the last enter of one that has sent */
    uint64_t first_sender_ns; /* the first of a non-root that has sent */
    uint64_t first_leave_ns;  /* of all */
    uint64_t root_enter_ns;   /* of the root */
    uint64_t
        first_receiver_ns; /* the first enter of a non-root that has received */
    uint32_t members, roots;
    bool has_sender, has_non_root_sender;
};

struct joule_collective_times joule_collective_begin(void);
void joule_collective_add(struct joule_collective_times *t,
                          const struct joule_collective_member *member);

#define JOULE_COLLECTIVE_WAITS_MAX 2

struct joule_collective_wait {
    enum joule_wait_pattern pattern;
    struct joule_wait_span span;
};

/*
 * What [member] has waited: how many of [ret] are filled, each longer than 0 or
 * with a violated clock condition.  [last_before_ns] is for a scan: the last
 * enter of the ranks up to the member's own.  A communicator of one rank has no
 * waits.
 */
size_t joule_collective_waits(
    const struct joule_collective_times *t, enum joule_collective kind,
    const struct joule_collective_member *member, uint64_t last_before_ns,
    struct joule_collective_wait ret[JOULE_COLLECTIVE_WAITS_MAX]);

/*
 * How much later a call could have been entered before somebody had waited for it, or
 * waited longer; JOULE_WAIT_NO_LIMIT: nobody would.  The times that messages take are
 * not known.
 *
 * That of a send is the time of the call that posted it, and enter and leave are those
 * of the call that completed the receive; [is_test]: it did not wait.  That of a
 * receive is the time of the call that posted it, and enter and leave are those of the
 * call that completed the send.
 */
#define JOULE_WAIT_NO_LIMIT UINT64_MAX

uint64_t joule_wait_send_limit(uint64_t send_enter_ns, uint64_t enter_ns,
                               uint64_t leave_ns, bool is_test);
uint64_t joule_wait_receive_limit(uint64_t post_ns, uint64_t enter_ns,
                                  uint64_t leave_ns);

/* Of [member]; [last_with_next_ns] is for a scan: the last enter of the ranks up to
 * the next one, or JOULE_WAIT_NO_LIMIT for the last rank. */
uint64_t joule_collective_limit(const struct joule_collective_times *t,
                                enum joule_collective kind,
                                const struct joule_collective_member *member,
                                uint64_t last_with_next_ns);

#endif
