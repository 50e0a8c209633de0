# SPDX-License-Identifier: GPL-2.0-or-later
check_PROGRAMS += tests/fuzz/fuzz_cpufreq
tests_fuzz_fuzz_cpufreq_SOURCES = tests/fuzz/fuzz_cpufreq.c $(FUZZ_COMMON)
tests_fuzz_fuzz_cpufreq_LDADD = $(LIBJOULE)

dist_check_SCRIPTS += tests/fuzz/run-fuzz-cpufreq.sh
TESTS += tests/fuzz/run-fuzz-cpufreq.sh
