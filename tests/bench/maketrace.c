/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * maketrace DIR RANKS EVENTS - an OTF2 archive of a program that never ran: RANKS
 * processes in a ring, with about EVENTS events each.  In an iteration each sends
 * to both neighbours (MPI_Irecv, MPI_Isend, MPI_Waitall), then to the next one
 * (MPI_Send, MPI_Recv), and all meet in MPI_Allreduce, or in every tenth one in
 * MPI_Barrier.  Who is late changes with the iteration.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/tracefile.h"

#define EVENTS_OF_ITERATION 30
#define LATE_NS             5000

/* One of them is late. */
static uint64_t work_ns(uint32_t rank, uint64_t i)
{
    return 1000 + (rank * 7 + i * 13) % 32 * LATE_NS / 32;
}

static uint64_t exchange(struct tracefile *t, uint32_t rank, uint32_t ranks,
                         uint64_t ns, uint64_t late_ns)
{
    OTF2_EvtWriter *w = tracefile_writer(t, rank);
    uint32_t peer[2] = {(rank + ranks - 1) % ranks, (rank + 1) % ranks};

    for (unsigned i = 0; i < 2; i++) {
        tracefile_enter(t, rank, ns += 100, TRACEFILE_IRECV);
        OTF2_EvtWriter_MpiIrecvRequest(w, NULL, ns += 10, i);
        tracefile_leave(t, rank, ns += 10, TRACEFILE_IRECV);
    }
    for (unsigned i = 0; i < 2; i++) {
        tracefile_enter(t, rank, ns += 100, TRACEFILE_ISEND);
        OTF2_EvtWriter_MpiIsend(w, NULL, ns += 10, peer[i], 0, i, 64, 2 + i);
        tracefile_leave(t, rank, ns += 10, TRACEFILE_ISEND);
    }
    tracefile_enter(t, rank, ns += 10, TRACEFILE_WAITALL);
    ns += late_ns;
    for (unsigned i = 0; i < 2; i++) {
        OTF2_EvtWriter_MpiIrecv(w, NULL, ns += 5, peer[i], 0, 1 - i, 64, i);
        OTF2_EvtWriter_MpiIsendComplete(w, NULL, ns += 5, 2 + i);
    }
    tracefile_leave(t, rank, ns += 10, TRACEFILE_WAITALL);
    return ns;
}

static uint64_t pass_on(struct tracefile *t, uint32_t rank, uint32_t ranks,
                        uint64_t ns)
{
    OTF2_EvtWriter *w = tracefile_writer(t, rank);

    for (unsigned i = 0; i < 2; i++) {
        bool sends = rank % 2 == i;

        tracefile_enter(t, rank, ns += 50,
                        sends ? TRACEFILE_SEND : TRACEFILE_RECV);
        if (sends)
            OTF2_EvtWriter_MpiSend(w, NULL, ns += 10, (rank + 1) % ranks, 0, 9,
                                   8);
        else
            OTF2_EvtWriter_MpiRecv(w, NULL, ns += 10,
                                   (rank + ranks - 1) % ranks, 0, 9, 8);
        tracefile_leave(t, rank, ns += 40,
                        sends ? TRACEFILE_SEND : TRACEFILE_RECV);
    }
    return ns;
}

static uint64_t meet(struct tracefile *t, uint32_t rank, uint64_t ns,
                     uint64_t i)
{
    OTF2_EvtWriter *w = tracefile_writer(t, rank);
    bool is_barrier = i % 10 == 9;
    uint32_t region = is_barrier ? TRACEFILE_BARRIER : TRACEFILE_ALLREDUCE;

    tracefile_enter(t, rank, ns, region);
    OTF2_EvtWriter_MpiCollectiveBegin(w, NULL, ns);
    ns = (i + 1) * 20000;
    OTF2_EvtWriter_MpiCollectiveEnd(
        w, NULL, ns,
        is_barrier ? OTF2_COLLECTIVE_OP_BARRIER : OTF2_COLLECTIVE_OP_ALLREDUCE,
        0, OTF2_COLLECTIVE_ROOT_NONE, is_barrier ? 0 : 8, is_barrier ? 0 : 8);
    tracefile_leave(t, rank, ns, region);
    return ns;
}

int main(int argc, char **argv)
{
    struct tracefile_spec spec = {.chunk = 1024 * 1024};
    struct tracefile *t;
    uint64_t iterations;

    if (argc != 4) {
        fputs("usage: maketrace DIR RANKS EVENTS\n", stderr);
        return 2;
    }
    spec.ranks = (uint32_t)strtoul(argv[2], NULL, 10);
    iterations = strtoull(argv[3], NULL, 10) / EVENTS_OF_ITERATION;
    t = tracefile_create(argv[1], &spec);
    for (uint32_t rank = 0; rank < spec.ranks; rank++) {
        uint64_t ns = 0;

        tracefile_enter(t, rank, ns, TRACEFILE_MAIN);
        for (uint64_t i = 0; i < iterations; i++) {
            ns += work_ns(rank, i);
            ns = exchange(t, rank, spec.ranks, ns, LATE_NS);
            ns = pass_on(t, rank, spec.ranks, ns);
            ns = meet(t, rank, ns, i);
        }
        tracefile_leave(t, rank, ns + 1, TRACEFILE_MAIN);
    }
    tracefile_close(t);
    return 0;
}
