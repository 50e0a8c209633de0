#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_overhead.sh - what monitoring costs a node: the seven modes of table 1
# of Georgiou et al. 2014, ours and Slurm's own plugins by turns, with tasks that
# compute and tasks that wait for each other.
#
# Prints CSV as tests/bench/run, and writes overhead.csv into $JOULE_BENCH_OUT
# (default: bench in the build directory).
#
#   BENCH_SECONDS  that are looked at of each step (10)
#   BENCH_RUNS     of all modes; medians of their differences count (1)
#   BENCH_MODES    some of them ("JOBACCT_RAPL JOBACCT_RAPL_PROFILE"), with the
#                  controls beside them
#   BENCH_SMALL=1  to see that it works: 4 seconds, and a machine that is too busy
#                  for it will do
#
# What a mode costs is the difference from two controls, NO_JOBACCT (no accounting) and
# JOBACCT (Slurm's, without energy).  The machine may be several times slower a few
# minutes later.  So a mode's cluster and that with Slurm's plugins run their steps in
# turn, there and back, each step looked at for a short time; the controls come again and
# again between them (see plan in overhead_modes.sh); and a step is compared with what
# lies, at its time, on the line between the control before it and the one after it.  How
# far a control is from that line between its neighbours says how far the differences can
# be repeated: see overhead_rows.awk.
#
# What is one-off and what goes on is told apart, so that the cost of 44 minutes
# can be reckoned: see overhead.awk.  The counters are simulated: a reading is a
# call to FUSE, for both.  The BMC is asked over the network by both, Slurm's
# plugin by means of shim_bmc.
set -u
set -o pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../system/lib.sh
. "$HERE/../system/lib.sh"
# A number behind it: those of plan.
NAMES=bench-overhead
# shellcheck source-path=SCRIPTDIR source=overhead_modes.sh
. "$HERE/overhead_modes.sh"
USAGE=$JOULE_BUILD/tests/bench/usage
READING=$JOULE_BUILD/tests/bench/reading
WAKING=$JOULE_BUILD/tests/bench/waking
LOADS="compute exchange"
# The tasks begin: slurmstepd is busy with that for a moment; a profile's file is
# made when it is written for the first time, after JouleProfileFlush; their end.
SETTLE_S=2
SETTLE_PROFILE_S=12
SPARE_S=1
# Then, at 100 Hz, what only being woken as often costs here and now.
WAKING_S=4
SECONDS_SEEN=${BENCH_SECONDS:-${BENCH_SMALL:+4}}
SECONDS_SEEN=${SECONDS_SEEN:-10}
IDLE_S=8
# By the clock of the snapshots.
BEGAN_NS=

# By number of a cluster: its group, CPU time of a reading of one of its counters.
declare -a GROUPS_OF=() READINGS=()
# Clusters that have not had their first step.
declare -a FRESH=()

# on KEY - the cluster that the others are about
on() {
    NAME=$NAMES-$1
    GROUP=${GROUPS_OF[$1]:-}
    TOP_DIR=$SCRATCH/mode.$1
    DIR=$TOP_DIR
}

# snapshot WHAT
snapshot() {
    "$USAGE" "$GROUP" > "$DIR/$1" || fail "the processes cannot be seen"
    [ -n "$BEGAN_NS" ] || BEGAN_NS=$(awk '$1 == "at" { print $2 }' "$DIR/$1")
}

stepd_gone() {
    ! "$USAGE" "$GROUP" | grep -q '^process .* slurmstepd$'
}

# What the daemons use in SECONDS, as perf counts it, if the machine does.
watch() {
    if [ -z "$COUNTED" ]; then
        sleep "$SECONDS_SEEN"
        return
    fi
    perf stat -x, -e instructions -o "$DIR/perf" -p "$(awk '
        $1 == "process" && $NF != "ranks" { p = p sep $2; sep = "," }
        END { print p }' "$DIR/begun")" sleep "$SECONDS_SEEN" ||
        fail "perf cannot count"
}

# load WHAT PROFILE HZ ENERGY - a step; leaves snapshots and more in DIR; 1 if its
# profile lacks rows
load() {
    local what=$1 profile=$2 hz=$3 energy=$4 options=() seconds srun job n
    local ranks=$DIR/ranks settle=$SETTLE_S spare=$SPARE_S
    mkdir -m 1777 "$ranks" || fail "no directory"
    if [ "$profile" != - ]; then
        options+=(--profile="$profile")
        settle=$SETTLE_PROFILE_S
    fi
    [ "$hz" != 100 ] || spare=$((spare + WAKING_S + 1))
    seconds=$((settle + SECONDS_SEEN + spare))
    snapshot before
    cluster user --timeout $((seconds + 120)) "$NAME" srun -n2 "${options[@]}" \
        "$RANKS" "$what" "$seconds" "$ranks" > "$DIR/srun.log" 2>&1 &
    srun=$!
    wait_for 60 test -e "$ranks/began.0" -a -e "$ranks/began.1" ||
        { cat "$DIR/srun.log" >&2; fail "the step does not begin"; }
    sleep "$settle"
    snapshot begun
    watch
    snapshot seen
    : > "$DIR/waking"
    [ "$hz" != 100 ] || "$WAKING" $WAKING_S > "$DIR/waking" ||
        fail "nothing can be woken"
    wait $srun || { cat "$DIR/srun.log" >&2; fail "the step failed"; }
    wait_for 30 stepd_gone || fail "slurmstepd does not end"
    # slurmd hears of it, and tells the controller.
    sleep 1
    snapshot after
    cat "$ranks"/ended.* > "$DIR/ended" || fail "the tasks did not end"
    ENERGY_J=
    : > "$DIR/rows"
    if [ "$energy" != none ]; then
        job=$(last_job "$NAME") || fail "there is no job"
        ENERGY_J=$(step_energy "$NAME" "$job.0")
    fi
    echo "$ENERGY_J" > "$DIR/joules"
    if [ "$profile" != - ]; then
        n=$(rows_of "$job")
        echo "$n" > "$DIR/rows"
        # The first and the last second may be short of one.
        [ "$n" -ge $((seconds * hz * 9 / 10 - 2)) ] || {
            warn "$n rows of a profile of $seconds s at $hz Hz"
            return 1
        }
    fi
}

# executed KIND SECONDS - "INSTRUCTIONS ROUNDS" of the tasks of a load under callgrind
executed() {
    local dir=$SCRATCH/executed.$2 rank ranks=1
    [ "$1" != exchange ] || ranks=2
    rm -rf "$dir"
    mkdir "$dir" || return 1
    for ((rank = 0; rank < ranks; rank++)); do
        SLURM_PROCID=$rank SLURM_NTASKS=$ranks timeout 120 valgrind --tool=callgrind \
            --callgrind-out-file=/dev/null --log-file="$dir/log.$rank" \
            --vgdb=no "$RANKS" "$1" "$2" "$dir" &
    done
    wait
    cat "$dir"/log.* "$dir"/ended.* | awk -v ranks=$ranks '
        $2 == "Collected" { instructions += $4; counted++ }
        /^[0-9]/ { rounds += $4 }
        END {
            printf "%.0f %d\n", instructions, rounds
            exit counted != ranks || !rounds
        }'
}

# per_round KIND - instructions of a round, in user mode: what a longer run has more
# than a shorter one, which is as long in starting and ending
per_round() {
    local short long
    if ! short=$(executed "$1" 2) || ! long=$(executed "$1" 6); then
        cat "$SCRATCH"/executed.*/log.* >&2
        fail "what a round of '$1' executes cannot be counted"
    fi
    awk -v short="$short" -v long="$long" 'BEGIN {
        split(short, a, " "); split(long, b, " ")
        if (b[2] > a[2]) printf "%.0f\n", (b[1] - a[1]) / (b[2] - a[2])
    }' | grep . || fail "a longer run of '$1' has no more rounds than a shorter one"
}

# begin KEY MODE ENERGY FREQUENCY PROFILE HZ WHOSE - a cluster
begin() {
    local key=$1 energy=$3 reading=
    on "$key"
    mkdir -m 755 "$DIR" || fail "no directory"
    start "${@:2}"
    GROUPS_OF[key]=$(grep /cpuacct/ "$(cluster dir "$NAME")/cgroups" | head -n 1)/node1
    on "$key"
    [ -e "$GROUP/cpuacct.usage" ] || fail "there is no group of cpuacct (cgroup v1)"
    [ "$energy" != rapl ] ||
        reading=$(cluster at "$NAME" node1 "$READING" /dev/cpu/0/msr 0x611) ||
        fail "the counters cannot be read"
    READINGS[key]=$reading
    FRESH+=("$key")
}

# The controller sees whether the node answers; the BMC's first readings; the node's
# first ten seconds, in which it learns what it uses when idle.  Then what it does so.
settle() {
    local key
    sleep 8
    for key in "${FRESH[@]}"; do on "$key"; snapshot idle; done
    sleep $IDLE_S
    for key in "${FRESH[@]}"; do on "$key"; snapshot idled; done
    FRESH=()
}

# measure RUN KEY MODE ENERGY FREQUENCY PROFILE HZ WHOSE - a step with each load: lines
# for overhead.csv
measure() {
    local run=$1 mode=$3 energy=$4 frequency=$5 profile=$6 hz=$7 whose=$8 what try
    on "$2"
    for what in $LOADS; do
        DIR=$TOP_DIR/$what
        for ((try = 1; ; try++)); do
            mkdir "$DIR" || fail "no directory"
            load "$what" "$profile" "$hz" "$energy" && break
            [ -z "${BENCH_SMALL:-}" ] || break
            [ $try -lt 3 ] || fail "the machine is too busy"
            rm -rf "$DIR"
        done
        # With task=0 Slurm's does not ask, and has none.
        [ "$energy" = none ] || [ "$ENERGY_J" -gt 0 ] 2> /dev/null ||
            [ "$whose-$frequency" = slurm-task=0 ] || {
            cluster log "$NAME" node1 | grep joule_ | tail -n 5 >&2
            fail "$mode, $whose: the energy of the step is '$ENERGY_J'"
        }
        (cd "$DIR" && cp ../idle ../idled . && awk -v run="$run" -v kind="$what" \
            -v since="$BEGAN_NS" -v mode="$mode" -v plugins="$whose" -v cpus=$CPUS \
            -v rows="$(cat rows)" -v energy="$(cat joules)" \
            -v per_round="${PER_ROUND[$what]:-}" \
            -v reading="${READINGS[$2]}" -v waking="$(cat waking)" \
            -f "$HERE/overhead_sums.awk" -f "$HERE/overhead.awk" \
            ended idle idled before begun seen after) >> "$CSV" ||
            fail "no figures of $mode, $whose"
        rm -rf "$DIR"
    done
}

# end KEY
end() {
    on "$1"
    cluster down "$NAME"
    rm -rf "$DIR"
}

# follow RUN - does what the lines of plan on stdin say
follow() {
    local what key line count=0
    while read -r what key line; do
        # shellcheck disable=SC2086  # words
        case $what in
        up)
            warn "run $1: ${line%% *}, ${line##* }"
            begin "$key" $line < /dev/null
            ;;
        settle) settle ;;
        step)
            count=$((count + 1))
            warn "run $1: ${line%% *}, ${line##* }: step $count"
            measure "$1" "$key" $line < /dev/null
            ;;
        down) end "$key" ;;
        esac
    done
}

[ "$(id -u)" = 0 ] || fail "needs root"
for file in "$RANKS" "$USAGE" "$READING" "$COUNTERS" "$WAKING" "$SHIM" "$BMC_READER"; do
    [ -x "$file" ] || fail "there is no $file"
done
CPUS=$(nproc --all)
[ "$CPUS" -ge 2 ] || fail "the load needs two CPUs"
# As many as the cluster gives to Slurm.
CPUS=2
COUNTED=
declare -A PER_ROUND=()
if command -v perf > /dev/null &&
    perf stat -x, -e instructions true 2>&1 | grep -q '^[0-9]'; then
    COUNTED=yes
else
    warn "this machine counts no instructions: those of the load are reckoned"
    command -v valgrind > /dev/null || fail "there is no valgrind"
    for what in $LOADS; do
        PER_ROUND[$what]=$(per_round "$what") || exit
        reckoned+="${reckoned:+, }$what ${PER_ROUND[$what]}"
    done
fi
mkdir -p "$BENCH_OUT" || fail "cannot make $BENCH_OUT"
CSV=$SCRATCH/overhead.csv
awk -v seconds="$SECONDS_SEEN" -v slurm="$(slurmctld -V)" -v header=1 \
    -v reckoned="${reckoned:-}" -f "$HERE/overhead_sums.awk" \
    -f "$HERE/overhead.awk" > "$CSV" < /dev/null || fail "no table"
for ((run = 1; run <= ${BENCH_RUNS:-1}; run++)); do
    follow $run < <(plan)
    for key in "${!GROUPS_OF[@]}"; do
        on "$key"
        [ ! -e "$DIR" ] || end "$key"
    done
done
install -m 644 "$CSV" "$BENCH_OUT/overhead.csv" || fail "cannot write to $BENCH_OUT"
warn "$BENCH_OUT/overhead.csv"
awk -F, -f "$HERE/overhead_rows.awk" "$CSV"
