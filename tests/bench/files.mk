# SPDX-License-Identifier: GPL-2.0-or-later
if HAVE_SLURM
if HAVE_HDF5
check_PROGRAMS += tests/bench/bench_append
endif
endif
tests_bench_bench_append_SOURCES = tests/bench/bench_append.c \
	$(profilehost_sources)
tests_bench_bench_append_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS)
tests_bench_bench_append_LDFLAGS = -rdynamic
tests_bench_bench_append_LDADD = $(LIBBENCH) $(LIBJOULESTORE) $(HDF5_LIBS) -ldl
EXTRA_DIST += tests/bench/bench_files.sh
