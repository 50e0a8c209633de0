#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_profile_read.sh merge|extract [wide|deep] - sh5util against Slurm's on the same
# samples, in the same run, and against cp of the same files.
#
# Prints CSV, one row a figure: name,value,unit,goal,result.  Exits 1 if one
# misses its goal, 2 if it could not be measured.  Slurm's sh5util wants a
# configuration and a user: it runs in a cluster of tests/system/cluster.
# BENCH_SMALL=1 measures a hundredth, to see that it works.
set -u
TOP=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
export JOULE_BUILD=${JOULE_BUILD:-$TOP/build}
CLUSTER=$TOP/tests/system/cluster
SH5UTIL=$JOULE_BUILD/tools/sh5util/sh5util
MAKENODE=$JOULE_BUILD/tests/unit/makenode
RUNS=3
STATUS=0
DIR=

fail() {
    echo "bench_profile_read: $*" >&2
    exit 2
}

cleanup() {
    "$CLUSTER" down benchread > /dev/null 2>&1
    [ -z "$DIR" ] || rm -rf "$DIR"
}

# best COMMAND... - the best of RUNS, in microseconds of elapsed time
best() {
    local i start us least=
    for ((i = 0; i < RUNS; i++)); do
        sync -f "$DIR"
        start=${EPOCHREALTIME/./}
        "$@" > "$DIR/log" 2>&1 || { cat "$DIR/log" >&2; return 1; }
        us=$((${EPOCHREALTIME/./} - start))
        [ -n "$least" ] && [ "$least" -le $us ] || least=$us
    done
    echo "$least"
}

# figure NAME VALUE UNIT [least|most GOAL]
figure() {
    local result=
    [ $# -lt 5 ] || result=$(awk -v v="$2" -v how="$4" -v goal="$5" 'BEGIN {
        print (how == "least" ? v >= goal : v <= goal) ? "met" : "missed" }')
    [ "$result" != missed ] || STATUS=1
    echo "$1,$2,$3,${4:+$4 $5},$result"
}

ratio() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f\n", a / b }'
}

# theirs ARGUMENT... - Slurm's sh5util as alice, where the cluster is; the
# cluster's own start of a command is timed apart and taken off
theirs() {
    "$CLUSTER" user --timeout 0 benchread sh -c "cd $DIR/alice && sh5util $*"
}
nothing() {
    "$CLUSTER" user --timeout 0 benchread sh -c "cd $DIR/alice && true"
}

# workload NAME NODES ROWS HZ - node-step files in both layouts, and both
# merged
workload() {
    local i layout
    for layout in slurm ours; do
        mkdir -p "$DIR/$1/$layout/root"
        for ((i = 1; i <= $2; i++)); do
            "$MAKENODE" write "$DIR/$1/$layout/root/7_0_node$i.h5" "node$i" \
                "$3" "$4" "$layout" 0 "$i" || fail "cannot write the files"
        done
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

peak_kb() {
    local pid most=0 sum
    rm -f "$DIR/merged.h5"
    "$SH5UTIL" -j 7 -S -p "$1" -o "$DIR/merged.h5" 2> /dev/null &
    pid=$!
    # Proportional: what the processes share is counted once.
    while kill -0 $pid 2> /dev/null; do
        sleep 0.01
        # shellcheck disable=SC2046  # one path a word
        sum=$(cat /proc/$pid/smaps_rollup \
            $(for c in $(cat /proc/$pid/task/$pid/children 2> /dev/null); do
                echo /proc/"$c"/smaps_rollup; done) 2> /dev/null |
            awk '/^Pss:/ { s += $2 } END { print s + 0 }')
        [ "$sum" -le $most ] || most=$sum
    done
    wait $pid
    echo "$most"
}

merge() {
    local name=$1 layout samples=$2 base us theirs_us copied_us
    base=$(best nothing) || fail "no cluster"
    theirs_us=$(best theirs -j 7 -S -p "$DIR/$name/slurm" -o merged.h5) ||
        fail "Slurm's sh5util failed"
    theirs_us=$((theirs_us - base))
    figure "merge-$name-slurm-sh5util" \
        "$(ratio "$samples" "$theirs_us")" Msamples/s
    for layout in slurm ours; do
        us=$(best fresh "$DIR/$name/$layout") || fail "sh5util failed"
        copied_us=$(best copy "$DIR/$name/$layout/root") || fail "cp failed"
        figure "merge-$name-$layout-files" "$(ratio "$samples" "$us")" \
            Msamples/s
        figure "merge-$name-$layout-files-of-slurm" \
            "$(ratio "$theirs_us" "$us")" x least 3
        figure "merge-$name-$layout-files-of-cp" \
            "$(ratio "$us" "$copied_us")" x most 2
        figure "merge-$name-$layout-files-peak" \
            "$(($(peak_kb "$DIR/$name/$layout") / 1024))" MB most 64
    done
}

extract() {
    local name=$1 rows=$2 base us theirs_us layout
    base=$(best nothing) || fail "no cluster"
    theirs -j 7 -S -p "$DIR/$name/slurm" -o merged.h5 > /dev/null 2>&1 ||
        fail "Slurm's sh5util failed"
    RUNS=1
    theirs_us=$(best theirs -j 7 -i merged.h5 -E -s Energy \
        -l Node:TimeSeries -o e.csv) || fail "Slurm's sh5util failed"
    RUNS=3
    theirs_us=$((theirs_us - base))
    figure "extract-$name-slurm-sh5util" "$(ratio "$rows" "$theirs_us")" \
        Mrows/s
    us=$(best ours -i "$DIR/alice/merged.h5" -E -s Energy -l Node:TimeSeries \
        -o "$DIR/e.csv") || fail "sh5util failed"
    cmp -s <(sort "$DIR/e.csv") <(sort "$DIR/alice/e.csv") ||
        fail "the rows are not the same"
    figure "extract-$name-slurm-merged" "$(ratio "$rows" "$us")" Mrows/s
    figure "extract-$name-slurm-merged-of-slurm" "$(ratio "$theirs_us" "$us")" \
        x least 8
    for layout in slurm ours; do
        fresh "$DIR/$name/$layout" > /dev/null 2>&1 || fail "sh5util failed"
        us=$(best ours -i "$DIR/merged.h5" -E -s Energy -l Node:TimeSeries \
            -o "$DIR/e.csv") || fail "sh5util failed"
        figure "extract-$name-$layout-files" "$(ratio "$rows" "$us")" Mrows/s
        figure "extract-$name-$layout-files-of-slurm" \
            "$(ratio "$theirs_us" "$us")" x least 8
    done
}

case ${1:-} in
merge | extract) ;;
*)
    echo "usage: bench_profile_read.sh merge|extract [wide|deep]" >&2
    exit 2 ;;
esac
[ "$(id -u)" = 0 ] || fail "needs root"
trap cleanup EXIT
trap 'exit 130' INT TERM
DIR=$(mktemp -d /var/tmp/joule-bench.XXXXXX) || fail "no directory"
chmod 755 "$DIR"
mkdir -m 777 "$DIR/alice"
"$CLUSTER" up benchread --profile > "$DIR/log" 2>&1 ||
    { cat "$DIR/log" >&2; fail "no cluster"; }
echo "name,value,unit,goal,result"
divide=1
[ -z "${BENCH_SMALL:-}" ] || divide=100
if [ "${2:-wide}" = wide ]; then
    workload wide $((256 / (divide > 1 ? 16 : 1))) 3600 1
    "$1" wide $((256 / (divide > 1 ? 16 : 1) * 3600))
fi
if [ "${2:-deep}" = deep ]; then
    workload deep 64 $((360000 / divide)) 100
    "$1" deep $((64 * (360000 / divide)))
fi
exit $STATUS
