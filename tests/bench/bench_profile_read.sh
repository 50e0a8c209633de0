#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_profile_read.sh merge|extract [wide|deep] - sh5util against Slurm's on the same
# samples, in the same run, and against cp of the same files.
#
# Prints CSV as tests/bench/run.  Slurm's sh5util wants a configuration and a
# user: it runs in a cluster of tests/system/cluster.  All take turns, and the
# best of BENCH_RUNS counts.  sh5util syncs what it has written, the others do
# not: it has to beat Slurm's all the same, and is measured against cp without,
# the time with it beside that.  BENCH_SMALL=1 measures a hundredth, to see that
# it works.
set -u
TOP=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
export JOULE_BUILD=${JOULE_BUILD:-$TOP/build}
CLUSTER=$TOP/tests/system/cluster
SH5UTIL=$JOULE_BUILD/tools/sh5util/sh5util
MAKENODE=$JOULE_BUILD/tests/unit/makenode
NOSYNC=$JOULE_BUILD/tests/bench/.libs/shim_nosync.so
RUNS=${BENCH_RUNS:-9}
DIR=
NAME=bench-${1:-}
declare -A BEST # microseconds
# shellcheck source-path=SCRIPTDIR source=rows.sh
. "$TOP/tests/bench/rows.sh"

cleanup() {
    "$CLUSTER" down "$NAME" > /dev/null 2>&1
    [ -z "$DIR" ] || rm -rf "$DIR"
}

# timed KEY COMMAND... - run it, and keep the least elapsed time of all runs
timed() {
    local key=$1 start us
    shift
    sync -f "$DIR"
    start=${EPOCHREALTIME/./}
    "$@" > "$DIR/log" 2>&1 || { cat "$DIR/log" >&2; fail "$key failed"; }
    us=$((${EPOCHREALTIME/./} - start))
    [ "${BEST[$key]:-$us}" -lt $us ] || BEST[$key]=$us
}

# rate COUNT KEY - millions a second; Slurm's time without that of getting there
rate() {
    local us=${BEST[$2]}
    [ "$2" != slurm ] || us=$((us - BEST[nothing]))
    awk -v a="$1" -v b="$us" 'BEGIN { printf "%.6g\n", a / b }'
}

seconds() {
    awk -v us="${BEST[$1]}" 'BEGIN { printf "%.6f\n", us / 1e6 }'
}

# Slurm's sh5util as the user, where the cluster is.
theirs() {
    "$CLUSTER" user --timeout 0 "$NAME" sh -c "cd $DIR/alice && sh5util $*"
}
nothing() {
    "$CLUSTER" user --timeout 0 "$NAME" sh -c "cd $DIR/alice && true"
}

# workload NAME NODES ROWS HZ - node-step files in all layouts
workload() {
    local layout
    for layout in slurm ours plain; do
        mkdir -p "$DIR/$1/$layout/root"
        seq "$2" | xargs -P 2 -I @ "$MAKENODE" write \
            "$DIR/$1/$layout/root/7_0_node@.h5" node@ "$3" "$4" $layout 0 @ ||
            fail "cannot write the files"
    done
    # Slurm's tool looks below the user's name and wants to own the files.
    ln -s root "$DIR/$1/slurm/alice"
    chmod -R a+rX "$DIR"
}

copy() {
    rm -rf "$DIR/copied"
    cp -r "$1" "$DIR/copied"
}

ours() {
    "$SH5UTIL" -j 7 "$@"
}

fresh() {
    rm -f "$DIR/merged.h5"
    ours -S -p "$1" -o "$DIR/merged.h5"
}

unsynced() {
    rm -f "$DIR/merged.h5"
    LD_PRELOAD=$NOSYNC "$SH5UTIL" -j 7 -S -p "$1" -o "$DIR/merged.h5"
}

peak_mb() {
    local pid most=0 sum
    rm -f "$DIR/merged.h5"
    "$SH5UTIL" -j 7 -S -p "$1" -o "$DIR/merged.h5" 2> /dev/null &
    pid=$!
    # Proportional: what the processes share is counted once.
    while kill -0 $pid 2> /dev/null; do
        # shellcheck disable=SC2046  # one path a word
        sum=$(cat /proc/$pid/smaps_rollup \
            $(for c in $(cat /proc/$pid/task/$pid/children 2> /dev/null); do
                echo /proc/"$c"/smaps_rollup; done) 2> /dev/null |
            awk '/^Pss:/ { s += $2 } END { print s + 0 }')
        [ "$sum" -le $most ] || most=$sum
    done
    wait $pid || fail "sh5util failed"
    [ "$most" -gt 0 ] || fail "the memory of sh5util was not seen"
    awk -v kb="$most" 'BEGIN { printf "%.1f\n", kb / 1024 }'
}

# What a layout is called in the rows.
what() {
    case $1 in
    slurm) echo "Slurm's files" ;;
    ours) echo "our files" ;;
    plain) echo "our files uncompressed" ;;
    esac
}

# merge TITLE DIRECTORY SAMPLES
merge() {
    local dir=$DIR/$2 layout i
    BEST=()
    for ((i = 0; i < RUNS; i++)); do
        timed nothing nothing
        [ $i -ge 3 ] || timed slurm theirs -j 7 -S -p "$dir/slurm" -o merged.h5
        for layout in ours plain slurm; do
            timed "ours-$layout" fresh "$dir/$layout"
            timed "cp-$layout" copy "$dir/$layout/root"
            timed "unsynced-$layout" unsynced "$dir/$layout"
        done
    done
    for layout in ours plain slurm; do
        row "merge $1: $(what $layout)" Msamples/s \
            "$(rate "$3" "ours-$layout")" "$(rate "$3" slurm)" ">=3x"
        row "merge $1: $(what $layout); peer: cp" s \
            "$(seconds "unsynced-$layout")" "$(seconds "cp-$layout")" "<=2x"
        echo "merge $1: $(what $layout): $(seconds "ours-$layout") s with fsync" >&2
        row "merge $1: $(what $layout): most memory" MB \
            "$(peak_mb "$dir/$layout")" "" "<64"
    done
}

# extract TITLE DIRECTORY ROWS
extract() {
    local dir=$DIR/$2 layout i
    local options=(-E -s Energy -l Node:TimeSeries)
    BEST=()
    theirs -j 7 -S -p "$dir/slurm" -o merged.h5 > /dev/null 2>&1 ||
        fail "Slurm's sh5util failed"
    for layout in ours plain slurm; do
        fresh "$dir/$layout" > /dev/null 2>&1 || fail "sh5util failed"
        mv "$DIR/merged.h5" "$DIR/$layout.h5"
    done
    timed nothing nothing
    timed slurm theirs -j 7 -i merged.h5 "${options[@]}" -o e.csv
    for ((i = 0; i < RUNS; i++)); do
        for layout in ours plain slurm; do
            timed "ours-$layout" ours -i "$DIR/$layout.h5" "${options[@]}" \
                -o "$DIR/e.csv"
        done
        timed ours-theirs ours -i "$DIR/alice/merged.h5" "${options[@]}" \
            -o "$DIR/e.csv"
    done
    cmp -s <(sort "$DIR/e.csv") <(sort "$DIR/alice/e.csv") ||
        fail "the rows are not the same"
    row "extract $1: merged by Slurm's sh5util" Mrows/s \
        "$(rate "$3" ours-theirs)" "$(rate "$3" slurm)" ">=8x"
    for layout in ours plain slurm; do
        row "extract $1: $(what $layout)" Mrows/s \
            "$(rate "$3" "ours-$layout")" "$(rate "$3" slurm)" ">=8x"
    done
}

case ${1:-} in
merge | extract) ;;
*)
    echo "usage: bench_profile_read.sh merge|extract [wide|deep]" >&2
    exit 2 ;;
esac
[ "$(id -u)" = 0 ] || fail "needs root"
for file in "$SH5UTIL" "$MAKENODE" "$NOSYNC"; do
    [ -x "$file" ] || fail "there is no $file"
done
trap cleanup EXIT
trap 'exit 130' INT TERM
DIR=$(mktemp -d /var/tmp/joule-bench.XXXXXX) || fail "no directory"
chmod 755 "$DIR"
mkdir -m 777 "$DIR/alice"
"$CLUSTER" up "$NAME" --energy none --no-sim --profile > "$DIR/log" 2>&1 ||
    { cat "$DIR/log" >&2; fail "no cluster"; }
row_head
nodes=256 rows=360000
[ -z "${BENCH_SMALL:-}" ] || nodes=16 rows=3600
if [ "${2:-wide}" = wide ]; then
    workload wide $nodes 3600 1
    "$1" "${nodes} x 3600" wide $((nodes * 3600))
    rm -rf "$DIR/wide"
fi
if [ "${2:-deep}" = deep ]; then
    workload deep 64 $rows 100
    "$1" "64 x $rows" deep $((64 * rows))
fi
exit "$STATUS"
