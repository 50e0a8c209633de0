/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/waits/comms.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/waits/mpi_library.h"
#include "lib/waits/recorder.h"

#define COMMS_MAX  4096 /* at a time */
#define GROUPS_MAX 4096 /* different ones, ever */

/* Processes of a communicator, or of none. */
struct group {
    uint64_t key;
    uint64_t count; /* communicators that were made for them there */
};

/* Entries come and go under the lock.  The last one that was found is looked at
 * without: most calls are of one communicator. */
static struct {
    pthread_mutex_t lock;
    struct joule_comm comm[COMMS_MAX];
    unsigned comms;
    struct group group[GROUPS_MAX];
    unsigned groups;
    _Atomic uint32_t changes;
    uintptr_t world_group;
    bool has_self; /* MPI_COMM_SELF: not before it is used */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
    struct joule_comm comm;
    uint32_t changes;
} last __attribute__((tls_model("initial-exec"))) = {.changes = UINT32_MAX};

/* FNV-1a, a word at a time. */
static uint64_t add_to_hash(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

/* The places of all ranks in MPI_COMM_WORLD, as one number. */
static bool find_members(uintptr_t handle, int size, uint64_t *ret)
{
    const struct joule_mpi_library *mpi = &joule_mpi;
    int *ranks = malloc(2 * sizeof(*ranks) * (size_t)size);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    uintptr_t group = 0;
    bool known = false;

    if (!ranks)
        return false;
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    if (mpi->comm_group(handle, &group) == 0) {
        known = mpi->group_translate_ranks(joule_mpi_handle(group), size, ranks,
                                           self.world_group, ranks + size) == 0;
        mpi->group_free(&group);
    }
    for (int i = 0; known && i < size; i++)
        hash = add_to_hash(hash, (uint64_t)ranks[size + i]);
    free(ranks);
    *ret = hash;
    return known;
}

static uint64_t next_id(uint64_t parent_id, uint64_t members)
{
    uint64_t key = add_to_hash(members, parent_id), count = UINT64_MAX;
    unsigned i = 0;

    pthread_mutex_lock(&self.lock);
    while (i < self.groups && self.group[i].key != key)
        i++;
    if (i == self.groups && i < GROUPS_MAX)
        self.group[self.groups++] = (struct group){.key = key};
    if (i < GROUPS_MAX) /* else they are not told apart any more */
        count = self.group[i].count++;
    pthread_mutex_unlock(&self.lock);
    return add_to_hash(key, count);
}

static void add(struct joule_comm *comm)
{
    pthread_mutex_lock(&self.lock);
    comm->number = joule_recorder_comm(comm->id, comm->rank, comm->size);
    if (self.comms < COMMS_MAX)
        self.comm[self.comms++] = *comm;
    atomic_fetch_add(&self.changes, 1);
    pthread_mutex_unlock(&self.lock);
}

static bool look_at(uintptr_t handle, struct joule_comm *ret)
{
    const struct joule_mpi_library *mpi = &joule_mpi;
    int is_inter = 1;

    *ret = (struct joule_comm){.handle = handle};
    return handle != mpi->comm_null &&
           mpi->comm_test_inter(handle, &is_inter) == 0 && !is_inter &&
           mpi->comm_rank(handle, &ret->rank) == 0 &&
           mpi->comm_size(handle, &ret->size) == 0 &&
           find_members(handle, ret->size, &ret->members);
}

int joule_comms_start(void)
{
    uintptr_t group = 0;

    if (joule_mpi.comm_group(joule_mpi.world, &group) != 0)
        return -1;
    self.world_group = joule_mpi_handle(group);
    joule_comms_add(joule_mpi.world, joule_mpi.comm_null);
    return 0;
}

void joule_comms_add(uintptr_t handle, uintptr_t parent)
{
    struct joule_comm comm;

    if (!look_at(handle, &comm))
        return;
    comm.id = next_id(joule_comms_find(parent).id, comm.members);
    add(&comm);
}

uint64_t joule_comms_promise(uintptr_t handle)
{
    struct joule_comm comm = joule_comms_find(handle);

    return next_id(comm.id, comm.members);
}

void joule_comms_keep(uintptr_t handle, uint64_t id)
{
    struct joule_comm comm;

    if (!look_at(handle, &comm))
        return;
    comm.id = id;
    add(&comm);
}

static void add_self(void)
{
    bool has_self;

    pthread_mutex_lock(&self.lock);
    has_self = self.has_self;
    self.has_self = true;
    pthread_mutex_unlock(&self.lock);
    if (!has_self)
        joule_comms_add(joule_mpi.self, joule_mpi.comm_null);
}

static unsigned find(uintptr_t handle)
{
    unsigned i = 0;

    while (i < self.comms && self.comm[i].handle != handle)
        i++;
    return i;
}

struct joule_comm joule_comms_find(uintptr_t handle)
{
    uint32_t changes =
        atomic_load_explicit(&self.changes, memory_order_acquire);
    unsigned i;

    if (last.changes == changes && last.comm.handle == handle)
        return last.comm;
    if (handle == joule_mpi.self)
        add_self();
    pthread_mutex_lock(&self.lock);
    i = find(handle);
    last.comm = i < self.comms
                    ? self.comm[i]
                    : (struct joule_comm){.handle = handle,
                                          .number = JOULE_WAITS_NO_COMM};
    last.changes = atomic_load(&self.changes);
    pthread_mutex_unlock(&self.lock);
    return last.comm;
}

void joule_comms_drop(uintptr_t handle)
{
    unsigned i;

    pthread_mutex_lock(&self.lock);
    i = find(handle);
    if (i < self.comms)
        self.comm[i] = self.comm[--self.comms];
    atomic_fetch_add(&self.changes, 1);
    pthread_mutex_unlock(&self.lock);
}
