/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slack - an MPI program of two ranks, of which one has less to do.
 *
 *     slack COUNT
 *
 * COUNT times rank 0 computes for 20 ms and rank 1 for 5 ms, and both exchange a
 * message: rank 1 could have taken 15 ms longer each time, and rank 0 no longer.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int main(int argc, char **argv)
{
    int count = argc == 2 ? atoi(argv[1]) : 0, rank, mine = 1, other;
    MPI_Request request[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count && rank < 2; i++) {
        int64_t until_ns = now_ns() + (rank == 0 ? 20 : 5) * INT64_C(1000000);

        MPI_Irecv(&other, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request[0]);
        while (now_ns() < until_ns)
            ;
        MPI_Isend(&mine, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request[1]);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
