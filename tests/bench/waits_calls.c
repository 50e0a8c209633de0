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
#include <time.h>

#define CALLS  20000
#define ROUNDS 41
#define GOAL   150.0

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

int main(int argc, char **argv)
{
    int missed = 0;

    if (argc != 2)
        return 2;
    MPI_Init(NULL, NULL);
    missed += measure(argv[1], "MPI_Barrier", barrier, 1);
    missed += measure(argv[1], "MPI_Allreduce", allreduce, 1);
    missed += measure(argv[1], "Irecv + Isend + Waitall", messages, 3);
    MPI_Finalize();
    return missed > 0;
}
