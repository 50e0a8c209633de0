/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * comms.h - the communicators of the process, and the numbers by which the log has
 * them.
 *
 * A communicator has the same id in all of its processes, and none of them asks
 * another: it is made of the places of its ranks in MPI_COMM_WORLD, of the id of the
 * communicator it was made from, and of how many of these ranks were made from that one
 * before.  All of its processes make these in one order, also if several threads make
 * others meanwhile.  One between two groups (an intercommunicator) has none.  Any thread.
 */
#ifndef JOULE_WAITS_COMMS_H
#define JOULE_WAITS_COMMS_H

#include <stdint.h>

struct joule_comm {
    uintptr_t handle;
    uint64_t members; /* tells its ranks from those of others */
    uint64_t id;
    uint32_t number; /* of the log; JOULE_WAITS_NO_COMM: none */
    int rank, size;
};

/* MPI_COMM_WORLD.  0, or -1. */
int joule_comms_start(void);

/* A new one, made from [parent]: one that is not known is none. */
void joule_comms_add(uintptr_t handle, uintptr_t parent);

/* The id of a copy of [handle] that is begun now, and the copy, once it is there. */
uint64_t joule_comms_promise(uintptr_t handle);
void joule_comms_keep(uintptr_t handle, uint64_t id);

/* What is not known has no number, no id, and a size of 0. */
struct joule_comm joule_comms_find(uintptr_t handle);

/* The program frees it: the handle may be another's soon. */
void joule_comms_drop(uintptr_t handle);

#endif
