# SPDX-License-Identifier: GPL-2.0-or-later
# The ledger on real clusters.
check_PROGRAMS += \
	tests/system/burn \
	tests/system/ledgerdump \
	tests/system/steps

tests_system_burn_SOURCES = tests/system/burn.c
tests_system_burn_LDADD = $(LIBJOULE) -lm

tests_system_ledgerdump_SOURCES = tests/system/ledgerdump.c
tests_system_ledgerdump_LDADD = $(LIBJOULE) -lm

tests_system_steps_SOURCES = tests/system/steps.c
tests_system_steps_LDADD = $(LIBJOULE) -lm

dist_check_SCRIPTS += \
	tests/system/guest-ledger.sh \
	tests/system/test_guest_ledger.sh \
	tests/system/test_ledger_bmc.sh \
	tests/system/test_ledger_faults.sh \
	tests/system/test_ledger_steps.sh
EXTRA_DIST += tests/system/ledger.sh
