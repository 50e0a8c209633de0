# SPDX-License-Identifier: GPL-2.0-or-later
check_PROGRAMS += tests/bench/bench_fused
tests_bench_bench_fused_SOURCES = tests/bench/bench_fused.c tests/unit/dice.h
tests_bench_bench_fused_LDADD = $(LIBBENCH) tests/unit/libunit.a $(LIBJOULE)
