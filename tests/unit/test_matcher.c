/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits of MPI calls: each pattern by hand, and random programs against a matcher
 * that is slow and plain. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/waits/matcher.h"
#include "tests/unit/dice.h"

#define WAITS_MOST 20000
#define COMM       7

/* ---- what the matcher tells ---- */

struct told {
    struct joule_wait wait[WAITS_MOST];
    size_t count;
};

static struct told told[JOULE_MATCHER_PARTS_MAX];
static struct joule_matcher *m;
static struct joule_matcher_counts counts;
static struct joule_error err;
static bool with_slack;
static uint32_t processes;

static void take(void *arg, unsigned part, const struct joule_wait *wait)
{
    (void)arg;
    ck_assert_uint_lt(told[part].count, WAITS_MOST);
    ck_assert_uint_eq(wait->wait_ns, wait->end_ns - wait->begin_ns);
    ck_assert_uint_gt(wait->wait_ns, 0);
    told[part].wait[told[part].count++] = *wait;
}

static void begin(uint32_t all, unsigned parts, size_t held_max)
{
    const struct joule_matcher_config config = {.processes = all,
                                                .parts = parts,
                                                .held_max = held_max,
                                                .with_slack = with_slack,
                                                .take = take};

    for (unsigned i = 0; i < JOULE_MATCHER_PARTS_MAX; i++)
        told[i].count = 0;
    processes = all;
    m = joule_matcher_create(&config, &err);
    ck_assert_msg(m != NULL, "%s", err.text);
}

static void next_round(unsigned parts)
{
    for (unsigned i = 0; i < parts; i++)
        ck_assert_int_eq(joule_matcher_match(m, i), 0);
    for (unsigned i = 0; i < parts; i++)
        joule_matcher_collect(m, i);
}

static int compare_waits(const void *pa, const void *pb)
{
    const struct joule_wait *a = pa, *b = pb;

    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    return (a->pattern > b->pattern) - (a->pattern < b->pattern);
}

#define SLACKS 5 /* processes */

/* Of all computing of each process. */
static uint64_t slack_ns[SLACKS];

static void keep_slack(void)
{
    size_t count;

    for (uint32_t p = 0; p < processes && p < SLACKS; p++)
        slack_ns[p] =
            joule_slack_paths(joule_matcher_slack(m, p), &count)->slack_ns;
}

/* All waits are in told[0] then, by process and time. */
static void end(unsigned parts)
{
    next_round(parts);
    ck_assert_int_eq(joule_matcher_finish(m), 0);
    joule_matcher_counts(m, &counts);
    if (with_slack)
        keep_slack();
    joule_matcher_destroy(m);
    for (unsigned i = 1; i < parts; i++)
        for (size_t k = 0; k < told[i].count; k++)
            take(NULL, 0, &told[i].wait[k]);
    qsort(told[0].wait, told[0].count, sizeof(told[0].wait[0]), compare_waits);
}

/* ---- by hand ---- */

#define CALL(p, from, to, ...)                                                 \
    do {                                                                       \
        const struct joule_operation operations[] = {__VA_ARGS__};             \
        const struct joule_call call = {.process = (p),                        \
                                        .path = (p) + 100,                     \
                                        .enter_ns = (from),                    \
                                        .leave_ns = (to),                      \
                                        .is_test = is_test,                    \
                                        .waits_for_receiver = true,            \
                                        .operation = operations,               \
                                        .operations = sizeof(operations) /     \
                                                      sizeof(operations[0])};  \
        ck_assert_int_eq(joule_matcher_call(m, &call), 0);                     \
    } while (0)

static bool is_test;

/* Operations, on communicator COMM. */
#define SEND(to, t)                                                            \
    {                                                                          \
        .kind = JOULE_SEND, .communicator = COMM, .peer = (to), .tag = (t)     \
    }
#define RECEIVE(from, t)                                                       \
    {                                                                          \
        .kind = JOULE_RECEIVE, .communicator = COMM, .peer = (from),           \
        .tag = (t)                                                             \
    }
#define ISEND(r, to, t)                                                        \
    {                                                                          \
        .kind = JOULE_SEND_POST, .communicator = COMM, .peer = (to),           \
        .tag = (t), .request = (r)                                             \
    }
#define SENT(r)                                                                \
    {                                                                          \
        .kind = JOULE_SEND_DONE, .request = (r)                                \
    }
#define IRECEIVE(r)                                                            \
    {                                                                          \
        .kind = JOULE_RECEIVE_POST, .request = (r)                             \
    }
#define RECEIVED(r, from, t)                                                   \
    {                                                                          \
        .kind = JOULE_RECEIVE_DONE, .communicator = COMM, .peer = (from),      \
        .tag = (t), .request = (r)                                             \
    }
#define COMPUTED                                                               \
    {                                                                          \
        .kind = JOULE_COMPUTED, .path = 1, .computed_ns = 1                    \
    }
#define CANCELLED(r)                                                           \
    {                                                                          \
        .kind = JOULE_CANCELLED, .request = (r)                                \
    }
#define COLLECTIVE(c, r, n, root, s, v)                                        \
    {                                                                          \
        .kind = JOULE_COLLECTIVE, .communicator = COMM, .collective = (c),     \
        .rank = (r), .size = (n), .is_root = (root), .has_sent = (s),          \
        .has_received = (v)                                                    \
    }

static void is_wait(size_t i, enum joule_wait_pattern pattern, uint32_t process,
                    uint64_t begin_ns, uint64_t end_ns)
{
    const struct joule_wait *w = &told[0].wait[i];

    ck_assert_msg(i < told[0].count, "%zu waits", told[0].count);
    ck_assert_msg(w->pattern == pattern && w->process == process &&
                      w->begin_ns == begin_ns && w->end_ns == end_ns,
                  "wait %zu is %s of %u from %llu to %llu", i,
                  joule_wait_pattern_name(w->pattern), w->process,
                  (unsigned long long)w->begin_ns,
                  (unsigned long long)w->end_ns);
    ck_assert_uint_eq(w->path, process + 100);
    ck_assert_uint_eq(w->communicator, COMM);
}

static void are_waits(size_t count)
{
    ck_assert_uint_eq(told[0].count, count);
}

static void setup(void)
{
    is_test = false;
    with_slack = false;
}

START_TEST(late_sender)
{
    begin(2, 1, 0);
    CALL(1, 100, 450, RECEIVE(0, 3));
    CALL(0, 400, 420, SEND(1, 3));
    end(1);
    is_wait(0, JOULE_LATE_SENDER, 1, 100, 400);
    are_waits(1);
    ck_assert_uint_eq(counts.messages, 1);
}
END_TEST

/* The wait ends with the call, whatever clocks say. */
START_TEST(late_sender_of_wrong_clocks)
{
    begin(2, 1, 0);
    CALL(0, 500, 520, SEND(1, 3));
    CALL(1, 100, 450, RECEIVE(0, 3));
    end(1);
    is_wait(0, JOULE_LATE_SENDER, 1, 100, 450);
    are_waits(1);
    ck_assert_uint_eq(counts.clock_violations, 1);
    ck_assert_uint_eq(counts.clock_violation_ns, 50);
}
END_TEST

START_TEST(late_receiver)
{
    begin(2, 1, 0);
    CALL(0, 100, 450, SEND(1, 3));
    CALL(1, 400, 460, RECEIVE(0, 3));
    /* An eager send that was over before has not waited, nor one just then. */
    CALL(0, 500, 510, SEND(1, 3));
    CALL(1, 600, 610, RECEIVE(0, 3));
    CALL(0, 700, 800, SEND(1, 3));
    CALL(1, 800, 810, RECEIVE(0, 3));
    /* One that was preempted before it left looks as if it had. */
    CALL(0, 900, 1001, SEND(1, 3));
    CALL(1, 1000, 1010, RECEIVE(0, 3));
    end(1);
    is_wait(0, JOULE_LATE_RECEIVER, 0, 100, 400);
    is_wait(1, JOULE_LATE_RECEIVER, 0, 900, 1000);
    are_waits(2);
}
END_TEST

/* Of a receive that was posted with MPI_Irecv its post counts for the sender, and
 * its completion for the receiver. */
START_TEST(posts_and_completions)
{
    begin(2, 1, 0);
    CALL(1, 200, 210, IRECEIVE(1));
    CALL(0, 100, 250, SEND(1, 3));
    CALL(1, 300, 310, RECEIVED(1, 0, 3));
    /* The post of a send counts for the receiver, its wait for the sender. */
    CALL(0, 400, 410, ISEND(1, 1, 4));
    CALL(1, 350, 500, RECEIVE(0, 4));
    CALL(0, 420, 500, SENT(1));
    /* A wait for a send. */
    CALL(0, 600, 610, ISEND(1, 1, 4));
    CALL(0, 620, 900, SENT(1));
    CALL(1, 800, 910, RECEIVE(0, 4));
    end(1);
    is_wait(0, JOULE_LATE_RECEIVER, 0, 100, 200);
    is_wait(1, JOULE_LATE_RECEIVER, 0, 620, 800);
    is_wait(2, JOULE_LATE_SENDER, 1, 350, 400);
    are_waits(3);
}
END_TEST

START_TEST(tests_do_not_wait)
{
    begin(2, 1, 0);
    CALL(1, 100, 110, IRECEIVE(1));
    CALL(0, 500, 510, ISEND(1, 1, 3));
    is_test = true;
    CALL(1, 120, 600, RECEIVED(1, 0, 3));
    CALL(0, 20, 700, SENT(1));
    end(1);
    are_waits(0);
    ck_assert_uint_eq(counts.messages, 1);
}
END_TEST

/* The longest Late Sender wait of a call, once; no Late Receiver beside it. */
START_TEST(waitall)
{
    begin(3, 1, 0);
    CALL(0, 10, 20, IRECEIVE(1), IRECEIVE(2), ISEND(3, 1, 9));
    CALL(0, 100, 900, RECEIVED(1, 1, 3), RECEIVED(2, 2, 3), SENT(3));
    CALL(1, 300, 310, SEND(0, 3));
    CALL(2, 400, 410, SEND(0, 3));
    CALL(1, 500, 510, RECEIVE(0, 9));
    end(1);
    is_wait(0, JOULE_LATE_SENDER, 0, 100, 400);
    are_waits(1);
}
END_TEST

START_TEST(waitall_of_sends)
{
    begin(3, 1, 0);
    CALL(0, 10, 20, IRECEIVE(1), ISEND(2, 1, 9), ISEND(3, 2, 9));
    CALL(0, 100, 900, RECEIVED(1, 1, 3), SENT(2), SENT(3));
    CALL(1, 50, 60, SEND(0, 3));
    CALL(1, 500, 510, RECEIVE(0, 9));
    CALL(2, 600, 610, RECEIVE(0, 9));
    end(1);
    is_wait(0, JOULE_LATE_RECEIVER, 0, 100, 600);
    are_waits(1);
}
END_TEST

/* Two equal receives that complete in the other order: the first that was posted
 * has the first message. */
START_TEST(order_of_posting)
{
    begin(2, 1, 0);
    CALL(1, 10, 20, IRECEIVE(1));
    CALL(1, 30, 40, IRECEIVE(2));
    CALL(0, 200, 210, SEND(1, 3));
    CALL(0, 800, 810, SEND(1, 3));
    CALL(1, 100, 900, RECEIVED(2, 0, 3));
    CALL(1, 910, 920, RECEIVED(1, 0, 3));
    end(1);
    is_wait(0, JOULE_LATE_SENDER, 1, 100, 800);
    are_waits(1);
    ck_assert_uint_eq(counts.messages, 2);
}
END_TEST

/* A request is not in the way for ever, nor is its message lost. */
START_TEST(open_request)
{
    begin(2, 1, 10);
    CALL(1, 10, 20, IRECEIVE(1));
    CALL(0, 10, 20, ISEND(1, 1, 5));
    for (uint64_t i = 0; i < 100; i++) {
        CALL(1, 1000 * i + 100, 1000 * i + 300, RECEIVE(0, 3));
        CALL(0, 1000 * i + 200, 1000 * i + 210, SEND(1, 3));
    }
    next_round(1);
    ck_assert_uint_eq(told[0].count, 100);
    CALL(1, 200000, 200100, RECEIVED(1, 0, 4));
    CALL(0, 200050, 200060, SEND(1, 4));
    CALL(1, 300000, 300100, RECEIVE(0, 5));
    CALL(0, 300000, 300100, SENT(1));
    end(1);
    is_wait(100, JOULE_LATE_SENDER, 1, 200000, 200050);
    are_waits(101);
    ck_assert_uint_eq(counts.passed_over, 2);
    ck_assert_uint_eq(counts.messages, 102);
    ck_assert_uint_eq(counts.unmatched_sends + counts.unmatched_receives, 0);
}
END_TEST

START_TEST(cancelled)
{
    begin(2, 1, 0);
    CALL(1, 10, 20, IRECEIVE(1), IRECEIVE(2));
    CALL(0, 10, 20, ISEND(1, 1, 3));
    CALL(0, 500, 510, ISEND(2, 1, 3));
    CALL(0, 520, 530, CANCELLED(1));
    CALL(0, 540, 550, SENT(2));
    CALL(1, 30, 40, CANCELLED(1));
    CALL(1, 100, 900, RECEIVED(2, 0, 3));
    end(1);
    is_wait(0, JOULE_LATE_SENDER, 1, 100, 500);
    are_waits(1);
    ck_assert_uint_eq(counts.cancelled, 2);
    ck_assert_uint_eq(counts.unmatched_sends, 0);
}
END_TEST

/* What makes no sense is counted. */
START_TEST(odd_requests)
{
    begin(2, 2, 0);
    CALL(0, 10, 20, SENT(1), CANCELLED(2), IRECEIVE(3), SENT(3));
    CALL(0, 30, 40, RECEIVED(9, 1, 3));
    CALL(0, 50, 60, ISEND(4, 1, 3), SENT(4), SENT(4), RECEIVED(3, 1, 4));
    CALL(0, 70, 80, ISEND(5, 1, 8), ISEND(5, 1, 8), IRECEIVE(6));
    CALL(1, 5, 90, SEND(0, 3), RECEIVE(0, 3), RECEIVE(0, 8));
    end(2);
    ck_assert_uint_eq(counts.without_post, 5);
    ck_assert_uint_eq(counts.messages, 3);
    ck_assert_uint_eq(counts.open_requests, 3);
    ck_assert_uint_eq(counts.unmatched_sends, 1);
    ck_assert_uint_eq(counts.unmatched_receives, 1);
}
END_TEST

#define BARRIER(r)                                                             \
    COLLECTIVE(JOULE_COLLECTIVE_BARRIER, r, 3, false, false, false)

START_TEST(barrier)
{
    begin(3, 1, 0);
    CALL(0, 100, 500, BARRIER(0));
    CALL(1, 300, 510, BARRIER(1));
    CALL(2, 200, 495, BARRIER(2));
    end(1);
    is_wait(0, JOULE_WAIT_AT_BARRIER, 0, 100, 300);
    is_wait(1, JOULE_BARRIER_COMPLETION, 0, 495, 500);
    is_wait(2, JOULE_BARRIER_COMPLETION, 1, 495, 510);
    is_wait(3, JOULE_WAIT_AT_BARRIER, 2, 200, 300);
    are_waits(4);
    ck_assert_uint_eq(counts.collectives, 1);
}
END_TEST

/* One has left before the last came: it has waited until then, and no longer. */
START_TEST(barrier_of_wrong_clocks)
{
    begin(3, 1, 0);
    CALL(0, 100, 250, BARRIER(0));
    CALL(1, 300, 510, BARRIER(1));
    CALL(2, 200, 505, BARRIER(2));
    end(1);
    is_wait(0, JOULE_WAIT_AT_BARRIER, 0, 100, 250);
    is_wait(1, JOULE_BARRIER_COMPLETION, 1, 300, 510);
    is_wait(2, JOULE_WAIT_AT_BARRIER, 2, 200, 300);
    is_wait(3, JOULE_BARRIER_COMPLETION, 2, 300, 505);
    are_waits(4);
    ck_assert_uint_eq(counts.clock_violations, 1);
}
END_TEST

#define NXN(r, s, v) COLLECTIVE(JOULE_COLLECTIVE_NXN, r, 3, false, s, v)

START_TEST(nxn_sizes)
{
    begin(3, 1, 0);
    /* Nobody waits for one that sends nothing; one that receives nothing does not
     * wait. */
    CALL(0, 100, 500, NXN(0, true, true));
    CALL(1, 200, 500, NXN(1, true, false));
    CALL(2, 300, 500, NXN(2, false, true));
    CALL(0, 600, 900, NXN(0, false, true));
    CALL(1, 700, 900, NXN(1, false, true));
    CALL(2, 800, 900, NXN(2, false, false));
    end(1);
    is_wait(0, JOULE_WAIT_AT_NXN, 0, 100, 200);
    are_waits(1);
}
END_TEST

START_TEST(nxn_completion)
{
    begin(3, 1, 0);
    CALL(0, 100, 500, NXN(0, true, true));
    CALL(1, 200, 520, NXN(1, true, true));
    CALL(2, 300, 510, NXN(2, true, true));
    end(1);
    is_wait(0, JOULE_WAIT_AT_NXN, 0, 100, 300);
    is_wait(1, JOULE_WAIT_AT_NXN, 1, 200, 300);
    is_wait(2, JOULE_NXN_COMPLETION, 1, 500, 520);
    is_wait(3, JOULE_NXN_COMPLETION, 2, 500, 510);
    are_waits(4);
}
END_TEST

#define BCAST(r, s, v)  COLLECTIVE(JOULE_COLLECTIVE_1XN, r, 3, (r) == 1, s, v)
#define REDUCE(r, s, v) COLLECTIVE(JOULE_COLLECTIVE_NX1, r, 3, (r) == 1, s, v)
#define SCAN(r, s, v)   COLLECTIVE(JOULE_COLLECTIVE_SCAN, r, 3, false, s, v)

START_TEST(late_broadcast)
{
    begin(3, 1, 0);
    CALL(0, 100, 500, BCAST(0, false, true));
    CALL(1, 300, 310, BCAST(1, true, true));
    CALL(2, 400, 500, BCAST(2, false, true));
    CALL(0, 600, 900, BCAST(0, false, false));
    CALL(1, 800, 910, BCAST(1, true, true));
    CALL(2, 700, 750, BCAST(2, false, true));
    end(1);
    is_wait(0, JOULE_LATE_BROADCAST, 0, 100, 300);
    is_wait(1, JOULE_LATE_BROADCAST, 2, 700, 750);
    are_waits(2);
    ck_assert_uint_eq(counts.clock_violations, 1);
}
END_TEST

START_TEST(early_reduce)
{
    begin(3, 1, 0);
    CALL(0, 300, 310, REDUCE(0, true, false));
    CALL(1, 100, 500, REDUCE(1, true, true));
    CALL(2, 200, 210, REDUCE(2, false, false));
    CALL(0, 600, 610, REDUCE(0, false, false));
    CALL(1, 550, 900, REDUCE(1, true, true));
    CALL(2, 700, 710, REDUCE(2, false, false));
    end(1);
    is_wait(0, JOULE_EARLY_REDUCE, 1, 100, 300);
    are_waits(1);
}
END_TEST

START_TEST(early_scan)
{
    begin(3, 1, 0);
    CALL(2, 150, 500, SCAN(2, true, true));
    CALL(0, 300, 310, SCAN(0, true, true));
    CALL(1, 100, 510, SCAN(1, false, true));
    CALL(0, 600, 610, SCAN(0, true, true));
    CALL(1, 580, 710, SCAN(1, false, false));
    CALL(2, 590, 711, SCAN(2, true, false));
    end(1);
    is_wait(0, JOULE_EARLY_SCAN, 1, 100, 300);
    is_wait(1, JOULE_EARLY_SCAN, 2, 150, 300);
    is_wait(2, JOULE_EARLY_SCAN, 2, 590, 600);
    are_waits(3);
}
END_TEST

START_TEST(odd_collectives)
{
    begin(3, 2, 0);
    /* Of one process, or of none that a pattern knows: no matter. */
    CALL(0, 10, 20, COLLECTIVE(JOULE_COLLECTIVE_BARRIER, 0, 1, 0, 0, 0));
    CALL(0, 30, 40, COLLECTIVE(JOULE_COLLECTIVE_OTHER, 0, 3, 0, 0, 0));
    /* They do not agree on what it is; on its root; on its size. */
    CALL(0, 100, 110, BARRIER(0));
    CALL(1, 100, 110, BARRIER(1));
    CALL(2, 150, 160, NXN(2, true, true));
    CALL(0, 200, 210, COLLECTIVE(JOULE_COLLECTIVE_1XN, 0, 3, 1, 1, 1));
    CALL(1, 250, 260, BCAST(1, true, true));
    CALL(2, 200, 210, BCAST(2, true, true));
    CALL(0, 300, 310, SCAN(0, true, true));
    CALL(1, 350, 360, SCAN(1, true, true));
    CALL(2, 300, 310, COLLECTIVE(JOULE_COLLECTIVE_SCAN, 60000, 60001, 0, 1, 1));
    /* One never comes. */
    CALL(0, 400, 410, BARRIER(0));
    CALL(1, 450, 460, BARRIER(1));
    end(2);
    are_waits(0);
    ck_assert_uint_eq(counts.inconsistent_collectives, 3);
    ck_assert_uint_eq(counts.incomplete_collectives, 1);
}
END_TEST

/* ---- slack ---- */

static void is_slack(uint32_t process, uint64_t ns)
{
    ck_assert_msg(slack_ns[process] == ns, "process %u: %llu, not %llu",
                  process, (unsigned long long)slack_ns[process],
                  (unsigned long long)ns);
}

/* Who waits has slack, who is waited for has none. */
START_TEST(slack_of_messages)
{
    with_slack = true;
    begin(3, 1, 0);
    CALL(1, 100, 450, COMPUTED, RECEIVE(0, 3));
    CALL(0, 400, 420, COMPUTED, SEND(1, 3));
    /* A sender that waits, and one that need not have come so early; they have
     * computed before. */
    CALL(2, 500, 700, COMPUTED, SEND(0, 3));
    CALL(0, 600, 710, COMPUTED, RECEIVE(2, 3));
    CALL(2, 800, 810, COMPUTED, SEND(0, 4));
    CALL(2, 850, 1000, RECEIVE(0, 5));
    CALL(0, 830, 840, RECEIVE(2, 4));
    CALL(0, 900, 910, SEND(2, 5));
    end(1);
    is_slack(1, 300);
    /* The send of 400 was waited for, the receive of 600, too; 900, too. */
    is_slack(0, 0);
    /* 100 before the first one; then 850 to 900, of which 30 may be before 800. */
    is_slack(2, 100 + 30);
}
END_TEST

/* Of two messages that a call waits for only the later one must not be late. */
START_TEST(slack_of_waitall)
{
    with_slack = true;
    begin(3, 2, 0);
    CALL(0, 10, 20, IRECEIVE(1), IRECEIVE(2));
    CALL(0, 100, 900, RECEIVED(1, 1, 3), RECEIVED(2, 2, 3));
    CALL(1, 300, 310, COMPUTED, SEND(0, 3));
    CALL(1, 320, 1000, RECEIVE(0, 4));
    CALL(2, 400, 410, COMPUTED, SEND(0, 3));
    CALL(2, 420, 1000, RECEIVE(0, 4));
    CALL(0, 910, 920, SEND(1, 4), SEND(2, 4));
    end(2);
    is_slack(1, 100);
    is_slack(2, 0);
}
END_TEST

START_TEST(slack_of_collectives)
{
    const enum joule_collective all = JOULE_COLLECTIVE_BARRIER,
                                bcast = JOULE_COLLECTIVE_1XN,
                                reduce = JOULE_COLLECTIVE_NX1,
                                scan = JOULE_COLLECTIVE_SCAN;

    with_slack = true;
    begin(3, 1, 0);
    for (uint32_t p = 0; p < 3; p++)
        CALL(p, 100 + 10 * p, 200, COMPUTED,
             COLLECTIVE(all, p, 3, false, false, false));
    end(1);
    is_slack(0, 20);
    is_slack(1, 10);
    is_slack(2, 0);
    /* The root may come when the first of the others does; these wait for it, and
     * are not waited for. */
    begin(3, 1, 0);
    CALL(0, 100, 200, COMPUTED, COLLECTIVE(bcast, 0, 3, true, true, false));
    CALL(1, 60, 200, COMPUTED, COLLECTIVE(bcast, 1, 3, false, false, true));
    CALL(2, 130, 200, COMPUTED, COLLECTIVE(bcast, 2, 3, false, false, true));
    for (uint32_t p = 0; p < 3; p++)
        CALL(p, 300, 400 + p, COMPUTED,
             COLLECTIVE(reduce, p, 3, p == 0, p > 0, p == 0));
    end(1);
    is_slack(0, 0);
    is_slack(1, 40);
    is_slack(2, 0);
    begin(3, 1, 0);
    CALL(0, 170, 200, COMPUTED, COLLECTIVE(scan, 0, 3, false, true, true));
    CALL(1, 100, 200, COMPUTED, COLLECTIVE(scan, 1, 3, false, true, true));
    CALL(2, 190, 200, COMPUTED, COLLECTIVE(scan, 2, 3, false, true, true));
    end(1);
    is_slack(0, 0);
    is_slack(1, 70);
    is_slack(2, 0);
}
END_TEST

/* ---- random programs ---- */

#define PROCESSES  5
#define STEPS      400
#define POSTS_MOST (PROCESSES * STEPS)
#define SUB        3 /* processes of the second communicator */

/* A send or a receive, as the slow matcher knows it. */
struct post {
    uint32_t process, peer, comm, tag;
    uint64_t post_ns, enter_ns, leave_ns;
    uint32_t call;
    bool is_send, is_known, is_cancelled, is_test, may_wait, is_used;
    uint64_t request;
};

struct meeting {
    uint32_t comm, number, rank, call;
    enum joule_collective kind;
    bool is_root, has_sent, has_received;
};

/* A call with all that belongs to it. */
struct made {
    struct joule_call call;
    struct joule_operation operation[8];
};

struct program {
    struct made call[PROCESSES][STEPS];
    size_t calls[PROCESSES];
    struct post post[POSTS_MOST];
    size_t posts;
    struct meeting meeting[PROCESSES][STEPS];
    size_t meetings[PROCESSES];
    struct joule_wait wait[WAITS_MOST];
    size_t waits;
};

static struct program pr;

/* The k-th operation on a communicator is the same for all. */
static enum joule_collective kind_of(uint32_t comm, uint32_t number)
{
    return (enum joule_collective)((comm + number) % JOULE_COLLECTIVE_OTHER);
}

static void make_collective(uint64_t *seed, uint32_t p, struct made *made,
                            uint32_t numbers[2])
{
    uint32_t comm = p < SUB ? (uint32_t)dice(seed, 2) : 0;
    uint32_t number = numbers[comm]++;
    struct meeting *t = &pr.meeting[p][pr.meetings[p]++];

    *t = (struct meeting){.comm = comm,
                          .number = number,
                          .rank = comm ? SUB - 1 - p : p,
                          .call = (uint32_t)pr.calls[p],
                          .kind = kind_of(comm, number),
                          .has_sent = dice(seed, 4) > 0,
                          .has_received = dice(seed, 4) > 0};
    t->is_root = t->rank == number % (comm ? SUB : PROCESSES);
    made->operation[0] =
        (struct joule_operation){.kind = JOULE_COLLECTIVE,
                                 .communicator = comm,
                                 .collective = t->kind,
                                 .rank = t->rank,
                                 .size = comm ? SUB : PROCESSES,
                                 .is_root = t->is_root,
                                 .has_sent = t->has_sent,
                                 .has_received = t->has_received};
    made->call.operations = 1;
}

static struct post *new_post(uint64_t *seed, uint32_t p, struct made *made,
                             bool is_send)
{
    struct post *post = &pr.post[pr.posts++];

    *post = (struct post){.process = p,
                          .peer = (uint32_t)dice(seed, PROCESSES),
                          .comm = (uint32_t)dice(seed, 2),
                          .tag = (uint32_t)dice(seed, 2),
                          .post_ns = made->call.enter_ns,
                          .is_send = is_send,
                          .request = pr.posts};
    return post;
}

static void finish_post(struct post *post, const struct made *made,
                        uint32_t call)
{
    post->is_known = true;
    post->enter_ns = made->call.enter_ns;
    post->leave_ns = made->call.leave_ns;
    post->is_test = made->call.is_test;
    post->call = call;
}

static void make_message(uint64_t *seed, uint32_t p, struct made *made)
{
    bool is_send = dice(seed, 2), is_request = dice(seed, 2);
    struct post *post = new_post(seed, p, made, is_send);

    made->call.waits_for_receiver = dice(seed, 2);
    if (!is_request)
        finish_post(post, made, (uint32_t)pr.calls[p]);
    post->may_wait = is_request || made->call.waits_for_receiver;
    made->operation[0] = (struct joule_operation){
        .kind = is_request ? is_send ? JOULE_SEND_POST : JOULE_RECEIVE_POST
                : is_send  ? JOULE_SEND
                           : JOULE_RECEIVE,
        .communicator = post->comm,
        .peer = post->peer,
        .tag = post->tag,
        .request = post->request};
    made->call.operations = 1;
}

/* Some of the open requests of a process, in any order. */
static void make_completion(uint64_t *seed, uint32_t p, struct made *made)
{
    size_t most = 1 + dice(seed, 8), tries = 40;

    made->call.is_test = dice(seed, 4) == 0;
    while (made->call.operations < most && tries-- > 0 && pr.posts > 0) {
        struct post *post = &pr.post[dice(seed, pr.posts)];
        bool is_cancelled = dice(seed, 10) == 0;

        if (post->process != p || post->is_known || post->is_cancelled)
            continue;
        if (is_cancelled)
            post->is_cancelled = true;
        else
            finish_post(post, made, (uint32_t)pr.calls[p]);
        made->operation[made->call.operations++] = (struct joule_operation){
            .kind = is_cancelled    ? JOULE_CANCELLED
                    : post->is_send ? JOULE_SEND_DONE
                                    : JOULE_RECEIVE_DONE,
            .communicator = post->comm,
            .peer = post->peer,
            .tag = post->tag,
            .request = post->request};
    }
}

static void make_program(uint64_t *seed)
{
    uint64_t ns[PROCESSES] = {0};
    uint32_t numbers[PROCESSES][2] = {{0}};

    memset(&pr, 0, sizeof(pr));
    for (size_t i = 0; i < PROCESSES * STEPS; i++) {
        uint32_t p = (uint32_t)dice(seed, PROCESSES);
        struct made *made = &pr.call[p][pr.calls[p]];

        if (pr.calls[p] == STEPS)
            continue;
        made->call = (struct joule_call){.process = p,
                                         .path = (uint32_t)dice(seed, 5),
                                         .enter_ns = ns[p] += dice(seed, 50),
                                         .leave_ns = ns[p] += dice(seed, 200),
                                         .operation = made->operation};
        if (dice(seed, 5) == 0)
            make_collective(seed, p, made, numbers[p]);
        else if (dice(seed, 3) == 0)
            make_completion(seed, p, made);
        else
            make_message(seed, p, made);
        pr.calls[p]++;
    }
}

/* ---- the slow matcher ---- */

static void expect(enum joule_wait_pattern pattern, uint32_t process,
                   uint32_t call, uint32_t comm, uint64_t begin_ns,
                   uint64_t end_ns)
{
    if (end_ns <= begin_ns)
        return;
    ck_assert_uint_lt(pr.waits, WAITS_MOST);
    pr.wait[pr.waits++] = (struct joule_wait){pattern,
                                              process,
                                              pr.call[process][call].call.path,
                                              comm,
                                              begin_ns,
                                              end_ns,
                                              end_ns - begin_ns};
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The send of a receive, and the other way round, NULL: there is none. */
static struct post *partner[POSTS_MOST];

static void pair_posts(void)
{
    memset(partner, 0, sizeof(partner));
    for (size_t r = 0; r < pr.posts; r++) {
        struct post *receive = &pr.post[r];

        if (receive->is_send || !receive->is_known)
            continue;
        for (size_t s = 0; s < pr.posts; s++) {
            struct post *send = &pr.post[s];

            if (!send->is_send || send->is_used || send->is_cancelled ||
                send->process != receive->peer ||
                send->peer != receive->process || send->comm != receive->comm ||
                send->tag != receive->tag)
                continue;
            send->is_used = true;
            partner[r] = send;
            partner[s] = receive;
            break;
        }
    }
}

/* Of a call: the longest Late Sender wait, or the longest Late Receiver wait. */
static void expect_messages(uint32_t p, uint32_t call)
{
    const struct joule_call *c = &pr.call[p][call].call;
    uint64_t longest[2] = {0, 0};
    uint32_t comm[2] = {0, 0};

    for (size_t i = 0; i < c->operations; i++)
        for (size_t k = 0; k < pr.posts; k++) {
            const struct post *post = &pr.post[k], *other = partner[k];
            uint64_t ns = 0, end_ns = 0;

            if (post->process != p || !post->is_known || post->call != call ||
                post->request != c->operation[i].request || !other ||
                post->is_test)
                continue;
            if (!post->is_send)
                end_ns = min_of(other->post_ns, c->leave_ns);
            else if (post->may_wait && c->leave_ns > other->post_ns)
                end_ns = other->post_ns;
            if (end_ns > c->enter_ns)
                ns = end_ns - c->enter_ns;
            if (ns > longest[post->is_send]) {
                longest[post->is_send] = ns;
                comm[post->is_send] = post->comm;
            }
        }
    if (longest[0] > 0)
        expect(JOULE_LATE_SENDER, p, call, comm[0], c->enter_ns,
               c->enter_ns + longest[0]);
    else
        expect(JOULE_LATE_RECEIVER, p, call, comm[1], c->enter_ns,
               c->enter_ns + longest[1]);
}

static const struct meeting *find_meeting(uint32_t p, uint32_t comm,
                                          uint32_t number)
{
    for (size_t i = 0; i < pr.meetings[p]; i++)
        if (pr.meeting[p][i].comm == comm && pr.meeting[p][i].number == number)
            return &pr.meeting[p][i];
    return NULL;
}

static void expect_meeting(uint32_t comm, uint32_t number)
{
    uint32_t size = comm ? SUB : PROCESSES;
    const struct meeting *t[PROCESSES];
    const struct joule_call *c[PROCESSES];
    uint64_t enter = 0, sender = 0, first = UINT64_MAX, leave = UINT64_MAX;
    uint64_t root = 0;
    bool sends = false;

    for (uint32_t p = 0; p < size; p++) {
        t[p] = find_meeting(p, comm, number);
        if (!t[p])
            return;
        c[p] = &pr.call[p][t[p]->call].call;
        enter = c[p]->enter_ns > enter ? c[p]->enter_ns : enter;
        leave = min_of(c[p]->leave_ns, leave);
        if (t[p]->is_root)
            root = c[p]->enter_ns;
        if (t[p]->has_sent) {
            sends = true;
            sender = c[p]->enter_ns > sender ? c[p]->enter_ns : sender;
            if (!t[p]->is_root)
                first = min_of(first, c[p]->enter_ns);
        }
    }
    for (uint32_t p = 0; p < size; p++) {
        uint64_t e = c[p]->enter_ns, x = c[p]->leave_ns, before = 0;
        uint64_t done = enter > leave ? enter : leave;
        uint32_t call = t[p]->call;

        done = done < e ? e : done;
        for (uint32_t q = 0; q < size; q++)
            if (t[q]->rank <= t[p]->rank && c[q]->enter_ns > before)
                before = c[q]->enter_ns;
        switch (kind_of(comm, number)) {
        case JOULE_COLLECTIVE_BARRIER:
            expect(JOULE_WAIT_AT_BARRIER, p, call, comm, e, min_of(enter, x));
            expect(JOULE_BARRIER_COMPLETION, p, call, comm, done, x);
            break;
        case JOULE_COLLECTIVE_NXN:
            if (t[p]->has_received && sends)
                expect(JOULE_WAIT_AT_NXN, p, call, comm, e, min_of(sender, x));
            if (t[p]->has_received && t[p]->has_sent)
                expect(JOULE_NXN_COMPLETION, p, call, comm, done, x);
            break;
        case JOULE_COLLECTIVE_1XN:
            if (!t[p]->is_root && t[p]->has_received)
                expect(JOULE_LATE_BROADCAST, p, call, comm, e, min_of(root, x));
            break;
        case JOULE_COLLECTIVE_NX1:
            if (t[p]->is_root && t[p]->has_received && first != UINT64_MAX)
                expect(JOULE_EARLY_REDUCE, p, call, comm, e, min_of(first, x));
            break;
        default:
            if (t[p]->has_sent || t[p]->has_received)
                expect(JOULE_EARLY_SCAN, p, call, comm, e, min_of(before, x));
        }
    }
}

static void expect_all(void)
{
    pair_posts();
    for (uint32_t p = 0; p < PROCESSES; p++)
        for (uint32_t call = 0; call < pr.calls[p]; call++)
            expect_messages(p, call);
    for (uint32_t comm = 0; comm < 2; comm++)
        for (uint32_t number = 0; number < STEPS; number++)
            expect_meeting(comm, number);
    qsort(pr.wait, pr.waits, sizeof(pr.wait[0]), compare_waits);
}

/* In rounds of a few calls of any process. */
static void run_program(uint64_t *seed, unsigned parts)
{
    size_t done[PROCESSES] = {0}, left = 0;

    begin(PROCESSES, parts, 100000);
    for (uint32_t p = 0; p < PROCESSES; p++)
        left += pr.calls[p];
    while (left > 0) {
        uint32_t p = (uint32_t)dice(seed, PROCESSES);

        for (size_t n = dice(seed, 30); n > 0 && done[p] < pr.calls[p]; n--) {
            if (with_slack)
                CALL(p, 0, 0, COMPUTED);
            ck_assert_int_eq(joule_matcher_call(m, &pr.call[p][done[p]++].call),
                             0);
            left--;
        }
        if (dice(seed, 3) == 0)
            next_round(parts);
    }
    end(parts);
}

START_TEST(random_programs)
{
    uint64_t seed = dice_seed();

    for (int round = 0; round < dice_rounds(200); round++) {
        make_program(&seed);
        expect_all();
        with_slack = dice(&seed, 2);
        for (unsigned parts = 1; parts <= 4; parts++) {
            uint64_t before_ns[SLACKS];

            memcpy(before_ns, slack_ns, sizeof(before_ns));
            run_program(&seed, parts);
            if (with_slack && parts > 1)
                ck_assert_mem_eq(before_ns, slack_ns, sizeof(before_ns));
            ck_assert_uint_eq(told[0].count, pr.waits);
            for (size_t i = 0; i < pr.waits; i++) {
                const struct joule_wait *a = &told[0].wait[i], *b = &pr.wait[i];

                ck_assert_msg(
                    memcmp(a, b, sizeof(*a)) == 0,
                    "%s of %u, path %u, comm %u, %llu to %llu, not "
                    "%s of %u, path %u, comm %u, %llu to %llu",
                    joule_wait_pattern_name(a->pattern), a->process, a->path,
                    a->communicator, (unsigned long long)a->begin_ns,
                    (unsigned long long)a->end_ns,
                    joule_wait_pattern_name(b->pattern), b->process, b->path,
                    b->communicator, (unsigned long long)b->begin_ns,
                    (unsigned long long)b->end_ns);
            }
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("matcher");
    TCase *tc = tcase_create("matcher");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, late_sender);
    tcase_add_test(tc, late_sender_of_wrong_clocks);
    tcase_add_test(tc, late_receiver);
    tcase_add_test(tc, posts_and_completions);
    tcase_add_test(tc, tests_do_not_wait);
    tcase_add_test(tc, waitall);
    tcase_add_test(tc, waitall_of_sends);
    tcase_add_test(tc, order_of_posting);
    tcase_add_test(tc, open_request);
    tcase_add_test(tc, cancelled);
    tcase_add_test(tc, odd_requests);
    tcase_add_test(tc, barrier);
    tcase_add_test(tc, barrier_of_wrong_clocks);
    tcase_add_test(tc, nxn_sizes);
    tcase_add_test(tc, nxn_completion);
    tcase_add_test(tc, late_broadcast);
    tcase_add_test(tc, early_reduce);
    tcase_add_test(tc, early_scan);
    tcase_add_test(tc, odd_collectives);
    tcase_add_test(tc, slack_of_messages);
    tcase_add_test(tc, slack_of_waitall);
    tcase_add_test(tc, slack_of_collectives);
    tcase_add_test(tc, random_programs);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
