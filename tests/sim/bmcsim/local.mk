# SPDX-License-Identifier: GPL-2.0-or-later
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
