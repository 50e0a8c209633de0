/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/waits/patterns.h"

static const struct {
    const char *name, *id;
} patterns[JOULE_WAIT_PATTERNS] = {
    [JOULE_LATE_SENDER] = {"Late Sender", "late_sender"},
    [JOULE_LATE_RECEIVER] = {"Late Receiver", "late_receiver"},
    [JOULE_WAIT_AT_BARRIER] = {"Wait at Barrier", "wait_at_barrier"},
    [JOULE_WAIT_AT_NXN] = {"Wait at NxN", "wait_at_nxn"},
    [JOULE_LATE_BROADCAST] = {"Late Broadcast", "late_broadcast"},
    [JOULE_EARLY_REDUCE] = {"Early Reduce", "early_reduce"},
    [JOULE_EARLY_SCAN] = {"Early Scan", "early_scan"},
    [JOULE_BARRIER_COMPLETION] = {"Barrier Completion", "barrier_completion"},
    [JOULE_NXN_COMPLETION] = {"NxN Completion", "nxn_completion"},
};

const char *joule_wait_pattern_name(enum joule_wait_pattern pattern)
{
    return patterns[pattern].name;
}

const char *joule_wait_pattern_id(enum joule_wait_pattern pattern)
{
    return patterns[pattern].id;
}

/* From the enter of a call until [until_ns], and no longer than the call. */
static struct joule_wait_span wait_until(uint64_t until_ns, uint64_t enter_ns,
                                         uint64_t leave_ns)
{
    struct joule_wait_span span = {enter_ns, enter_ns, 0};

    if (until_ns > leave_ns) {
        span.violated_ns = until_ns - leave_ns;
        until_ns = leave_ns;
    }
    if (until_ns > enter_ns)
        span.end_ns = until_ns;
    return span;
}

struct joule_wait_span joule_wait_late_sender(uint64_t send_enter_ns,
                                              uint64_t enter_ns,
                                              uint64_t leave_ns)
{
    return wait_until(send_enter_ns, enter_ns, leave_ns);
}

struct joule_wait_span
joule_wait_late_receiver(uint64_t post_ns, uint64_t enter_ns, uint64_t leave_ns)
{
    if (leave_ns <= post_ns)
        return (struct joule_wait_span){enter_ns, enter_ns, 0};
    return wait_until(post_ns, enter_ns, leave_ns);
}

struct joule_collective_times joule_collective_begin(void)
{
    return (struct joule_collective_times){.first_leave_ns = UINT64_MAX,
                                           .first_sender_ns = UINT64_MAX,
                                           .first_receiver_ns = UINT64_MAX};
}

void joule_collective_add(struct joule_collective_times *t,
                          const struct joule_collective_member *m)
{
    t->members++;
    if (m->enter_ns > t->last_enter_ns)
        t->last_enter_ns = m->enter_ns;
    if (m->leave_ns < t->first_leave_ns)
        t->first_leave_ns = m->leave_ns;
    if (m->is_root) {
        t->roots++;
        t->root_enter_ns = m->enter_ns;
    } else if (m->has_received && m->enter_ns < t->first_receiver_ns) {
        t->first_receiver_ns = m->enter_ns;
    }
    if (!m->has_sent)
        return;
    t->has_sender = true;
    if (m->enter_ns > t->last_sender_ns)
        t->last_sender_ns = m->enter_ns;
    if (m->is_root)
        return;
    t->has_non_root_sender = true;
    if (m->enter_ns < t->first_sender_ns)
        t->first_sender_ns = m->enter_ns;
}

/* The end of a call, after the last has entered or the first has left. */
static struct joule_wait_span complete(const struct joule_collective_times *t,
                                       const struct joule_collective_member *m)
{
    uint64_t from_ns = t->last_enter_ns > t->first_leave_ns ? t->last_enter_ns
                                                            : t->first_leave_ns;

    if (from_ns > m->leave_ns)
        from_ns = m->leave_ns;
    if (from_ns < m->enter_ns)
        from_ns = m->enter_ns;
    return (struct joule_wait_span){from_ns, m->leave_ns, 0};
}

static size_t put(struct joule_collective_wait *ret, size_t count,
                  enum joule_wait_pattern pattern, struct joule_wait_span span)
{
    if (span.begin_ns == span.end_ns && span.violated_ns == 0)
        return count;
    ret[count] = (struct joule_collective_wait){pattern, span};
    return count + 1;
}

size_t joule_collective_waits(
    const struct joule_collective_times *t, enum joule_collective kind,
    const struct joule_collective_member *m, uint64_t last_before_ns,
    struct joule_collective_wait ret[JOULE_COLLECTIVE_WAITS_MAX])
{
    uint64_t enter_ns = m->enter_ns, leave_ns = m->leave_ns;
    size_t n = 0;

    if (t->members < 2)
        return 0;
    switch (kind) {
    case JOULE_COLLECTIVE_BARRIER:
        n = put(ret, n, JOULE_WAIT_AT_BARRIER,
                wait_until(t->last_enter_ns, enter_ns, leave_ns));
        return put(ret, n, JOULE_BARRIER_COMPLETION, complete(t, m));
    case JOULE_COLLECTIVE_NXN:
        if (m->has_received && t->has_sender)
            n = put(ret, n, JOULE_WAIT_AT_NXN,
                    wait_until(t->last_sender_ns, enter_ns, leave_ns));
        if (m->has_received && m->has_sent)
            n = put(ret, n, JOULE_NXN_COMPLETION, complete(t, m));
        return n;
    case JOULE_COLLECTIVE_1XN:
        if (!m->is_root && m->has_received)
            n = put(ret, n, JOULE_LATE_BROADCAST,
                    wait_until(t->root_enter_ns, enter_ns, leave_ns));
        return n;
    case JOULE_COLLECTIVE_NX1:
        if (m->is_root && m->has_received && t->has_non_root_sender)
            n = put(ret, n, JOULE_EARLY_REDUCE,
                    wait_until(t->first_sender_ns, enter_ns, leave_ns));
        return n;
    case JOULE_COLLECTIVE_SCAN:
        if (m->has_sent || m->has_received)
            n = put(ret, n, JOULE_EARLY_SCAN,
                    wait_until(last_before_ns, enter_ns, leave_ns));
        return n;
    case JOULE_COLLECTIVE_OTHER:
        break;
    }
    return n;
}

/* ---- slack ---- */

static uint64_t until(uint64_t then_ns, uint64_t enter_ns)
{
    return then_ns > enter_ns ? then_ns - enter_ns : 0;
}

uint64_t joule_wait_send_limit(uint64_t send_enter_ns, uint64_t enter_ns,
                               uint64_t leave_ns, bool is_test)
{
    return until(is_test ? leave_ns : enter_ns, send_enter_ns);
}

/* A send that is over before has needed no receive. */
uint64_t joule_wait_receive_limit(uint64_t post_ns, uint64_t enter_ns,
                                  uint64_t leave_ns)
{
    return leave_ns <= post_ns ? JOULE_WAIT_NO_LIMIT : until(enter_ns, post_ns);
}

uint64_t joule_collective_limit(const struct joule_collective_times *t,
                                enum joule_collective kind,
                                const struct joule_collective_member *m,
                                uint64_t last_with_next_ns)
{
    switch (kind) {
    case JOULE_COLLECTIVE_BARRIER:
        return until(t->last_enter_ns, m->enter_ns);
    case JOULE_COLLECTIVE_NXN:
        return m->has_sent ? until(t->last_sender_ns, m->enter_ns)
                           : JOULE_WAIT_NO_LIMIT;
    case JOULE_COLLECTIVE_1XN:
        return m->is_root ? until(t->first_receiver_ns, m->enter_ns)
                          : JOULE_WAIT_NO_LIMIT;
    case JOULE_COLLECTIVE_NX1:
        if (m->is_root || !m->has_sent)
            return JOULE_WAIT_NO_LIMIT;
        return until(t->last_sender_ns > t->root_enter_ns ? t->last_sender_ns
                                                          : t->root_enter_ns,
                     m->enter_ns);
    case JOULE_COLLECTIVE_SCAN:
        return last_with_next_ns == JOULE_WAIT_NO_LIMIT
                   ? JOULE_WAIT_NO_LIMIT
                   : until(last_with_next_ns, m->enter_ns);
    case JOULE_COLLECTIVE_OTHER:
        break;
    }
    return JOULE_WAIT_NO_LIMIT;
}
