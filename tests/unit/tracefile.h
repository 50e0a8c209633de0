/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tracefile.h - OTF2 archives of programs that never ran, as Score-P would write
 * them.
 *
 *     t = tracefile_create(dir, &spec);
 *     tracefile_enter(t, location, ns, TRACEFILE_SEND);
 *     OTF2_EvtWriter_MpiSend(tracefile_writer(t, location), ...);
 *     tracefile_leave(t, location, ns, TRACEFILE_SEND);
 *     tracefile_close(t);
 *
 * What fails ends the program.  Communicator 0 is MPI_COMM_WORLD, 1 MPI_COMM_SELF,
 * 2 and following are of the spec; only those are written that the spec or the
 * world has.  Locations: thread t of rank r is r + t * ranks.
 */
#ifndef JOULE_TESTS_TRACEFILE_H
#define JOULE_TESTS_TRACEFILE_H

#include <otf2/otf2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Regions: numbers in the archive. */
enum tracefile_region {
    TRACEFILE_MAIN,
    TRACEFILE_SOLVE,
    TRACEFILE_SEND,
    TRACEFILE_SSEND,
    TRACEFILE_BSEND,
    TRACEFILE_RECV,
    TRACEFILE_SENDRECV,
    TRACEFILE_ISEND,
    TRACEFILE_IRECV,
    TRACEFILE_WAIT,
    TRACEFILE_WAITALL,
    TRACEFILE_TEST,
    TRACEFILE_CANCEL,
    TRACEFILE_BARRIER,
    TRACEFILE_BCAST,
    TRACEFILE_REDUCE,
    TRACEFILE_ALLREDUCE,
    TRACEFILE_SCAN,
    TRACEFILE_ALLTOALLV,
    TRACEFILE_IBARRIER,
    TRACEFILE_PUT,
    TRACEFILE_REGIONS,
};

struct tracefile_comm {
    const char *name;
    const uint64_t *rank; /* of the world, of each rank of this one */
    uint32_t size;
};

/* What the clock of a location shows is [offset] less than the first one's. */
struct tracefile_offset {
    uint64_t location, time;
    int64_t offset;
};

struct tracefile_spec {
    uint32_t ranks, threads; /* of each; 0: 1 */
    uint64_t ticks_per_s;    /* 0: 10^9 */
    const struct tracefile_comm *comm;
    size_t comms;
    const struct tracefile_offset *offset; /* in the order of times */
    size_t offsets;
    uint64_t chunk; /* of events; 0: 256 KiB */
    /* Events have numbers of their own location for regions and communicators, as
     * those of Score-P: this much more than in the definitions; 0: the same. */
    uint32_t local_numbers;
    const char *main_name; /* of TRACEFILE_MAIN; NULL: "main" */
};

struct tracefile;

/* [dir] is new. */
struct tracefile *tracefile_create(const char *dir,
                                   const struct tracefile_spec *spec);
OTF2_EvtWriter *tracefile_writer(struct tracefile *t, uint64_t location);
void tracefile_enter(struct tracefile *t, uint64_t location, uint64_t ticks,
                     uint32_t region);
void tracefile_leave(struct tracefile *t, uint64_t location, uint64_t ticks,
                     uint32_t region);

/* Writes the definitions, and ends the location's events. */
void tracefile_close(struct tracefile *t);

const char *tracefile_region_name(enum tracefile_region region);

#endif
