# SPDX-License-Identifier: GPL-2.0-or-later
# The BMC's configuration and the process that reads it, played by fakereader.
if HAVE_CHECK
IPMI_TESTS = \
	tests/unit/test_energy_config \
	tests/unit/test_ipmi_config \
	tests/unit/test_ipmi_helper
check_PROGRAMS += $(IPMI_TESTS) tests/unit/fakereader
TESTS += $(IPMI_TESTS)

tests_unit_test_energy_config_SOURCES = tests/unit/test_energy_config.c
tests_unit_test_energy_config_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"

tests_unit_test_ipmi_config_SOURCES = tests/unit/test_ipmi_config.c

tests_unit_test_ipmi_helper_SOURCES = tests/unit/test_ipmi_helper.c tests/unit/fail.h
tests_unit_test_ipmi_helper_CPPFLAGS = $(AM_CPPFLAGS) \
	-DFAKEREADER=\"$(abs_top_builddir)/tests/unit/fakereader\"
tests_unit_test_ipmi_helper_LDFLAGS = $(FAIL_CALLOC) -Wl,--wrap=kill

tests_unit_fakereader_SOURCES = tests/unit/fakereader.c
tests_unit_fakereader_LDADD = $(LIBJOULE)

if HAVE_FREEIPMI
check_PROGRAMS += tests/unit/test_ipmi_helper_bmc
TESTS += tests/unit/test_ipmi_helper_bmc
tests_unit_test_ipmi_helper_bmc_SOURCES = tests/unit/test_ipmi_helper_bmc.c
tests_unit_test_ipmi_helper_bmc_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\"
EXTRA_tests_unit_test_ipmi_helper_bmc_DEPENDENCIES = joule-ipmi-reader
endif
endif
