/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits_calls - what libjoule_waits.so adds to a call of MPI: calls under both of
 * their names, MPI_ and PMPI_, in turns, on one process alone.
 *
 *     waits_calls NAME   prints rows of tests/bench/run
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define CALLS  20000
#define ROUNDS 41
#define GOAL   150.0

/* A run with 10,000 calls a second: between two it computes for 100 us. */
#define RUN_CALLS  2000
#define RUN_ROUNDS 31
#define CALL_NS    100000.0
#define RUN_GOAL   1.01

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void barrier(int is_ours)
{
    if (is_ours)
        MPI_Barrier(MPI_COMM_SELF);
    else
        PMPI_Barrier(MPI_COMM_SELF);
}

static void allreduce(int is_ours)
{
    int from = 1, to;

    if (is_ours)
        MPI_Allreduce(&from, &to, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    else
        PMPI_Allreduce(&from, &to, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}

static void messages(int is_ours)
{
    MPI_Request request[2];
    int from = 1, to;

    if (is_ours) {
        MPI_Irecv(&to, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request[0]);
        MPI_Isend(&from, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request[1]);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    } else {
        PMPI_Irecv(&to, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request[0]);
        PMPI_Isend(&from, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request[1]);
        PMPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
}

static double run(void (*call)(int), int is_ours)
{
    double begin_ns = now_ns();

    for (int i = 0; i < CALLS; i++)
        call(is_ours);
    return (now_ns() - begin_ns) / CALLS;
}

static int measure(const char *mpi, const char *name, void (*call)(int),
                   int calls)
{
    double ours[ROUNDS], peer[ROUNDS], more[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        peer[i] = run(call, 0) / calls;
        ours[i] = run(call, 1) / calls;
        more[i] = ours[i] - peer[i];
    }
    qsort(ours, ROUNDS, sizeof(*ours), compare);
    qsort(peer, ROUNDS, sizeof(*peer), compare);
    qsort(more, ROUNDS, sizeof(*more), compare);
    printf("%s: %s: a call,ns,%.0f,%.0f,%.2f,,\n", mpi, name, ours[ROUNDS / 2],
           peer[ROUNDS / 2], ours[ROUNDS / 2] / peer[ROUNDS / 2]);
    printf("%s: %s: beyond PMPI,ns,%.0f,,,<=%.0f,%s\n", mpi, name,
           more[ROUNDS / 2], GOAL, more[ROUNDS / 2] <= GOAL ? "pass" : "miss");
    return more[ROUNDS / 2] > GOAL;
}

/* CPU time of all threads, the recorder's too. */
static double cpu_ns(void)
{
    struct rusage r;

    getrusage(RUSAGE_SELF, &r);
    return 1e9 * (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e3 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

/* One copy of it: where a loop lies makes a difference. */
__attribute__((noinline)) static void compute(long turns)
{
    for (volatile long i = 0; i < turns; i++)
        ;
}

static long find_turns(void)
{
    long turns = 1000000;
    double begin_ns = cpu_ns();

    compute(turns);
    return (long)((double)turns * CALL_NS / (cpu_ns() - begin_ns));
}

static double run_all(int is_ours, long turns)
{
    double begin_ns = cpu_ns();

    for (int i = 0; i < RUN_CALLS; i++) {
        compute(turns);
        allreduce(is_ours);
    }
    return cpu_ns() - begin_ns;
}

static int measure_run(const char *mpi)
{
    double ours[RUN_ROUNDS], peer[RUN_ROUNDS], ratio[RUN_ROUNDS], middle;
    long turns = find_turns();

    for (int i = 0; i < RUN_ROUNDS; i++) {
        peer[i] = run_all(0, turns) / 1e6;
        ours[i] = run_all(1, turns) / 1e6;
        ratio[i] = ours[i] / peer[i];
    }
    qsort(ours, RUN_ROUNDS, sizeof(*ours), compare);
    qsort(peer, RUN_ROUNDS, sizeof(*peer), compare);
    qsort(ratio, RUN_ROUNDS, sizeof(*ratio), compare);
    middle = ratio[RUN_ROUNDS / 2];
    printf("%s: a run with 10 000 calls a second: CPU time,ms,%.2f,%.2f,%.4f,"
           "<=%.2f,%s\n",
           mpi, ours[RUN_ROUNDS / 2], peer[RUN_ROUNDS / 2], middle, RUN_GOAL,
           middle <= RUN_GOAL ? "pass" : "miss");
    return middle > RUN_GOAL;
}

int main(int argc, char **argv)
{
    int missed = 0;

    if (argc != 2)
        return 2;
    MPI_Init(NULL, NULL);
    missed += measure(argv[1], "MPI_Barrier", barrier, 1);
    missed += measure(argv[1], "MPI_Allreduce", allreduce, 1);
    missed += measure(argv[1], "Irecv + Isend + Waitall", messages, 3);
    missed += measure_run(argv[1]);
    MPI_Finalize();
    return missed > 0;
}
