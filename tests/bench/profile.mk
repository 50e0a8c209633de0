# SPDX-License-Identifier: GPL-2.0-or-later
if HAVE_SLURM
if HAVE_HDF5
check_PROGRAMS += tests/bench/bench_profile
endif
endif
tests_bench_bench_profile_SOURCES = tests/bench/bench_profile.c \
	tests/bench/bench.c tests/bench/bench.h
tests_bench_bench_profile_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS)
tests_bench_bench_profile_LDFLAGS = -rdynamic
tests_bench_bench_profile_LDADD = libjoulestore.la libjoule.la -ldl -lm
