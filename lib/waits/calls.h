/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * calls.h - the calls of MPI, between the program and its MPI library: what
 * mpi_calls.c (made of calls.txt) does before and after each of them.
 *
 *     if (!joule_waits_begin(&call, JOULE_MPI_Recv, false, false, CALLER))
 *         return next(...);
 *     status = joule_waits_status(&call, status);
 *     rc = next(...);
 *     joule_waits_leave(&call);
 *     if (rc == 0)
 *         joule_waits_recv(&call, ...);
 *     joule_waits_end(&call);
 *
 * Each function joule_waits_* named in calls.txt records one call; its arguments are
 * those of a C program.
 */
#ifndef JOULE_WAITS_CALLS_H
#define JOULE_WAITS_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/waits/log.h"
#include "lib/waits/mpi_calls.h"
#include "lib/waits/mpi_library.h"
#include "lib/waits/recorder.h"
#include "lib/waits/requests.h"

#define JOULE_WRAPPER __attribute__((visibility("default")))

#define JOULE_WAITS_FEW 16

/* A call that is being recorded. */
struct joule_waits_call {
    int64_t enter_ns, leave_ns;
    struct joule_waits_thread *thread;
    const void *caller; /* where it came from */
    uint8_t number;     /* enum joule_mpi_call */
    bool fortran;
    bool is_large;      /* its counts are MPI_Count's */
    int count;          /* of requests, as they were before the call */
    uintptr_t *request; /* as handles of C */
    struct joule_message message; /* that the call receives */
    char *statuses;               /* where the statuses of the call are */
    uintptr_t few_requests[JOULE_WAITS_FEW];
    _Alignas(8) char few_statuses[JOULE_WAITS_FEW * JOULE_MPI_STATUS_MAX];
    void *more_requests, *more_statuses; /* allocated; NULL: they are few */
};

/* The function that a call of [name] would have reached; NULL: the MPI library has none,
 * and the program has looked for it, and found this object's. */
void *joule_waits_find_next(const char *name, _Atomic(void *) *known);

static inline void *joule_waits_next(const char *name, _Atomic(void *) *known)
{
    void *found = atomic_load_explicit(known, memory_order_acquire);

    return found ? found : joule_waits_find_next(name, known);
}

/* The error of such a call, which the user is told of once. */
int joule_waits_absent(const char *name);

/* A call of a Fortran whose INTEGERs have 8 bytes is not recorded: false. */
bool joule_waits_wide(struct joule_waits_thread *thread);

/* false: it is not recorded, since nothing is or MPI calls itself. */
static inline bool joule_waits_begin(struct joule_waits_call *call,
                                     uint8_t number, bool fortran,
                                     bool is_large, const void *caller)
{
    call->thread = joule_recorder_enter();
    if (!call->thread)
        return false;
    if (fortran && joule_mpi.has_wide_integers)
        return joule_waits_wide(call->thread);
    call->caller = caller;
    call->number = number;
    call->fortran = fortran;
    call->is_large = is_large;
    call->count = 0;
    call->more_requests = call->more_statuses = NULL;
    call->enter_ns = joule_recorder_now_ns();
    return true;
}

static inline void joule_waits_leave(struct joule_waits_call *call)
{
    call->leave_ns = joule_recorder_now_ns();
}

void joule_waits_free(struct joule_waits_call *call);

static inline void joule_waits_end(struct joule_waits_call *call)
{
    if (call->more_requests || call->more_statuses)
        joule_waits_free(call);
    joule_recorder_leave(call->thread);
}

extern bool joule_waits_has_callers; /* JOULE_WAITS_CALLER */

/* The name of the function that called, as the log has it. */
uint16_t joule_waits_caller(const void *address);

/* Keep the requests at [requests], which the call may change. */
void joule_waits_take(struct joule_waits_call *call, const void *requests,
                      int count);

/* The same of a message. */
void joule_waits_take_message(struct joule_waits_call *call,
                              const void *message);

/* What the call gets in place of statuses: others if the program ignores its own. */
void *joule_waits_status(struct joule_waits_call *call, void *status);
void *joule_waits_statuses(struct joule_waits_call *call, void *statuses,
                           int count);

/* The call has failed: those of its requests that are no more are forgotten. */
void joule_waits_failed(struct joule_waits_call *call, const void *requests);

#define CALL struct joule_waits_call *call
void joule_waits_send(CALL, int64_t count, uintptr_t type, int peer, int tag,
                      uintptr_t comm);
void joule_waits_isend(CALL, int64_t count, uintptr_t type, int peer, int tag,
                       uintptr_t comm, uintptr_t request);
void joule_waits_send_init(CALL, int64_t count, uintptr_t type, int peer,
                           int tag, uintptr_t comm, uintptr_t request);
void joule_waits_recv(CALL, int64_t count, uintptr_t type, int peer, int tag,
                      uintptr_t comm, const void *status);
void joule_waits_irecv(CALL, int64_t count, uintptr_t type, int peer, int tag,
                       uintptr_t comm, uintptr_t request);
void joule_waits_recv_init(CALL, int64_t count, uintptr_t type, int peer,
                           int tag, uintptr_t comm, uintptr_t request);
void joule_waits_mrecv(CALL, int64_t count, uintptr_t type, const void *status);
void joule_waits_imrecv(CALL, int64_t count, uintptr_t type, uintptr_t request);
void joule_waits_sendrecv(CALL, int64_t sendcount, uintptr_t sendtype, int dest,
                          int sendtag, int64_t recvcount, uintptr_t recvtype,
                          int peer, int tag, uintptr_t comm,
                          const void *status);
void joule_waits_sendrecv_replace(CALL, int64_t count, uintptr_t type, int dest,
                                  int sendtag, int peer, int tag,
                                  uintptr_t comm, const void *status);
void joule_waits_isendrecv(CALL, int64_t sendcount, uintptr_t sendtype,
                           int dest, int sendtag, int64_t recvcount,
                           uintptr_t recvtype, int peer, int tag,
                           uintptr_t comm, uintptr_t request);
void joule_waits_isendrecv_replace(CALL, int64_t count, uintptr_t type,
                                   int dest, int sendtag, int peer, int tag,
                                   uintptr_t comm, uintptr_t request);
void joule_waits_partitioned_init(CALL, uintptr_t request);
void joule_waits_start(CALL);
void joule_waits_startall(CALL, int count);
void joule_waits_wait(CALL, const void *status);
void joule_waits_waitall(CALL, int count, const void *statuses);
void joule_waits_waitany(CALL, int count, const int *index, const void *status);
void joule_waits_waitsome(CALL, int count, const int *outcount,
                          const int *indices, const void *statuses);
void joule_waits_test(CALL, const int *flag, const void *status);
void joule_waits_testall(CALL, int count, const int *flag,
                         const void *statuses);
void joule_waits_testany(CALL, int count, const int *index, const int *flag,
                         const void *status);
void joule_waits_testsome(CALL, int count, const int *outcount,
                          const int *indices, const void *statuses);
void joule_waits_probe(CALL, int peer, int tag, uintptr_t comm);
void joule_waits_iprobe(CALL, const int *flag);
void joule_waits_mprobe(CALL, uintptr_t comm, const void *message,
                        const void *status);
void joule_waits_improbe(CALL, uintptr_t comm, const int *flag,
                         const void *message, const void *status);
void joule_waits_request_free(CALL);
void joule_waits_barrier(CALL, uintptr_t comm);
void joule_waits_bcast(CALL, int64_t count, uintptr_t type, int root,
                       uintptr_t comm);
void joule_waits_gather(CALL, const void *sendbuf, int64_t sendcount,
                        uintptr_t sendtype, int64_t recvcount,
                        uintptr_t recvtype, int root, uintptr_t comm);
void joule_waits_gatherv(CALL, const void *sendbuf, int64_t sendcount,
                         uintptr_t sendtype, const void *recvcounts,
                         uintptr_t recvtype, int root, uintptr_t comm);
void joule_waits_scatter(CALL, int64_t sendcount, uintptr_t sendtype,
                         const void *recvbuf, int64_t recvcount,
                         uintptr_t recvtype, int root, uintptr_t comm);
void joule_waits_scatterv(CALL, const void *sendcounts, uintptr_t sendtype,
                          const void *recvbuf, int64_t recvcount,
                          uintptr_t recvtype, int root, uintptr_t comm);
void joule_waits_allgather(CALL, const void *sendbuf, int64_t sendcount,
                           uintptr_t sendtype, int64_t recvcount,
                           uintptr_t recvtype, uintptr_t comm);
void joule_waits_allgatherv(CALL, const void *sendbuf, int64_t sendcount,
                            uintptr_t sendtype, const void *recvcounts,
                            uintptr_t recvtype, uintptr_t comm);
void joule_waits_alltoall(CALL, const void *sendbuf, int64_t sendcount,
                          uintptr_t sendtype, int64_t recvcount,
                          uintptr_t recvtype, uintptr_t comm);
void joule_waits_alltoallv(CALL, const void *sendbuf, const void *sendcounts,
                           uintptr_t sendtype, const void *recvcounts,
                           uintptr_t recvtype, uintptr_t comm);
void joule_waits_alltoallw(CALL, uintptr_t comm);
void joule_waits_reduce(CALL, int64_t count, uintptr_t type, int root,
                        uintptr_t comm);
void joule_waits_allreduce(CALL, int64_t count, uintptr_t type, uintptr_t comm);
void joule_waits_reduce_scatter(CALL, const void *recvcounts, uintptr_t type,
                                uintptr_t comm);
void joule_waits_reduce_scatter_block(CALL, int64_t count, uintptr_t type,
                                      uintptr_t comm);
void joule_waits_exscan(CALL, int64_t count, uintptr_t type, uintptr_t comm);
void joule_waits_collective(CALL, uintptr_t comm);
void joule_waits_icollective(CALL, uintptr_t comm, uintptr_t request);
void joule_waits_collective_init(CALL, uintptr_t comm, uintptr_t request);
void joule_waits_new_comm(CALL, uintptr_t comm, uintptr_t newcomm);
void joule_waits_new_comm_of_group(CALL, uintptr_t newcomm);
void joule_waits_new_comm_later(CALL, uintptr_t comm, const void *newcomm,
                                uintptr_t request);
void joule_waits_free_comm(CALL, uintptr_t comm);
void joule_waits_other(CALL);
#undef CALL

enum joule_mpi_call {
    JOULE_WAITS_ALL_CALLS(JOULE_WAITS_NUMBER) JOULE_MPI_COUNT
};

_Static_assert(JOULE_MPI_COUNT <= 256, "a record has a byte for it");

#endif
