# SPDX-License-Identifier: GPL-2.0-or-later
if HAVE_FUSE3
noinst_PROGRAMS += tests/sim/nodesim

sim_sources = \
	tests/sim/cgroup.c tests/sim/cgroup.h \
	tests/sim/command.c tests/sim/command.h \
	tests/sim/control.c tests/sim/control.h \
	tests/sim/cores.c tests/sim/cores.h \
	tests/sim/drive.c tests/sim/drive.h \
	tests/sim/jobs.c tests/sim/jobs.h \
	tests/sim/jobtree.c tests/sim/jobtree.h \
	tests/sim/load.c tests/sim/load.h \
	tests/sim/machine.c tests/sim/machine.h \
	tests/sim/model.c tests/sim/model.h \
	tests/sim/node.c tests/sim/node.h \
	tests/sim/number.c tests/sim/number.h \
	tests/sim/procstat.c tests/sim/procstat.h \
	tests/sim/registers.c tests/sim/registers.h \
	tests/sim/talk.c tests/sim/talk.h \
	tests/sim/wattmeter.c tests/sim/wattmeter.h

# What serves a directory through FUSE.
sim_serve_sources = \
	tests/sim/fusemount.c tests/sim/fusemount.h \
	tests/sim/simdir.c tests/sim/simdir.h

tests_sim_nodesim_SOURCES = $(sim_sources) $(sim_serve_sources) \
	tests/sim/msrfs.c tests/sim/msrfs.h \
	tests/sim/nodesim.c \
	tests/sim/options.c tests/sim/options.h \
	tests/sim/tree.c tests/sim/tree.h
tests_sim_nodesim_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_sim_nodesim_LDADD = libjoule.la $(FUSE3_LIBS)

noinst_PROGRAMS += tests/sim/freqsim

freq_sources = \
	tests/sim/freq.c tests/sim/freq.h \
	tests/sim/freqattr.c \
	tests/sim/freqdriver.c \
	tests/sim/freqfault.c tests/sim/freqfault.h \
	tests/sim/freqfile.c tests/sim/freqfile.h \
	tests/sim/freqglobal.c \
	tests/sim/freqmake.c

tests_sim_freqsim_SOURCES = $(freq_sources) $(sim_serve_sources) \
	tests/sim/command.c tests/sim/command.h \
	tests/sim/freqbase.c tests/sim/freqbase.h \
	tests/sim/freqcontrol.c tests/sim/freqcontrol.h \
	tests/sim/freqfs.c tests/sim/freqfs.h \
	tests/sim/freqlink.c tests/sim/freqlink.h \
	tests/sim/freqnode.c tests/sim/freqnode.h \
	tests/sim/freqoptions.c tests/sim/freqoptions.h \
	tests/sim/freqsim.c \
	tests/sim/talk.c tests/sim/talk.h
tests_sim_freqsim_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_sim_freqsim_LDADD = libjoule.la $(FUSE3_LIBS)

noinst_PROGRAMS += tests/sim/freqload
tests_sim_freqload_SOURCES = tests/sim/freqload.c \
	tests/sim/number.c tests/sim/number.h
tests_sim_freqload_CFLAGS = $(AM_CFLAGS)
tests_sim_freqload_LDADD = libjoule.la

noinst_PROGRAMS += tests/sim/msrread
tests_sim_msrread_SOURCES = tests/sim/msrread.c
tests_sim_msrread_LDADD = libjoule.la

EXTRA_DIST += tests/sim/selftest.sh
dist_check_SCRIPTS += tests/sim/freqsim-selftest.sh \
	tests/sim/nodesim-selftest.sh
TESTS += tests/sim/freqsim-selftest.sh tests/sim/nodesim-selftest.sh

if HAVE_CHECK
freq_tests = tests/unit/test_freqsim tests/unit/test_freqsim_drivers
node_tests = tests/unit/test_nodesim_cores tests/unit/test_nodesim_jobs \
	tests/unit/test_nodesim_jobtree tests/unit/test_nodesim_model
check_PROGRAMS += $(freq_tests) $(node_tests)
TESTS += $(freq_tests) $(node_tests)
tests_unit_test_freqsim_SOURCES = $(freq_sources) \
	tests/unit/simfreq.c tests/unit/simfreq.h tests/unit/test_freqsim.c
tests_unit_test_freqsim_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_freqsim_LDADD = libjoule.la $(CHECK_LIBS)
tests_unit_test_freqsim_drivers_SOURCES = $(freq_sources) \
	tests/unit/simfreq.c tests/unit/simfreq.h \
	tests/unit/test_freqsim_drivers.c
tests_unit_test_freqsim_drivers_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_freqsim_drivers_LDADD = libjoule.la $(CHECK_LIBS)
tests_unit_test_nodesim_cores_SOURCES = $(sim_sources) \
	tests/unit/test_nodesim_cores.c
tests_unit_test_nodesim_cores_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_nodesim_cores_LDADD = libjoule.la $(CHECK_LIBS)
tests_unit_test_nodesim_jobs_SOURCES = $(sim_sources) \
	tests/unit/test_nodesim_jobs.c
tests_unit_test_nodesim_jobs_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_nodesim_jobs_LDADD = libjoule.la $(CHECK_LIBS)
tests_unit_test_nodesim_jobtree_SOURCES = $(UNIT_COMMON) \
	tests/sim/jobtree.c tests/sim/jobtree.h \
	tests/unit/test_nodesim_jobtree.c
tests_unit_test_nodesim_jobtree_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_nodesim_jobtree_LDADD = libjoule.la $(CHECK_LIBS)
tests_unit_test_nodesim_model_SOURCES = $(sim_sources) \
	tests/unit/test_nodesim_model.c
tests_unit_test_nodesim_model_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_nodesim_model_LDADD = libjoule.la $(CHECK_LIBS)
endif
endif
