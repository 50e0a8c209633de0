# SPDX-License-Identifier: GPL-2.0-or-later
if HAVE_SLURM
check_PROGRAMS += tests/bench/bench_cpufreq
endif
tests_bench_bench_cpufreq_SOURCES = tests/bench/bench_cpufreq.c \
	tests/bench/bench.c tests/bench/bench.h
tests_bench_bench_cpufreq_LDADD = libjoule.la -ldl -lm
