# SPDX-License-Identifier: GPL-2.0-or-later
EXTRA_PROGRAMS += tests/bench/bench_precision
tests_bench_bench_precision_SOURCES = tests/bench/bench_precision.c \
	$(replay_sources) tests/unit/dice.h
tests_bench_bench_precision_LDADD = $(replay_libs)
EXTRA_DIST += tests/bench/bench_precision_live.sh

# Built by who asks for it, as shim_nosync.
EXTRA_PROGRAMS += tests/bench/shim_bmc.so
tests_bench_shim_bmc_so_SOURCES = tests/bench/shim_bmc.c
tests_bench_shim_bmc_so_CFLAGS = $(AM_CFLAGS) $(IPMIMONITORING_CFLAGS)
tests_bench_shim_bmc_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_bench_shim_bmc_so_LDADD = -ldl
