# SPDX-License-Identifier: GPL-2.0-or-later
# tests/bench/run builds and runs these.  -rdynamic: the plugins find in the
# program what they look for in slurmd and slurmstepd.
EXTRA_DIST += tests/bench/run
if HAVE_SLURM
check_PROGRAMS += tests/bench/bench_rapl
endif
tests_bench_bench_rapl_SOURCES = tests/bench/bench_rapl.c
tests_bench_bench_rapl_LDFLAGS = -rdynamic
tests_bench_bench_rapl_LDADD = libjoule.la -ldl -lm
