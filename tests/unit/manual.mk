# SPDX-License-Identifier: GPL-2.0-or-later
# Which part may include which.
dist_check_SCRIPTS += tests/unit/layers.sh
EXTRA_DIST += tests/unit/tsan.supp
TESTS += tests/unit/layers.sh

# What the manual and the examples say, against the tables of options; the
# options of profiles, which need no HDF5.
if HAVE_CHECK
MANUAL_TESTS = \
	tests/unit/test_manual \
	tests/unit/test_profile_config
check_PROGRAMS += $(MANUAL_TESTS)
TESTS += $(MANUAL_TESTS)

tests_unit_test_manual_SOURCES = tests/unit/test_manual.c
tests_unit_test_manual_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
tests_unit_test_manual_LDADD = libjoule_profile.a $(LIBUNIT)

tests_unit_test_profile_config_SOURCES = tests/unit/test_profile_config.c
tests_unit_test_profile_config_LDADD = libjoule_profile.a $(LIBUNIT)
endif
