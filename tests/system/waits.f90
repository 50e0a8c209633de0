! SPDX-License-Identifier: GPL-2.0-or-later
! waits - rank 1 waits 0.3 s for a message of rank 0, and at a barrier rank 0 waits
! 0.2 s for rank 1.  Compiled with -DF08 it has the module mpi_f08.  The communicator of
! the barrier is made where nothing is recorded, and what MPI ignores is given: a type
! behind MPI_IN_PLACE, a receive from nobody.
program waits
#ifdef F08
    use mpi_f08
    implicit none
    type(MPI_Request) :: request, nothing
    type(MPI_Comm) :: own
#else
    use mpi
    implicit none
    integer :: request, nothing, own
#endif
    integer :: ierr, rank
    double precision :: value, all(2)

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Pcontrol(0)
    call MPI_Comm_dup(MPI_COMM_WORLD, own, ierr)
    call MPI_Pcontrol(1)
    value = rank
    all = rank
    if (rank == 0) then
        call wait_for(0.3d0)
        call MPI_Send(value, 1, MPI_DOUBLE_PRECISION, 1, 9, MPI_COMM_WORLD, ierr)
    else if (rank == 1) then
        call MPI_Irecv(value, 1, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, &
                       MPI_COMM_WORLD, request, ierr)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
        call wait_for(0.2d0)
    end if
    call MPI_Barrier(own, ierr)
    call MPI_Irecv(value, 1, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 9, MPI_COMM_WORLD, &
                   nothing, ierr)
    call MPI_Wait(nothing, MPI_STATUS_IGNORE, ierr)
    call MPI_Allgather(MPI_IN_PLACE, 1, MPI_DATATYPE_NULL, all, 1, MPI_DOUBLE_PRECISION, &
                       own, ierr)
    call MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE_PRECISION, MPI_SUM, &
                       MPI_COMM_WORLD, ierr)
    call MPI_Finalize(ierr)

contains

    subroutine wait_for(seconds)
        double precision, intent(in) :: seconds
        double precision :: begin

        begin = MPI_Wtime()
        do while (MPI_Wtime() < begin + seconds)
        end do
    end subroutine
end program
