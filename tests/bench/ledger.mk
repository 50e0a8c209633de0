# SPDX-License-Identifier: GPL-2.0-or-later
check_PROGRAMS += tests/bench/bench_ledger
tests_bench_bench_ledger_SOURCES = tests/bench/bench_ledger.c \
	tests/bench/userviews.c tests/bench/userviews.h
tests_bench_bench_ledger_LDADD = $(LIBBENCH) $(LIBJOULE)
