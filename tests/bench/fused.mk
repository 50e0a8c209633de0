# SPDX-License-Identifier: GPL-2.0-or-later
check_PROGRAMS += tests/bench/bench_fused
tests_bench_bench_fused_SOURCES = tests/bench/bench_fused.c \
	tests/bench/bench.c tests/bench/bench.h \
	tests/unit/dice.h \
	tests/unit/fusednode.c tests/unit/fusednode.h \
	tests/unit/nodeload.c tests/unit/nodeload.h \
	tests/unit/tree.c tests/unit/tree.h
tests_bench_bench_fused_CFLAGS = $(AM_CFLAGS)
tests_bench_bench_fused_LDADD = libjoule.la -lm
