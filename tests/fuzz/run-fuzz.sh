#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Every fuzz target over its corpus and FUZZ_RUNS mutations of it, the same
# ones each time; a thousand, or all with JOULE_TEST_LONG (tests/run --all).
set -eu
[ -n "${JOULE_TEST_LONG:-}" ] || : "${FUZZ_RUNS:=1000}"
srcdir=${srcdir:-.}
for target in cpuinfo topology config ipmi_config bmc wire regions pmserver \
    waits waits_log; do
    # It wants OTF2.
    [ $target != waits_log ] || [ -x tests/fuzz/fuzz_waits_log ] || continue
    ./tests/fuzz/fuzz_$target -n "${FUZZ_RUNS:-20000}" -s "${FUZZ_SEED:-1}" \
        "$srcdir/tests/fuzz/corpus/$target"/*
done
