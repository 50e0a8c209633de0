# SPDX-License-Identifier: GPL-2.0-or-later
if HAVE_FUSE3
noinst_PROGRAMS += tests/sim/nodesim

# What the simulated node is without FUSE, for it and for tests.
noinst_LIBRARIES += tests/sim/libsim.a
LIBSIM = tests/sim/libsim.a $(LIBJOULE)
tests_sim_libsim_a_SOURCES = \
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
	tests/sim/tree.c tests/sim/tree.h \
	tests/sim/wattmeter.c tests/sim/wattmeter.h \
	tests/sim/zones.c tests/sim/zones.h

# What serves a directory through FUSE.
sim_serve_sources = \
	tests/sim/fusemount.c tests/sim/fusemount.h \
	tests/sim/simdir.c tests/sim/simdir.h

tests_sim_nodesim_SOURCES = $(sim_serve_sources) \
	tests/sim/msrfs.c tests/sim/msrfs.h \
	tests/sim/nodesim.c \
	tests/sim/options.c tests/sim/options.h
tests_sim_nodesim_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_sim_nodesim_LDADD = $(LIBSIM) $(FUSE3_LIBS)

noinst_PROGRAMS += tests/sim/freqsim

# The same of the simulated cpufreq.
noinst_LIBRARIES += tests/sim/libfreq.a
LIBFREQ = tests/sim/libfreq.a $(LIBSIM)
tests_sim_libfreq_a_SOURCES = \
	tests/sim/freq.c tests/sim/freq.h \
	tests/sim/freqattr.c \
	tests/sim/freqdriver.c \
	tests/sim/freqfault.c tests/sim/freqfault.h \
	tests/sim/freqfile.c tests/sim/freqfile.h \
	tests/sim/freqglobal.c \
	tests/sim/freqmake.c

tests_sim_freqsim_SOURCES = $(sim_serve_sources) \
	tests/sim/freqbase.c tests/sim/freqbase.h \
	tests/sim/freqcontrol.c tests/sim/freqcontrol.h \
	tests/sim/freqfs.c tests/sim/freqfs.h \
	tests/sim/freqlink.c tests/sim/freqlink.h \
	tests/sim/freqnode.c tests/sim/freqnode.h \
	tests/sim/freqoptions.c tests/sim/freqoptions.h \
	tests/sim/freqsim.c
tests_sim_freqsim_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_sim_freqsim_LDADD = $(LIBFREQ) $(FUSE3_LIBS)

noinst_PROGRAMS += tests/sim/freqload
tests_sim_freqload_SOURCES = tests/sim/freqload.c
tests_sim_freqload_LDADD = $(LIBSIM)

if HAVE_CHECK
freq_tests = tests/unit/test_freqsim tests/unit/test_freqsim_drivers
node_tests = tests/unit/test_nodesim_cores tests/unit/test_nodesim_jobs \
	tests/unit/test_nodesim_jobtree tests/unit/test_nodesim_model
check_PROGRAMS += $(freq_tests) $(node_tests)
TESTS += $(freq_tests) $(node_tests)
tests_unit_test_freqsim_SOURCES = tests/unit/test_freqsim.c \
	tests/unit/simfreq.c tests/unit/simfreq.h
tests_unit_test_freqsim_LDADD = $(LIBFREQ) $(LIBUNIT)
tests_unit_test_freqsim_drivers_SOURCES = tests/unit/test_freqsim_drivers.c \
	tests/unit/simfreq.c tests/unit/simfreq.h
tests_unit_test_freqsim_drivers_LDADD = $(LIBFREQ) $(LIBUNIT)
tests_unit_test_nodesim_cores_LDADD = $(LIBSIM) $(LIBUNIT)
tests_unit_test_nodesim_jobs_LDADD = $(LIBSIM) $(LIBUNIT)
tests_unit_test_nodesim_jobtree_LDADD = $(LIBSIM) $(LIBUNIT)
tests_unit_test_nodesim_model_LDADD = $(LIBSIM) $(LIBUNIT)
endif
endif

noinst_PROGRAMS += tests/sim/bmcsim/relay tests/sim/simtalk

tests_sim_simtalk_SOURCES = tests/sim/simtalk.c
tests_sim_simtalk_LDADD = $(LIBBMC)

tests_sim_bmcsim_relay_SOURCES = tests/sim/bmcsim/relay.c
tests_sim_bmcsim_relay_LDADD = $(LIBBMC)

noinst_LIBRARIES += tests/sim/bmcsim/libbmc.a
LIBBMC = tests/sim/bmcsim/libbmc.a $(LIBJOULE)
tests_sim_bmcsim_libbmc_a_SOURCES = \
	tests/sim/bmcsim/bmc.c tests/sim/bmcsim/bmc.h \
	tests/sim/bmcsim/dcmi.c \
	tests/sim/bmcsim/fault.c tests/sim/bmcsim/fault.h \
	tests/sim/bmcsim/feed.c tests/sim/bmcsim/feed.h \
	tests/sim/bmcsim/queue.c tests/sim/bmcsim/queue.h \
	tests/sim/bmcsim/sensor.c tests/sim/bmcsim/sensor.h \
	tests/sim/bmcsim/value.c tests/sim/bmcsim/value.h \
	tests/sim/bmcsim/window.c tests/sim/bmcsim/window.h \
	tests/sim/bmcsim/words.c tests/sim/bmcsim/words.h \
	tests/sim/control.h tests/sim/number.c tests/sim/number.h \
	tests/sim/talk.c tests/sim/talk.h

if HAVE_OPENIPMI
# Loaded by ipmi_sim, never installed.
noinst_PROGRAMS += tests/sim/bmcsim/powerbmc.so
tests_sim_bmcsim_powerbmc_so_SOURCES = tests/sim/bmcsim/powerbmc.c
tests_sim_bmcsim_powerbmc_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_sim_bmcsim_powerbmc_so_LDADD = $(LIBBMC)
endif

dist_check_SCRIPTS += tests/sim/bmcsim/bmcsim

if HAVE_CHECK
check_PROGRAMS += tests/unit/test_bmcsim
TESTS += tests/unit/test_bmcsim
tests_unit_test_bmcsim_SOURCES = tests/unit/test_bmcsim.c
tests_unit_test_bmcsim_LDADD = $(LIBBMC) $(LIBUNIT)
endif
