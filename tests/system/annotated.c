/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotated - a program whose regions are named for another tool: compiled with
 * -DMPI, -DLIKWID_PERFMON or -fopenmp, and what belongs to it.  It is in each region
 * for 0.3 s, and knows nothing of joule.h.
 *
 * Also compiled as C++ with -DKOKKOS.
 */
#include <stdio.h>
#include <time.h>
#ifdef MPI
#include <mpi.h>
#endif
#ifdef LIKWID_PERFMON
#include <likwid-marker.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef KOKKOS
#include <Kokkos_Core.hpp>
#endif

static void work(void)
{
    struct timespec t = {0, 300000000};

    nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
    int rank = 0, ranks = 1;

#ifdef MPI
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Pcontrol(1, "solve");
    work();
    MPI_Pcontrol(-1, "solve");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
#endif
#ifdef LIKWID_PERFMON
    LIKWID_MARKER_INIT;
    LIKWID_MARKER_REGISTER("stencil");
    for (int i = 0; i < 2; i++) {
        LIKWID_MARKER_START("stencil");
        work();
        LIKWID_MARKER_STOP("stencil");
    }
    LIKWID_MARKER_CLOSE;
#endif
#ifdef _OPENMP
    /* Before there were threads, LLVM's runtime does not call its tool. */
#pragma omp parallel
    (void)omp_get_thread_num();
    omp_control_tool(omp_control_tool_start, 0, NULL);
    work();
    omp_control_tool(omp_control_tool_pause, 0, NULL);
    work();
    omp_control_tool(omp_control_tool_start, 0, NULL);
    work();
    omp_control_tool(omp_control_tool_end, 0, NULL);
#endif
#ifdef KOKKOS
    Kokkos::initialize(argc, argv);
    Kokkos::Profiling::pushRegion("outer");
    Kokkos::Profiling::pushRegion("inner");
    work();
    Kokkos::Profiling::popRegion();
    work();
    Kokkos::Profiling::popRegion();
    Kokkos::finalize();
#endif
    (void)argc;
    (void)argv;
    printf("rank %d of %d\n", rank, ranks);
    return 0;
}
