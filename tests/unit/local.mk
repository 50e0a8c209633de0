# SPDX-License-Identifier: GPL-2.0-or-later
# A unit test is one word here and a file of that name with .c behind it.
UNIT_TESTS = \
	tests/unit/test_base \
	tests/unit/test_cpuinfo \
	tests/unit/test_rapl \
	tests/unit/test_topology

# What they share.
UNIT_COMMON = tests/unit/tree.c tests/unit/tree.h

if HAVE_CHECK
check_PROGRAMS += $(UNIT_TESTS)
check_LTLIBRARIES = tests/unit/libunit.la
TESTS += $(UNIT_TESTS)

tests_unit_libunit_la_SOURCES = $(UNIT_COMMON)
tests_unit_libunit_la_LIBADD = libjoule.la $(CHECK_LIBS)

# For programs that have no _LDADD of their own: the unit tests.
LDADD = tests/unit/libunit.la
AM_CPPFLAGS += $(CHECK_CFLAGS)
endif
