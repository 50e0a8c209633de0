# SPDX-License-Identifier: GPL-2.0-or-later
# The process that FreeIPMI runs in.  What knows it is in none of the libraries.
if HAVE_FREEIPMI
joulelibexec_PROGRAMS += joule-ipmi-reader

joule_ipmi_reader_SOURCES = \
	common/source/ipmi.c common/source/ipmi.h \
	common/source/ipmi_find.c common/source/ipmi_find.h \
	common/source/ipmi_link.c common/source/ipmi_link.h \
	common/source/ipmi_repo.c common/source/ipmi_repo.h \
	tools/ipmi-reader/harden.c tools/ipmi-reader/harden.h \
	tools/ipmi-reader/loop.c tools/ipmi-reader/loop.h \
	tools/ipmi-reader/main.c
joule_ipmi_reader_CFLAGS = $(AM_CFLAGS) $(FREEIPMI_CFLAGS)
joule_ipmi_reader_LDADD = $(LIBJOULE) $(FREEIPMI_LIBS)
endif
