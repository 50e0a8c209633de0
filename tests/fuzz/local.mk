# SPDX-License-Identifier: GPL-2.0-or-later
FUZZ_COMMON = tests/fuzz/standalone.c tests/fuzz/fuzz.h

check_PROGRAMS += \
	tests/fuzz/fuzz_bmc \
	tests/fuzz/fuzz_config \
	tests/fuzz/fuzz_cpuinfo \
	tests/fuzz/fuzz_ipmi_config \
	tests/fuzz/fuzz_topology \
	tests/fuzz/fuzz_wire

tests_fuzz_fuzz_bmc_SOURCES = tests/fuzz/fuzz_bmc.c $(FUZZ_COMMON)
tests_fuzz_fuzz_bmc_LDADD = $(LIBJOULE)
tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz_config.c $(FUZZ_COMMON)
tests_fuzz_fuzz_config_LDADD = $(LIBJOULE)
tests_fuzz_fuzz_cpuinfo_SOURCES = tests/fuzz/fuzz_cpuinfo.c $(FUZZ_COMMON)
tests_fuzz_fuzz_cpuinfo_LDADD = $(LIBJOULE)
tests_fuzz_fuzz_ipmi_config_SOURCES = tests/fuzz/fuzz_ipmi_config.c \
	$(FUZZ_COMMON)
tests_fuzz_fuzz_ipmi_config_LDADD = $(LIBJOULE)
tests_fuzz_fuzz_topology_SOURCES = tests/fuzz/fuzz_topology.c $(FUZZ_COMMON)
tests_fuzz_fuzz_topology_LDADD = $(LIBJOULE)
tests_fuzz_fuzz_wire_SOURCES = tests/fuzz/fuzz_wire.c $(FUZZ_COMMON)
tests_fuzz_fuzz_wire_LDADD = $(LIBJOULE)

check_PROGRAMS += tests/fuzz/fuzz_regions
tests_fuzz_fuzz_regions_SOURCES = tests/fuzz/fuzz_regions.c $(FUZZ_COMMON)
tests_fuzz_fuzz_regions_LDADD = $(LIBJOULE_SERIES)

check_PROGRAMS += tests/fuzz/fuzz_pmserver
tests_fuzz_fuzz_pmserver_SOURCES = tests/fuzz/fuzz_pmserver.c $(FUZZ_COMMON)
tests_fuzz_fuzz_pmserver_LDADD = $(LIBPMSERVER) $(LIBJOULE)

check_PROGRAMS += tests/fuzz/fuzz_waits
tests_fuzz_fuzz_waits_SOURCES = tests/fuzz/fuzz_waits.c $(FUZZ_COMMON)
tests_fuzz_fuzz_waits_LDADD = $(LIBJOULE)

if HAVE_OTF2
check_PROGRAMS += tests/fuzz/fuzz_waits_log
endif
tests_fuzz_fuzz_waits_log_SOURCES = tests/fuzz/fuzz_waits_log.c $(FUZZ_COMMON)
tests_fuzz_fuzz_waits_log_LDADD = $(LIBWAITS)

dist_check_SCRIPTS += tests/fuzz/run-fuzz.sh
TESTS += tests/fuzz/run-fuzz.sh

EXTRA_DIST += tests/fuzz/corpus

check_PROGRAMS += tests/fuzz/fuzz_cpufreq
tests_fuzz_fuzz_cpufreq_SOURCES = tests/fuzz/fuzz_cpufreq.c $(FUZZ_COMMON)
tests_fuzz_fuzz_cpufreq_LDADD = $(LIBJOULE)

dist_check_SCRIPTS += tests/fuzz/run-fuzz-cpufreq.sh
TESTS += tests/fuzz/run-fuzz-cpufreq.sh
