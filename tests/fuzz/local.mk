# SPDX-License-Identifier: GPL-2.0-or-later
FUZZ_COMMON = tests/fuzz/standalone.c tests/fuzz/fuzz.h

check_PROGRAMS += \
	tests/fuzz/fuzz_config \
	tests/fuzz/fuzz_cpuinfo \
	tests/fuzz/fuzz_topology

tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz_config.c $(FUZZ_COMMON)
tests_fuzz_fuzz_config_LDADD = libjoule.la
tests_fuzz_fuzz_cpuinfo_SOURCES = tests/fuzz/fuzz_cpuinfo.c $(FUZZ_COMMON)
tests_fuzz_fuzz_cpuinfo_LDADD = libjoule.la
tests_fuzz_fuzz_topology_SOURCES = tests/fuzz/fuzz_topology.c $(FUZZ_COMMON)
tests_fuzz_fuzz_topology_LDADD = libjoule.la

dist_check_SCRIPTS += tests/fuzz/run-fuzz.sh
TESTS += tests/fuzz/run-fuzz.sh

EXTRA_DIST += tests/fuzz/corpus
