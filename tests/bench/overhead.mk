# SPDX-License-Identifier: GPL-2.0-or-later
# Built by tests/bench/run, which runs them.
EXTRA_PROGRAMS += tests/bench/ranks tests/bench/usage tests/bench/reading \
	tests/bench/counters tests/bench/waking
tests_bench_ranks_SOURCES = tests/bench/ranks.c \
	tests/bench/bench.c tests/bench/bench.h
tests_bench_ranks_LDADD = -lm
tests_bench_usage_SOURCES = tests/bench/usage.c \
	tests/bench/bench.c tests/bench/bench.h
tests_bench_usage_LDADD = -lm
tests_bench_reading_SOURCES = tests/bench/reading.c \
	tests/bench/bench.c tests/bench/bench.h
tests_bench_reading_LDADD = -lm
tests_bench_counters_SOURCES = tests/bench/counters.c \
	tests/bench/bench.c tests/bench/bench.h
tests_bench_counters_LDADD = -lm
tests_bench_waking_SOURCES = tests/bench/waking.c \
	tests/bench/waker.c tests/bench/waker.h \
	tests/bench/bench.c tests/bench/bench.h
tests_bench_waking_LDADD = libjoulestore.la libjoule.la -lm

EXTRA_DIST += tests/bench/bench_overhead.sh tests/bench/overhead.awk \
	tests/bench/overhead_rows.awk \
	tests/fixtures/georgiou2014-overhead.csv
