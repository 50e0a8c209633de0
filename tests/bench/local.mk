# SPDX-License-Identifier: GPL-2.0-or-later
# tests/bench/run builds and runs these.  -rdynamic: the plugins find in the
# program what they look for in slurmd and slurmstepd.
EXTRA_DIST += \
	tests/bench/bench_attribution.sh \
	tests/bench/bench_overhead.sh \
	tests/bench/bench_precision_live.sh \
	tests/bench/bench_profile_read.sh \
	tests/bench/bench_tradeoff.sh \
	tests/bench/h5tools.sh \
	tests/bench/plot \
	tests/bench/rows.sh \
	tests/bench/run \
	tests/bench/soak_admin.sh \
	tests/bench/soak_evidence.sh \
	tests/bench/soak_faults.sh \
	tests/bench/soak_growth.sh \
	tests/bench/soak_jobs.awk \
	tests/bench/soak_plan.awk \
	tests/bench/waits_calls.c \
	tests/fixtures/georgiou2014-precision.csv

# A long time on a real cluster, and a short one as a test.
dist_check_SCRIPTS += \
	tests/bench/bench_soak.sh \
	tests/bench/soak-load \
	tests/bench/soak-watch \
	tests/system/test_soak.sh

check_LIBRARIES += tests/bench/libbench.a
tests_bench_libbench_a_SOURCES = tests/bench/bench.c tests/bench/bench.h
LIBBENCH = tests/bench/libbench.a -lm

check_PROGRAMS += tests/bench/bench_regions
tests_bench_bench_regions_SOURCES = tests/bench/bench_regions.c lib/regions.c
tests_bench_bench_regions_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS)
tests_bench_bench_regions_LDADD = $(LIBBENCH) $(LIBJOULE_SERIES)

if HAVE_OTF2
check_PROGRAMS += tests/bench/bench_waits tests/bench/maketrace
endif
tests_bench_bench_waits_SOURCES = tests/bench/bench_waits.c
tests_bench_bench_waits_LDADD = $(LIBBENCH) $(LIBWAITS)
tests_bench_maketrace_SOURCES = tests/bench/maketrace.c $(TRACEFILE)
tests_bench_maketrace_CPPFLAGS = $(AM_CPPFLAGS) $(OTF2_CFLAGS)
tests_bench_maketrace_LDADD = $(LIBWAITS)

check_PROGRAMS += tests/bench/bench_sensors
tests_bench_bench_sensors_SOURCES = tests/bench/bench_sensors.c
tests_bench_bench_sensors_LDADD = $(LIBBENCH) $(LIBJOULE)

check_PROGRAMS += tests/bench/bench_states
tests_bench_bench_states_SOURCES = tests/bench/bench_states.c
tests_bench_bench_states_LDADD = $(LIBBENCH) $(LIBJOULE)

check_PROGRAMS += tests/bench/bench_fused tests/bench/bench_ledger
tests_bench_bench_fused_SOURCES = tests/bench/bench_fused.c tests/unit/dice.h
tests_bench_bench_fused_LDADD = $(LIBBENCH) tests/unit/libunit.a $(LIBJOULE)
tests_bench_bench_ledger_SOURCES = tests/bench/bench_ledger.c \
	tests/bench/userviews.c tests/bench/userviews.h
tests_bench_bench_ledger_LDADD = $(LIBBENCH) $(LIBJOULE)

if HAVE_SLURM
check_PROGRAMS += tests/bench/bench_cpufreq tests/bench/bench_rapl
endif
tests_bench_bench_cpufreq_SOURCES = tests/bench/bench_cpufreq.c
tests_bench_bench_cpufreq_LDADD = $(LIBBENCH) $(LIBJOULE) -ldl
tests_bench_bench_rapl_SOURCES = tests/bench/bench_rapl.c
tests_bench_bench_rapl_LDFLAGS = -rdynamic
tests_bench_bench_rapl_LDADD = $(LIBBENCH) $(LIBJOULE) -ldl

if HAVE_IPMIMONITORING
check_PROGRAMS += tests/bench/bench_ipmi
endif
tests_bench_bench_ipmi_SOURCES = tests/bench/bench_ipmi.c
tests_bench_bench_ipmi_CFLAGS = $(AM_CFLAGS) $(IPMIMONITORING_CFLAGS)
tests_bench_bench_ipmi_LDADD = $(LIBBENCH) tests/unit/libunit.a $(LIBJOULE) \
	$(IPMIMONITORING_LIBS)

if HAVE_SLURM
if HAVE_HDF5
check_PROGRAMS += tests/bench/bench_profile
endif
endif
tests_bench_bench_profile_SOURCES = tests/bench/bench_profile.c \
	tests/bench/profilehost.c tests/bench/profilehost.h \
	tests/bench/longseries.c tests/bench/longseries.h
tests_bench_bench_profile_LDFLAGS = -rdynamic
tests_bench_bench_profile_LDADD = $(LIBBENCH) $(LIBJOULE_SERIES) -ldl

# Takes no time that could be measured: a test as well.
check_PROGRAMS += tests/bench/bench_replay
TESTS += tests/bench/bench_replay
replay_sources = tests/bench/replay.c tests/bench/replay.h \
	tests/bench/georgiou.c tests/bench/georgiou.h tests/bench/handed.c \
	tests/bench/handed.h tests/unit/fake.h
replay_libs = $(LIBBENCH) tests/unit/libunit.a $(LIBBMC) -lm
tests_bench_bench_replay_SOURCES = tests/bench/bench_replay.c \
	$(replay_sources)
tests_bench_bench_replay_LDADD = $(replay_libs)

# What only tests/bench/run has built.
EXTRA_PROGRAMS += tests/bench/bench_precision tests/bench/counters \
	tests/bench/peak tests/bench/shim_bmc.so tests/bench/shim_nosync.so \
	tests/bench/usage
tests_bench_bench_precision_SOURCES = tests/bench/bench_precision.c \
	$(replay_sources) tests/unit/dice.h
tests_bench_bench_precision_LDADD = $(replay_libs)
tests_bench_counters_SOURCES = tests/bench/counters.c
tests_bench_counters_LDADD = $(LIBBENCH)
tests_bench_peak_SOURCES = tests/bench/peak.c
tests_bench_peak_LDADD = $(LIBBENCH)
tests_bench_shim_bmc_so_SOURCES = tests/bench/shim_bmc.c
tests_bench_shim_bmc_so_CFLAGS = $(AM_CFLAGS) $(IPMIMONITORING_CFLAGS)
tests_bench_shim_bmc_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_bench_shim_bmc_so_LDADD = -ldl
tests_bench_shim_nosync_so_SOURCES = tests/bench/shim_nosync.c
tests_bench_shim_nosync_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_bench_usage_SOURCES = tests/bench/usage.c
tests_bench_usage_LDADD = $(LIBBENCH)
