# SPDX-License-Identifier: GPL-2.0-or-later
# The reader process and what it is made of, against OpenIPMI's ipmi_sim.
if HAVE_CHECK
BMC_TESTS = \
	tests/unit/test_ipmi_answer \
	tests/unit/test_ipmi_choice \
	tests/unit/test_ipmi_find \
	tests/unit/test_ipmi_wire \
	tests/unit/test_sdr
check_PROGRAMS += $(BMC_TESTS)
TESTS += $(BMC_TESTS)

tests_unit_test_ipmi_answer_SOURCES = tests/unit/test_ipmi_answer.c

tests_unit_test_ipmi_choice_SOURCES = tests/unit/test_ipmi_choice.c

# Without ipmi_link.c, whose part it plays: needs no FreeIPMI.
tests_unit_test_ipmi_find_SOURCES = tests/unit/test_ipmi_find.c \
	common/sensors/ipmi.c common/sensors/ipmi.h \
	common/sensors/ipmi_find.c common/sensors/ipmi_find.h \
	common/sensors/ipmi_link.h \
	common/sensors/ipmi_repo.c common/sensors/ipmi_repo.h

tests_unit_test_ipmi_wire_SOURCES = tests/unit/test_ipmi_wire.c

# Compared with what FreeIPMI makes of the same bytes, where it is there.
tests_unit_test_sdr_SOURCES = tests/unit/test_sdr.c
tests_unit_test_sdr_CFLAGS = $(AM_CFLAGS) $(FREEIPMI_CFLAGS)
tests_unit_test_sdr_LDADD = $(LIBUNIT) $(FREEIPMI_LIBS)

if HAVE_FREEIPMI
check_PROGRAMS += tests/unit/test_ipmi
TESTS += tests/unit/test_ipmi
tests_unit_test_ipmi_SOURCES = tests/unit/test_ipmi.c
tests_unit_test_ipmi_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\"
EXTRA_tests_unit_test_ipmi_DEPENDENCIES = joule-ipmi-reader \
	tests/unit/shim_breakout.so tests/unit/shim_clock.so

# From the command's options to its reports; the simulator's module is needed.
check_PROGRAMS += tests/unit/test_probe_bmc
TESTS += tests/unit/test_probe_bmc
tests_unit_test_probe_bmc_SOURCES = tests/unit/test_probe_bmc.c \
	tools/joule/confcheck.c
tests_unit_test_probe_bmc_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_PLUGIN_DIR=\"/opt/slurm-joule\" \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\" \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
tests_unit_test_probe_bmc_LDADD = $(LIBCOMMAND) $(LIBUNIT)
EXTRA_tests_unit_test_probe_bmc_DEPENDENCIES = joule-ipmi-reader

check_PROGRAMS += tests/unit/test_ipmi_faults
TESTS += tests/unit/test_ipmi_faults
tests_unit_test_ipmi_faults_SOURCES = tests/unit/test_ipmi_faults.c
tests_unit_test_ipmi_faults_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\" \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
EXTRA_tests_unit_test_ipmi_faults_DEPENDENCIES = joule-ipmi-reader

check_PROGRAMS += tests/unit/shim_breakout.so tests/unit/shim_clock.so
tests_unit_shim_breakout_so_SOURCES = tests/unit/shim_breakout.c
tests_unit_shim_breakout_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_unit_shim_breakout_so_LDADD =
tests_unit_shim_clock_so_SOURCES = tests/unit/shim_clock.c
tests_unit_shim_clock_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_unit_shim_clock_so_LDADD =
endif
endif
