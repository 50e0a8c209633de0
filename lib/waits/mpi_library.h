/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mpi_library.h - the MPI library of the process, whichever it is: Open MPI, or MPICH
 * and what has its binary interface (Intel MPI, MVAPICH).  Without a header of
 * either: handles are integers as wide as a pointer.
 *
 *     if (joule_mpi_find() == 0)
 *         mpi = joule_mpi;
 */
#ifndef JOULE_WAITS_MPI_LIBRARY_H
#define JOULE_WAITS_MPI_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#define JOULE_MPI_STATUS_MAX 24

struct joule_mpi_library {
    bool is_found;
    bool is_mpich;
    bool has_wide_integers; /* INTEGERs of its Fortran have 8 bytes */
    uint64_t handle_bits;   /* of a handle in a register */
    unsigned handle_size;   /* of one in memory */
    unsigned status_size;
    uintptr_t world, self, byte, request_null, comm_null, type_null;
    int proc_null, any_source, any_tag;
    const void *in_place, *status_ignore;
    char version[64]; /* its own first words */
    int (*send)(const void *, int, uintptr_t, int, int, uintptr_t);
    int (*recv)(void *, int, uintptr_t, int, int, uintptr_t, void *);
    int (*allgather)(const void *, int, uintptr_t, void *, int, uintptr_t,
                     uintptr_t);
    int (*barrier)(uintptr_t);
    int (*query_thread)(int *);
    int (*comm_get_parent)(void *);
    int (*comm_rank)(uintptr_t, int *);
    int (*comm_size)(uintptr_t, int *);
    int (*comm_test_inter)(uintptr_t, int *);
    int (*comm_dup)(uintptr_t, void *);
    int (*comm_free)(void *);
    int (*comm_group)(uintptr_t, void *);
    int (*group_translate_ranks)(uintptr_t, int, const int *, uintptr_t, int *);
    int (*group_free)(void *);
    int (*type_size)(uintptr_t, int *);
    /* Open MPI's; in MPICH a handle of Fortran is one of C. */
    uintptr_t (*comm_f2c)(int), (*type_f2c)(int), (*request_f2c)(int);
};

/* What joule_mpi_find has found: written once, before anything is recorded. */
extern struct joule_mpi_library joule_mpi;

/* 0, or -1: there is no MPI library that is known. */
int joule_mpi_find(void);

static inline uintptr_t joule_mpi_handle(uintptr_t handle)
{
    return handle & joule_mpi.handle_bits;
}

/* The handle [i] of an array of C. */
static inline uintptr_t joule_mpi_at(const void *array, int i)
{
    return joule_mpi.is_mpich ? ((const uint32_t *)array)[i]
                              : ((const uintptr_t *)array)[i];
}

/* Handles of Fortran as C has them. */
static inline uintptr_t joule_mpi_comm(int comm)
{
    return joule_mpi.comm_f2c ? joule_mpi.comm_f2c(comm) : (uint32_t)comm;
}

static inline uintptr_t joule_mpi_type(int type)
{
    return joule_mpi.type_f2c ? joule_mpi.type_f2c(type) : (uint32_t)type;
}

static inline uintptr_t joule_mpi_request(int request)
{
    return joule_mpi.request_f2c ? joule_mpi.request_f2c(request)
                                 : (uint32_t)request;
}

struct joule_mpi_status {
    int source, tag;
    uint64_t bytes;
    bool is_cancelled;
};

/* The status [i] of an array. */
struct joule_mpi_status joule_mpi_status(const void *statuses, int i);

/* Whether the process was started by MPI_Comm_spawn, and has a world of its own. */
bool joule_mpi_is_spawned(void);

/* Whether this address of a program in Fortran or in C stands for "not wanted", or for
 * "in place". */
bool joule_mpi_is_ignored(const void *status);
bool joule_mpi_is_in_place(const void *buffer);

#endif
