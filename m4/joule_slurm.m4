# SPDX-License-Identifier: GPL-2.0-or-later
# JOULE_CHECK_SLURM: find Slurm's installed headers and see that they are a
# release whose private plugin interface plugins/slurm_abi knows.
# Sets have_slurm, slurm_release, SLURM_CPPFLAGS and pluginsdir; SLURM_LIBS is
# for programs of the tests only (plugins find libslurm in their host).
AC_DEFUN([JOULE_CHECK_SLURM], [
AC_ARG_WITH([slurm],
  [AS_HELP_STRING([--with-slurm=PREFIX],
    [where Slurm's headers are installed (default: the compiler's path);
     --without-slurm builds the tools only])],
  [], [with_slurm=yes])
AC_ARG_ENABLE([untested-slurm],
  [AS_HELP_STRING([--enable-untested-slurm],
    [build for a Slurm release whose interface has not been verified])])
AC_ARG_WITH([plugindir],
  [AS_HELP_STRING([--with-plugindir=DIR],
    [where the plugins go (default: LIBDIR/slurm-joule); what is in Slurm's own
     plugin directory is found without a line in slurm.conf])],
  [], [with_plugindir='${libdir}/slurm-joule'])
AS_CASE([$with_plugindir], [/*|'$'*], [],
  [AC_MSG_ERROR([--with-plugindir takes an absolute path])])
AC_SUBST([pluginsdir], [$with_plugindir])
have_slurm=no
slurm_release=none
SLURM_CPPFLAGS=
SLURM_LIBS=-lslurm
AS_IF([test "x$with_slurm" != xno], [
  AS_IF([test "x$with_slurm" != xyes], [
    dnl Not those of another Slurm, in the compiler's path.
    AS_IF([test -r "$with_slurm/include/slurm/slurm.h"], [],
      [AC_MSG_ERROR([--with-slurm: there is no $with_slurm/include/slurm/slurm.h])])
    SLURM_CPPFLAGS="-I$with_slurm/include"
    SLURM_LIBS="-L$with_slurm/lib -lslurm"])
  joule_save_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $SLURM_CPPFLAGS"
  AC_CHECK_HEADER([slurm/slurm.h], [],
    [AC_MSG_ERROR([slurm/slurm.h not found: install Slurm's headers (Debian: libslurm-dev) or say --with-slurm=PREFIX or --without-slurm])])
  AC_COMPUTE_INT([joule_slurm_number], [SLURM_VERSION_NUMBER],
    [#include <slurm/slurm.h>],
    [AC_MSG_ERROR([the Slurm headers do not define SLURM_VERSION_NUMBER])])
  CPPFLAGS=$joule_save_CPPFLAGS
  joule_major=`expr $joule_slurm_number / 65536`
  joule_minor=`expr $joule_slurm_number / 256 % 256`
  joule_micro=`expr $joule_slurm_number % 256`
  slurm_release=`printf '%d.%02d.%d' $joule_major $joule_minor $joule_micro`
  AC_MSG_CHECKING([whether Slurm $slurm_release is a known release])
  AS_CASE([`printf '%d.%02d' $joule_major $joule_minor`],
    [22.05|24.11|26.05], [AC_MSG_RESULT([yes])],
    [AS_IF([test "x$enable_untested_slurm" = xyes],
      [AC_MSG_RESULT([no, going on as asked])
       AC_DEFINE([JOULE_UNTESTED_SLURM], [1], [Build for an unverified Slurm])],
      [AC_MSG_ERROR([Slurm $slurm_release is not one of 22.05, 24.11, 26.05; --enable-untested-slurm builds for it all the same])])])
  have_slurm=yes])
AC_SUBST([slurm_release])
AC_SUBST([SLURM_CPPFLAGS])
AC_SUBST([SLURM_LIBS])
])
