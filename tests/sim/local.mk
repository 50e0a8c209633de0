# SPDX-License-Identifier: GPL-2.0-or-later
if HAVE_FUSE3
noinst_PROGRAMS += tests/sim/nodesim

sim_sources = \
	tests/sim/control.c tests/sim/control.h \
	tests/sim/drive.c tests/sim/drive.h \
	tests/sim/load.c tests/sim/load.h \
	tests/sim/machine.c tests/sim/machine.h \
	tests/sim/model.c tests/sim/model.h \
	tests/sim/node.c tests/sim/node.h \
	tests/sim/number.c tests/sim/number.h \
	tests/sim/registers.c tests/sim/registers.h \
	tests/sim/talk.c tests/sim/talk.h \
	tests/sim/wattmeter.c tests/sim/wattmeter.h

tests_sim_nodesim_SOURCES = $(sim_sources) \
	tests/sim/msrfs.c tests/sim/msrfs.h \
	tests/sim/nodesim.c \
	tests/sim/options.c tests/sim/options.h \
	tests/sim/tree.c tests/sim/tree.h
tests_sim_nodesim_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_sim_nodesim_LDADD = libjoule.la $(FUSE3_LIBS)

noinst_PROGRAMS += tests/sim/msrread
tests_sim_msrread_SOURCES = tests/sim/msrread.c
tests_sim_msrread_LDADD = libjoule.la

dist_check_SCRIPTS += tests/sim/nodesim-selftest.sh
TESTS += tests/sim/nodesim-selftest.sh

if HAVE_CHECK
check_PROGRAMS += tests/unit/test_nodesim_model
TESTS += tests/unit/test_nodesim_model
tests_unit_test_nodesim_model_SOURCES = $(sim_sources) \
	tests/unit/test_nodesim_model.c
tests_unit_test_nodesim_model_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_nodesim_model_LDADD = libjoule.la $(CHECK_LIBS)
endif
endif
