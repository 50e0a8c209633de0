# SPDX-License-Identifier: GPL-2.0-or-later
# A unit test is one word here and a file of that name with .c behind it.
UNIT_TESTS = \
	tests/unit/test_base \
	tests/unit/test_cpuinfo \
	tests/unit/test_rapl \
	tests/unit/test_topology

# What they share, and benchmarks with them.
check_LIBRARIES = tests/unit/libunit.a
tests_unit_libunit_a_SOURCES = \
	tests/unit/asker.c tests/unit/asker.h \
	tests/unit/bmc.c tests/unit/bmc.h \
	tests/unit/freqtree.c tests/unit/freqtree.h \
	tests/unit/fusednode.c tests/unit/fusednode.h \
	tests/unit/nodeload.c tests/unit/nodeload.h \
	tests/unit/relay.c tests/unit/relay.h \
	tests/unit/tree.c tests/unit/tree.h
LIBUNIT = tests/unit/libunit.a $(LIBJOULE) $(CHECK_LIBS)

# For programs that have no _LDADD of their own: the unit tests.
LDADD = $(LIBUNIT)

if HAVE_CHECK
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
AM_CPPFLAGS += $(CHECK_CFLAGS)
endif
