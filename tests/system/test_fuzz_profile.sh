#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The readers of profile files and of profile logs under libFuzzer, with sanitizers,
# led by coverage, for FUZZ_SECONDS (60), and a third of that.
# What is found stays in tests-logs of the build.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

SECONDS_OF_RUN=${FUZZ_SECONDS:-60}
NAME="the reader of profile files under libFuzzer for $SECONDS_OF_RUN s"
SANITIZERS=fuzzer,address,undefined
FOUND=$JOULE_BUILD/tests-logs
CORPUS=$TOP/tests/fuzz/corpus

has_libfuzzer() {
    echo '#include <stddef.h>
int LLVMFuzzerTestOneInput(const char *data, size_t size);
int LLVMFuzzerTestOneInput(const char *data, size_t size)
{ return data && size > 1u << 30; }' > "$SCRATCH/none.c"
    clang -fsanitize=$SANITIZERS -o "$SCRATCH/none" "$SCRATCH/none.c" \
        > /dev/null 2>&1 && "$SCRATCH/none" -runs=1 > /dev/null 2>&1
}

# sources TARGET - those of libjoule_hdf5.a, and what it needs of other libraries
sources() {
    (cd "$TOP" && sed -n '/^libjoule_hdf5_a_SOURCES/,/[^\\]$/p' common/local.mk |
        grep -oE 'common/profile/[a-z0-9_]+\.c')
    echo "tests/fuzz/$1.c"
    (cd "$TOP" && echo common/base/{callfilter,clock,deadline,error,file,parse}.c \
        common/profile/log.c)
}

build() { # TARGET
    local hdf5 list
    hdf5=$(pkg-config --cflags --libs hdf5-serial) || return 1
    mapfile -t list < <(sources "$1" | tr ' ' '\n')
    # shellcheck disable=SC2086  # a list
    (cd "$TOP" && clang -g -O1 -std=gnu11 -D_GNU_SOURCE -DH5_USE_110_API -I. \
        -fsanitize=$SANITIZERS -fno-sanitize-recover=all \
        -o "$SCRATCH/$1" "${list[@]}" $hdf5)
}

# fuzz TARGET SECONDS - it says at its end: "Done 4711 runs in 61 second(s)"
fuzz() {
    local corpus=$SCRATCH/corpus-$1 found=$FOUND/$1
    mkdir -p "$found" "$corpus" && cd "$SCRATCH" || return 1
    "$SCRATCH/$1" -max_total_time="$2" -max_len=131072 \
        -timeout=30 -rss_limit_mb=0 -malloc_limit_mb=0 -detect_leaks=0 \
        -print_final_stats=1 -artifact_prefix="$found/" \
        "$corpus" "$CORPUS/${1#fuzz_}" > "$SCRATCH/$1.out" 2>&1 || {
        tail -n 40 "$SCRATCH/$1.out"
        return 1
    }
}

# led TARGET - whether coverage grew beyond that of the corpus
led() {
    awk '/INITED/ { first = $4 } / cov: / { last = $4 }
        END { print "coverage " first " to " last; exit !(last > first) }' \
        "$SCRATCH/$1.out"
}

if ! has_libfuzzer; then
    skip "$NAME" "clang is not here, or has no libFuzzer (Debian: clang, libclang-rt-dev)"
    finish
fi
for target in fuzz_hdf5 fuzz_log; do
    check "$target builds for libFuzzer" build $target
    [ -x "$SCRATCH/$target" ] || finish
done
check "$NAME" fuzz fuzz_hdf5 "$SECONDS_OF_RUN"
check "that of profile logs, for $((SECONDS_OF_RUN / 3)) s" \
    fuzz fuzz_log $((SECONDS_OF_RUN / 3))
for target in fuzz_hdf5 fuzz_log; do
    grep -E 'Done|INITED|DONE' "$SCRATCH/$target.out" | note
    check "$target: led by what is done with a file" led $target
done
finish
