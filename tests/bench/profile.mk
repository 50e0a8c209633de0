# SPDX-License-Identifier: GPL-2.0-or-later
if HAVE_SLURM
if HAVE_HDF5
check_PROGRAMS += tests/bench/bench_profile
endif
endif
profilehost_sources = tests/bench/profilehost.c tests/bench/profilehost.h \
	tests/bench/longseries.c tests/bench/longseries.h
tests_bench_bench_profile_SOURCES = tests/bench/bench_profile.c \
	$(profilehost_sources) \
	tests/bench/series.c tests/bench/series.h \
	tests/bench/waker.c tests/bench/waker.h
tests_bench_bench_profile_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS)
tests_bench_bench_profile_LDFLAGS = -rdynamic
tests_bench_bench_profile_LDADD = $(LIBBENCH) $(LIBJOULESTORE) $(HDF5_LIBS) \
	-ldl -lm

EXTRA_DIST += tests/bench/bench_profile_read.sh tests/bench/bench_merge \
	tests/bench/bench_extract tests/bench/h5tools.sh

# Built by who asks for it.
EXTRA_PROGRAMS += tests/bench/shim_nosync.so tests/bench/peak
tests_bench_shim_nosync_so_SOURCES = tests/bench/shim_nosync.c
tests_bench_shim_nosync_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_bench_peak_SOURCES = tests/bench/peak.c
tests_bench_peak_LDADD = $(LIBBENCH)
