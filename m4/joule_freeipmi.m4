# SPDX-License-Identifier: GPL-2.0-or-later
# JOULE_CHECK_FREEIPMI: find libfreeipmi, which the IPMI reader is linked with.
# Sets have_freeipmi, FREEIPMI_CFLAGS, FREEIPMI_LIBS, the conditional
# HAVE_FREEIPMI and the define of the same name.
AC_DEFUN([JOULE_CHECK_FREEIPMI], [
AC_ARG_WITH([freeipmi],
  [AS_HELP_STRING([--with-freeipmi=yes|no|auto],
    [build the IPMI plugin and its reader (default: auto, where libfreeipmi
     is installed)])],
  [], [with_freeipmi=auto])
AS_CASE([$with_freeipmi], [yes|no|auto], [],
  [AC_MSG_ERROR([--with-freeipmi is yes, no or auto])])
have_freeipmi=no
AS_IF([test "x$with_freeipmi" != xno], [
  PKG_CHECK_MODULES([FREEIPMI], [libfreeipmi >= 1.4], [have_freeipmi=yes], [
    dnl Installed without its .pc file.
    joule_save_LIBS=$LIBS
    AC_CHECK_HEADER([freeipmi/freeipmi.h],
      [AC_CHECK_LIB([freeipmi], [ipmi_cmd_raw_ipmb],
        [have_freeipmi=yes
         FREEIPMI_CFLAGS=
         FREEIPMI_LIBS=-lfreeipmi])])
    LIBS=$joule_save_LIBS])])
AS_IF([test "x$with_freeipmi$have_freeipmi" = xyesno],
  [AC_MSG_ERROR([--with-freeipmi needs libfreeipmi (Debian: libfreeipmi-dev)])])
AS_IF([test "x$have_freeipmi" = xyes],
  [AC_DEFINE([HAVE_FREEIPMI], [1], [The IPMI plugin and its reader are built])])
dnl What Slurm's plugin is built on, for the benchmark beside it.
have_ipmimonitoring=no
AS_IF([test "x$have_freeipmi" = xyes],
  [PKG_CHECK_MODULES([IPMIMONITORING], [libipmimonitoring],
    [have_ipmimonitoring=yes], [have_ipmimonitoring=no])])
AM_CONDITIONAL([HAVE_IPMIMONITORING], [test "x$have_ipmimonitoring" = xyes])
AM_CONDITIONAL([HAVE_FREEIPMI], [test "x$have_freeipmi" = xyes])
])
