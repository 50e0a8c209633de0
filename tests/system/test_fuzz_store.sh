#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: busy
#
# The reader of profile files under libFuzzer, with sanitizers, led by coverage,
# for FUZZ_SECONDS (60).  What is found stays in tests-logs of the build.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

SECONDS_OF_RUN=${FUZZ_SECONDS:-60}
NAME="the reader of profiles under libFuzzer for $SECONDS_OF_RUN s"
SANITIZERS=fuzzer,address,undefined
FOUND=$JOULE_BUILD/tests-logs/fuzz_store
CORPUS=$TOP/tests/fuzz/corpus/store

has_libfuzzer() {
    echo '#include <stddef.h>
int LLVMFuzzerTestOneInput(const char *data, size_t size);
int LLVMFuzzerTestOneInput(const char *data, size_t size)
{ return data && size > 1u << 30; }' > "$SCRATCH/none.c"
    clang -fsanitize=$SANITIZERS -o "$SCRATCH/none" "$SCRATCH/none.c" \
        > /dev/null 2>&1 && "$SCRATCH/none" -runs=1 > /dev/null 2>&1
}

# The sources of libjoule_store_read, and what it needs of libjoule.
sources() {
    (cd "$TOP" && sed -n '/_SOURCES/,/[^\\]$/p' common/store_read.mk |
        grep -oE 'common/store/[a-z]+\.c')
    echo tests/fuzz/fuzz_store.c
    (cd "$TOP" && echo common/base/{clock,error,parse}.c)
}

build() {
    local hdf5 list
    hdf5=$(pkg-config --cflags --libs hdf5-serial) || return 1
    mapfile -t list < <(sources | tr ' ' '\n')
    # shellcheck disable=SC2086  # a list
    (cd "$TOP" && clang -g -O1 -std=gnu11 -D_GNU_SOURCE -DH5_USE_110_API -I. \
        -fsanitize=$SANITIZERS -fno-sanitize-recover=all \
        -o "$SCRATCH/fuzz_store" "${list[@]}" $hdf5 -lz)
}

# What the fuzzer says at its end: "Done 4711 runs in 61 second(s)".
fuzz() {
    mkdir -p "$FOUND" "$SCRATCH/corpus" && cd "$SCRATCH" || return 1
    "$SCRATCH/fuzz_store" -max_total_time="$SECONDS_OF_RUN" -max_len=131072 \
        -timeout=30 -rss_limit_mb=0 -malloc_limit_mb=0 -detect_leaks=0 \
        -print_final_stats=1 -artifact_prefix="$FOUND/" \
        "$SCRATCH/corpus" "$CORPUS" > "$SCRATCH/fuzz.out" 2>&1 || {
        tail -n 40 "$SCRATCH/fuzz.out"
        return 1
    }
}

# led - whether coverage grew beyond that of the corpus
led() {
    awk '/INITED/ { first = $4 } / cov: / { last = $4 }
        END { print "coverage " first " to " last; exit !(last > first) }' \
        "$SCRATCH/fuzz.out"
}

if ! has_libfuzzer; then
    skip "$NAME" "clang is not here, or has no libFuzzer (Debian: clang, libclang-rt-dev)"
    finish
fi
check "the target of libFuzzer builds" build
[ -x "$SCRATCH/fuzz_store" ] || finish
check "$NAME" fuzz
grep -E 'Done|INITED|DONE' "$SCRATCH/fuzz.out" | note
check "it is led by what the reader does with a file" led
finish
