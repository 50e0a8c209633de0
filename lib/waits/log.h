/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * log.h - the file in which a process of an MPI program leaves its calls:
 * DIRECTORY/NODE.PID.waits.  `joule waits` makes an OTF2 archive of the files of all
 * processes.
 *
 * A head, which is written again at the end, and blocks: a block's head, and records
 * or definitions.  The blocks of a thread are in the order of their numbers, not
 * of the file, and a thread that has ended has its number taken over by another; a block may be in the file in several pieces, which begin at [first].
 * All in the byte order of the machine.  Times are of CLOCK_MONOTONIC, in ns.
 *
 * Of a process that was killed the file has all but the last second.
 */
#ifndef JOULE_WAITS_LOG_H
#define JOULE_WAITS_LOG_H

#include <stdint.h>

#define JOULE_WAITS_SUFFIX  ".waits"
#define JOULE_WAITS_MAGIC   UINT64_C(0x313073746961774a) /* "Jwaits01" */
#define JOULE_WAITS_VERSION 2
#define JOULE_WAITS_NAME    64
#define JOULE_WAITS_TEXT    248
#define JOULE_WAITS_THREADS 4096 /* of a log */
#define JOULE_WAITS_REGIONS 64    /* within each other */

enum joule_waits_state {
    JOULE_WAITS_RUNS,  /* or was killed */
    JOULE_WAITS_ENDED, /* without MPI_Finalize */
    JOULE_WAITS_FINALIZED,
};

/* What the clock of rank 0 showed at [at_ns] of this one's was [offset_ns] more, give
 * or take half of [round_trip_ns]. */
struct joule_waits_clock {
    int64_t at_ns, offset_ns;
    uint64_t round_trip_ns; /* 0: of a machine on which rank 0 is, too */
};

struct joule_waits_head {
    uint64_t magic;
    uint32_t version, head_bytes, record_bytes, state;
    uint32_t rank, size; /* in MPI_COMM_WORLD */
    uint32_t job, step, pid, threads;
    uint64_t machine; /* the same for processes whose clock is the same */
    int64_t begin_ns, end_ns, wall_ns; /* wall_ns: CLOCK_REALTIME at begin_ns */
    int64_t boot_ns;                   /* CLOCK_BOOTTIME at begin_ns */
    struct joule_waits_clock clock[2]; /* at MPI_Init and MPI_Finalize */
    uint64_t lost;                     /* records that there was no room for */
    uint64_t not_done; /* calls of MPI_Test and MPI_Iprobe that found nothing */
    uint64_t unknown;  /* completed requests of which nothing was known */
    int32_t error;     /* errno of writing the file; 0: none */
    int32_t unused;
    char node[JOULE_WAITS_NAME], program[JOULE_WAITS_NAME];
    char library[JOULE_WAITS_NAME]; /* of MPI: its first line about itself */
};

enum joule_waits_block_kind {
    JOULE_WAITS_RECORDS = 0x4a572a01,
    JOULE_WAITS_COMMS,
    JOULE_WAITS_NAMES,
};

struct joule_waits_block {
    uint32_t kind, thread, first, count;
    uint64_t number; /* of the thread's blocks */
};

enum joule_waits_kind {
    JOULE_WAITS_CALL,            /* of no consequence for others */
    JOULE_WAITS_SEND,            /* peer, tag, comm, sent */
    JOULE_WAITS_POST_SEND,       /* and request */
    JOULE_WAITS_SEND_DONE,       /* request */
    JOULE_WAITS_RECEIVE,         /* peer, tag, comm, received */
    JOULE_WAITS_POST_RECEIVE,    /* request */
    JOULE_WAITS_RECEIVE_DONE,    /* request, peer, tag, comm, received */
    JOULE_WAITS_COLLECTIVE,      /* comm, peer: the root, sent, received */
    JOULE_WAITS_POST_COLLECTIVE, /* comm, request */
    JOULE_WAITS_COLLECTIVE_DONE, /* the same; tag: the call that began it */
    JOULE_WAITS_CANCELLED,       /* request */
    JOULE_WAITS_REGION_BEGIN,    /* name; joule.h */
    JOULE_WAITS_REGION_END,
};

#define JOULE_WAITS_NO_ROOT (-1)
#define JOULE_WAITS_ANY     (-1) /* a peer, or a tag */
#define JOULE_WAITS_NO_COMM UINT32_MAX

/* A call, or one of several that a call has completed: these have the call's times.
 */
struct joule_waits_record {
    int64_t enter_ns, leave_ns;
    uint8_t call;  /* enum joule_mpi_call */
    uint8_t kind;  /* enum joule_waits_kind */
    uint16_t name; /* of a region, or of the function that called; 0: none */
    uint32_t comm;
    int32_t peer, tag;
    uint32_t sent, received; /* bytes, at most UINT32_MAX */
    uint32_t request, unused;
};

/* A communicator: processes that give it the same [id] are in it, at [rank] each. */
struct joule_waits_comm {
    uint64_t id;
    uint32_t comm; /* as records have it */
    int32_t rank, size, unused;
};

/* The text of a name. */
struct joule_waits_text {
    uint32_t name;
    uint32_t length;
    char text[JOULE_WAITS_TEXT];
};

/* enum joule_mpi_call, of lib/waits/mpi_calls.h, which has JOULE_MPI_CALLS; and those
 * which are not in its list. */
#define JOULE_WAITS_NUMBER(name, what) JOULE_MPI_##name,
#define JOULE_WAITS_ALL_CALLS(CALL)                                            \
    JOULE_MPI_CALLS(CALL)                                                      \
    CALL(Init, other)                                                          \
    CALL(Init_thread, other) CALL(Finalize, other) CALL(Pcontrol, other)

#endif
