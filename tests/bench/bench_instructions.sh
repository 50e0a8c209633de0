#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_instructions.sh - what monitoring costs a node in instructions: the modes of
# bench_overhead.sh, ours and Slurm's own plugins by turns, with slurmd, slurmstepd
# and what they start under callgrind.  It counts those of user mode, whatever the
# machine can count itself.
#
# Prints CSV as tests/bench/run, and writes instructions.csv into $JOULE_BENCH_OUT
# (default: bench in the build directory).
#
#   BENCH_SECONDS  that are looked at of each step (20)
#   BENCH_MODES    some of them ("JOBACCT_RAPL JOBACCT_RAPL_PROFILE")
#   BENCH_SMALL=1  to see that it works: 4 seconds, and a machine that is too busy
#                  for it will do
#
# Without BENCH_MODES those of plain files (_FILES) are left out: to read a file is
# one system call, whatever is behind it.  One load is enough, since the tasks are
# not counted; callgrind is some fifty times slower, but a step's daemons have next to
# nothing to do: that a profile has its rows says whether they kept up.
set -u
set -o pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../system/lib.sh
. "$HERE/../system/lib.sh"
NAME=bench-instructions
# shellcheck source-path=SCRIPTDIR source=overhead_modes.sh
. "$HERE/overhead_modes.sh"
SHIM_TITLE=$JOULE_BUILD/tests/system/shim_title.so
# As in bench_overhead.sh; starting takes longer under callgrind.
SETTLE_S=3
SETTLE_PROFILE_S=12
SPARE_S=4
IDLE_S=4
SECONDS_SEEN=${BENCH_SECONDS:-${BENCH_SMALL:+4}}
SECONDS_SEEN=${SECONDS_SEEN:-20}

# What is executed does not change with the time: controls are not measured beside each
# mode, but so often, to see how far a count can be repeated.
CONTROL_RUNS=3

wanted() { # MODE
    case " ${BENCH_MODES:-} " in
    *" $1 "*) ;;
    "  ") [[ $1 != *_FILES ]] ;;
    *) false ;;
    esac
}

# counts SECONDS FILE... - snapshots in DIR, so far apart
counts() {
    local files=("${@:2}") file
    files=("${files[@]/#/$DIR/}")
    cluster run $NAME env -i "$HERE/callgrind-counts" "$SCRATCH/vgdb" "$1" \
        "${files[@]}" || fail "what was executed cannot be asked for"
    for file in "${files[@]}"; do
        grep -q '^process .* slurmd$' "$file" ||
            fail "slurmd does not say what it executed"
    done
}

stepd_gone() {
    [ -z "$(process_of "$(cluster dir $NAME)" '/slurmstepd$')" ]
}

# What processes that ended have executed in all.
collected() {
    local log
    for log in "$(cluster dir $NAME)"/log/valgrind-node1-*.log; do
        sed -n 's/^==\([0-9]*\)== Collected : \([0-9]*\)$/\1 \2/p' "$log"
    done > "$DIR/collected"
}

# load PROFILE HZ - a step; leaves snapshots and more in DIR; 1 if its profile lacks
# rows, 2 if it failed or was over too soon
load() {
    local profile=$1 hz=$2 options=() settle=$SETTLE_S seconds srun job n='' soon=''
    local ranks=$DIR/ranks
    : > "$DIR/rows"
    mkdir -m 1777 "$ranks" || fail "no directory"
    if [ "$profile" != - ]; then
        options+=(--profile="$profile")
        settle=$SETTLE_PROFILE_S
    fi
    seconds=$((settle + SECONDS_SEEN + SPARE_S))
    counts 0 before
    cluster user --timeout $((seconds + 120)) $NAME srun -n2 "${options[@]}" \
        "$RANKS" compute "$seconds" "$ranks" > "$DIR/srun.log" 2>&1 &
    srun=$!
    wait_for 60 test -e "$ranks/began.0" -a -e "$ranks/began.1" ||
        { cat "$DIR/srun.log" >&2; fail "the step does not begin"; }
    date +%s%N -r "$ranks/began.0" > "$DIR/began" || fail "the tasks did not begin"
    sleep "$settle"
    counts $((SECONDS_SEEN / 2)) begun half seen
    [ ! -e "$ranks/ended.0" ] || soon=yes
    wait $srun || { cat "$DIR/srun.log" >&2; warn "the step failed"; return 2; }
    wait_for 60 stepd_gone || { warn "slurmstepd does not end"; return 2; }
    # slurmd hears of it, and tells the controller.
    sleep 1
    counts 0 after
    collected
    cat "$ranks"/ended.* > "$DIR/ended" || fail "the tasks did not end"
    [ -z "$soon" ] || { warn "the tasks ended before they were looked at"; return 2; }
    [ "$profile" != - ] || return 0
    job=$(last_job $NAME) || fail "there is no job"
    n=$(rows_of "$job")
    echo "$n $((seconds * hz))" > "$DIR/rows"
    # The first and the last second may be short of one.
    [ "$n" -ge $((seconds * hz * 19 / 20 - 2)) ] || {
        warn "$n rows of a profile of $seconds s at $hz Hz"
        return 1
    }
}

cluster_down() {
    cluster down $NAME
    rm -rf "$SCRATCH"/mode "$SCRATCH"/vgdb-* "$SCRATCH"/callgrind.*
}

# measure MODE ENERGY FREQUENCY PROFILE HZ WHOSE - lines for instructions.csv; one
# without figures for what is not kept up with
measure() {
    local mode=$1 profile=$4 hz=$5 whose=$6 try rc n='' due='' kept=yes
    local top=$SCRATCH/mode
    warn "$mode, $whose"
    for ((try = 1; ; try++)); do
        DIR=$top/step
        mkdir -m 755 "$top" "$DIR" || fail "no directory"
        start "$@" --preload "$SHIM_TITLE" --valgrind "callgrind\
 --separate-threads=yes --fair-sched=try --vgdb-prefix=$SCRATCH/vgdb\
 --callgrind-out-file=$SCRATCH/callgrind.%p --trace-children-skip=*/bin/*,*/ranks"
        # The controller sees whether the node answers; the BMC's first readings; the
        # node's first ten seconds, in which it learns what it uses when idle.
        sleep 8
        load "$profile" "$hz"
        rc=$?
        [ $rc != 0 ] || break
        [ $rc != 1 ] || [ -z "${BENCH_SMALL:-}" ] || break
        [ $try -lt 3 ] || { kept=; break; }
        # Whatever the step has left behind.
        cluster_down
    done
    read -r n due < "$DIR/rows"
    if [ -n "$kept" ]; then
        counts $IDLE_S idle idled
        (cd "$DIR" && awk -v mode="$mode" -v plugins="$whose" -v rows="$n" \
            -v due="$due" -f "$HERE/overhead_sums.awk" \
            -f "$HERE/instructions.awk" began ended collected before begun half \
            seen after idle idled) >> "$CSV" ||
            fail "no figures of $mode, $whose"
    else
        echo "$mode,$whose,node,,,,,,,,,$n,$due" >> "$CSV"
    fi
    cluster_down
}

[ "$(id -u)" = 0 ] || fail "needs root"
for file in "$RANKS" "$COUNTERS" "$SHIM" "$SHIM_TITLE" "$BMC_READER"; do
    [ -x "$file" ] || fail "there is no $file"
done
command -v valgrind vgdb > /dev/null || fail "there is no valgrind"
[ "$(nproc --all)" -ge 2 ] || fail "the load needs two CPUs"
[[ $SECONDS_SEEN =~ ^[0-9]*[02468]$ && $SECONDS_SEEN != 0 ]] ||
    fail "BENCH_SECONDS takes an even number"
mkdir -p "$BENCH_OUT" || fail "cannot make $BENCH_OUT"
CSV=$SCRATCH/instructions.csv
awk -v seconds="$SECONDS_SEEN" -v slurm="$(slurmctld -V)" -v header=1 \
    -f "$HERE/overhead_sums.awk" -f "$HERE/instructions.awk" > "$CSV" < /dev/null ||
    fail "no table"
for ((run = 1; run <= CONTROL_RUNS; run++)); do
    each_control measure
done
each_mode measure
install -m 644 "$CSV" "$BENCH_OUT/instructions.csv" ||
    fail "cannot write to $BENCH_OUT"
warn "$BENCH_OUT/instructions.csv"
awk -F, -f "$HERE/instructions_rows.awk" "$CSV"
