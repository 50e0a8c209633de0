! SPDX-License-Identifier: LGPL-2.1-or-later
!
! joule - named regions of a Fortran program (joule.h).  Compile this file with the
! program, and link with -ljoule:
!
!     use joule
!     call joule_region_begin("solve")
!     ...
!     call joule_region_end("solve")
!
! Blanks at the end of a name do not count.
module joule
    use, intrinsic :: iso_c_binding, only: c_char, c_null_char, c_ptr, &
                                           c_f_pointer, c_size_t
    implicit none
    private
    public :: joule_region_begin, joule_region_end, joule_mark, joule_status

    interface
        subroutine c_region_begin(name) bind(c, name="joule_region_begin")
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        subroutine c_region_end(name) bind(c, name="joule_region_end")
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        subroutine c_mark(name) bind(c, name="joule_mark")
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        function c_status() bind(c, name="joule_status") result(text)
            import :: c_ptr
            type(c_ptr) :: text
        end function
        pure function c_strlen(text) bind(c, name="strlen") result(length)
            import :: c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: text
            integer(c_size_t) :: length
        end function
    end interface

contains

    subroutine joule_region_begin(name)
        character(len=*), intent(in) :: name
        call c_region_begin(trim(name)//c_null_char)
    end subroutine

    subroutine joule_region_end(name)
        character(len=*), intent(in) :: name
        call c_region_end(trim(name)//c_null_char)
    end subroutine

    subroutine joule_mark(name)
        character(len=*), intent(in) :: name
        call c_mark(trim(name)//c_null_char)
    end subroutine

    ! "recording", or in one sentence why nothing is recorded.
    function joule_status() result(text)
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: bytes(:)
        type(c_ptr) :: from
        integer :: i

        from = c_status()
        call c_f_pointer(from, bytes, [c_strlen(from)])
        allocate (character(len=size(bytes)) :: text)
        do i = 1, size(bytes)
            text(i:i) = bytes(i)
        end do
    end function
end module
