#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_profile_read.sh merge|extract [wide|deep] - sh5util against Slurm's on the same
# samples, in the same run, and against cp of the same files.
#
# Prints CSV as tests/bench/run.  All take turns, and the best of BENCH_RUNS
# counts.  The goals are of files that each wrote itself: ours and Slurm's.  sh5util
# syncs what it has written, the others do not: it has to beat Slurm's all the same,
# and is compared with cp without, the time with it beside that.  BENCH_SMALL=1
# measures a hundredth, to see that it works.
set -u
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=h5tools.sh
. "$HERE/h5tools.sh"
# shellcheck source-path=SCRIPTDIR source=rows.sh
. "$HERE/rows.sh"
RUNS=${BENCH_RUNS:-9}

# rate COUNT KEY - millions a second
rate() {
    awk -v a="$1" -v b="$(elapsed_us "$2")" 'BEGIN { printf "%.6g\n", a / b }'
}

seconds() {
    awk -v us="${BEST[$1]}" 'BEGIN { printf "%.6f\n", us / 1e6 }'
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
    show_user "$DIR/$1/slurm"
}

peak_mb() {
    local kib
    kib=$(peak_kib fresh "$1") || exit 2
    awk -v kib="$kib" 'BEGIN { printf "%.1f\n", kib / 1024 }'
}

# What a layout is called in the rows.
what() {
    case $1 in
    slurm) echo "Slurm's files" ;;
    ours) echo "our files" ;;
    plain) echo "our files uncompressed" ;;
    esac
}

# goal LAYOUT GOAL - none for Slurm's files
goal() {
    [ "$1" = slurm ] || echo "$2"
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
            "$(rate "$3" "ours-$layout")" "$(rate "$3" slurm)" "$(goal $layout ">=3x")"
        row "merge $1: $(what $layout); peer: cp" s \
            "$(seconds "unsynced-$layout")" "$(seconds "cp-$layout")" ""
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
    # Root does not read a file of somebody else's.
    cp "$DIR/alice/merged.h5" "$DIR/theirs.h5" || fail "cannot copy the merged file"
    timed nothing nothing
    timed slurm theirs -j 7 -i merged.h5 "${options[@]}" -o e.csv
    for ((i = 0; i < RUNS; i++)); do
        for layout in ours plain slurm; do
            timed "ours-$layout" ours -i "$DIR/$layout.h5" "${options[@]}" \
                -o "$DIR/e.csv"
        done
        timed ours-theirs ours -i "$DIR/theirs.h5" "${options[@]}" \
            -o "$DIR/e.csv"
    done
    cmp -s <(sort "$DIR/e.csv") <(sort "$DIR/alice/e.csv") ||
        fail "the rows are not the same"
    row "extract $1: merged by Slurm's sh5util" Mrows/s \
        "$(rate "$3" ours-theirs)" "$(rate "$3" slurm)" ""
    for layout in ours plain slurm; do
        row "extract $1: $(what $layout)" Mrows/s \
            "$(rate "$3" "ours-$layout")" "$(rate "$3" slurm)" \
            "$(goal $layout ">=8x")"
    done
}

case ${1:-} in
merge | extract) ;;
*)
    echo "usage: bench_profile_read.sh merge|extract [wide|deep]" >&2
    exit 2 ;;
esac
h5tools_begin "bench-$1"
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
exit $STATUS
