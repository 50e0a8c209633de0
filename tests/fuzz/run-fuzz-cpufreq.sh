#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
set -eu
# All with JOULE_TEST_LONG, see run-fuzz.sh.
[ -n "${JOULE_TEST_LONG:-}" ] || : "${FUZZ_RUNS:=1000}"
srcdir=${srcdir:-.}
./tests/fuzz/fuzz_cpufreq -n "${FUZZ_RUNS:-20000}" -s "${FUZZ_SEED:-1}" \
    "$srcdir/tests/fuzz/corpus/cpufreq"/*
