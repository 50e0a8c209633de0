/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/waits/clock_sync.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/waits/mpi_library.h"
#include "lib/waits/recorder.h"

#define ROUNDS 100
#define TAG    0

static uint64_t hash(uint64_t h, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Of this boot, and of this time namespace; where /proc does not tell, of the host. */
static uint64_t find_machine(void)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    uint64_t machine = UINT64_C(0xcbf29ce484222325);
    char text[64] = "";
    ssize_t n;

    if (fd >= 0) {
        n = read(fd, text, sizeof(text));
        close(fd);
        machine = hash(machine, text, n > 0 ? (size_t)n : 0);
    } else if (gethostname(text, sizeof(text) - 1) == 0) {
        machine = hash(machine, text, strlen(text));
    }
    n = readlink("/proc/self/ns/time", text, sizeof(text));
    return hash(machine, text, n > 0 ? (size_t)n : 0);
}

/* Whether the step has several nodes, and all ranks are its tasks: where mpirun has
 * started some elsewhere, those may know nothing of this, and would not answer. */
static bool is_of_several(int size)
{
    const char *nodes = secure_getenv("SLURM_STEP_NUM_NODES");
    const char *tasks = secure_getenv("SLURM_STEP_NUM_TASKS");

    return nodes && tasks && strtol(nodes, NULL, 10) > 1 &&
           strtol(tasks, NULL, 10) == size;
}

static bool is_new(const uint64_t *machine, int rank)
{
    for (int r = 0; r < rank; r++)
        if (machine[r] == machine[rank])
            return false;
    return true;
}

static bool find_leaders(struct joule_clock_sync *sync, uint64_t own, int size)
{
    const struct joule_mpi_library *mpi = &joule_mpi;
    uint64_t *machine = calloc((size_t)size, sizeof(*machine));

    sync->leader = calloc((size_t)size, sizeof(*sync->leader));
    if (!machine || !sync->leader ||
        mpi->allgather(&own, sizeof(own), mpi->byte, machine, sizeof(own),
                       mpi->byte, mpi->world) != 0) {
        free(machine);
        return false;
    }
    for (int r = 1; r < size; r++)
        if (is_new(machine, r))
            sync->leader[sync->leaders++] = r;
    free(machine);
    return true;
}

uint64_t joule_clock_sync_begin(struct joule_clock_sync *sync, int rank,
                                int size)
{
    uint64_t machine = find_machine();
    uintptr_t comm = 0;

    *sync = (struct joule_clock_sync){.rank = rank};
    if (is_of_several(size) && find_leaders(sync, machine, size) &&
        sync->leaders > 0 && joule_mpi.comm_dup(joule_mpi.world, &comm) == 0)
        sync->comm = joule_mpi_handle(comm);
    return machine;
}

/* Rank 0: what its clock shows, each time that it is asked. */
static void answer(const struct joule_clock_sync *sync, int leader)
{
    const struct joule_mpi_library *mpi = &joule_mpi;
    char status[JOULE_MPI_STATUS_MAX];
    int64_t now_ns;
    char asked;

    for (int i = 0; i < ROUNDS; i++) {
        mpi->recv(&asked, 1, mpi->byte, leader, TAG, sync->comm, status);
        now_ns = joule_recorder_now_ns();
        mpi->send(&now_ns, sizeof(now_ns), mpi->byte, leader, TAG, sync->comm);
    }
}

static void ask(const struct joule_clock_sync *sync,
                struct joule_waits_clock *best)
{
    const struct joule_mpi_library *mpi = &joule_mpi;
    char status[JOULE_MPI_STATUS_MAX];
    int64_t before_ns, there_ns, after_ns;

    best->round_trip_ns = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        before_ns = joule_recorder_now_ns();
        mpi->send("", 1, mpi->byte, 0, TAG, sync->comm);
        mpi->recv(&there_ns, sizeof(there_ns), mpi->byte, 0, TAG, sync->comm,
                  status);
        after_ns = joule_recorder_now_ns();
        if ((uint64_t)(after_ns - before_ns) >= best->round_trip_ns)
            continue;
        best->round_trip_ns = (uint64_t)(after_ns - before_ns);
        best->at_ns = before_ns + (after_ns - before_ns) / 2;
        best->offset_ns = there_ns - best->at_ns;
    }
}

struct joule_waits_clock
joule_clock_sync_measure(const struct joule_clock_sync *sync)
{
    struct joule_waits_clock clock = {.at_ns = joule_recorder_now_ns()};

    if (!sync->comm)
        return clock;
    joule_mpi.barrier(sync->comm);
    for (int i = 0; i < sync->leaders; i++)
        if (sync->rank == 0)
            answer(sync, sync->leader[i]);
        else if (sync->rank == sync->leader[i])
            ask(sync, &clock);
    /* Nobody goes on, and disturbs those who still measure. */
    joule_mpi.barrier(sync->comm);
    return clock;
}
