# SPDX-License-Identifier: GPL-2.0-or-later
# The reader process and what it is made of, against OpenIPMI's ipmi_sim.
bmc_sources = \
	tests/unit/asker.c tests/unit/asker.h \
	tests/unit/bmc.c tests/unit/bmc.h \
	tests/unit/relay.c tests/unit/relay.h

if HAVE_CHECK
BMC_TESTS = \
	tests/unit/test_ipmi_answer \
	tests/unit/test_ipmi_find \
	tests/unit/test_ipmi_wire \
	tests/unit/test_sdr
check_PROGRAMS += $(BMC_TESTS)
TESTS += $(BMC_TESTS)

tests_unit_test_ipmi_answer_SOURCES = tests/unit/test_ipmi_answer.c
tests_unit_test_ipmi_answer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_ipmi_answer_LDADD = libjoule.la $(CHECK_LIBS)

# Without ipmi_link.c, whose part it plays: needs no FreeIPMI.
tests_unit_test_ipmi_find_SOURCES = tests/unit/test_ipmi_find.c \
	common/source/ipmi.c common/source/ipmi.h \
	common/source/ipmi_find.c common/source/ipmi_find.h \
	common/source/ipmi_link.h \
	common/source/ipmi_repo.c common/source/ipmi_repo.h
tests_unit_test_ipmi_find_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_ipmi_find_LDADD = libjoule.la $(CHECK_LIBS)

tests_unit_test_ipmi_wire_SOURCES = tests/unit/test_ipmi_wire.c
tests_unit_test_ipmi_wire_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_ipmi_wire_LDADD = libjoule.la $(CHECK_LIBS)

# Compared with what FreeIPMI makes of the same bytes, where it is there.
tests_unit_test_sdr_SOURCES = tests/unit/test_sdr.c
tests_unit_test_sdr_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(FREEIPMI_CFLAGS)
tests_unit_test_sdr_LDADD = libjoule.la $(CHECK_LIBS) $(FREEIPMI_LIBS) -lm

if HAVE_FREEIPMI
check_PROGRAMS += tests/unit/test_ipmi
TESTS += tests/unit/test_ipmi
tests_unit_test_ipmi_SOURCES = tests/unit/test_ipmi.c $(bmc_sources)
tests_unit_test_ipmi_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\"
tests_unit_test_ipmi_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_ipmi_LDADD = libjoule.la $(CHECK_LIBS)
tests_unit_test_ipmi_DEPENDENCIES = libjoule.la joule-ipmi-reader \
	tests/unit/shim_clock.la

# From the command's options to its reports; the simulator's module is needed.
check_PROGRAMS += tests/unit/test_probe_bmc
TESTS += tests/unit/test_probe_bmc
tests_unit_test_probe_bmc_SOURCES = $(joule_sources) \
	tests/unit/test_probe_bmc.c \
	tests/unit/tree.c tests/unit/tree.h
tests_unit_test_probe_bmc_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_PLUGIN_DIR=\"/opt/slurm-joule\" \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\" \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
tests_unit_test_probe_bmc_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_probe_bmc_LDADD = libjoule.la $(CHECK_LIBS) -lm
tests_unit_test_probe_bmc_DEPENDENCIES = libjoule.la joule-ipmi-reader

check_PROGRAMS += tests/unit/test_ipmi_faults
TESTS += tests/unit/test_ipmi_faults
tests_unit_test_ipmi_faults_SOURCES = tests/unit/test_ipmi_faults.c \
	tests/unit/asker.c tests/unit/asker.h
tests_unit_test_ipmi_faults_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\" \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
tests_unit_test_ipmi_faults_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_ipmi_faults_LDADD = libjoule.la $(CHECK_LIBS)
tests_unit_test_ipmi_faults_DEPENDENCIES = libjoule.la joule-ipmi-reader

# -rpath: to be a shared object although it is never installed.
check_LTLIBRARIES += tests/unit/shim_clock.la
tests_unit_shim_clock_la_SOURCES = tests/unit/shim_clock.c
tests_unit_shim_clock_la_LDFLAGS = -module -avoid-version -shared \
	-rpath /nowhere
endif
endif
