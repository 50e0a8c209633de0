#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
set -eu
srcdir=${srcdir:-.}
./tests/fuzz/fuzz_cpufreq -n "${FUZZ_RUNS:-20000}" -s "${FUZZ_SEED:-1}" \
    "$srcdir/tests/fuzz/corpus/cpufreq"/*
