# SPDX-License-Identifier: GPL-2.0-or-later
# Built by tests/bench/run, which runs them.
EXTRA_PROGRAMS += tests/bench/ranks tests/bench/usage tests/bench/reading \
	tests/bench/counters tests/bench/waking
tests_bench_ranks_SOURCES = tests/bench/ranks.c
tests_bench_ranks_LDADD = $(LIBBENCH)
tests_bench_usage_SOURCES = tests/bench/usage.c
tests_bench_usage_LDADD = $(LIBBENCH)
tests_bench_reading_SOURCES = tests/bench/reading.c
tests_bench_reading_LDADD = $(LIBBENCH)
tests_bench_counters_SOURCES = tests/bench/counters.c
tests_bench_counters_LDADD = $(LIBBENCH)
tests_bench_waking_SOURCES = tests/bench/waking.c tests/bench/waker.c \
	tests/bench/waker.h
tests_bench_waking_LDADD = $(LIBBENCH) $(LIBJOULESTORE)

EXTRA_DIST += tests/bench/bench_overhead.sh tests/bench/overhead.awk \
	tests/bench/overhead_rows.awk tests/bench/overhead_sums.awk \
	tests/bench/overhead_modes.sh \
	tests/fixtures/georgiou2014-overhead.csv

# Instructions: the same modes under callgrind.  shim_title is built by who asks for
# it, as shim_bmc.
EXTRA_DIST += tests/bench/bench_instructions.sh tests/bench/callgrind-counts \
	tests/bench/instructions.awk tests/bench/instructions_rows.awk
EXTRA_PROGRAMS += tests/system/shim_title.so
tests_system_shim_title_so_SOURCES = tests/system/shim_title.c
tests_system_shim_title_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_system_shim_title_so_LDADD = -ldl
