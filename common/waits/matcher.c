/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of a process become entries, in the order of posting; an entry goes to the
 * part that its channel or collective operation belongs to, where it meets its
 * counterpart.  What is found for a call that completes several operations goes
 * back to the part of its process, as a finding.
 */
#include "common/waits/matcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/list.h"
#include "common/waits/table.h"

#define HELD_TOTAL ((size_t)1 << 22) /* entries of all processes */
#define HELD_LEAST 1024
#define HELD_MOST  65536

#define NO_BATCH UINT32_MAX

enum entry_flag {
    IS_SEND = 1,
    IS_TEST = 2,       /* a receive that was not waited for */
    LATE_RECEIVER = 4, /* a send that may have waited */
    IS_ROOT = 8,
    HAS_SENT = 16,
    HAS_RECEIVED = 32,
    IS_COLLECTIVE = 64,
};

/* A send, a receive, or a member of a collective operation. */
struct entry {
    uint32_t communicator;
    union {
        uint32_t source;
        uint32_t sequence; /* of a collective operation on its communicator */
    };
    union {
        uint32_t destination;
        uint32_t process; /* of a member */
    };
    union {
        uint32_t tag;
        uint32_t rank;
    };
    uint64_t enter_ns, leave_ns; /* of the call that completes it */
    union {
        uint64_t post_ns; /* enter of the call that posts it */
        struct {
            uint32_t size;
            uint32_t kind; /* enum joule_collective */
        };
    };
    uint32_t path;
    union {
        uint32_t batch;   /* of the process: a call that completes several */
        uint32_t members; /* of the first member of a list: how many it has */
    };
    uint32_t hash;
    uint32_t call; /* that posts it, for slack */
    uint32_t
        bytes;     /* of a send; at most UINT32_MAX, so that this is 64 bytes */
    uint16_t item; /* of the batch */
    uint16_t flags;
};

/* ---- lists that grow ---- */

struct entries {
    struct entry *at;
    size_t count, room;
};

/* ---- processes ---- */

/* A send or a receive of a process, in the order of posting. */
struct held {
    struct entry entry;
    enum { OPEN, READY, DROPPED } state;
};

/* A queue of those: a ring of a power of two. */
struct queue {
    struct held *ring;
    size_t room;
    uint64_t begin, end; /* numbers of the first one and of the next one */
};

/* A request that is open. */
struct request {
    uint64_t number; /* in its queue */
    uint64_t post_ns;
    uint32_t next_free;
    uint32_t call; /* that posts it, for slack */
    bool is_send;
};

/* A send that a batch receives: whether somebody waits for it is known when the batch
 * is. */
struct arrival {
    uint64_t post_ns;
    uint32_t process, call; /* that posts it */
    uint32_t next;          /* of the batch, or of those that are free */
};

/* A call that completes several operations; for slack, one is enough. */
struct batch {
    uint64_t enter_ns, leave_ns;
    uint64_t sender_ns, receiver_ns; /* the longest waits until now */
    uint64_t sender_end_ns, receiver_end_ns;
    uint32_t sender_communicator, receiver_communicator;
    uint16_t sender_item, receiver_item;
    uint32_t path;
    uint32_t call;     /* for slack */
    uint32_t arrivals; /* the first one: index + 1; 0: none */
    uint32_t left; /* operations whose counterpart is not known, and 1 until the
                      call is told; 0: unused */
    uint32_t next_free;
};

struct process {
    struct queue sends, receives;
    struct joule_table requests; /* number of a request: its index */
    struct request *request;
    size_t request_count, request_room;
    uint32_t free_request; /* index + 1; 0: none */
    struct batch *batch;
    size_t batch_count, batch_room;
    uint32_t free_batch;
    struct joule_slack *slack; /* NULL: without */
    struct arrival *arrival;
    size_t arrival_count, arrival_room;
    uint32_t free_arrival;
    struct joule_table sequences; /* communicator: its next operation */
};

/* ---- parts ---- */

/* What matching found for an operation of a batch. */
struct finding {
    uint32_t process, batch, communicator;
    uint16_t item;
    bool is_sender; /* Late Sender */
    uint64_t begin_ns, end_ns;
    /* Of a receive, for slack: the call that has posted its send. */
    uint32_t peer, peer_call;
    uint64_t peer_ns;
};

struct findings {
    struct finding *at;
    size_t count, room;
};

/* What is known of a call now: see slack.h. */
struct news {
    uint32_t process, call;
    uint64_t limit_ns, wait_ns;
};

struct news_list {
    struct news *at;
    size_t count, room;
};

/* An entry that waits for its counterpart, in the list of its channel; or a
 * member in the list of its operation. */
struct open_entry {
    struct entry entry;
    uint32_t next; /* index, 0: none */
    uint32_t last; /* of the first in a list: the last one */
};

struct slot {
    uint32_t hash;
    uint32_t first; /* index of an open entry; 0: free */
};

struct part {
    struct entries out[JOULE_MATCHER_PARTS_MAX];   /* for each part */
    struct findings back[JOULE_MATCHER_PARTS_MAX]; /* for each part */
    /* For each part: from matching, and from collecting. */
    struct news_list news[JOULE_MATCHER_PARTS_MAX];
    struct news_list replies[JOULE_MATCHER_PARTS_MAX];
    /* Lists by channel or operation: linear probing. */
    struct slot *slot;
    size_t slots, used;
    struct open_entry *open; /* [0] is not used */
    size_t open_count, open_room;
    uint32_t free_open;
    bool has_failed;         /* where it could not be told at once */
    uint64_t *last_enter_ns; /* of each rank, for scans */
    size_t rank_room;
    struct joule_matcher_counts counts;
    char apart[128]; /* from the next one: no cache line is of two threads */
};

struct joule_matcher {
    struct joule_matcher_config config;
    struct process *process;
    uint8_t *part_number; /* of each process */
    struct part part[JOULE_MATCHER_PARTS_MAX];
};

static struct part *part_of(struct joule_matcher *m, uint32_t process)
{
    return &m->part[m->part_number[process]];
}

static void take_wait(const struct joule_matcher *m, unsigned part,
                      enum joule_wait_pattern pattern, uint32_t process,
                      uint32_t path, uint32_t communicator, uint64_t begin_ns,
                      uint64_t end_ns)
{
    const struct joule_wait wait = {pattern,          process,  path,
                                    communicator,     begin_ns, end_ns,
                                    end_ns - begin_ns};

    if (end_ns > begin_ns)
        m->config.take(m->config.arg, part, &wait);
}

/* ---- slack ---- */

static int tell_news(const struct joule_matcher *m, struct news_list *lists,
                     const struct news *news)
{
    struct news_list *list = &lists[m->part_number[news->process]];

    if (news->call == JOULE_SLACK_NO_CALL)
        return 0;
    if (joule_list_grow(&list->at, list->count, 1, &list->room,
                        sizeof(*list->at)) < 0)
        return -1;
    list->at[list->count++] = *news;
    return 0;
}

static void take_news(struct joule_matcher *m, struct news_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        joule_slack_release(m->process[list->at[i].process].slack,
                            list->at[i].call, list->at[i].limit_ns,
                            list->at[i].wait_ns);
    list->count = 0;
}

/* The call that is told now; what it has computed before. */
static int begin_slack(struct process *p, const struct joule_call *call,
                       uint32_t *ret)
{
    *ret = JOULE_SLACK_NO_CALL;
    if (!p->slack)
        return 0;
    for (size_t i = 0; i < call->operations; i++) {
        const struct joule_operation *o = &call->operation[i];

        if (o->kind == JOULE_COMPUTED &&
            joule_slack_compute(p->slack, o->path, o->computed_ns) < 0)
            return -1;
    }
    return joule_slack_begin(p->slack, ret);
}

/* Something of the call is told later. */
static uint32_t keep(struct process *p, uint32_t call)
{
    if (p->slack)
        joule_slack_keep(p->slack, call);
    return call;
}

static void release_call(struct process *p, uint32_t call, uint64_t wait_ns)
{
    if (p->slack)
        joule_slack_release(p->slack, call, JOULE_SLACK_NO_LIMIT, wait_ns);
}

static int add_arrival(struct process *p, struct batch *b,
                       const struct finding *f)
{
    uint32_t index = p->free_arrival;

    if (index) {
        p->free_arrival = p->arrival[index - 1].next;
    } else {
        if (joule_list_grow(&p->arrival, p->arrival_count, 1, &p->arrival_room,
                            sizeof(*p->arrival)) < 0)
            return -1;
        index = (uint32_t)++p->arrival_count;
    }
    p->arrival[index - 1] =
        (struct arrival){f->peer_ns, f->peer, f->peer_call, b->arrivals};
    b->arrivals = index;
    return 0;
}

/* The batch ended at [end_ns].  Its senders learn how late each of them could have been
 * without delaying it. */
static int reply(struct joule_matcher *m, struct part *part, struct process *p,
                 struct batch *b, uint64_t end_ns)
{
    int rc = 0;

    while (b->arrivals) {
        struct arrival *a = &p->arrival[b->arrivals - 1];
        const struct news news = {
            a->process, a->call,
            joule_wait_send_limit(a->post_ns, end_ns, end_ns, false), 0};
        uint32_t next = a->next;

        if (tell_news(m, part->replies, &news) < 0)
            rc = -1;
        a->next = p->free_arrival;
        p->free_arrival = b->arrivals;
        b->arrivals = next;
    }
    return rc;
}

/* ---- from calls to entries ---- */

/* To the part that finds its counterpart. */
static int put_entry(struct joule_matcher *m, struct part *from,
                     struct entry *e)
{
    uint64_t hash = joule_mix64(((uint64_t)e->communicator << 32 | e->source) ^
                                (uint64_t)(e->flags & IS_COLLECTIVE) << 24);
    struct entries *out;

    if (!(e->flags & IS_COLLECTIVE))
        hash = joule_mix64(hash ^ ((uint64_t)e->destination << 32 | e->tag));
    e->hash = (uint32_t)hash;
    out = &from->out[(hash >> 32) * m->config.parts >> 32];
    if (joule_list_grow(&out->at, out->count, 1, &out->room, sizeof(*out->at)) <
        0)
        return -1;
    out->at[out->count++] = *e;
    return 0;
}

static struct held *held_at(const struct queue *q, uint64_t number)
{
    return &q->ring[number & (q->room - 1)];
}

static int grow_queue(struct queue *q)
{
    size_t room = q->room ? 2 * q->room : 16;
    struct held *ring = calloc(room, sizeof(*ring));

    if (!ring)
        return -1;
    for (uint64_t i = q->begin; i < q->end; i++)
        ring[i & (room - 1)] = *held_at(q, i);
    free(q->ring);
    q->ring = ring;
    q->room = room;
    return 0;
}

/* The first one leaves the queue.  An open send is on its way all the same; an open
 * receive is not known yet. */
static int release_first(struct joule_matcher *m, struct part *part,
                         struct queue *q)
{
    struct held *h = held_at(q, q->begin++);

    if (h->state == DROPPED ||
        (h->state == OPEN && !(h->entry.flags & IS_SEND)))
        return 0;
    return put_entry(m, part, &h->entry);
}

/* Hand on what is complete from the first on.  An open request that has too many
 * behind it is passed over. */
static int release(struct joule_matcher *m, struct part *part, struct queue *q)
{
    while (q->begin < q->end) {
        bool is_open = held_at(q, q->begin)->state == OPEN;

        if (is_open && q->end - q->begin <= m->config.held_max)
            break;
        part->counts.passed_over += is_open;
        if (release_first(m, part, q) < 0)
            return -1;
    }
    return 0;
}

/* A new one behind all others; its number. */
static int hold(struct queue *q, const struct held *held, uint64_t *ret_number)
{
    if (q->end - q->begin == q->room && grow_queue(q) < 0)
        return -1;
    *ret_number = q->end;
    *held_at(q, q->end++) = *held;
    return 0;
}

/* One that is complete when its call is left. */
static int put_complete(struct joule_matcher *m, struct part *part,
                        struct queue *q, struct entry *e)
{
    const struct held held = {*e, READY};
    uint64_t number;

    if (q->begin == q->end)
        return put_entry(m, part, e);
    if (hold(q, &held, &number) < 0)
        return -1;
    return release(m, part, q);
}

/* The entry of an operation of [call], without its batch, posted by [posted]. */
static struct entry make_entry(const struct joule_call *call,
                               const struct joule_operation *o, bool is_send,
                               uint32_t posted)
{
    return (struct entry){
        .communicator = o->communicator,
        .source = is_send ? call->process : o->peer,
        .destination = is_send ? o->peer : call->process,
        .tag = o->tag,
        .bytes = o->bytes < UINT32_MAX ? (uint32_t)o->bytes : UINT32_MAX,
        .enter_ns = call->enter_ns,
        .leave_ns = call->leave_ns,
        .post_ns = call->enter_ns,
        .path = call->path,
        .batch = NO_BATCH,
        .call = posted,
        .flags = is_send         ? IS_SEND
                 : call->is_test ? IS_TEST
                                 : 0,
    };
}

static int post_request(struct joule_matcher *m, struct part *part,
                        struct process *p, const struct joule_call *call,
                        const struct joule_operation *o, uint32_t posted)
{
    bool is_send = o->kind == JOULE_SEND_POST;
    struct queue *q = is_send ? &p->sends : &p->receives;
    struct held held = {.state = OPEN};
    struct request *r;
    uint32_t index;

    if (p->free_request) {
        index = p->free_request - 1;
        p->free_request = p->request[index].next_free;
    } else {
        if (joule_list_grow(&p->request, p->request_count, 1, &p->request_room,
                            sizeof(*p->request)) < 0)
            return -1;
        index = (uint32_t)p->request_count++;
    }
    r = &p->request[index];
    *r = (struct request){
        .post_ns = call->enter_ns, .call = keep(p, posted), .is_send = is_send};
    if (is_send)
        held.entry = make_entry(call, o, true, posted);
    if (joule_table_put(&p->requests, o->request, index) < 0 ||
        hold(q, &held, &r->number) < 0)
        return -1;
    return release(m, part, q);
}

/* The request of that number and kind; it is no longer open. */
static bool take_request(struct process *p, uint64_t number, bool any_kind,
                         bool is_send, struct request *ret)
{
    uint32_t index;

    if (!joule_table_get(&p->requests, number, &index) ||
        (!any_kind && p->request[index].is_send != is_send))
        return false;
    joule_table_remove(&p->requests, number, &index);
    *ret = p->request[index];
    p->request[index].next_free = p->free_request;
    p->free_request = index + 1;
    return true;
}

/* ---- batches ---- */

static void end_batch(struct joule_matcher *m, uint32_t process, uint32_t index)
{
    struct process *p = &m->process[process];
    struct batch *b = &p->batch[index];
    unsigned part = m->part_number[process];

    if (p->slack) {
        uint64_t wait_ns = b->sender_ns > 0 ? b->sender_ns : b->receiver_ns;
        uint64_t end_ns = b->sender_ns > 0 ? b->sender_end_ns : b->enter_ns;

        if (reply(m, &m->part[part], p, b, end_ns) < 0)
            m->part[part].has_failed = true;
        release_call(p, b->call, wait_ns);
    }
    if (b->sender_ns > 0)
        take_wait(m, part, JOULE_LATE_SENDER, process, b->path,
                  b->sender_communicator, b->enter_ns, b->sender_end_ns);
    else if (b->receiver_ns > 0)
        take_wait(m, part, JOULE_LATE_RECEIVER, process, b->path,
                  b->receiver_communicator, b->enter_ns, b->receiver_end_ns);
    b->left = 0;
    b->next_free = p->free_batch;
    p->free_batch = index + 1;
}

static void leave_batch(struct joule_matcher *m, uint32_t process,
                        uint32_t index)
{
    if (--m->process[process].batch[index].left == 0)
        end_batch(m, process, index);
}

/* A batch for a call that completes enough operations, else NO_BATCH. */
static int begin_batch(struct process *p, const struct joule_call *call,
                       uint32_t number, uint32_t *ret)
{
    size_t completions = 0, enough = p->slack ? 1 : 2;
    uint32_t index;

    *ret = NO_BATCH;
    if (call->is_test || call->operations < enough)
        return 0;
    for (size_t i = 0; i < call->operations; i++) {
        enum joule_operation_kind kind = call->operation[i].kind;

        completions += kind == JOULE_RECEIVE || kind == JOULE_RECEIVE_DONE ||
                       kind == JOULE_SEND_DONE;
    }
    if (completions < enough)
        return 0;
    if (p->free_batch) {
        index = p->free_batch - 1;
        p->free_batch = p->batch[index].next_free;
    } else {
        if (joule_list_grow(&p->batch, p->batch_count, 1, &p->batch_room,
                            sizeof(*p->batch)) < 0)
            return -1;
        index = (uint32_t)p->batch_count++;
    }
    p->batch[index] = (struct batch){.enter_ns = call->enter_ns,
                                     .leave_ns = call->leave_ns,
                                     .path = call->path,
                                     .call = keep(p, number),
                                     .left = 1};
    *ret = index;
    return 0;
}

static void join_batch(struct process *p, struct entry *e, uint32_t batch,
                       uint16_t item)
{
    e->batch = batch;
    e->item = item;
    if (batch != NO_BATCH)
        p->batch[batch].left++;
}

/* Whether a wait of [ns] counts more than the longest until now: of equally long
 * ones that of the first operation of the call does. */
static bool is_before(uint64_t ns, uint16_t item, uint32_t communicator,
                      uint64_t longest_ns, uint16_t longest_item,
                      uint32_t longest_communicator)
{
    if (ns != longest_ns)
        return ns > longest_ns;
    if (item != longest_item)
        return item < longest_item;
    return communicator < longest_communicator;
}

static void take_finding(struct joule_matcher *m, const struct finding *f)
{
    struct process *p = &m->process[f->process];
    struct batch *b = &p->batch[f->batch];
    uint64_t ns = f->end_ns - f->begin_ns;

    if (p->slack && f->is_sender && add_arrival(p, b, f) < 0)
        part_of(m, f->process)->has_failed = true;

    if (f->is_sender && is_before(ns, f->item, f->communicator, b->sender_ns,
                                  b->sender_item, b->sender_communicator)) {
        b->sender_ns = ns;
        b->sender_end_ns = f->end_ns;
        b->sender_item = f->item;
        b->sender_communicator = f->communicator;
    }
    if (!f->is_sender &&
        is_before(ns, f->item, f->communicator, b->receiver_ns,
                  b->receiver_item, b->receiver_communicator)) {
        b->receiver_ns = ns;
        b->receiver_end_ns = f->end_ns;
        b->receiver_item = f->item;
        b->receiver_communicator = f->communicator;
    }
    leave_batch(m, f->process, f->batch);
}

void joule_matcher_collect(struct joule_matcher *m, unsigned part)
{
    for (unsigned from = 0; from < m->config.parts; from++) {
        struct findings *back = &m->part[from].back[part];

        for (size_t i = 0; i < back->count; i++)
            take_finding(m, &back->at[i]);
        back->count = 0;
        take_news(m, &m->part[from].news[part]);
    }
}

/* ---- from operations to entries ---- */

/* A send that was passed over is on its way already. */
static int finish_send(struct joule_matcher *m, struct part *part,
                       struct process *p, const struct joule_call *call,
                       const struct joule_operation *o, uint32_t batch,
                       uint16_t item)
{
    struct request r;
    struct held *h;

    if (!take_request(p, o->request, false, true, &r)) {
        part->counts.without_post++;
        return 0;
    }
    if (r.number < p->sends.begin)
        return 0;
    h = held_at(&p->sends, r.number);
    h->state = READY;
    h->entry.enter_ns = call->enter_ns;
    h->entry.leave_ns = call->leave_ns;
    h->entry.path = call->path;
    join_batch(p, &h->entry, batch, item);
    if (!call->is_test)
        h->entry.flags |= LATE_RECEIVER;
    return release(m, part, &p->sends);
}

static int finish_receive(struct joule_matcher *m, struct part *part,
                          struct process *p, const struct joule_call *call,
                          const struct joule_operation *o, uint32_t batch,
                          uint16_t item)
{
    struct entry e = make_entry(call, o, false, JOULE_SLACK_NO_CALL);
    struct request r;
    struct held *h;

    join_batch(p, &e, batch, item);
    if (!take_request(p, o->request, false, false, &r)) {
        part->counts.without_post++;
        return put_complete(m, part, &p->receives, &e);
    }
    e.post_ns = r.post_ns;
    e.call = r.call;
    if (r.number < p->receives.begin)
        return put_entry(m, part, &e);
    h = held_at(&p->receives, r.number);
    h->entry = e;
    h->state = READY;
    return release(m, part, &p->receives);
}

static int cancel_request(struct joule_matcher *m, struct part *part,
                          struct process *p, const struct joule_operation *o)
{
    struct request r;
    struct queue *q;

    if (!take_request(p, o->request, true, false, &r)) {
        part->counts.without_post++;
        return 0;
    }
    part->counts.cancelled++;
    q = r.is_send ? &p->sends : &p->receives;
    if (r.number >= q->begin || !r.is_send)
        release_call(p, r.call, 0);
    if (r.number < q->begin)
        return 0;
    held_at(q, r.number)->state = DROPPED;
    return release(m, part, q);
}

static int put_collective(struct joule_matcher *m, struct part *part,
                          struct process *p, const struct joule_call *call,
                          const struct joule_operation *o, uint32_t number)
{
    struct entry e = {
        .communicator = o->communicator,
        .process = call->process,
        .rank = o->rank,
        .enter_ns = call->enter_ns,
        .leave_ns = call->leave_ns,
        .size = o->size,
        .kind = (uint32_t)o->collective,
        .path = call->path,
        .flags = (uint16_t)(IS_COLLECTIVE | (o->is_root ? IS_ROOT : 0) |
                            (o->has_sent ? HAS_SENT : 0) |
                            (o->has_received ? HAS_RECEIVED : 0)),
    };
    uint32_t *next;

    if (o->size < 2 || o->rank >= o->size ||
        o->collective == JOULE_COLLECTIVE_OTHER)
        return 0;
    next = joule_table_at(&p->sequences, o->communicator);
    if (!next)
        return -1;
    e.sequence = (*next)++;
    e.call = keep(p, number);
    return put_entry(m, part, &e);
}

static int take_operation(struct joule_matcher *m, struct part *part,
                          const struct joule_call *call,
                          const struct joule_operation *o, uint32_t batch,
                          uint16_t item, uint32_t number)
{
    struct process *p = &m->process[call->process];
    struct entry e;

    switch (o->kind) {
    case JOULE_SEND:
        e = make_entry(call, o, true, keep(p, number));
        if (call->waits_for_receiver) {
            e.flags |= LATE_RECEIVER;
            keep(p, number);
        }
        return put_complete(m, part, &p->sends, &e);
    case JOULE_RECEIVE:
        e = make_entry(call, o, false, keep(p, number));
        join_batch(p, &e, batch, item);
        return put_complete(m, part, &p->receives, &e);
    case JOULE_SEND_POST:
    case JOULE_RECEIVE_POST:
        return post_request(m, part, p, call, o, number);
    case JOULE_SEND_DONE:
        return finish_send(m, part, p, call, o, batch, item);
    case JOULE_RECEIVE_DONE:
        return finish_receive(m, part, p, call, o, batch, item);
    case JOULE_CANCELLED:
        return cancel_request(m, part, p, o);
    case JOULE_COLLECTIVE:
        return put_collective(m, part, p, call, o, number);
    case JOULE_COMPUTED:
        return 0;
    }
    return 0;
}

int joule_matcher_call(struct joule_matcher *m, const struct joule_call *call)
{
    struct part *part = part_of(m, call->process);
    struct process *p = &m->process[call->process];
    uint32_t batch, number;

    if (begin_slack(p, call, &number) < 0 ||
        begin_batch(p, call, number, &batch) < 0)
        return -1;
    for (size_t i = 0; i < call->operations; i++)
        if (take_operation(m, part, call, &call->operation[i], batch,
                           i < UINT16_MAX ? (uint16_t)i : UINT16_MAX,
                           number) < 0)
            return -1;
    if (batch != NO_BATCH)
        leave_batch(m, call->process, batch);
    release_call(p, number, 0);
    return 0;
}

/* ---- matching ---- */

/* Whether the list that begins with [a] is that of [b]. */
static bool is_list_of(const struct entry *a, const struct entry *b)
{
    if ((a->flags & IS_COLLECTIVE) != (b->flags & IS_COLLECTIVE) ||
        a->communicator != b->communicator || a->source != b->source)
        return false;
    return (a->flags & IS_COLLECTIVE) != 0 ||
           (a->destination == b->destination && a->tag == b->tag);
}

static struct slot *find_slot(const struct part *p, const struct entry *e)
{
    size_t at = e->hash & (p->slots - 1);

    for (;; at = (at + 1) & (p->slots - 1)) {
        struct slot *s = &p->slot[at];

        if (s->first == 0 ||
            (s->hash == e->hash && is_list_of(&p->open[s->first].entry, e)))
            return s;
    }
}

static int grow_slots(struct part *p)
{
    size_t slots = p->slots ? 2 * p->slots : 1024, at;
    struct slot *slot = calloc(slots, sizeof(*slot));

    if (!slot)
        return -1;
    for (size_t i = 0; i < p->slots; i++) {
        if (p->slot[i].first == 0)
            continue;
        for (at = p->slot[i].hash & (slots - 1); slot[at].first != 0;)
            at = (at + 1) & (slots - 1);
        slot[at] = p->slot[i];
    }
    free(p->slot);
    p->slot = slot;
    p->slots = slots;
    return 0;
}

/* As joule_table_remove. */
static void remove_slot(struct part *p, struct slot *s)
{
    size_t mask = p->slots - 1, gap = (size_t)(s - p->slot), at, home;

    for (at = (gap + 1) & mask; p->slot[at].first != 0; at = (at + 1) & mask) {
        home = p->slot[at].hash & mask;
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        p->slot[gap] = p->slot[at];
        gap = at;
    }
    p->slot[gap].first = 0;
    p->used--;
}

/* Behind the others of its list. */
static int append(struct part *p, struct slot *s, const struct entry *e)
{
    uint32_t index = p->free_open;

    if (index) {
        p->free_open = p->open[index].next;
    } else {
        if (p->open_count == 0)
            p->open_count = 1;
        if (p->open_count == UINT32_MAX)
            return errno = ENOMEM, -1;
        if (joule_list_grow(&p->open, p->open_count, 1, &p->open_room,
                            sizeof(*p->open)) < 0)
            return -1;
        index = (uint32_t)p->open_count++;
    }
    p->open[index] = (struct open_entry){*e, 0, index};
    if (s->first == 0) {
        *s = (struct slot){e->hash, index};
        p->used++;
        return 0;
    }
    p->open[p->open[s->first].last].next = index;
    p->open[s->first].last = index;
    return 0;
}

/* The first of a list leaves it. */
static void drop_first(struct part *p, struct slot *s)
{
    uint32_t index = s->first, next = p->open[index].next;

    if (next == 0) {
        remove_slot(p, s);
    } else {
        p->open[next].last = p->open[index].last;
        s->first = next;
    }
    p->open[index].next = p->free_open;
    p->free_open = index;
}

/* [span] is what [e] has waited for [peer], for its batch or for itself. */
static int tell(struct joule_matcher *m, unsigned part, const struct entry *e,
                const struct entry *peer, enum joule_wait_pattern pattern,
                uint32_t process, struct joule_wait_span span)
{
    struct findings *back = &m->part[part].back[m->part_number[process]];

    if (e->batch == NO_BATCH) {
        take_wait(m, part, pattern, process, e->path, e->communicator,
                  span.begin_ns, span.end_ns);
        return 0;
    }
    if (joule_list_grow(&back->at, back->count, 1, &back->room,
                        sizeof(*back->at)) < 0)
        return -1;
    back->at[back->count++] = (struct finding){process,
                                               e->batch,
                                               e->communicator,
                                               e->item,
                                               pattern == JOULE_LATE_SENDER,
                                               span.begin_ns,
                                               span.end_ns,
                                               peer->source,
                                               peer->call,
                                               peer->post_ns};
    return 0;
}

static void count_violation(struct joule_matcher_counts *c,
                            const struct joule_wait_span *span)
{
    c->clock_violations += span->violated_ns > 0;
    if (span->violated_ns > c->clock_violation_ns)
        c->clock_violation_ns = span->violated_ns;
}

/* What the calls that have posted the two may now know.  The send's knows it from the
 * batch of the receive, if there is one. */
static int meet_slack(struct joule_matcher *m, unsigned part,
                      const struct entry *s, const struct entry *r)
{
    struct news_list *to = m->part[part].news;
    struct joule_wait_span span =
        joule_wait_late_receiver(r->post_ns, s->enter_ns, s->leave_ns);
    bool needs = s->flags & LATE_RECEIVER;
    struct news of_send = {s->source, s->call,
                           joule_wait_send_limit(s->post_ns, r->enter_ns,
                                                 r->leave_ns,
                                                 r->flags & IS_TEST),
                           0};
    struct news of_receive = {
        r->destination, r->call,
        needs ? joule_wait_receive_limit(r->post_ns, s->enter_ns, s->leave_ns)
              : JOULE_SLACK_NO_LIMIT,
        0};
    struct news of_wait = {s->source, s->call, JOULE_SLACK_NO_LIMIT,
                           span.end_ns - span.begin_ns};

    if (r->batch == NO_BATCH && tell_news(m, to, &of_send) < 0)
        return -1;
    if (needs && s->batch == NO_BATCH && tell_news(m, to, &of_wait) < 0)
        return -1;
    return tell_news(m, to, &of_receive);
}

static int meet(struct joule_matcher *m, unsigned part, const struct entry *s,
                const struct entry *r)
{
    struct joule_matcher_counts *c = &m->part[part].counts;
    struct joule_wait_span span =
        joule_wait_late_sender(s->post_ns, r->enter_ns, r->leave_ns);

    c->messages++;
    count_violation(c, &span);
    if (m->config.message) {
        const struct joule_delivery message = {
            .source = s->source,
            .destination = r->destination,
            .tag = s->tag,
            .bytes = s->bytes,
            .send_ns = s->post_ns,
            .post_ns = r->post_ns,
            .received_ns = r->leave_ns,
        };

        m->config.message(m->config.arg, part, &message);
    }
    if (!(r->flags & IS_TEST) &&
        tell(m, part, r, s, JOULE_LATE_SENDER, r->destination, span) < 0)
        return -1;
    if (m->config.with_slack && meet_slack(m, part, s, r) < 0)
        return -1;
    if (!(s->flags & LATE_RECEIVER))
        return 0;
    span = joule_wait_late_receiver(r->post_ns, s->enter_ns, s->leave_ns);
    return tell(m, part, s, r, JOULE_LATE_RECEIVER, s->source, span);
}

static struct joule_collective_member member_of(const struct entry *e)
{
    return (struct joule_collective_member){
        .enter_ns = e->enter_ns,
        .leave_ns = e->leave_ns,
        .rank = e->rank,
        .is_root = e->flags & IS_ROOT,
        .has_sent = e->flags & HAS_SENT,
        .has_received = e->flags & HAS_RECEIVED,
    };
}

/* The last enter of the ranks up to each one. */
static int find_last_enters(struct part *p, uint32_t first, uint32_t size)
{
    uint64_t last_ns = 0;

    if (p->rank_room < size) {
        uint64_t *more = reallocarray(p->last_enter_ns, size, sizeof(*more));

        if (!more)
            return -1;
        p->last_enter_ns = more;
        p->rank_room = size;
    }
    memset(p->last_enter_ns, 0, size * sizeof(*p->last_enter_ns));
    for (uint32_t i = first; i != 0; i = p->open[i].next)
        p->last_enter_ns[p->open[i].entry.rank] = p->open[i].entry.enter_ns;
    for (uint32_t rank = 0; rank < size; rank++) {
        if (p->last_enter_ns[rank] > last_ns)
            last_ns = p->last_enter_ns[rank];
        p->last_enter_ns[rank] = last_ns;
    }
    return 0;
}

/* The ranks up to the next one, too. */
static uint64_t last_with_next(const struct part *p, const struct entry *e)
{
    return e->kind == JOULE_COLLECTIVE_SCAN && e->rank + 1 < e->size
               ? p->last_enter_ns[e->rank + 1]
               : JOULE_WAIT_NO_LIMIT;
}

static int wait_of_member(struct joule_matcher *m, unsigned part,
                          const struct joule_collective_times *times,
                          const struct entry *e)
{
    struct part *p = &m->part[part];
    struct joule_collective_member member = member_of(e);
    struct joule_collective_wait waits[JOULE_COLLECTIVE_WAITS_MAX];
    uint64_t before_ns =
        e->kind == JOULE_COLLECTIVE_SCAN ? p->last_enter_ns[e->rank] : 0;
    size_t n = joule_collective_waits(times, (enum joule_collective)e->kind,
                                      &member, before_ns, waits);
    struct news news = {e->process, e->call, 0, 0};

    for (size_t i = 0; i < n; i++) {
        if (waits[i].pattern < JOULE_WAIT_COMPLETIONS)
            news.wait_ns = waits[i].span.end_ns - waits[i].span.begin_ns;
        count_violation(&p->counts, &waits[i].span);
        take_wait(m, part, waits[i].pattern, e->process, e->path,
                  e->communicator, waits[i].span.begin_ns,
                  waits[i].span.end_ns);
    }
    news.limit_ns = joule_collective_limit(
        times, (enum joule_collective)e->kind, &member, last_with_next(p, e));
    return tell_news(m, p->news, &news);
}

/* Of a member of what makes no sense: it must not move. */
static int give_up_member(struct joule_matcher *m, unsigned part,
                          const struct entry *e)
{
    const struct news news = {e->process, e->call, 0, 0};

    return tell_news(m, m->part[part].news, &news);
}

/* All members are there: those of the list that begins with [first]. */
static int finish_collective(struct joule_matcher *m, unsigned part,
                             struct slot *s)
{
    struct part *p = &m->part[part];
    struct joule_collective_times times = joule_collective_begin();
    const struct entry *e = &p->open[s->first].entry;
    uint32_t kind = e->kind, size = e->size;
    bool is_consistent = true, has_root = kind == JOULE_COLLECTIVE_1XN ||
                                          kind == JOULE_COLLECTIVE_NX1;

    for (uint32_t i = s->first; i != 0; i = p->open[i].next) {
        struct joule_collective_member member = member_of(&p->open[i].entry);

        joule_collective_add(&times, &member);
        is_consistent = is_consistent && p->open[i].entry.kind == kind &&
                        p->open[i].entry.size == size;
    }
    is_consistent = is_consistent && (!has_root || times.roots == 1);
    if (is_consistent)
        p->counts.collectives++;
    else
        p->counts.inconsistent_collectives++;
    if (is_consistent && kind == JOULE_COLLECTIVE_SCAN &&
        find_last_enters(p, s->first, size) < 0)
        return -1;
    for (bool is_last = false; !is_last;) {
        is_last = p->open[s->first].next == 0;
        e = &p->open[s->first].entry;
        if ((is_consistent ? wait_of_member(m, part, &times, e)
                           : give_up_member(m, part, e)) < 0)
            return -1;
        drop_first(p, s);
    }
    return 0;
}

static int match_member(struct joule_matcher *m, unsigned part, struct slot *s,
                        const struct entry *e)
{
    struct part *p = &m->part[part];
    struct entry *first;

    if (append(p, s, e) < 0)
        return -1;
    first = &p->open[s->first].entry;
    first->members++;
    return first->members == first->size ? finish_collective(m, part, s) : 0;
}

static int match_entry(struct joule_matcher *m, unsigned part,
                       const struct entry *e)
{
    struct part *p = &m->part[part];
    struct slot *s;
    struct entry first;

    if (2 * (p->used + 1) > p->slots && grow_slots(p) < 0)
        return -1;
    s = find_slot(p, e);
    if (e->flags & IS_COLLECTIVE)
        return match_member(m, part, s, e);
    if (s->first == 0 ||
        (p->open[s->first].entry.flags & IS_SEND) == (e->flags & IS_SEND))
        return append(p, s, e);
    first = p->open[s->first].entry;
    drop_first(p, s);
    return e->flags & IS_SEND ? meet(m, part, e, &first)
                              : meet(m, part, &first, e);
}

/* So far ahead that the memory of a slot is there when it is needed. */
#define AHEAD 8

int joule_matcher_match(struct joule_matcher *m, unsigned part)
{
    struct part *p = &m->part[part];

    for (unsigned from = 0; from < m->config.parts; from++) {
        struct entries *out = &m->part[from].out[part];

        take_news(m, &m->part[from].replies[part]);

        for (size_t i = 0; i < out->count; i++) {
            if (i + AHEAD < out->count && p->slots)
                __builtin_prefetch(
                    &p->slot[out->at[i + AHEAD].hash & (p->slots - 1)]);
            if (match_entry(m, part, &out->at[i]) < 0)
                return -1;
        }
        out->count = 0;
    }
    return p->has_failed ? -1 : 0;
}

/* ---- the end ---- */

/* What is behind open requests, in the order of posting. */
static int release_all(struct joule_matcher *m, struct part *part,
                       struct queue *q)
{
    while (q->begin < q->end) {
        part->counts.open_requests += held_at(q, q->begin)->state == OPEN;
        if (release_first(m, part, q) < 0)
            return -1;
    }
    return 0;
}

static void count_rest(struct part *p)
{
    for (size_t i = 0; i < p->slots; i++) {
        uint32_t first = p->slot[i].first;

        if (first && p->open[first].entry.flags & IS_COLLECTIVE) {
            p->counts.incomplete_collectives++;
            continue;
        }
        for (uint32_t k = first; k != 0; k = p->open[k].next)
            if (p->open[k].entry.flags & IS_SEND)
                p->counts.unmatched_sends++;
            else
                p->counts.unmatched_receives++;
    }
}

int joule_matcher_finish(struct joule_matcher *m)
{
    unsigned parts = m->config.parts;

    for (uint32_t i = 0; i < m->config.processes; i++) {
        struct process *p = &m->process[i];

        if (release_all(m, part_of(m, i), &p->sends) < 0 ||
            release_all(m, part_of(m, i), &p->receives) < 0)
            return -1;
    }
    for (unsigned i = 0; i < parts; i++)
        if (joule_matcher_match(m, i) < 0)
            return -1;
    for (unsigned i = 0; i < parts; i++) {
        joule_matcher_collect(m, i);
        count_rest(&m->part[i]);
    }
    for (uint32_t i = 0; i < m->config.processes; i++)
        for (size_t b = 0; b < m->process[i].batch_count; b++)
            if (m->process[i].batch[b].left > 0)
                end_batch(m, i, (uint32_t)b);
    for (unsigned i = 0; i < parts; i++)
        if (joule_matcher_match(m, i) < 0)
            return -1;
    for (uint32_t i = 0; i < m->config.processes; i++)
        if (m->process[i].slack)
            joule_slack_finish(m->process[i].slack);
    return 0;
}

const struct joule_slack *joule_matcher_slack(const struct joule_matcher *m,
                                              uint32_t process)
{
    return m->process[process].slack;
}

void joule_matcher_counts(const struct joule_matcher *m,
                          struct joule_matcher_counts *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (unsigned i = 0; i < m->config.parts; i++) {
        const struct joule_matcher_counts *c = &m->part[i].counts;

        ret->messages += c->messages;
        ret->collectives += c->collectives;
        ret->clock_violations += c->clock_violations;
        if (c->clock_violation_ns > ret->clock_violation_ns)
            ret->clock_violation_ns = c->clock_violation_ns;
        ret->unmatched_sends += c->unmatched_sends;
        ret->unmatched_receives += c->unmatched_receives;
        ret->open_requests += c->open_requests;
        ret->incomplete_collectives += c->incomplete_collectives;
        ret->inconsistent_collectives += c->inconsistent_collectives;
        ret->passed_over += c->passed_over;
        ret->without_post += c->without_post;
        ret->cancelled += c->cancelled;
    }
}

/* ---- begin and end ---- */

static size_t good_held_max(uint32_t processes)
{
    size_t max = HELD_TOTAL / processes;

    if (max < HELD_LEAST)
        return HELD_LEAST;
    return max > HELD_MOST ? HELD_MOST : max;
}

struct joule_matcher *
joule_matcher_create(const struct joule_matcher_config *config,
                     struct joule_error *err)
{
    struct joule_matcher *m;

    if (config->processes < 1 || config->parts < 1 ||
        config->parts > JOULE_MATCHER_PARTS_MAX) {
        joule_error_set(err, EINVAL, "a matcher of %u processes in %u parts",
                        config->processes, config->parts);
        return NULL;
    }
    m = calloc(1, sizeof(*m));
    if (m) {
        m->process = calloc(config->processes, sizeof(*m->process));
        m->part_number = calloc(config->processes, sizeof(*m->part_number));
    }
    if (!m || !m->process || !m->part_number) {
        if (m) {
            free(m->process);
            free(m->part_number);
        }
        free(m);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    m->config = *config;
    for (uint32_t i = 0; i < config->processes; i++) {
        m->part_number[i] =
            (uint8_t)((uint64_t)i * config->parts / config->processes);
        if (!config->with_slack)
            continue;
        m->process[i].slack = joule_slack_create();
        if (m->process[i].slack)
            continue;
        joule_matcher_destroy(m);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    if (m->config.held_max == 0)
        m->config.held_max = good_held_max(config->processes);
    return m;
}

static void free_process(struct process *p)
{
    free(p->sends.ring);
    free(p->receives.ring);
    free(p->request);
    free(p->batch);
    free(p->arrival);
    joule_slack_destroy(p->slack);
    joule_table_free(&p->requests);
    joule_table_free(&p->sequences);
}

static void free_part(struct part *p)
{
    for (unsigned i = 0; i < JOULE_MATCHER_PARTS_MAX; i++) {
        free(p->out[i].at);
        free(p->back[i].at);
        free(p->news[i].at);
        free(p->replies[i].at);
    }
    free(p->slot);
    free(p->open);
    free(p->last_enter_ns);
}

void joule_matcher_destroy(struct joule_matcher *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->config.processes; i++)
        free_process(&m->process[i]);
    for (unsigned i = 0; i < m->config.parts; i++)
        free_part(&m->part[i]);
    free(m->process);
    free(m->part_number);
    free(m);
}

unsigned joule_matcher_part(const struct joule_matcher *m, uint32_t process)
{
    return m->part_number[process];
}
