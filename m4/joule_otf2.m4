# SPDX-License-Identifier: GPL-2.0-or-later
# JOULE_CHECK_OTF2: find libotf2, with which joule trace writes archives and joule
# waits reads them.  Sets have_otf2, OTF2_CFLAGS and OTF2_LIBS, the define and the
# conditional HAVE_OTF2.
AC_DEFUN([JOULE_CHECK_OTF2], [
AC_ARG_WITH([otf2],
  [AS_HELP_STRING([--with-otf2=yes|no|auto],
    [joule waits, joule trace --format=otf2 (default: auto, where OTF2 3.0 is installed)])],
  [], [with_otf2=auto])
AS_CASE([$with_otf2], [yes|no|auto], [],
  [AC_MSG_ERROR([--with-otf2 is yes, no or auto])])
have_otf2=no
AS_IF([test "x$with_otf2" != xno],
  [PKG_CHECK_MODULES([OTF2], [otf2 >= 3.0], [have_otf2=yes], [:])])
AS_IF([test "x$with_otf2$have_otf2" = xyesno],
  [AC_MSG_ERROR([--with-otf2 needs OTF2 3.0 (Debian: libotf2-trace-dev)])])
AS_IF([test "x$have_otf2" = xyes],
  [AC_DEFINE([HAVE_OTF2], [1], [joule trace writes OTF2, joule waits reads it])])
AM_CONDITIONAL([HAVE_OTF2], [test "x$have_otf2" = xyes])
])
