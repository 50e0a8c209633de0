#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The readers of profile files and logs over their corpus and FUZZ_PROFILE_RUNS
# mutations of it (of files, each of them starts a process: there are fewer than of
# others); all with JOULE_TEST_LONG (tests/run --all).
set -eu
[ -n "${JOULE_TEST_LONG:-}" ] || : "${FUZZ_RUNS:=1000}" "${FUZZ_PROFILE_RUNS:=50}"
srcdir=${srcdir:-.}
./tests/fuzz/fuzz_log -n "${FUZZ_RUNS:-20000}" -s "${FUZZ_SEED:-1}" \
    "$srcdir/tests/fuzz/corpus/log"/*
./tests/fuzz/fuzz_hdf5 -n "${FUZZ_PROFILE_RUNS:-1500}" -s "${FUZZ_SEED:-1}" \
    "$srcdir/tests/fuzz/corpus/hdf5"/*
