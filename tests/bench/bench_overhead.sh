#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_overhead.sh - CPU time and memory that energy accounting costs a node, ours
# beside Slurm's own plugins, while all CPUs of the node compute.
#
# What counts is the CPU time of slurmd, slurmstepd and the programs they start beyond
# JOBACCT (Slurm's accounting of tasks, without energy), reckoned for a job of 44
# minutes as in Georgiou et al. 2014: what a step costs once, and 2,640 times what it
# costs in a second.  The machine may be slower a few minutes later.  So the clusters
# of a mode run their steps in turn, there and back: JOBACCT, ours, Slurm's, Slurm's,
# ours, JOBACCT.
#
# Prints CSV as tests/bench/run, and writes overhead.csv into $JOULE_BENCH_OUT
# (default: bench in the build directory), a line a step.
#
#   BENCH_SECONDS  that are looked at of each step (10)
#   BENCH_MODES    some of the modes ("JOBACCT_RAPL JOBACCT_RAPL_PROFILE")
#   BENCH_SMALL=1  to see that it works: 4 seconds, and a profile may lack rows
#
# The counters are simulated, and copied to plain files, which cost little to read.
# The BMC is asked over the network by both, by Slurm's plugin through shim_bmc.
set -u
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../system/lib.sh
. "$HERE/../system/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../system/ipmi.sh
. "$LIB/ipmi.sh"
# shellcheck source-path=SCRIPTDIR source=../system/profile.sh
. "$LIB/profile.sh"
# shellcheck source-path=SCRIPTDIR source=rows.sh
. "$HERE/rows.sh"
USAGE=$JOULE_BUILD/tests/bench/usage
BURN=$JOULE_BUILD/tests/system/burn
# Makes plain files of counters.
COUNTERS=$JOULE_BUILD/tests/bench/counters
SHIM=$JOULE_BUILD/tests/bench/shim_bmc.so
SEEN_S=${BENCH_SECONDS:-${BENCH_SMALL:+4}}
SEEN_S=${SEEN_S:-10}
# slurmstepd is busy with the start of the tasks; a profile's file is made when it is
# written for the first time, after JouleProfileFlush; the tasks' end.
SETTLE_S=2 SETTLE_PROFILE_S=12 SPARE_S=1

# Mode, energy plugin, JobAcctGatherFrequency, profile, its Hz, whose plugins.
MODES="
JOBACCT_RAPL rapl task=1 - 1 ours,slurm
JOBACCT_RAPL_PROFILE rapl task=1,energy=1 energy,task 1 ours,slurm
JOBACCT_RAPL_PROFILE_100HZ rapl task=1,energy=1 energy,task 100 ours
JOBACCT_IPMI ipmi task=1 - 1 ours,slurm
JOBACCT_IPMI_PROFILE ipmi task=1,energy=1 energy,task 1 ours,slurm"

declare -A GROUP=() # of a cluster, by whose it is

warn() {
    echo "${0##*/}: $*" >&2
}

# gather_lines ENERGY WHOSE HZ - for acct_gather.conf
gather_lines() {
    case $2-$1 in
    ours-*) echo JouleAttribution=cputime ;;&
    ours-ipmi) printf '%s\n' "$BMC_CONF" ;;&
    slurm-ipmi) cat <<'END' ;;&
EnergyIPMIUsername=admin
EnergyIPMIPassword=secret
EnergyIPMIProtocolVersion=1
EnergyIPMICipherSuiteId=3
EnergyIPMIWorkaroundFlags=16
END
    *-ipmi) printf '%s\n' EnergyIPMIFrequency=1 EnergyIPMIPowerSensors=Node=3 ;;
    esac
    [ "$3" != 100 ] || echo JouleProfilePeriod=10ms
}

# counters_as_files NAME - in place of the simulator's devices, for the next slurmd
counters_as_files() {
    local dir
    dir=$(cluster dir "$1")
    mkdir "$dir/cpu" || fail "no directory"
    cluster run --timeout 0 "$1" "$COUNTERS" "$dir/sim/node1/dev/cpu" "$dir/cpu" \
        > "$SCRATCH/counters.$1" 2>&1 &
    wait_for 10 test -e "$dir/cpu/ready" || fail "$(cat "$SCRATCH/counters.$1")"
    cluster run "$1" mount -n --bind "$dir/cpu" "$dir/sim/node1/dev/cpu" ||
        fail "the files cannot be mounted"
}

# start WHOSE ENERGY FREQUENCY PROFILE HZ - a cluster of one node
start() {
    local whose=$1 energy=$2 profile=$4 name=bench-$1 ours='' type options=() env=()
    [ "$whose" != ours ] || ours=joule_
    [ "$energy" = none ] && type=none || type=acct_gather_energy/$ours$energy
    [ "$profile" = - ] || options+=("--profile=acct_gather_profile/${ours}hdf5")
    [ "$energy" != ipmi ] || options+=(--bmc '')
    up "$name" --cgroup --energy "$type" --sim "--load const:200 --log-ms 100" \
        --conf "SlurmdDebug=info
SlurmdTimeout=0
AcctGatherNodeFreq=0
JobAcctGatherFrequency=$3" --gather "$(gather_lines "$energy" "$whose" "$5")" \
        "${options[@]}" >&2 || fail "no cluster"
    GROUP[$whose]=$(grep /cpuacct/ "$(cluster dir "$name")/cgroups" | head -n 1)/node1
    [ -e "${GROUP[$whose]}/cpuacct.usage" ] ||
        fail "there is no group of cpuacct (cgroup v1)"
    [ "$energy" != none ] || return 0
    # The simulator stands for hardware, which does not wait for a CPU.
    if real_time "$name"; then
        chrt -a -f -p 2 \
            "$(process_of "$(cluster dir "$name")" 'nodesim .*/sim/node1$')" ||
            warn "the simulator cannot be hurried"
    else
        warn "the node has no share of real time"
    fi
    [ "$whose-$energy" != ours-ipmi ] || return 0
    [ "$whose-$energy" != slurm-ipmi ] ||
        env=(LD_PRELOAD="$SHIM" JOULE_SHIM_BMC=bmc-node1 JOULE_SHIM_CACHE="$SCRATCH")
    cluster slurmd "$name" node1 stop || fail "slurmd does not end"
    [ "$energy" != rapl ] || counters_as_files "$name"
    env "${env[@]}" "$LIB/cluster" slurmd "$name" node1 start || fail "slurmd does not start"
}

# snapshot WHOSE WHAT
snapshot() {
    "$USAGE" "${GROUP[$1]}" > "$SCRATCH/$2" || fail "the processes cannot be seen"
}

stepd_gone() { # WHOSE
    ! "$USAGE" "${GROUP[$1]}" | grep -q '^process .* slurmstepd$'
}

# check_profile NAME JOB SECONDS HZ - whether its rows are there; the first and the
# last second may be short of one
check_profile() {
    local n
    n=$(rows "$(profile_dir "$1")/${2}_0_node1.h5" /node1/Energy | wc -l)
    [ "$n" -lt $(($3 * $4 * 9 / 10 - 2)) ] || return 0
    warn "$n rows of a profile of $3 s at $4 Hz"
    [ -n "${BENCH_SMALL:-}" ] || fail "the machine is too busy"
}

# cost WHOLE_S - of the step that the snapshots saw: s of CPU in 44 minutes, of them a
# second, KiB of slurmstepd.  The tasks are not counted.
cost() {
    awk -v long="$1" '
        FILENAME ~ /tasks$/ { tasks += $3; next }
        { what = FILENAME; sub(/.*\//, "", what) }
        $1 == "at" { at[what] = $2 }
        $1 == "group" { group[what] = $2 }
        $1 == "process" && $NF != "burn" {
            cpu[what, $2] = $3
            if (what == "seen" && $NF == "slurmstepd") kib = $4
            if (what == "seen" && ("begun", $2) in cpu) used += $3 - cpu["begun", $2]
        }
        END {
            if (!kib || !tasks || at["seen"] <= at["begun"]) exit 1
            rate = used / (at["seen"] - at["begun"])
            once = (group["after"] - group["before"] - tasks) / 1e9 - rate * long
            printf "%.6f,%.9f,%d\n", once + rate * 2640, rate, kib
        }' "$SCRATCH"/{tasks,before,begun,seen,after}
}

# step MODE ENERGY FREQUENCY PROFILE HZ WHOSE - a line of the table
step() {
    local mode=$1 energy=$2 profile=$4 hz=$5 whose=$6 name=bench-$6 options=() srun job
    local settle=$SETTLE_S seconds figures
    : > "$SCRATCH/tasks" && chmod 666 "$SCRATCH/tasks" || fail "no file"
    if [ "$profile" != - ] && [ "$whose" != control ]; then
        options+=(--profile="$profile")
        settle=$SETTLE_PROFILE_S
    fi
    seconds=$((settle + SEEN_S + SPARE_S))
    snapshot "$whose" before
    cluster user --timeout $((seconds + 120)) "$name" srun -n2 "${options[@]}" \
        "$BURN" "$seconds" "$SCRATCH/tasks" > "$SCRATCH/srun.log" 2>&1 &
    srun=$!
    wait_for 60 begun "$whose" ||
        { cat "$SCRATCH/srun.log" >&2; fail "the step does not begin"; }
    sleep "$settle"
    snapshot "$whose" begun
    sleep "$SEEN_S"
    snapshot "$whose" seen
    wait $srun || { cat "$SCRATCH/srun.log" >&2; fail "the step failed"; }
    wait_for 30 stepd_gone "$whose" || fail "slurmstepd does not end"
    # slurmd hears of it, and tells the controller.
    sleep 1
    snapshot "$whose" after
    if [ "$whose" != control ]; then
        job=$(last_job "$name") || fail "there is no job"
        [ "$(step_energy "$name" "$job.0")" -gt 0 ] 2> /dev/null ||
            fail "$mode, $whose: the step has no energy"
        [ "$profile" = - ] || check_profile "$name" "$job" "$seconds" "$hz"
    fi
    figures=$(cost "$seconds") || fail "no figures of $mode, $whose"
    table_line "$mode,$whose,$figures"
}

begun() { # WHOSE
    [ "$("$USAGE" "${GROUP[$1]}" | grep -c '^process .* burn$')" = 2 ]
}

# measure MODE ENERGY FREQUENCY PROFILE HZ WHO
measure() {
    local who whose turns
    read -ra who <<< "${6//,/ }"
    turns=(control "${who[@]}")
    for whose in "${who[@]}"; do
        start "$whose" "${@:2:4}"
    done
    # The controller sees whether the node answers, the BMC gives its first readings,
    # and the node learns what it uses when idle.
    sleep 12
    for whose in "${turns[@]}" $(printf '%s\n' "${turns[@]}" | tac); do
        step "${@:1:5}" "$whose"
    done
    for whose in "${who[@]}"; do
        cluster down "bench-$whose"
    done
}

# beyond COLUMN MODE WHOSE [FACTOR] - the mean of a column less that of the control
beyond() {
    { table_select "$1" mode="$2" plugins="$3" | sed 's/^/1 /'
      table_select "$1" mode="$2" plugins=control | sed 's/^/0 /'; } |
        awk -v factor="${4:-1}" '{ sum[$1] += $2; n[$1]++ }
            END { if (n[0] && n[1]) printf "%.6f\n", (sum[1] / n[1] - sum[0] / n[0]) * factor }'
}

# rows_of MODE HZ WHO
#
# Slurm's plugin for RAPL without a profile reads the counters for a poll alone, which is
# less than JOBACCT itself varies by: no goal is to be had from that.
rows_of() {
    local peer='' goal='' core='<=0.1'
    if [[ $3 = *slurm ]]; then
        peer=slurm
        case $1 in
        *IPMI*) goal='<=0.5x' ;;
        *PROFILE*) goal='<=1x' ;;
        esac
    fi
    [ "$2" = 1 ] || core='<=1'
    row "$1: CPU in 44 min beyond JOBACCT" s "$(beyond cpu_44min_s "$1" ours)" \
        "${peer:+$(beyond cpu_44min_s "$1" slurm)}" "$goal"
    row "$1: CPU beyond JOBACCT" "% of a core" "$(beyond cpu_s_per_s "$1" ours 100)" \
        "${peer:+$(beyond cpu_s_per_s "$1" slurm 100)}" "$core"
    row "$1: slurmstepd beyond JOBACCT" KiB "$(beyond stepd_kib "$1" ours)" \
        "${peer:+$(beyond stepd_kib "$1" slurm)}" "<=2048"
}

wanted() { # MODE
    [ -z "${BENCH_MODES:-}" ] || [[ " $BENCH_MODES " == *" $1 "* ]]
}

[ "$(id -u)" = 0 ] || fail "needs root"
command -v h5dump > /dev/null || fail "there is no h5dump (hdf5-tools)"
for file in "$BURN" "$USAGE" "$COUNTERS" "$SHIM" "$BMC_READER"; do
    [ -x "$file" ] || fail "there is no $file"
done
[ "$(nproc --all)" -ge 2 ] || fail "the load needs two CPUs"
table_open overhead "What a step of two busy tasks costs slurmd and slurmstepd: \
$(slurmctld -V), $SEEN_S s looked at of each; control: JOBACCT, without energy" \
    mode,plugins,cpu_44min_s,cpu_s_per_s,stepd_kib
start control none task=1 - 1
while read -r mode line; do
    # shellcheck disable=SC2086  # words
    [ -z "$mode" ] || ! wanted "$mode" || measure "$mode" $line < /dev/null
done <<< "$MODES"
row_head
while read -r mode _ _ _ hz who; do
    [ -z "$mode" ] || ! wanted "$mode" || rows_of "$mode" "$hz" "$who"
done <<< "$MODES"
row "JOBACCT: CPU in 44 min from lowest to highest" s \
    "$(table_select cpu_44min_s plugins=control | sort -g |
        awk 'NR == 1 { low = $1 } END { printf "%.6f\n", $1 - low }')" "" ""
exit "$STATUS"
