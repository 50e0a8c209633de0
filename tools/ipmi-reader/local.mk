# SPDX-License-Identifier: GPL-2.0-or-later
# The process that FreeIPMI runs in.  What knows it is in none of the libraries.
if HAVE_FREEIPMI
joulelibexec_PROGRAMS += joule-ipmi-reader

joule_ipmi_reader_SOURCES = \
	common/sensors/ipmi.c common/sensors/ipmi.h \
	common/sensors/ipmi_find.c common/sensors/ipmi_find.h \
	common/sensors/ipmi_link.c common/sensors/ipmi_link.h \
	common/sensors/ipmi_repo.c common/sensors/ipmi_repo.h \
	tools/ipmi-reader/harden.c tools/ipmi-reader/harden.h \
	tools/ipmi-reader/loop.c tools/ipmi-reader/loop.h \
	tools/ipmi-reader/main.c
joule_ipmi_reader_CFLAGS = $(AM_CFLAGS) $(FREEIPMI_CFLAGS)
joule_ipmi_reader_LDADD = $(LIBJOULE) $(FREEIPMI_LIBS)
endif
