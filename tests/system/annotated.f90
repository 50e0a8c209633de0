! SPDX-License-Identifier: GPL-2.0-or-later
! annotated - as annotated.c, in Fortran: with MPI if it is compiled for that, and
! with the library's own module.
program annotated
    use joule
    use, intrinsic :: iso_c_binding
#ifdef MPI
    use mpi
#endif
    implicit none
    interface
        integer(c_int) function usleep(us) bind(c)
            import :: c_int
            integer(c_int), value :: us
        end function
    end interface
    integer :: ignored
#ifdef MPI
    integer :: error

    call MPI_Init(error)
#endif
    call joule_region_begin("own region")
    ignored = usleep(300000)
    call joule_region_end("own region")
#ifdef MPI
    call MPI_Pcontrol(1)
    ignored = usleep(300000)
    call MPI_Pcontrol(0)
    call MPI_Finalize(error)
#endif
end program
