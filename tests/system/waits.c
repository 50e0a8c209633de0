/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits - an MPI program whose ranks wait for each other for times that are known.
 *
 *     waits COUNT [DIRECTORY]
 *
 * Each pattern COUNT times: the ranks agree on a time, each begins the call so many
 * ms after it, and notes when it really did.  From what all have noted follows how
 * long each has waited: lines "PATTERN RANK NS" on stdout of rank 0, waits of more
 * than 0, those of a rank in their order.  What is agreed on is by PMPI, which is not
 * recorded.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RANKS_MAX 16
#define AHEAD_NS  INT64_C(2000000)

/* When a rank called, and when the call was over. */
struct call {
    int64_t enter_ns, leave_ns;
};

static int rank, size;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Nobody is far behind; then each waits for its own time. */
static void meet(int64_t later_ns)
{
    int64_t at_ns;

    PMPI_Barrier(MPI_COMM_WORLD);
    at_ns = now_ns() + AHEAD_NS + later_ns;
    while (now_ns() < at_ns)
        continue;
}

static void put(const char *pattern, int who, int64_t wait_ns)
{
    if (wait_ns > 0)
        printf("%s %d %lld\n", pattern, who, (long long)wait_ns);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The last of the ranks up to [last]. */
static int64_t last_enter(const struct call *all, int last)
{
    int64_t ns = all[0].enter_ns;

    for (int i = 1; i <= last; i++)
        if (all[i].enter_ns > ns)
            ns = all[i].enter_ns;
    return ns;
}

static int64_t first_enter_of_others(const struct call *all)
{
    int64_t ns = INT64_MAX;

    for (int i = 1; i < size; i++)
        ns = least(ns, all[i].enter_ns);
    return ns;
}

static void late_sender(void)
{
    int x = 0;

    if (rank == 0)
        MPI_Send(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    else if (rank == 1)
        MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void put_late_sender(const struct call *all)
{
    put("late_sender", 1,
        least(all[0].enter_ns, all[1].leave_ns) - all[1].enter_ns);
}

static void late_receiver(void)
{
    int x = 0;

    if (rank == 0)
        MPI_Ssend(&x, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    else if (rank == 1)
        MPI_Recv(&x, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void put_late_receiver(const struct call *all)
{
    put("late_receiver", 0, all[1].enter_ns - all[0].enter_ns);
    put("late_sender", 1, all[0].enter_ns - all[1].enter_ns);
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void put_all(const char *pattern, const struct call *all)
{
    for (int i = 0; i < size; i++)
        put(pattern, i,
            least(last_enter(all, size - 1), all[i].leave_ns) -
                all[i].enter_ns);
}

static void put_barrier(const struct call *all)
{
    put_all("wait_at_barrier", all);
}

static void allreduce(void)
{
    int from = rank, to;

    MPI_Allreduce(&from, &to, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void put_allreduce(const struct call *all)
{
    put_all("wait_at_nxn", all);
}

static void bcast(void)
{
    int x = rank;

    MPI_Bcast(&x, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

static void put_bcast(const struct call *all)
{
    for (int i = 1; i < size; i++)
        put("late_broadcast", i,
            least(all[0].enter_ns, all[i].leave_ns) - all[i].enter_ns);
}

static void reduce(void)
{
    int from = rank, to;

    MPI_Reduce(&from, &to, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void put_reduce(const struct call *all)
{
    put("early_reduce", 0,
        least(first_enter_of_others(all), all[0].leave_ns) - all[0].enter_ns);
}

static void scan(void)
{
    int from = rank, to;

    MPI_Scan(&from, &to, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void put_scan(const struct call *all)
{
    for (int i = 0; i < size; i++)
        put("early_scan", i,
            least(last_enter(all, i), all[i].leave_ns) - all[i].enter_ns);
}

static const struct {
    void (*call)(void);
    void (*put)(const struct call *all);
    int is_last_late; /* the last rank is, not the first one */
} patterns[] = {
    {late_sender, put_late_sender, 0},
    {late_receiver, put_late_receiver, 1},
    {barrier, put_barrier, 1},
    {allreduce, put_allreduce, 0},
    {bcast, put_bcast, 0},
    {reduce, put_reduce, 1},
    {scan, put_scan, 0},
};

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 10;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || size > RANKS_MAX)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (size_t p = 0; p < sizeof(patterns) / sizeof(patterns[0]); p++)
        for (int i = 0; i < count; i++) {
            int place = patterns[p].is_last_late ? rank : size - 1 - rank;
            struct call own, all[RANKS_MAX];

            meet(place * INT64_C(1000000) * (1 + i % 3));
            own.enter_ns = now_ns();
            patterns[p].call();
            own.leave_ns = now_ns();
            PMPI_Gather(&own, sizeof(own), MPI_BYTE, all, sizeof(own), MPI_BYTE,
                        0, MPI_COMM_WORLD);
            if (rank == 0)
                patterns[p].put(all);
        }
    MPI_Finalize();
    return 0;
}
