# SPDX-License-Identifier: GPL-2.0-or-later
check_PROGRAMS += tests/bench/bench_precision
tests_bench_bench_precision_SOURCES = tests/bench/bench_precision.c \
	$(replay_sources) tests/unit/dice.h \
	tests/unit/nodeload.c tests/unit/nodeload.h
tests_bench_bench_precision_CFLAGS = $(AM_CFLAGS)
tests_bench_bench_precision_LDADD = $(replay_libs)
