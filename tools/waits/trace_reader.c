/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/trace_reader.h"

#include <errno.h>
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/list.h"
#include "common/base/thread.h"
#include "tools/waits/trace_definitions.h"
#include "tools/waits/trace_libotf2.h"

#define ROUND_EVENTS ((size_t)1 << 18)
#define STACK_SIZE   ((size_t)1 << 20)

/* Of one location: */
#define LEAST_EVENTS   64
#define DEPTH_MAX      ((size_t)1 << 20)
#define OPERATIONS_MAX ((size_t)1 << 20)
/* Regions deeper than this are not told apart in call paths. */
#define PATH_DEPTH_MAX 128
/* So deep a Leave looks for its Enter. */
#define LEAVE_DEPTH_MAX 64
/* Between two calls, for slack: so many places of computing, of which the last are
 * looked at for the same path. */
#define COMPUTED_MAX  ((size_t)1 << 12)
#define COMPUTED_SEEN 8

/* A region that was entered and not left. */
struct frame {
    uint64_t enter_ns;
    uint32_t region; /* JOULE_NO_NUMBER: unknown */
    uint32_t path;   /* JOULE_NO_NUMBER: not asked yet */
    uint32_t first_operation;
    uint32_t flags;
};

/* A call of a process with several locations, which waits for its turn. */
struct queued {
    struct joule_call call;
    size_t first_operation;
};

struct location {
    struct part *part;
    OTF2_EvtReader *reader;
    uint64_t ref;
    uint32_t process, thread;
    bool is_alone;             /* in its process */
    bool is_at_end, is_behind; /* its next event is before the round's end */
    bool has_mpi;
    uint64_t first_ns, last_ns;
    uint64_t collective_ns; /* begin of one outside of calls */
    struct frame *frame;
    size_t depth, frame_room, too_deep;
    uint32_t mpi_depth;
    uint64_t mpi_enter_ns; /* of the outermost call */
    struct joule_operation *operation;
    size_t operations, operation_room;
    /* What it has computed since its last call, and since when it does now. */
    struct joule_operation *computed;
    size_t computes, computed_room;
    uint64_t computes_ns;
    /* Calls that are complete; not where it is alone. */
    struct queued *queue;
    size_t queued, queue_room, taken;
    struct joule_operation *kept;
    size_t kept_count, kept_room;
};

/* What one thread reads: all locations of its processes. */
struct part {
    struct run *run;
    unsigned number;
    OTF2_Reader *reader;
    struct location *location;
    size_t locations;
    struct joule_table paths; /* of parent and region, as in the definitions */
    struct joule_trace_facts facts;
    uint64_t until_ns; /* of this round */
    uint64_t round_events;
    bool is_behind, is_at_end;
    bool has_failed; /* no memory */
    char apart[128]; /* from the next one: no cache line is of two threads */
};

struct run {
    const struct joule_trace_reading *reading;
    struct joule_definitions *d;
    struct joule_trace_refs refs;
    struct joule_trace_process_facts *process;
    struct joule_matcher *matcher;
    struct part part[JOULE_MATCHER_PARTS_MAX];
    unsigned parts;
    size_t location_events; /* of one, in a round */
    uint64_t first_end_ns, first_width_ns;
    pthread_barrier_t barrier;
    pthread_mutex_t gate; /* closed until all threads are there */
    bool is_off;          /* they are not */
};

/* ---- call paths ---- */

static uint32_t child_of(struct part *p, uint32_t parent, uint32_t region)
{
    uint32_t *at = joule_table_at(&p->paths, (uint64_t)parent << 32 | region);

    if (!at)
        return JOULE_NO_NUMBER;
    if (*at == 0)
        *at = joule_paths_child(&p->run->d->paths, parent, region);
    return *at;
}

/* The call path of frame [i]; JOULE_NO_NUMBER: no memory. */
static uint32_t path_of(struct location *l, size_t i)
{
    size_t from = i < PATH_DEPTH_MAX ? i : PATH_DEPTH_MAX - 1;
    uint32_t path = 0;
    bool is_deep = i != from;

    while (from > 0 && l->frame[from].path == JOULE_NO_NUMBER)
        from--;
    if (l->frame[from].path != JOULE_NO_NUMBER)
        path = l->frame[from++].path;
    for (; from <= i && from < PATH_DEPTH_MAX; from++) {
        if (l->frame[from].region != JOULE_NO_NUMBER)
            path = child_of(l->part, path, l->frame[from].region);
        if (path == JOULE_NO_NUMBER)
            return path;
        l->frame[from].path = path;
    }
    if (is_deep && l->frame[i].region != JOULE_NO_NUMBER)
        path = child_of(l->part, path, l->frame[i].region);
    return path;
}

/* ---- computing, for slack ---- */

/* Until [ns] the location has computed in its innermost region. */
static void compute(struct location *l, uint64_t ns)
{
    struct joule_operation o = {.kind = JOULE_COMPUTED};

    if (!l->part->run->reading->with_slack || l->mpi_depth > 0 ||
        ns == l->computes_ns)
        return;
    o.computed_ns = ns - l->computes_ns;
    o.path = l->depth > 0 ? path_of(l, l->depth - 1) : 0;
    l->computes_ns = ns;
    for (size_t i = l->computes; i > 0 && l->computes - i < COMPUTED_SEEN; i--)
        if (l->computed[i - 1].path == o.path) {
            l->computed[i - 1].computed_ns += o.computed_ns;
            return;
        }
    if (l->computes == COMPUTED_MAX)
        l->part->facts.lost += l->has_mpi;
    else if (o.path == JOULE_NO_NUMBER ||
             joule_list_grow(&l->computed, l->computes, 1, &l->computed_room,
                             sizeof(*l->computed)) < 0)
        l->part->has_failed = true;
    else
        l->computed[l->computes++] = o;
}

/* It is told with the next call. */
static void add_computed(struct location *l)
{
    if (l->computes == 0)
        return;
    if (joule_list_grow(&l->operation, l->operations, l->computes,
                        &l->operation_room, sizeof(*l->operation)) < 0) {
        l->part->has_failed = true;
        return;
    }
    memcpy(l->operation + l->operations, l->computed,
           l->computes * sizeof(*l->computed));
    l->operations += l->computes;
    l->computes = 0;
}

/* ---- calls ---- */

/* A call of a process with several locations. */
static int queue_call(struct location *l, const struct joule_call *call)
{
    if (joule_list_grow(&l->queue, l->queued, 1, &l->queue_room,
                        sizeof(*l->queue)) < 0)
        return -1;
    l->queue[l->queued++] = (struct queued){*call, l->kept_count};
    for (size_t i = 0; i < call->operations; i++) {
        if (joule_list_grow(&l->kept, l->kept_count, 1, &l->kept_room,
                            sizeof(*l->kept)) < 0)
            return -1;
        l->kept[l->kept_count++] = call->operation[i];
    }
    return 0;
}

static void give_call(struct location *l, const struct joule_call *call)
{
    if ((l->is_alone ? joule_matcher_call(l->part->run->matcher, call)
                     : queue_call(l, call)) < 0)
        l->part->has_failed = true;
}

static void tell_call(const struct location *l, uint32_t region,
                      uint64_t leave_ns)
{
    const struct joule_trace_reading *reading = l->part->run->reading;
    const struct joule_trace_call call = {l->process, l->thread, region,
                                          l->mpi_enter_ns, leave_ns};

    if (reading->call)
        reading->call(reading->arg, l->part->number, &call);
}

/* The frame [i] is left. */
static void end_call(struct location *l, size_t i, uint64_t leave_ns)
{
    struct frame *f = &l->frame[i];
    struct joule_call call = {
        .process = l->process,
        .enter_ns = f->enter_ns,
        .leave_ns = leave_ns,
        .is_test = f->flags & JOULE_REGION_TEST,
        .waits_for_receiver = f->flags & JOULE_REGION_SENDS_BLOCKING,
    };
    struct joule_trace_process_facts *process =
        &l->part->run->process[l->process];

    if (--l->mpi_depth == 0) {
        process->mpi_ns += leave_ns - l->mpi_enter_ns;
        l->computes_ns = leave_ns;
        tell_call(l, f->region, leave_ns);
    }
    process->mpi_calls++;
    if (f->flags & JOULE_REGION_NOT_ANALYSED)
        l->part->facts.not_analysed[f->region]++;
    if (l->operations == f->first_operation)
        return;
    add_computed(l);
    call.operation = l->operation + f->first_operation;
    call.operations = l->operations - f->first_operation;
    call.path = path_of(l, i);
    if (call.path == JOULE_NO_NUMBER)
        l->part->has_failed = true;
    else
        give_call(l, &call);
    l->operations = f->first_operation;
}

static void enter(struct location *l, uint64_t ns, uint32_t region)
{
    unsigned flags =
        region == JOULE_NO_NUMBER ? 0 : l->part->run->d->region[region].flags;

    compute(l, ns);
    if (l->depth == DEPTH_MAX) {
        l->too_deep++;
        l->part->facts.lost++;
        return;
    }
    if (joule_list_grow(&l->frame, l->depth, 1, &l->frame_room,
                        sizeof(*l->frame)) < 0) {
        l->part->has_failed = true;
        return;
    }
    l->frame[l->depth++] = (struct frame){ns, region, JOULE_NO_NUMBER,
                                          (uint32_t)l->operations, flags};
    if (!(flags & JOULE_REGION_MPI))
        return;
    l->has_mpi = true;
    if (l->mpi_depth++ == 0)
        l->mpi_enter_ns = ns;
}

static void leave(struct location *l, uint64_t ns, uint32_t region)
{
    size_t at = l->depth;

    compute(l, ns);
    if (l->too_deep > 0) {
        l->too_deep--;
        return;
    }
    while (at > 0 && l->depth - at < LEAVE_DEPTH_MAX &&
           l->frame[at - 1].region != region)
        at--;
    if (at == 0 || l->depth - at == LEAVE_DEPTH_MAX) {
        l->part->facts.unbalanced++;
        return;
    }
    l->part->facts.unbalanced += l->depth - at;
    /* Regions inside that nobody has left end here, too. */
    for (; l->depth >= at; l->depth--)
        if (l->frame[l->depth - 1].flags & JOULE_REGION_MPI)
            end_call(l, l->depth - 1, ns);
}

/* The operation of an event belongs to the innermost call. */
static void add_operation(struct location *l, uint64_t ns,
                          const struct joule_operation *o)
{
    struct joule_call call = {.process = l->process,
                              .enter_ns = ns,
                              .leave_ns = ns,
                              .operation = o,
                              .operations = 1};

    if (l->mpi_depth == 0) {
        l->part->facts.outside_of_calls++;
        if (o->kind == JOULE_COLLECTIVE && l->collective_ns < ns)
            call.enter_ns = l->collective_ns;
        call.path = l->depth > 0 ? path_of(l, l->depth - 1) : 0;
        if (call.path == JOULE_NO_NUMBER)
            l->part->has_failed = true;
        else
            give_call(l, &call);
        return;
    }
    if (l->operations == OPERATIONS_MAX) {
        l->part->facts.lost++;
        return;
    }
    if (joule_list_grow(&l->operation, l->operations, 1, &l->operation_room,
                        sizeof(*l->operation)) < 0)
        l->part->has_failed = true;
    else
        l->operation[l->operations++] = *o;
}

/* ---- events ---- */

/* The time of an event. */
static uint64_t time_of(struct location *l, OTF2_TimeStamp ticks)
{
    uint64_t ns = joule_trace_ns(&l->part->run->refs, ticks);

    if (l->first_ns == UINT64_MAX)
        l->first_ns = l->last_ns = l->computes_ns = ns;
    if (ns < l->last_ns) {
        l->part->facts.times_back++;
        ns = l->last_ns;
    }
    l->last_ns = ns;
    return ns;
}

/* Go on to the end of the round; the last one has no end. */
static OTF2_CallbackCode go_on(struct location *l, uint64_t ns)
{
    if (l->part->has_failed ||
        (ns >= l->part->until_ns && l->part->until_ns != UINT64_MAX))
        return OTF2_CALLBACK_INTERRUPT;
    return OTF2_CALLBACK_SUCCESS;
}

static uint32_t region_of(struct location *l, OTF2_RegionRef ref)
{
    uint32_t region;

    if (joule_table_get(&l->part->run->refs.region, ref, &region))
        return region;
    l->part->facts.unknown_references++;
    return JOULE_NO_NUMBER;
}

static const struct joule_mpi_comm *
comm_of(struct location *l, OTF2_CommRef ref, uint32_t *ret_number)
{
    if (joule_table_get(&l->part->run->refs.comm, ref, ret_number))
        return &l->part->run->d->comm[*ret_number];
    l->part->facts.unknown_references++;
    return NULL;
}

static OTF2_CallbackCode take_enter(OTF2_LocationRef ref, OTF2_TimeStamp ticks,
                                    uint64_t position, void *arg,
                                    OTF2_AttributeList *attributes,
                                    OTF2_RegionRef region)
{
    struct location *l = arg;
    uint64_t ns = time_of(l, ticks);

    (void)ref;
    (void)position;
    (void)attributes;
    enter(l, ns, region_of(l, region));
    return go_on(l, ns);
}

static OTF2_CallbackCode take_leave(OTF2_LocationRef ref, OTF2_TimeStamp ticks,
                                    uint64_t position, void *arg,
                                    OTF2_AttributeList *attributes,
                                    OTF2_RegionRef region)
{
    struct location *l = arg;
    uint64_t ns = time_of(l, ticks);

    (void)ref;
    (void)position;
    (void)attributes;
    leave(l, ns, region_of(l, region));
    return go_on(l, ns);
}

/* A message, whose other end is [rank] of the communicator. */
static OTF2_CallbackCode add_message(struct location *l, OTF2_TimeStamp ticks,
                                     enum joule_operation_kind kind,
                                     uint32_t rank, OTF2_CommRef comm_ref,
                                     uint32_t tag, uint64_t bytes,
                                     uint64_t request)
{
    struct joule_operation o = {
        .kind = kind, .tag = tag, .bytes = bytes, .request = request};
    uint64_t ns = time_of(l, ticks);
    const struct joule_mpi_comm *comm = comm_of(l, comm_ref, &o.communicator);

    if (comm) {
        o.peer = joule_comm_peer(l->part->run->d, comm, l->process, rank);
        if (o.peer == JOULE_NO_NUMBER)
            l->part->facts.unknown_references++;
        else
            add_operation(l, ns, &o);
    }
    return go_on(l, ns);
}

static OTF2_CallbackCode take_send(OTF2_LocationRef ref, OTF2_TimeStamp ticks,
                                   uint64_t position, void *arg,
                                   OTF2_AttributeList *attributes,
                                   uint32_t rank, OTF2_CommRef comm,
                                   uint32_t tag, uint64_t bytes)
{
    (void)ref;
    (void)position;
    (void)attributes;
    return add_message(arg, ticks, JOULE_SEND, rank, comm, tag, bytes, 0);
}

static OTF2_CallbackCode take_receive(OTF2_LocationRef ref,
                                      OTF2_TimeStamp ticks, uint64_t position,
                                      void *arg, OTF2_AttributeList *attributes,
                                      uint32_t rank, OTF2_CommRef comm,
                                      uint32_t tag, uint64_t bytes)
{
    (void)ref;
    (void)position;
    (void)attributes;
    return add_message(arg, ticks, JOULE_RECEIVE, rank, comm, tag, bytes, 0);
}

static OTF2_CallbackCode
take_isend(OTF2_LocationRef ref, OTF2_TimeStamp ticks, uint64_t position,
           void *arg, OTF2_AttributeList *attributes, uint32_t rank,
           OTF2_CommRef comm, uint32_t tag, uint64_t bytes, uint64_t request)
{
    (void)ref;
    (void)position;
    (void)attributes;
    return add_message(arg, ticks, JOULE_SEND_POST, rank, comm, tag, bytes,
                       request);
}

static OTF2_CallbackCode
take_irecv(OTF2_LocationRef ref, OTF2_TimeStamp ticks, uint64_t position,
           void *arg, OTF2_AttributeList *attributes, uint32_t rank,
           OTF2_CommRef comm, uint32_t tag, uint64_t bytes, uint64_t request)
{
    (void)ref;
    (void)position;
    (void)attributes;
    return add_message(arg, ticks, JOULE_RECEIVE_DONE, rank, comm, tag, bytes,
                       request);
}

static OTF2_CallbackCode add_request(struct location *l, OTF2_TimeStamp ticks,
                                     enum joule_operation_kind kind,
                                     uint64_t request)
{
    const struct joule_operation o = {.kind = kind, .request = request};
    uint64_t ns = time_of(l, ticks);

    add_operation(l, ns, &o);
    return go_on(l, ns);
}

static OTF2_CallbackCode
take_isend_done(OTF2_LocationRef ref, OTF2_TimeStamp ticks, uint64_t position,
                void *arg, OTF2_AttributeList *attributes, uint64_t request)
{
    (void)ref;
    (void)position;
    (void)attributes;
    return add_request(arg, ticks, JOULE_SEND_DONE, request);
}

static OTF2_CallbackCode
take_irecv_post(OTF2_LocationRef ref, OTF2_TimeStamp ticks, uint64_t position,
                void *arg, OTF2_AttributeList *attributes, uint64_t request)
{
    (void)ref;
    (void)position;
    (void)attributes;
    return add_request(arg, ticks, JOULE_RECEIVE_POST, request);
}

static OTF2_CallbackCode
take_cancelled(OTF2_LocationRef ref, OTF2_TimeStamp ticks, uint64_t position,
               void *arg, OTF2_AttributeList *attributes, uint64_t request)
{
    (void)ref;
    (void)position;
    (void)attributes;
    return add_request(arg, ticks, JOULE_CANCELLED, request);
}

static OTF2_CallbackCode take_collective_begin(OTF2_LocationRef ref,
                                               OTF2_TimeStamp ticks,
                                               uint64_t position, void *arg,
                                               OTF2_AttributeList *attributes)
{
    struct location *l = arg;

    (void)ref;
    (void)position;
    (void)attributes;
    l->collective_ns = time_of(l, ticks);
    return go_on(l, l->collective_ns);
}

static enum joule_collective collective_of(OTF2_CollectiveOp op)
{
    switch (op) {
    case OTF2_COLLECTIVE_OP_BARRIER:
        return JOULE_COLLECTIVE_BARRIER;
    case OTF2_COLLECTIVE_OP_ALLREDUCE:
    case OTF2_COLLECTIVE_OP_ALLGATHER:
    case OTF2_COLLECTIVE_OP_ALLGATHERV:
    case OTF2_COLLECTIVE_OP_ALLTOALL:
    case OTF2_COLLECTIVE_OP_REDUCE_SCATTER:
    case OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK:
        return JOULE_COLLECTIVE_NXN;
    case OTF2_COLLECTIVE_OP_BCAST:
    case OTF2_COLLECTIVE_OP_SCATTER:
    case OTF2_COLLECTIVE_OP_SCATTERV:
        return JOULE_COLLECTIVE_1XN;
    case OTF2_COLLECTIVE_OP_REDUCE:
    case OTF2_COLLECTIVE_OP_GATHER:
    case OTF2_COLLECTIVE_OP_GATHERV:
        return JOULE_COLLECTIVE_NX1;
    case OTF2_COLLECTIVE_OP_SCAN:
    case OTF2_COLLECTIVE_OP_EXSCAN:
        return JOULE_COLLECTIVE_SCAN;
    default:
        return JOULE_COLLECTIVE_OTHER;
    }
}

static void add_collective(struct location *l, uint64_t ns,
                           struct joule_operation *o,
                           const struct joule_mpi_comm *comm, uint32_t root)
{
    const struct frame *f = l->depth > 0 ? &l->frame[l->depth - 1] : NULL;

    o->rank = joule_comm_rank(comm, l->process);
    o->size = comm->is_self ? 1 : comm->size;
    o->is_root = root == o->rank || root == OTF2_COLLECTIVE_ROOT_SELF;
    if (o->collective == JOULE_COLLECTIVE_OTHER || comm->other_size > 0) {
        if (f && f->region != JOULE_NO_NUMBER)
            l->part->facts.not_analysed[f->region]++;
    } else if (o->rank == JOULE_NO_NUMBER) {
        l->part->facts.unknown_references++;
    } else if (o->size > 1) {
        add_operation(l, ns, o);
    }
}

static OTF2_CallbackCode
take_collective(OTF2_LocationRef ref, OTF2_TimeStamp ticks, uint64_t position,
                void *arg, OTF2_AttributeList *attributes, OTF2_CollectiveOp op,
                OTF2_CommRef comm_ref, uint32_t root, uint64_t sent,
                uint64_t received)
{
    struct location *l = arg;
    struct joule_operation o = {.kind = JOULE_COLLECTIVE,
                                .collective = collective_of(op),
                                .has_sent = sent > 0,
                                .has_received = received > 0};
    uint64_t ns = time_of(l, ticks);
    const struct joule_mpi_comm *comm = comm_of(l, comm_ref, &o.communicator);

    (void)ref;
    (void)position;
    (void)attributes;
    if (comm)
        add_collective(l, ns, &o, comm, root);
    return go_on(l, ns);
}

static OTF2_EvtReaderCallbacks *make_callbacks(void)
{
    OTF2_EvtReaderCallbacks *f = OTF2_EvtReaderCallbacks_New();

    if (!f)
        return NULL;
    OTF2_EvtReaderCallbacks_SetEnterCallback(f, take_enter);
    OTF2_EvtReaderCallbacks_SetLeaveCallback(f, take_leave);
    OTF2_EvtReaderCallbacks_SetMpiSendCallback(f, take_send);
    OTF2_EvtReaderCallbacks_SetMpiRecvCallback(f, take_receive);
    OTF2_EvtReaderCallbacks_SetMpiIsendCallback(f, take_isend);
    OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(f, take_isend_done);
    OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(f, take_irecv_post);
    OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(f, take_irecv);
    OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback(f, take_cancelled);
    OTF2_EvtReaderCallbacks_SetMpiCollectiveBeginCallback(
        f, take_collective_begin);
    OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(f, take_collective);
    return f;
}

/* ---- rounds ---- */

static void note_damage(struct part *p, const struct location *l,
                        const char *what)
{
    if (p->facts.first_damage.text[0] == '\0')
        joule_error_set(&p->facts.first_damage, EBADMSG,
                        "%s cannot be read: %s",
                        p->run->d->process[l->process].name, what);
}

/* libotf2 must not be asked again once it had less than was asked for. */
static void read_location(struct location *l)
{
    struct part *p = l->part;
    uint64_t asked = p->run->location_events, count = 0;
    OTF2_ErrorCode code =
        OTF2_Reader_ReadLocalEvents(p->reader, l->reader, asked, &count);

    p->round_events += count;
    p->facts.events += count;
    l->is_behind = false;
    if (code == OTF2_ERROR_INTERRUPTED_BY_CALLBACK)
        return;
    l->is_behind = code == OTF2_SUCCESS && count == asked;
    l->is_at_end = !l->is_behind;
    if (code == OTF2_SUCCESS)
        return;
    p->facts.damaged++;
    note_damage(p, l, OTF2_Error_GetDescription(code));
}

/* Calls of a process with several locations, in the order in which they were
 * left, as far as all its locations were read. */
static void merge_calls(struct part *p, struct location *first, size_t count)
{
    uint64_t until_ns = UINT64_MAX;
    size_t begin = count, end = 0; /* of those that have calls */
    bool is_all = true;

    for (size_t i = 0; i < count; i++) {
        if (!first[i].is_at_end && first[i].last_ns < until_ns)
            until_ns = first[i].last_ns;
        is_all &= first[i].is_at_end;
        if (first[i].queued == 0)
            continue;
        begin = begin < i ? begin : i;
        end = i + 1;
    }
    for (;;) {
        struct location *next = NULL;
        struct queued *q;

        for (size_t i = begin; i < end; i++) {
            struct location *l = &first[i];

            if (l->taken < l->queued &&
                (!next || l->queue[l->taken].call.leave_ns <
                              next->queue[next->taken].call.leave_ns))
                next = l;
        }
        if (!next)
            break;
        q = &next->queue[next->taken];
        if (!is_all && q->call.leave_ns >= until_ns)
            break;
        q->call.operation = next->kept + q->first_operation;
        if (joule_matcher_call(p->run->matcher, &q->call) < 0)
            p->has_failed = true;
        next->taken++;
    }
    for (size_t i = 0; i < count; i++) {
        struct location *l = &first[i];
        size_t gone = l->taken < l->queued ? l->queue[l->taken].first_operation
                                           : l->kept_count;

        if (l->taken == 0)
            continue;
        memmove(l->queue, l->queue + l->taken,
                (l->queued - l->taken) * sizeof(*l->queue));
        l->queued -= l->taken;
        l->taken = 0;
        memmove(l->kept, l->kept + gone,
                (l->kept_count - gone) * sizeof(*l->kept));
        l->kept_count -= gone;
        for (size_t k = 0; k < l->queued; k++)
            l->queue[k].first_operation -= gone;
    }
}

/* Locations of a process are neighbours. */
static void read_round(struct part *p, uint64_t end_ns)
{
    p->until_ns = end_ns;
    p->round_events = 0;
    p->is_behind = false;
    p->is_at_end = true;
    joule_matcher_collect(p->run->matcher, p->number);
    for (size_t i = 0, to; i < p->locations && !p->has_failed; i = to) {
        for (to = i; to < p->locations &&
                     p->location[to].process == p->location[i].process;
             to++) {
            struct location *l = &p->location[to];

            if (!l->is_at_end && (l->is_behind || l->first_ns == UINT64_MAX ||
                                  l->last_ns < end_ns || end_ns == UINT64_MAX))
                read_location(l);
            p->is_behind |= l->is_behind;
            p->is_at_end &= l->is_at_end;
        }
        if (!p->location[i].is_alone)
            merge_calls(p, &p->location[i], to - i);
    }
}

/* How far a round goes: up to a time, which moves on when all are there. */
struct progress {
    uint64_t end_ns, width_ns;
    bool is_over, has_failed;
};

static void plan_round(const struct run *run, struct progress *now)
{
    size_t most = run->reading->round_events, events = 0;
    bool is_behind = false;

    now->is_over = true;
    for (unsigned i = 0; i < run->parts; i++) {
        events += run->part[i].round_events;
        is_behind |= run->part[i].is_behind;
        now->is_over &= run->part[i].is_at_end;
        now->has_failed |= run->part[i].has_failed;
    }
    if (!is_behind)
        now->end_ns = now->end_ns > UINT64_MAX - now->width_ns
                          ? UINT64_MAX
                          : now->end_ns + now->width_ns;
    /* Where there is nothing, it gets longer whatever [most] is. */
    if (!is_behind && 2 * events < most && now->width_ns < UINT64_MAX / 2)
        now->width_ns *= 2;
    else if ((is_behind || events > 2 * most) && now->width_ns > 1)
        now->width_ns /= 2;
}

/* What each thread does.  Between the barriers nobody writes what others read. */
static void *run_part(void *arg)
{
    struct part *p = arg;
    struct run *run = p->run;
    struct progress now = {run->first_end_ns, run->first_width_ns, false,
                           false};

    pthread_mutex_lock(&run->gate);
    now.is_over = run->is_off;
    pthread_mutex_unlock(&run->gate);
    while (!now.is_over && !now.has_failed) {
        read_round(p, now.end_ns);
        pthread_barrier_wait(&run->barrier);
        plan_round(run, &now);
        if (!p->has_failed && joule_matcher_match(run->matcher, p->number) < 0)
            p->has_failed = true;
        if (p->number == 0 && run->reading->tick)
            run->reading->tick(run->reading->arg);
        pthread_barrier_wait(&run->barrier);
    }
    return NULL;
}

/* ---- begin and end ---- */

/* One open file for each location. */
static void allow_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int compare_locations(const void *pa, const void *pb)
{
    const struct joule_trace_location *a = pa, *b = pb;

    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return a->ref < b->ref ? -1 : a->ref > b->ref;
}

static int find_locations(struct part *p)
{
    const struct joule_trace_refs *refs = &p->run->refs;
    const struct joule_trace_location *from = refs->location;
    uint32_t thread = 0;

    p->location = calloc(refs->locations + 1, sizeof(*p->location));
    p->facts.not_analysed =
        calloc((size_t)p->run->d->regions + 1, sizeof(*p->facts.not_analysed));
    if (!p->location || !p->facts.not_analysed)
        return -1;
    for (size_t i = 0; i < refs->locations; i++) {
        thread =
            i > 0 && from[i - 1].process == from[i].process ? thread + 1 : 0;
        if (joule_matcher_part(p->run->matcher, from[i].process) != p->number)
            continue;
        p->location[p->locations++] = (struct location){
            .part = p,
            .ref = from[i].ref,
            .process = from[i].process,
            .thread = thread,
            .first_ns = UINT64_MAX,
            .is_alone = (i == 0 || from[i - 1].process != from[i].process) &&
                        (i + 1 == refs->locations ||
                         from[i + 1].process != from[i].process),
        };
    }
    return 0;
}

static void open_location(struct part *p, struct location *l,
                          const OTF2_EvtReaderCallbacks *callbacks)
{
    l->reader = OTF2_Reader_GetEvtReader(p->reader, l->ref);
    if (l->reader && OTF2_Reader_RegisterEvtCallbacks(
                         p->reader, l->reader, callbacks, l) == OTF2_SUCCESS)
        return;
    l->is_at_end = true;
    p->facts.missing++;
    note_damage(p, l, "its events (.evt) are not there");
}

static int open_part(struct part *p, const char *anchor,
                     struct joule_error *err)
{
    OTF2_EvtReaderCallbacks *callbacks = make_callbacks();
    bool has_definitions;

    if (!callbacks || find_locations(p) < 0) {
        if (callbacks)
            OTF2_EvtReaderCallbacks_Delete(callbacks);
        return joule_error_set(err, ENOMEM, "out of memory");
    }
    p->reader = joule_trace_open(anchor, err);
    if (!p->reader) {
        OTF2_EvtReaderCallbacks_Delete(callbacks);
        return -1;
    }
    for (size_t i = 0; i < p->locations; i++)
        OTF2_Reader_SelectLocation(p->reader, p->location[i].ref);
    has_definitions = OTF2_Reader_OpenDefFiles(p->reader) == OTF2_SUCCESS;
    for (size_t i = 0; has_definitions && i < p->locations; i++)
        joule_trace_define_local(p->reader, p->location[i].ref);
    if (has_definitions)
        OTF2_Reader_CloseDefFiles(p->reader);
    OTF2_Reader_OpenEvtFiles(p->reader);
    for (size_t i = 0; i < p->locations; i++)
        open_location(p, &p->location[i], callbacks);
    OTF2_EvtReaderCallbacks_Delete(callbacks);
    return 0;
}

static void close_part(struct part *p)
{
    for (size_t i = 0; i < p->locations; i++) {
        struct location *l = &p->location[i];

        if (l->reader)
            OTF2_Reader_CloseEvtReader(p->reader, l->reader);
        free(l->frame);
        free(l->operation);
        free(l->computed);
        free(l->queue);
        free(l->kept);
    }
    if (p->reader) {
        OTF2_Reader_CloseEvtFiles(p->reader);
        OTF2_Reader_Close(p->reader);
    }
    free(p->location);
    free(p->facts.not_analysed);
    joule_table_free(&p->paths);
}

/* The first round is what the definitions say it should be; if these are wrong, the
 * following ones are mended by what is there. */
static void plan_first_round(struct run *run, size_t round_events)
{
    uint64_t events = 0,
             begin_ns = joule_trace_ns(&run->refs, run->refs.begin_ticks);
    double share;

    for (size_t i = 0; i < run->refs.locations; i++)
        if (run->refs.location[i].events < UINT64_MAX / 2 - events)
            events += run->refs.location[i].events;
    share = events > 0 ? (double)round_events / (double)events : 1;
    if (share > 1)
        share = 1;
    run->first_width_ns =
        (uint64_t)((double)(joule_trace_ns(&run->refs, run->refs.length_ticks) /
                            2) *
                   share) +
        1;
    run->first_end_ns = begin_ns > UINT64_MAX - run->first_width_ns
                            ? UINT64_MAX
                            : begin_ns + run->first_width_ns;
    run->location_events =
        run->refs.locations ? 4 * round_events / run->refs.locations : 1;
    if (run->location_events < LEAST_EVENTS && round_events >= LEAST_EVENTS)
        run->location_events = LEAST_EVENTS;
    if (run->location_events < 1)
        run->location_events = 1;
}

static void add_facts(struct joule_trace_facts *to, const struct part *p)
{
    const struct joule_trace_facts *f = &p->facts;

    to->events += f->events;
    to->unknown_references += f->unknown_references;
    to->times_back += f->times_back;
    to->unbalanced += f->unbalanced;
    to->outside_of_calls += f->outside_of_calls;
    to->lost += f->lost;
    to->missing += f->missing;
    to->damaged += f->damaged;
    if (to->first_damage.text[0] == '\0')
        to->first_damage = f->first_damage;
    for (uint32_t i = 0; i < p->run->d->regions; i++)
        to->not_analysed[i] += f->not_analysed[i];
    for (size_t i = 0; i < p->locations; i++) {
        const struct location *l = &p->location[i];

        to->unbalanced += l->depth;
        if (l->first_ns == UINT64_MAX)
            continue;
        if (l->first_ns < to->begin_ns)
            to->begin_ns = l->first_ns;
        if (l->last_ns > to->end_ns)
            to->end_ns = l->last_ns;
        if (l->has_mpi)
            to->process[l->process].run_ns += l->last_ns - l->first_ns;
    }
}

static int start_threads(struct run *run, struct joule_error *err)
{
    pthread_t thread[JOULE_MATCHER_PARTS_MAX];
    unsigned started = 1;
    int rc = pthread_barrier_init(&run->barrier, NULL, run->parts);

    if (rc != 0)
        return joule_error_set(err, rc, "cannot start threads: %m");
    pthread_mutex_init(&run->gate, NULL);
    pthread_mutex_lock(&run->gate);
    while (started < run->parts &&
           (rc = joule_thread_start(&thread[started], STACK_SIZE, run_part,
                                    &run->part[started])) == 0)
        started++;
    run->is_off = rc != 0;
    pthread_mutex_unlock(&run->gate);
    run_part(&run->part[0]);
    for (unsigned i = 1; i < started; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&run->barrier);
    pthread_mutex_destroy(&run->gate);
    if (rc != 0)
        return joule_error_set(err, rc, "cannot start threads: %m");
    for (unsigned i = 0; i < run->parts; i++)
        if (run->part[i].has_failed)
            return joule_error_set(err, ENOMEM, "out of memory");
    return 0;
}

/* Of each process that has called MPI. */
static int add_slack(const struct run *run, struct joule_trace_facts *to)
{
    size_t room = 0;

    for (uint32_t i = 0; i < run->d->processes; i++) {
        const struct joule_slack *slack = joule_matcher_slack(run->matcher, i);
        const struct joule_slack_path *path;
        size_t paths;

        if (!slack || run->process[i].mpi_calls == 0)
            continue;
        path = joule_slack_paths(slack, &paths);
        if (joule_list_grow(&to->slack, to->slacks, paths, &room,
                            sizeof(*to->slack)) < 0)
            return -1;
        for (size_t k = 0; k < paths; k++)
            to->slack[to->slacks++] = (struct joule_trace_slack){
                i, path[k].path, path[k].computed_ns, path[k].slack_ns};
    }
    return 0;
}

static int read_parts(struct run *run, const char *anchor,
                      struct joule_trace_facts *ret, struct joule_error *err)
{
    const struct joule_matcher_config config = {
        .processes = run->d->processes,
        .parts = run->parts,
        .with_slack = run->reading->with_slack,
        .take = run->reading->take,
        .message = run->reading->message,
        .arg = run->reading->arg,
    };
    int rc = 0;

    run->matcher = joule_matcher_create(&config, err);
    if (!run->matcher)
        return -1;
    for (unsigned i = 0; i < run->parts && rc == 0; i++) {
        run->part[i].run = run;
        run->part[i].number = i;
        rc = open_part(&run->part[i], anchor, err);
    }
    if (rc == 0)
        rc = start_threads(run, err);
    if (rc == 0 &&
        (joule_matcher_finish(run->matcher) < 0 || add_slack(run, ret) < 0))
        rc = joule_error_set(err, ENOMEM, "out of memory");
    for (unsigned i = 0; i < run->parts && rc == 0; i++)
        add_facts(ret, &run->part[i]);
    for (unsigned i = 0; i < run->parts; i++)
        close_part(&run->part[i]);
    if (rc == 0)
        joule_matcher_counts(run->matcher, &ret->counts);
    joule_matcher_destroy(run->matcher);
    return rc;
}

static int define(struct run *run, const char *anchor,
                  struct joule_trace_facts *ret, struct joule_error *err)
{
    OTF2_Reader *reader = joule_trace_open(anchor, err);
    int rc;

    if (!reader)
        return -1;
    if (run->reading->tick)
        run->reading->tick(run->reading->arg);
    rc = joule_trace_define(reader, run->d, &run->refs, err);
    OTF2_Reader_Close(reader);
    if (rc < 0)
        return -1;
    if (run->refs.locations == 0)
        return joule_error_set(err, ENOENT, "there is no process in it");
    qsort(run->refs.location, run->refs.locations, sizeof(*run->refs.location),
          compare_locations);
    ret->locations = run->refs.locations;
    ret->unknown_references = run->refs.unknown;
    ret->process = calloc((size_t)run->d->processes + 1, sizeof(*ret->process));
    ret->not_analysed =
        calloc((size_t)run->d->regions + 1, sizeof(*ret->not_analysed));
    if (!ret->process || !ret->not_analysed)
        return joule_error_set(err, ENOMEM, "out of memory");
    run->process = ret->process;
    return 0;
}

int joule_trace_read(const struct joule_trace_reading *reading,
                     struct joule_definitions *definitions,
                     struct joule_trace_facts *ret, struct joule_error *err)
{
    struct joule_trace_reading how = *reading;
    struct run *run = calloc(1, sizeof(*run));
    char *anchor = joule_trace_anchor(reading->path, err);
    int rc;

    memset(ret, 0, sizeof(*ret));
    ret->begin_ns = UINT64_MAX;
    if (!run || !anchor) {
        rc = anchor ? joule_error_set(err, ENOMEM, "out of memory") : -1;
        free(run);
        free(anchor);
        return rc;
    }
    if (how.round_events == 0)
        how.round_events = ROUND_EVENTS;
    run->reading = &how;
    run->d = definitions;
    allow_files();
    rc = define(run, anchor, ret, err);
    if (rc == 0) {
        run->parts = how.threads < 1 ? 1 : how.threads;
        if (run->parts > JOULE_MATCHER_PARTS_MAX)
            run->parts = JOULE_MATCHER_PARTS_MAX;
        plan_first_round(run, how.round_events);
        if (how.begin)
            how.begin(how.arg);
        rc = read_parts(run, anchor, ret, err);
    }
    joule_trace_refs_free(&run->refs);
    free(run);
    free(anchor);
    return rc;
}

void joule_trace_facts_free(struct joule_trace_facts *facts)
{
    free(facts->process);
    free(facts->not_analysed);
    free(facts->slack);
    memset(facts, 0, sizeof(*facts));
}
