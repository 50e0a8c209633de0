# SPDX-License-Identifier: GPL-2.0-or-later
# The ledger on real clusters.
check_PROGRAMS += tests/system/ledgerdump
tests_system_ledgerdump_SOURCES = tests/system/ledgerdump.c
tests_system_ledgerdump_LDADD = libjoule.la -lm
