/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mpi_world.h - all processes of the program's MPI_COMM_WORLD together, whichever MPI
 * it has (Open MPI, MPICH and what has its interface): nothing is linked with one, and
 * no header of one is needed.
 */
#ifndef JOULE_MPI_WORLD_H
#define JOULE_MPI_WORLD_H

/* The greatest [value] of all, which all of them have to ask for.  Where there is no
 * MPI, before MPI_Init and after MPI_Finalize it is [value]. */
int joule_mpi_greatest(int value);

/* Wait for all. */
void joule_mpi_barrier(void);

#endif
