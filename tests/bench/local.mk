# SPDX-License-Identifier: GPL-2.0-or-later
# tests/bench/run builds and runs these.  -rdynamic: the plugins find in the
# program what they look for in slurmd and slurmstepd.
EXTRA_DIST += tests/bench/run
check_LIBRARIES += tests/bench/libbench.a
tests_bench_libbench_a_SOURCES = tests/bench/bench.c tests/bench/bench.h
LIBBENCH = tests/bench/libbench.a -lm
if HAVE_SLURM
check_PROGRAMS += tests/bench/bench_rapl
endif
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
EXTRA_DIST += tests/fixtures/georgiou2014-precision.csv
