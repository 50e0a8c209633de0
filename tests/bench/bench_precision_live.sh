#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_precision_live.sh [CLASS [GHZ]] - what sacct says of a step on real
# clusters, against the wattmeter: a job of Georgiou et al. 2014 (default: stream
# at 2.3 GHz, two minutes), by each of our drivers and by Slurm's own, all at the
# same time.  Nodes have a BMC without lag, or one that settles in 70 s, and RAPL
# that sees 70 % of them.
#
# Rows as tests/bench/run prints them; the steps are in precision-live.csv in
# $JOULE_BENCH_OUT (default: bench in the build directory).  Environment:
# JOULE_BENCH_SECONDS, the length of the job; goals are for the paper's, and what
# a shorter one may be off by is as many joules.
set -u
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../system/lib.sh
. "$HERE/../system/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../system/ipmi.sh
. "$LIB/ipmi.sh"
# shellcheck source-path=SCRIPTDIR source=rows.sh
. "$HERE/rows.sh"
CLASS=${1:-stream} GHZ=${2:-2.3}
TABLE=$TOP/tests/fixtures/georgiou2014-precision.csv
SHIM=$JOULE_BUILD/tests/bench/shim_bmc.so
SETTLE=(0 70) # s, of the BMC of node1 and node2
PART=0.7
# A sensor of 1.3 W a step, and noise that no step hides.
BMC="--scale 13:0:0:-1 --noise 1000"
RECORD=3 # the sensor "Node"
# What a step may be off by, in % (with the lag: what that must cost), or in J
# where that is more: it is some tens of ms longer than its job.
RAPL_PERCENT=0.1 IPMI_PERCENT=0.5 FUSED_PERCENT=1 LEAST_J=20

say() {
    echo "bench_precision_live: $*" >&2
}

# job_of SETTLE_S [SECONDS] - seconds, watts of the node and at rest, what the BMC
# may cost in %, the paper's error
job_of() {
    "$JOULE_BUILD/tests/bench/bench_precision" "$TABLE" --job "$CLASS" "$GHZ" "$@"
}

# shorter PERCENT - of the paper's job, in that of this one
shorter() {
    awk -v p="$1" -v full="$FULL_SECONDS" -v s="$SECONDS_LONG" 'BEGIN {
        printf "%.4g\n", s < full ? p * full / s : p }'
}

# time_constant SETTLE_S
time_constant() {
    awk -v s="$1" 'BEGIN { printf "%.1f\n", s / log(50) }'
}

# ---- the clusters ----

# start NAME ENERGY [OPTION...]
start() {
    local name=$1 energy=$2
    shift 2
    up "bench-$name" --energy "acct_gather_energy/$energy" \
        --sim "--load const:$IDLE_W --no-dram --dram-share 0.3" "$@" >&2 ||
        fail "no cluster with acct_gather_energy/$energy"
}

# start_bmc NAME ENERGY LINES - two nodes, each with its BMC
start_bmc() {
    start "$1" "$2" --nodes 2 --bmc1 "$BMC" --bmc2 "$BMC --settle ${SETTLE[1]}s" \
        --gather "$3
EnergyIPMIPowerSensors=Node=$RECORD"
}

# Slurm's plugin asks the machine's own BMC only: a library in front of
# libipmimonitoring gives it the address of the simulated one.
show_bmc() {
    local node
    mkdir -m 700 "$SCRATCH/sdr"
    for node in node1 node2; do
        cluster slurmd bench-ipmi $node stop || fail "slurmd does not stop"
        cluster at bench-ipmi $node env LD_PRELOAD="$SHIM" \
            JOULE_SHIM_BMC=bmc-$node JOULE_SHIM_CACHE="$SCRATCH/sdr" \
            slurmd -N $node || fail "slurmd does not start with shim_bmc"
    done
}

# can_run CLUSTER NODE - it is idle, and its power is known
can_run() {
    [ "$(cluster run --timeout 10 "$1" sinfo -h -n "$2" -N -o %T)" = idle ] &&
        is_measured "$1" "$2"
}

start_all() {
    local name node
    start rapl rapl
    start joule-rapl joule_rapl
    # 2.0, the workaround that ipmi_sim wants, a reading a second
    start_bmc ipmi ipmi "EnergyIPMIUsername=admin
EnergyIPMIPassword=secret
EnergyIPMIProtocolVersion=1
EnergyIPMIPrivilegeLevel=2
EnergyIPMICipherSuiteId=3
EnergyIPMIWorkaroundFlags=16
EnergyIPMIFrequency=1
EnergyIPMICalcAdjustment=yes"
    show_bmc
    start_bmc joule-ipmi joule_ipmi "$BMC_CONF"
    start_bmc joule-fused joule_fused "$BMC_CONF"
    for node in 1 2; do
        has_watched bench-joule-fused $PART \
            "$(time_constant "${SETTLE[node - 1]}")" "node$node" >&2 ||
            fail "joule_fused has learned nothing"
    done
    for name in "${STEPS[@]}"; do
        node=${name#* } name=bench-${name% *}
        wait_for 60 can_run "$name" "$node" || fail "$node of $name is not measured"
    done
}

# ---- the steps ----

STEPS=("rapl node1" "joule-rapl node1" "ipmi node1" "ipmi node2"
    "joule-ipmi node1" "joule-ipmi node2" "joule-fused node1" "joule-fused node2")

# run_step NAME NODE - the load begins and ends with the step's task
run_step() {
    local ask
    ask="$JOULE_BUILD/tests/sim/nodesim --ask $(cluster dir "bench-$1")/sim/$2"
    measure_step "bench-$1" run -Q -w "$2" -- sh -c "$ask 'load const:$NODE_W' &&
        sleep $SECONDS_LONG; $ask 'load const:$IDLE_W'" &&
        echo "$STEP_TRUE_J $STEP_J" > "$SCRATCH/$1.$2"
}

run_steps() {
    local step pids=() pid
    for step in "${STEPS[@]}"; do
        # shellcheck disable=SC2086  # two words
        run_step $step > "$SCRATCH/${step/ /.}.out" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid"
    done
    for step in "${STEPS[@]}"; do
        grep -qE '^[0-9.]+ [0-9]+$' "$SCRATCH/${step/ /.}" 2> /dev/null && continue
        cat "$SCRATCH/${step/ /.}.out" "$SCRATCH/${step/ /.}" >&2
        fail "the energy of a step is not known (cluster and node: $step)"
    done
}

# ---- what comes of it ----

# error STEP [PART] - of a step against PART of the wattmeter, in %
error() {
    awk -v part="${2:-1}" '{ e = ($2 / ($1 * part) - 1) * 100
        printf "%.4f\n", e < 0 ? -e : e }' "$SCRATCH/$1"
}

# line SOURCE STEP SETTLE_S [PART]
line() {
    local true measured
    read -r true measured < "$SCRATCH/$2"
    awk -v part="${4:-1}" -v true="$true" -v measured="$measured" \
        -v head="$CLASS,$GHZ,$1,$3,$SECONDS_LONG" \
        -v tail="$(error "$2" "${4:-1}"),$PAPER" 'BEGIN {
            printf "%s,%.3f,%d,%s\n", head, true * part, measured, tail }'
}

write_csv() {
    local i node
    echo "# Steps on real clusters, sacct against the wattmeter; rapl and ipmi are Slurm's."
    echo "# RAPL sees $PART of the node.  paper_error_pct: Georgiou et al. 2014."
    echo "class,frequency_ghz,source,bmc_settle_s,seconds,true_j,measured_j,error_pct,paper_error_pct"
    for i in rapl joule-rapl; do
        line ${i/-/_}_of_part $i.node1 0 $PART
        line ${i/-/_}_of_node $i.node1 0
    done
    for node in 1 2; do
        for i in ipmi joule-ipmi joule-fused; do
            line ${i/-/_} $i.node$node "${SETTLE[node - 1]}"
        done
    done
}

# most PERCENT STEP - the goal for it
most() {
    awk -v percent="$1" -v least=$LEAST_J '{ p = least / $1 * 100
        printf "<=%.4g\n", (p > percent ? p : percent) }' "$SCRATCH/$2"
}

print_rows() {
    local what="$CLASS of $SECONDS_LONG s live" node settle limit bmc
    row "$what: joule_rapl_of_part" "% error" "$(error joule-rapl.node1 $PART)" \
        "$(error rapl.node1 $PART)" "$(most "$(shorter $RAPL_PERCENT)" joule-rapl.node1)"
    for node in 1 2; do
        settle=${SETTLE[node - 1]} bmc="the BMC settles in ${SETTLE[node - 1]} s"
        limit=$(shorter $IPMI_PERCENT)
        [ "$settle" = 0 ] || read -r _ _ _ limit _ < <(job_of "$settle" "$SECONDS_LONG")
        row "$what: joule_ipmi; $bmc" "% error" "$(error joule-ipmi.node$node)" \
            "$(error ipmi.node$node)" "$(most "$limit" joule-ipmi.node$node)"
        row "$what: joule_fused; $bmc" "% error" "$(error joule-fused.node$node)" \
            "$(error ipmi.node$node)" "$(most "$(shorter $FUSED_PERCENT)" joule-fused.node$node)"
    done
}

[ "$(id -u)" = 0 ] || fail "needs root"
for file in "$JOULE_BUILD/tests/bench/bench_precision" "$SHIM" \
    "$JOULE_BUILD/tests/system/fusedledger" "$STAMP"; do
    [ -x "$file" ] || fail "there is no $file"
done
read -r FULL_SECONDS NODE_W IDLE_W _ PAPER < <(job_of 0)
[ -n "${PAPER:-}" ] || fail "no such job"
SECONDS_LONG=${JOULE_BENCH_SECONDS:-$FULL_SECONDS}
[[ $SECONDS_LONG =~ ^[1-9][0-9]*(\.[0-9]+)?$ ]] || fail "not a number of seconds: $SECONDS_LONG"
say "five clusters"
start_all
say "$CLASS at $GHZ GHz: $SECONDS_LONG s, $NODE_W W"
run_steps
mkdir -p "$BENCH_OUT" || fail "cannot make $BENCH_OUT"
write_csv > "$BENCH_OUT/precision-live.csv" || fail "cannot write to $BENCH_OUT"
row_head
print_rows
exit $STATUS
