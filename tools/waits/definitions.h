/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * definitions.h - what a trace is of: regions, processes, communicators, and the
 * call paths that it has shown.  Whatever reads traces fills it; numbers in waits
 * (common/waits/matcher.h) are indices into its arrays.
 *
 * All strings and arrays belong to the struct; names are as the trace has them,
 * hostile ones too.  One thread writes it, but for joule_paths_child, which any
 * thread may call.
 */
#ifndef JOULE_WAITS_DEFINITIONS_H
#define JOULE_WAITS_DEFINITIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/waits/table.h"

#define JOULE_NO_NUMBER UINT32_MAX

/* What the name of a region says of its calls. */
enum joule_region_flag {
    JOULE_REGION_MPI = 1,
    JOULE_REGION_TEST = 2,           /* MPI_Test*: does not wait */
    JOULE_REGION_SENDS_BLOCKING = 4, /* MPI_Send, MPI_Ssend */
    JOULE_REGION_NOT_ANALYSED =
        8, /* non-blocking and neighbourhood collectives,
                                      one-sided: no pattern is of these */
};

struct joule_mpi_region {
    const char *name;
    unsigned flags;
};

struct joule_mpi_process {
    const char *name; /* "MPI Rank 3" */
    const char *node; /* or "" */
    uint32_t rank;    /* in MPI_COMM_WORLD, or JOULE_NO_NUMBER */
};

struct joule_mpi_comm {
    const char *name;
    uint32_t size;
    bool is_self;         /* each process alone, whatever [size] */
    bool has_world_ranks; /* events tell ranks of MPI_COMM_WORLD */
    uint32_t *member;     /* process of each rank, or JOULE_NO_NUMBER */
    uint32_t *by_process; /* ranks, in the order of their processes */
    /* Of a communicator between two groups: [member] is the first. */
    uint32_t *other_member;
    uint32_t other_size; /* 0: there is one group */
};

struct joule_path {
    uint32_t parent; /* path 0 is that of no region */
    uint32_t region;
};

struct joule_paths {
    pthread_mutex_t lock;
    struct joule_table number; /* of parent and region */
    struct joule_path *path;
    size_t count, room;
};

struct joule_definitions {
    struct joule_mpi_region *region;
    struct joule_mpi_process *process;
    struct joule_mpi_comm *comm;
    uint32_t regions, processes, comms;
    uint32_t *world; /* process of each rank of MPI_COMM_WORLD */
    uint32_t world_size;
    int64_t
        wall_ns; /* CLOCK_REALTIME when the trace's clock was 0; 0: not told */
    char step[64]; /* "12.0": Slurm's, of traces of slurm-joule; "": not told */
    char **string;
    size_t strings;
    struct joule_paths paths;
};

/* Empty; 0, or -1 with ENOMEM. */
int joule_definitions_init(struct joule_definitions *d);
void joule_definitions_free(struct joule_definitions *d);

/* By the name, as C or Fortran has it: "MPI_Send", "mpi_send_". */
unsigned joule_region_flags(const char *name);

/* Whether that is the name of MPI_CALL. */
bool joule_region_is_call(const char *name, const char *call);

/* Fills by_process.  0, or -1 with ENOMEM. */
int joule_comm_sort(struct joule_mpi_comm *comm);

/* The rank of a process, JOULE_NO_NUMBER: it is no member. */
uint32_t joule_comm_rank(const struct joule_mpi_comm *comm, uint32_t process);

/* The process of a rank that an event of [process] tells, or JOULE_NO_NUMBER. */
uint32_t joule_comm_peer(const struct joule_definitions *d,
                         const struct joule_mpi_comm *comm, uint32_t process,
                         uint32_t rank);

/* The call path of [region] below [parent]; JOULE_NO_NUMBER: out of memory.  Where
 * there are too many paths, that of [parent]. */
uint32_t joule_paths_child(struct joule_paths *paths, uint32_t parent,
                           uint32_t region);

/* "main/solve/MPI_Send"; NULL: out of memory.  The caller frees it. */
char *joule_path_text(const struct joule_definitions *d, uint32_t path);

#endif
