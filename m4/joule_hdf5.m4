# SPDX-License-Identifier: GPL-2.0-or-later
# JOULE_CHECK_HDF5: find the serial HDF5 library, with which profiles become HDF5
# files and are read.  Sets have_hdf5, HDF5_CFLAGS, HDF5_LIBS and the conditional
# HAVE_HDF5.
AC_DEFUN([JOULE_CHECK_HDF5], [
AC_ARG_WITH([hdf5],
  [AS_HELP_STRING([--with-hdf5=yes|no|auto],
    [build sh5util and joule-profile-convert (default: auto, where HDF5 1.10.5
     or later is installed)])],
  [], [with_hdf5=auto])
AS_CASE([$with_hdf5], [yes|no|auto], [],
  [AC_MSG_ERROR([--with-hdf5 is yes, no or auto])])
have_hdf5=no
AS_IF([test "x$with_hdf5" != xno], [
  PKG_CHECK_MODULES([HDF5], [hdf5-serial >= 1.10.5], [have_hdf5=yes], [
    PKG_CHECK_MODULES([HDF5], [hdf5 >= 1.10.5], [have_hdf5=yes], [:])])])
dnl Later releases have other functions behind the same names.
HDF5_CFLAGS="$HDF5_CFLAGS -DH5_USE_110_API"
AS_IF([test "x$with_hdf5$have_hdf5" = xyesno],
  [AC_MSG_ERROR([--with-hdf5 needs HDF5 (Debian: libhdf5-dev)])])
AM_CONDITIONAL([HAVE_HDF5], [test "x$have_hdf5" = xyes])
])
