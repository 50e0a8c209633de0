# SPDX-License-Identifier: GPL-2.0-or-later
# What others' libraries make of the same input.
if HAVE_LIBCGROUP
check_PROGRAMS += tests/peer/cpusets
endif
tests_peer_cpusets_SOURCES = tests/peer/cpusets.c tests/peer/cgpeer.c \
	tests/peer/cgpeer.h
tests_peer_cpusets_CPPFLAGS = $(AM_CPPFLAGS) $(LIBCGROUP_CFLAGS)
tests_peer_cpusets_LDADD = $(LIBBENCH) $(LIBJOULE) $(LIBCGROUP_LIBS)
