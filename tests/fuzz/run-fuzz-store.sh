#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The reader of profile files over its corpus and FUZZ_STORE_RUNS mutations of
# it (each of them starts a process: there are fewer than of others); all with
# JOULE_TEST_LONG (tests/run --all).
set -eu
[ -n "${JOULE_TEST_LONG:-}" ] || : "${FUZZ_RUNS:=1000}" "${FUZZ_STORE_RUNS:=50}"
srcdir=${srcdir:-.}
./tests/fuzz/fuzz_outline -n "${FUZZ_RUNS:-20000}" -s "${FUZZ_SEED:-1}" \
    "$srcdir/tests/fuzz/corpus/store"/*
./tests/fuzz/fuzz_store -n "${FUZZ_STORE_RUNS:-1500}" -s "${FUZZ_SEED:-1}" \
    "$srcdir/tests/fuzz/corpus/store"/*
