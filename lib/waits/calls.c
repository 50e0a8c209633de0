/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/waits/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/preload.h"
#include "lib/waits/comms.h"

#define CALL struct joule_waits_call *call

/* MPI_ERR_OTHER. */
#define MPICH_ERR_OTHER    15
#define OPEN_MPI_ERR_OTHER 16

void *joule_waits_find_next(const char *name, _Atomic(void *) *known)
{
    void *found = joule_preload_find(name);

    if (found)
        atomic_store_explicit(known, found, memory_order_release);
    return found;
}

int joule_waits_absent(const char *name)
{
    static atomic_flag is_said = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&is_said))
        fprintf(stderr, "joule: the MPI library has no %s: calls of it fail\n",
                name);
    return joule_mpi.is_mpich ? MPICH_ERR_OTHER : OPEN_MPI_ERR_OTHER;
}

bool joule_waits_wide(struct joule_waits_thread *thread)
{
    static atomic_flag is_said = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&is_said))
        fprintf(stderr,
                "joule: Fortran's INTEGER has 8 bytes here: its calls are "
                "recorded only if the MPI library makes them in C\n");
    joule_recorder_leave(thread);
    return false;
}

/* ---- before the call ---- */

/* Room for [count] of [each] bytes: [few], if that is enough.  NULL: there is none. */
static void *room(void *few, void **more, int count, size_t each)
{
    if (count <= JOULE_WAITS_FEW)
        return few;
    *more = malloc((size_t)count * each);
    return *more;
}

static uintptr_t request_at(CALL, const void *requests, int i)
{
    return call->fortran ? joule_mpi_request(((const int *)requests)[i])
                         : joule_mpi_at(requests, i);
}

void joule_waits_take(CALL, const void *requests, int count)
{
    call->count = count > 0 ? count : 0;
    call->request = room(call->few_requests, &call->more_requests, call->count,
                         sizeof(*call->request));
    if (!call->request)
        call->count = 0;
    for (int i = 0; i < call->count; i++)
        call->request[i] = request_at(call, requests, i);
}

static uint32_t message_at(CALL, const void *message)
{
    return call->fortran ? *(const uint32_t *)message
                         : (uint32_t)joule_mpi_at(message, 0);
}

void joule_waits_take_message(CALL, const void *message)
{
    call->message = joule_messages_take(message_at(call, message));
}

void *joule_waits_status(CALL, void *status)
{
    if (!joule_mpi_is_ignored(status))
        return status;
    return call->few_statuses;
}

void *joule_waits_statuses(CALL, void *statuses, int count)
{
    void *own;

    if (!joule_mpi_is_ignored(statuses))
        return statuses;
    own = room(call->few_statuses, &call->more_statuses, count > 0 ? count : 0,
               JOULE_MPI_STATUS_MAX);
    return own ? own : statuses;
}

void joule_waits_free(CALL)
{
    free(call->more_requests);
    free(call->more_statuses);
}

/* ---- records ---- */

/* Of the call, with this of it. */
#define RECORD(...)                                                            \
    do {                                                                       \
        if (joule_recorder_pauses)                                             \
            break;                                                             \
        *joule_recorder_add(call->thread) = (struct joule_waits_record){       \
            .enter_ns = call->enter_ns,                                        \
            .leave_ns = call->leave_ns,                                        \
            .call = call->number,                                              \
            .name = joule_waits_has_callers ? joule_waits_caller(call->caller) \
                                            : 0,                               \
            __VA_ARGS__};                                                      \
        joule_recorder_added(call->thread);                                    \
    } while (0)

void joule_waits_other(CALL)
{
    RECORD(.kind = JOULE_WAITS_CALL);
}

static uint32_t cut(uint64_t bytes)
{
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

static uint64_t bytes_of(int64_t count, uintptr_t type)
{
    int size = 0;

    if (count <= 0 || type == joule_mpi.type_null ||
        joule_mpi.type_size(type, &size) != 0 || size <= 0)
        return 0;
    return (uint64_t)count * (uint64_t)size;
}

/* Between two groups of processes, of which nothing is kept, MPI ignores the type
 * that some of them give: it may be anything. */
static uint64_t bytes_in(const struct joule_comm *comm, int64_t count,
                         uintptr_t type)
{
    return comm->size > 0 ? bytes_of(count, type) : 0;
}

static int64_t count_at(CALL, const void *counts, int i)
{
    return call->is_large ? ((const int64_t *)counts)[i]
                          : ((const int *)counts)[i];
}

static uint64_t bytes_of_all(CALL, const void *counts, uintptr_t type, int size)
{
    int64_t sum = 0;

    for (int i = 0; counts && i < size; i++)
        sum += count_at(call, counts, i);
    return bytes_of(sum, type);
}

/* ---- messages ---- */

void joule_waits_send(CALL, int64_t count, uintptr_t type, int peer, int tag,
                      uintptr_t comm)
{
    if (peer == joule_mpi.proc_null) {
        joule_waits_other(call);
        return;
    }
    RECORD(.kind = JOULE_WAITS_SEND, .comm = joule_comms_find(comm).number,
           .peer = peer, .tag = tag, .sent = cut(bytes_of(count, type)));
}

static void received(CALL, uint32_t comm, const void *status)
{
    struct joule_mpi_status s = joule_mpi_status(status, 0);

    if (s.source == joule_mpi.proc_null) {
        joule_waits_other(call);
        return;
    }
    RECORD(.kind = JOULE_WAITS_RECEIVE, .comm = comm, .peer = s.source,
           .tag = s.tag, .received = cut(s.bytes));
}

void joule_waits_recv(CALL, int64_t count, uintptr_t type, int peer, int tag,
                      uintptr_t comm, const void *status)
{
    (void)count;
    (void)type;
    (void)peer;
    (void)tag;
    received(call, joule_comms_find(comm).number, status);
}

void joule_waits_sendrecv(CALL, int64_t sendcount, uintptr_t sendtype, int dest,
                          int sendtag, int64_t recvcount, uintptr_t recvtype,
                          int peer, int tag, uintptr_t comm, const void *status)
{
    joule_waits_send(call, sendcount, sendtype, dest, sendtag, comm);
    joule_waits_recv(call, recvcount, recvtype, peer, tag, comm, status);
}

void joule_waits_sendrecv_replace(CALL, int64_t count, uintptr_t type, int dest,
                                  int sendtag, int peer, int tag,
                                  uintptr_t comm, const void *status)
{
    joule_waits_sendrecv(call, count, type, dest, sendtag, count, type, peer,
                         tag, comm, status);
}

/* A message that was found by a probe is received on that one's communicator. */
void joule_waits_mprobe(CALL, uintptr_t comm, const void *message,
                        const void *status)
{
    struct joule_mpi_status s = joule_mpi_status(status, 0);

    joule_waits_other(call);
    joule_messages_add(&(struct joule_message){message_at(call, message),
                                               joule_comms_find(comm).number,
                                               s.source, s.tag});
}

void joule_waits_improbe(CALL, uintptr_t comm, const int *flag,
                         const void *message, const void *status)
{
    if (*flag)
        joule_waits_mprobe(call, comm, message, status);
    else
        joule_recorder_not_done();
}

void joule_waits_mrecv(CALL, int64_t count, uintptr_t type, const void *status)
{
    (void)count;
    (void)type;
    received(call, call->message.comm, status);
}

/* ---- requests ---- */

static void post(CALL, struct joule_request *r, uintptr_t handle)
{
    static const uint8_t kinds[] = {
        [JOULE_REQUEST_SEND] = JOULE_WAITS_POST_SEND,
        [JOULE_REQUEST_RECEIVE] = JOULE_WAITS_POST_RECEIVE,
        [JOULE_REQUEST_COLLECTIVE] = JOULE_WAITS_POST_COLLECTIVE,
        [JOULE_REQUEST_NEW_COMM] = JOULE_WAITS_POST_COLLECTIVE,
    };

    if (handle && !joule_requests_add(handle, r))
        joule_recorder_unknown();
    RECORD(.kind = kinds[r->kind], .comm = r->comm,
           .peer = r->peer == joule_mpi.any_source ? JOULE_WAITS_ANY : r->peer,
           .tag = r->tag, .sent = r->kind == JOULE_REQUEST_SEND ? r->bytes : 0,
           .request = r->number);
}

static struct joule_request new_request(enum joule_request_kind kind,
                                        int64_t count, uintptr_t type, int peer,
                                        int tag, uintptr_t comm)
{
    bool is_nobody = peer == joule_mpi.proc_null;

    return (struct joule_request){
        .kind = (uint8_t)(is_nobody ? JOULE_REQUEST_NOBODY : kind),
        .is_active = true,
        .comm = joule_comms_find(comm).number,
        .peer = peer,
        .tag = tag,
        .bytes = is_nobody ? 0 : cut(bytes_of(count, type)),
    };
}

/* A message to or from nobody is no message. */
static void begin(CALL, struct joule_request r, uintptr_t handle)
{
    if (r.kind != JOULE_REQUEST_NOBODY) {
        post(call, &r, handle);
        return;
    }
    joule_requests_add(handle, &r);
    joule_waits_other(call);
}

void joule_waits_isend(CALL, int64_t count, uintptr_t type, int peer, int tag,
                       uintptr_t comm, uintptr_t request)
{
    begin(call, new_request(JOULE_REQUEST_SEND, count, type, peer, tag, comm),
          request);
}

void joule_waits_irecv(CALL, int64_t count, uintptr_t type, int peer, int tag,
                       uintptr_t comm, uintptr_t request)
{
    begin(call,
          new_request(JOULE_REQUEST_RECEIVE, count, type, peer, tag, comm),
          request);
}

void joule_waits_isendrecv(CALL, int64_t sendcount, uintptr_t sendtype,
                           int dest, int sendtag, int64_t recvcount,
                           uintptr_t recvtype, int peer, int tag,
                           uintptr_t comm, uintptr_t request)
{
    struct joule_request send = new_request(JOULE_REQUEST_SEND, sendcount,
                                            sendtype, dest, sendtag, comm);

    send.has_more = true;
    begin(call, send, request);
    joule_waits_irecv(call, recvcount, recvtype, peer, tag, comm, request);
}

void joule_waits_isendrecv_replace(CALL, int64_t count, uintptr_t type,
                                   int dest, int sendtag, int peer, int tag,
                                   uintptr_t comm, uintptr_t request)
{
    joule_waits_isendrecv(call, count, type, dest, sendtag, count, type, peer,
                          tag, comm, request);
}

void joule_waits_imrecv(CALL, int64_t count, uintptr_t type, uintptr_t request)
{
    struct joule_request r = {
        .kind = JOULE_REQUEST_RECEIVE,
        .is_active = true,
        .comm = call->message.comm,
        .peer = call->message.source,
        .tag = call->message.tag,
        .bytes = cut(bytes_of(count, type)),
    };

    post(call, &r, request);
}

static void remember(CALL, struct joule_request r, uintptr_t handle)
{
    r.is_active = false;
    r.is_persistent = true;
    if (!joule_requests_add(handle, &r))
        joule_recorder_unknown();
    joule_waits_other(call);
}

void joule_waits_send_init(CALL, int64_t count, uintptr_t type, int peer,
                           int tag, uintptr_t comm, uintptr_t request)
{
    remember(call,
             new_request(JOULE_REQUEST_SEND, count, type, peer, tag, comm),
             request);
}

void joule_waits_recv_init(CALL, int64_t count, uintptr_t type, int peer,
                           int tag, uintptr_t comm, uintptr_t request)
{
    remember(call,
             new_request(JOULE_REQUEST_RECEIVE, count, type, peer, tag, comm),
             request);
}

/* Their partitions are not messages that others could match. */
void joule_waits_partitioned_init(CALL, uintptr_t request)
{
    remember(call, (struct joule_request){.kind = JOULE_REQUEST_NOBODY},
             request);
}

void joule_waits_start(CALL)
{
    bool any = false;

    for (int i = 0; i < call->count; i++) {
        struct joule_request r;

        if (!joule_requests_start(call->request[i], &r) ||
            r.kind == JOULE_REQUEST_NOBODY)
            continue;
        post(call, &r, 0);
        any = true;
    }
    if (!any)
        joule_waits_other(call);
}

void joule_waits_startall(CALL, int count)
{
    (void)count;
    joule_waits_start(call);
}

void joule_waits_request_free(CALL)
{
    if (call->count > 0)
        joule_requests_drop(call->request[0]);
    joule_waits_other(call);
}

/* ---- completions ---- */

static uintptr_t comm_at(const struct joule_request *r)
{
    return r->newcomm_fortran ? joule_mpi_comm(*(const int *)r->newcomm)
                              : joule_mpi_at(r->newcomm, 0);
}

static void record_done(CALL, const struct joule_request *r,
                        const struct joule_mpi_status *s)
{
    if (r->kind >= JOULE_REQUEST_COLLECTIVE)
        RECORD(.kind = JOULE_WAITS_COLLECTIVE_DONE, .comm = r->comm,
               .peer = r->peer, .tag = r->tag, .request = r->number);
    else if (s->is_cancelled)
        RECORD(.kind = JOULE_WAITS_CANCELLED, .request = r->number);
    else if (r->kind == JOULE_REQUEST_SEND)
        RECORD(.kind = JOULE_WAITS_SEND_DONE, .comm = r->comm, .peer = r->peer,
               .tag = r->tag, .request = r->number);
    else
        /* MPICH 4.0 leaves the status of MPI_Isendrecv empty (2026-12): what
         * the program has asked for needs none. */
        RECORD(.kind = JOULE_WAITS_RECEIVE_DONE, .comm = r->comm,
               .peer = r->peer == joule_mpi.any_source ? s->source : r->peer,
               .tag = r->tag == joule_mpi.any_tag ? s->tag : r->tag,
               .received = cut(s->bytes), .request = r->number);
}

static bool completed(CALL, const struct joule_request *r, const void *statuses,
                      int k)
{
    struct joule_mpi_status s;

    if (r->kind == JOULE_REQUEST_NOBODY)
        return false;
    s = joule_mpi_status(statuses, k);
    if (r->kind == JOULE_REQUEST_NEW_COMM)
        joule_comms_keep(comm_at(r), r->newcomm_id);
    record_done(call, r, &s);
    return true;
}

/* The request [i] is done, and its status is [k] of those at [statuses]. */
static bool complete(CALL, int i, const void *statuses, int k)
{
    struct joule_request r;
    bool any = false;

    if (i < 0 || i >= call->count || call->request[i] == joule_mpi.request_null)
        return false;
    do {
        if (!joule_requests_take(call->request[i], &r)) {
            /* A persistent one that was not started is done at once. */
            if (!joule_requests_know(call->request[i]))
                joule_recorder_unknown();
            return any;
        }
        any |= completed(call, &r, statuses, k);
    } while (r.has_more);
    return any;
}

static void complete_all(CALL, const void *statuses)
{
    bool any = false;

    for (int i = 0; i < call->count && statuses; i++)
        any |= complete(call, i, statuses, i);
    if (!any)
        joule_waits_other(call);
}

/* MPI frees what is done, also if it is done badly; what is not done stays. */
void joule_waits_failed(CALL, const void *requests)
{
    struct joule_request r;

    for (int i = 0; i < call->count; i++)
        if (call->request[i] != joule_mpi.request_null &&
            request_at(call, requests, i) == joule_mpi.request_null)
            while (joule_requests_take(call->request[i], &r) && r.has_more)
                ;
}

/* Indices of Fortran begin with 1. */
static int index_at(CALL, const int *index, int i)
{
    return index[i] - (call->fortran ? 1 : 0);
}

static void complete_some(CALL, const int *outcount, const int *indices,
                          const void *statuses)
{
    bool any = false;

    for (int i = 0; i < *outcount && i < call->count && statuses; i++)
        any |= complete(call, index_at(call, indices, i), statuses, i);
    if (!any)
        joule_waits_other(call);
}

static void complete_one(CALL, int i, const void *status)
{
    if (!complete(call, i, status, 0))
        joule_waits_other(call);
}

void joule_waits_wait(CALL, const void *status)
{
    complete_one(call, 0, status);
}

void joule_waits_waitall(CALL, int count, const void *statuses)
{
    (void)count;
    complete_all(call, statuses);
}

void joule_waits_waitany(CALL, int count, const int *index, const void *status)
{
    (void)count;
    complete_one(call, index_at(call, index, 0), status);
}

void joule_waits_waitsome(CALL, int count, const int *outcount,
                          const int *indices, const void *statuses)
{
    (void)count;
    complete_some(call, outcount, indices, statuses);
}

/* Tests that find nothing are no record: a program may make millions of them. */
void joule_waits_test(CALL, const int *flag, const void *status)
{
    if (*flag && call->count > 0 && call->request[0] != joule_mpi.request_null)
        complete_one(call, 0, status);
    else
        joule_recorder_not_done();
}

void joule_waits_testall(CALL, int count, const int *flag, const void *statuses)
{
    (void)count;
    if (*flag)
        complete_all(call, statuses);
    else
        joule_recorder_not_done();
}

void joule_waits_testany(CALL, int count, const int *index, const int *flag,
                         const void *status)
{
    int i = index_at(call, index, 0);

    (void)count;
    if (*flag && i >= 0 && i < call->count)
        complete_one(call, i, status);
    else
        joule_recorder_not_done();
}

void joule_waits_testsome(CALL, int count, const int *outcount,
                          const int *indices, const void *statuses)
{
    (void)count;
    if (*outcount > 0)
        complete_some(call, outcount, indices, statuses);
    else
        joule_recorder_not_done();
}

void joule_waits_probe(CALL, int peer, int tag, uintptr_t comm)
{
    (void)peer;
    (void)tag;
    (void)comm;
    joule_waits_other(call);
}

void joule_waits_iprobe(CALL, const int *flag)
{
    if (*flag)
        joule_waits_other(call);
    else
        joule_recorder_not_done();
}

/* ---- collectives ---- */

static void collective(CALL, const struct joule_comm *comm, int root,
                       uint64_t sent, uint64_t got)
{
    RECORD(.kind = JOULE_WAITS_COLLECTIVE, .comm = comm->number, .peer = root,
           .sent = cut(sent), .received = cut(got));
}

void joule_waits_collective(CALL, uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);

    collective(call, &comm, JOULE_WAITS_NO_ROOT, 0, 0);
}

void joule_waits_barrier(CALL, uintptr_t comm)
{
    joule_waits_collective(call, comm);
}

void joule_waits_alltoallw(CALL, uintptr_t comm)
{
    joule_waits_collective(call, comm);
}

static struct joule_request new_collective(CALL, uintptr_t comm)
{
    return (struct joule_request){
        .kind = JOULE_REQUEST_COLLECTIVE,
        .is_active = true,
        .comm = joule_comms_find(comm).number,
        .peer = JOULE_WAITS_NO_ROOT,
        .tag = call->number,
    };
}

void joule_waits_icollective(CALL, uintptr_t comm, uintptr_t request)
{
    begin(call, new_collective(call, comm), request);
}

void joule_waits_collective_init(CALL, uintptr_t comm, uintptr_t request)
{
    remember(call, new_collective(call, comm), request);
}

void joule_waits_bcast(CALL, int64_t count, uintptr_t type, int root,
                       uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);
    uint64_t bytes = bytes_in(&comm, count, type);
    bool is_root = comm.rank == root;

    collective(call, &comm, root, is_root ? bytes : 0, is_root ? 0 : bytes);
}

void joule_waits_reduce(CALL, int64_t count, uintptr_t type, int root,
                        uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);
    uint64_t bytes = bytes_in(&comm, count, type);

    collective(call, &comm, root, bytes, comm.rank == root ? bytes : 0);
}

static void gather(CALL, const void *sendbuf, int64_t sendcount,
                   uintptr_t sendtype, uint64_t got, int root,
                   const struct joule_comm *comm)
{
    uint64_t sent = joule_mpi_is_in_place(sendbuf)
                        ? 0
                        : bytes_in(comm, sendcount, sendtype);

    collective(call, comm, root, sent, got);
}

void joule_waits_gather(CALL, const void *sendbuf, int64_t sendcount,
                        uintptr_t sendtype, int64_t recvcount,
                        uintptr_t recvtype, int root, uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);

    gather(call, sendbuf, sendcount, sendtype,
           comm.rank == root ? bytes_in(&comm, recvcount * comm.size, recvtype)
                             : 0,
           root, &comm);
}

void joule_waits_gatherv(CALL, const void *sendbuf, int64_t sendcount,
                         uintptr_t sendtype, const void *recvcounts,
                         uintptr_t recvtype, int root, uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);

    gather(call, sendbuf, sendcount, sendtype,
           comm.rank == root
               ? bytes_of_all(call, recvcounts, recvtype, comm.size)
               : 0,
           root, &comm);
}

static void scatter(CALL, uint64_t sent, const void *recvbuf, int64_t recvcount,
                    uintptr_t recvtype, int root, const struct joule_comm *comm)
{
    uint64_t got = joule_mpi_is_in_place(recvbuf)
                       ? 0
                       : bytes_in(comm, recvcount, recvtype);

    collective(call, comm, root, sent, got);
}

void joule_waits_scatter(CALL, int64_t sendcount, uintptr_t sendtype,
                         const void *recvbuf, int64_t recvcount,
                         uintptr_t recvtype, int root, uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);

    scatter(call,
            comm.rank == root ? bytes_in(&comm, sendcount * comm.size, sendtype)
                              : 0,
            recvbuf, recvcount, recvtype, root, &comm);
}

void joule_waits_scatterv(CALL, const void *sendcounts, uintptr_t sendtype,
                          const void *recvbuf, int64_t recvcount,
                          uintptr_t recvtype, int root, uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);

    scatter(call,
            comm.rank == root
                ? bytes_of_all(call, sendcounts, sendtype, comm.size)
                : 0,
            recvbuf, recvcount, recvtype, root, &comm);
}

void joule_waits_allgather(CALL, const void *sendbuf, int64_t sendcount,
                           uintptr_t sendtype, int64_t recvcount,
                           uintptr_t recvtype, uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);
    bool in_place = joule_mpi_is_in_place(sendbuf);

    collective(call, &comm, JOULE_WAITS_NO_ROOT,
               in_place ? bytes_in(&comm, recvcount, recvtype)
                        : bytes_in(&comm, sendcount, sendtype),
               bytes_in(&comm, recvcount * comm.size, recvtype));
}

void joule_waits_allgatherv(CALL, const void *sendbuf, int64_t sendcount,
                            uintptr_t sendtype, const void *recvcounts,
                            uintptr_t recvtype, uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);
    bool in_place = joule_mpi_is_in_place(sendbuf) && comm.size > 0;

    collective(call, &comm, JOULE_WAITS_NO_ROOT,
               in_place ? bytes_in(&comm, count_at(call, recvcounts, comm.rank),
                                   recvtype)
                        : bytes_in(&comm, sendcount, sendtype),
               bytes_of_all(call, recvcounts, recvtype, comm.size));
}

void joule_waits_alltoall(CALL, const void *sendbuf, int64_t sendcount,
                          uintptr_t sendtype, int64_t recvcount,
                          uintptr_t recvtype, uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);
    uint64_t got = bytes_in(&comm, recvcount * comm.size, recvtype);

    collective(call, &comm, JOULE_WAITS_NO_ROOT,
               joule_mpi_is_in_place(sendbuf)
                   ? got
                   : bytes_in(&comm, sendcount * comm.size, sendtype),
               got);
}

void joule_waits_alltoallv(CALL, const void *sendbuf, const void *sendcounts,
                           uintptr_t sendtype, const void *recvcounts,
                           uintptr_t recvtype, uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);
    uint64_t got = bytes_of_all(call, recvcounts, recvtype, comm.size);

    collective(call, &comm, JOULE_WAITS_NO_ROOT,
               joule_mpi_is_in_place(sendbuf)
                   ? got
                   : bytes_of_all(call, sendcounts, sendtype, comm.size),
               got);
}

void joule_waits_allreduce(CALL, int64_t count, uintptr_t type,
                           uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);
    uint64_t bytes = bytes_in(&comm, count, type);

    collective(call, &comm, JOULE_WAITS_NO_ROOT, bytes, bytes);
}

void joule_waits_exscan(CALL, int64_t count, uintptr_t type, uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);
    uint64_t bytes = bytes_in(&comm, count, type);

    collective(call, &comm, JOULE_WAITS_NO_ROOT,
               comm.rank + 1 < comm.size ? bytes : 0,
               comm.rank > 0 ? bytes : 0);
}

void joule_waits_reduce_scatter(CALL, const void *recvcounts, uintptr_t type,
                                uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);

    collective(
        call, &comm, JOULE_WAITS_NO_ROOT,
        bytes_of_all(call, recvcounts, type, comm.size),
        comm.size > 0
            ? bytes_in(&comm, count_at(call, recvcounts, comm.rank), type)
            : 0);
}

void joule_waits_reduce_scatter_block(CALL, int64_t count, uintptr_t type,
                                      uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);

    collective(call, &comm, JOULE_WAITS_NO_ROOT,
               bytes_in(&comm, count * comm.size, type),
               bytes_in(&comm, count, type));
}

/* ---- communicators ---- */

void joule_waits_new_comm(CALL, uintptr_t comm, uintptr_t newcomm)
{
    joule_waits_other(call);
    joule_comms_add(newcomm, comm);
}

void joule_waits_new_comm_of_group(CALL, uintptr_t newcomm)
{
    joule_waits_new_comm(call, joule_mpi.comm_null, newcomm);
}

void joule_waits_new_comm_later(CALL, uintptr_t comm, const void *newcomm,
                                uintptr_t request)
{
    struct joule_request r = {
        .kind = JOULE_REQUEST_NEW_COMM,
        .is_active = true,
        .comm = joule_comms_find(comm).number,
        .peer = JOULE_WAITS_NO_ROOT,
        .tag = call->number,
        .newcomm = newcomm,
        .newcomm_fortran = call->fortran,
        .newcomm_id = joule_comms_promise(comm),
    };

    post(call, &r, request);
}

void joule_waits_free_comm(CALL, uintptr_t comm)
{
    joule_waits_other(call);
    joule_comms_drop(comm);
}
