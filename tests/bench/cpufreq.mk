# SPDX-License-Identifier: GPL-2.0-or-later
if HAVE_SLURM
check_PROGRAMS += tests/bench/bench_cpufreq
endif
tests_bench_bench_cpufreq_SOURCES = tests/bench/bench_cpufreq.c
tests_bench_bench_cpufreq_LDADD = $(LIBBENCH) $(LIBJOULE) -ldl
