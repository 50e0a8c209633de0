#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default measures
#
# acct_gather_energy/joule_fused: short jobs on nodes whose RAPL sees 70 % of
# their power and whose BMC takes 70 s and longer to climb, and what becomes of a
# step when one of both sources fails.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=ipmi.sh
. "$LIB/ipmi.sh"

# DRAM has no counter: what it uses shows up nowhere but at the BMC.
PART=0.7 LAG=23
NODE=(--no-dram --dram-share 0.3)
# 90 s to within 2 % of a step: 23 s to within 37 %.
BMC="--settle 90s --noise 500 --scale 4:0:0:0"

# up_fused NAME 'LOAD' [CLUSTER-OPTION...]
up_fused() {
    local name=$1 load=$2
    shift 2
    up "$name" --energy acct_gather_energy/joule_fused --bmc "$BMC" \
        --sim "--load $load ${NODE[*]}" \
        --gather "$BMC_CONF
EnergyIPMIPowerSensors=Node=3" "$@"
}

# short NAME CLUSTER SECONDS PERCENT [SRUN-OPTION...]
short() {
    local name=$1 cluster=$2 seconds=$3 percent=$4
    shift 4
    if ! measure_step "$cluster" user "$@" -- --sleep "$seconds"; then
        not_ok "$name: a step of $seconds s"
        return
    fi
    check "$name: a step of $seconds s, $STEP_J J, wattmeter $STEP_TRUE_J J" \
        within "$STEP_J" "$STEP_TRUE_J" "$percent" 1
}

# ---- clusters of their own, one after the other ----

# For comparison.
test_alone() {
    up bmc-alone --energy acct_gather_energy/joule_ipmi --bmc "$BMC" \
        --sim "--load square:100:300:50 ${NODE[*]}" --gather "$BMC_CONF
EnergyIPMIPowerSensors=Node=3" || return
    wait_for 60 is_measured bmc-alone node1
    sleep 3
    measure_step bmc-alone user -- --sleep 30 && note <<< \
        "the BMC alone: a step of 30 s, $STEP_J J, wattmeter $STEP_TRUE_J J"
    cluster down bmc-alone
}

test_four() {
    up_fused fused4 square:100:300:50 --nodes 4 || { not_ok "four nodes"; return; }
    check "four nodes are watched" has_watched fused4 $PART $LAG node1 node2 node3 node4
    short "four nodes" fused4 30 2 -N4
    short "four nodes" fused4 120 2 -N4
    cluster down fused4
}

# All CPUs are all of the node; the step sleeps, so its energy is the job's.  That is
# some tenths of a second longer.
test_share() {
    local joule
    up_fused fusedshare square:100:300:50 --contain --gather "$BMC_CONF
EnergyIPMIPowerSensors=Node=3
JouleAttribution=alloc" || { not_ok "a cluster with a ledger"; return; }
    check "the node is watched" has_watched fusedshare $PART $LAG node1
    measure_step fusedshare user --exclusive -- --sleep 30 ||
        not_ok "a step of 30 s"
    joule=$(step_energy fusedshare "$STEP_JOB.extern")
    check "the ledger: a job of 30 s, $joule J, its step by the wattmeter $STEP_TRUE_J J" \
        within "$joule" "$STEP_TRUE_J" 3 30
    cluster down fusedshare
}

# rows_are_ours FILE PERIOD_NS - whether each period has its row or is one of those
# that the file counts as missed, half of them at most beside busy scripts; and whether
# the counters have made the rows: what slurmd says alone is the same power for a
# second.
rows_are_ours() {
    echo "# period $(attribute "$1" /node1/Energy 'Joule Period ns') ns"
    [ "$(attribute "$1" /node1/Energy 'Joule Period ns')" = "$2" ] || return 1
    rows "$1" /node1/Energy | awk -F, -v period="$2" \
        -v missed="$(attribute "$1" /node1 'Joule Missed Periods')" '
        { seen[$(NF - 1)]; ns = $NF }
        END {
            over = int(ns / period)
            printf "%d rows of %d ms in %.3f s, %d missed, %d powers of a package\n",
                NR, period / 1e6, ns / 1e9, missed, length(seen)
            exit NR + missed < over || NR + missed > over + 1 || missed > over / 2 ||
                length(seen) < NR / 2
        }'
}

# mean FILE COLUMN - its mean over time
mean() {
    rows "$1" /node1/Energy | awk -F, -v at="$2" '
        { sum += $at * ($NF - before); before = $NF }
        END { printf "%.3f\n", sum / before }'
}

test_series() {
    local SENSORS="Node=3;Mem=DRAM" dir file start end sum true_j
    # A BMC that lags shows no load that has just changed.
    up_fused fusedseries const:250 --profile=$PROFILE --gather "$BMC_CONF
EnergyIPMIPowerSensors=\"$SENSORS\"
JouleProfilePeriodMin=10ms
JouleProfilePeriod=100ms" || { not_ok "a cluster with profiles"; return; }
    check "the node is watched" has_watched fusedseries $PART $LAG node1
    dir=$(profile_dir fusedseries)
    step fusedseries --profile=energy sleep 12
    file=$dir/${JOB}_0_node1.h5
    wait_for 60 [ -e "$file" ]
    check "the series has its columns" test "$(h5dump -H -y -d /node1/Energy "$file" |
        sed -n 's/.*H5T_.* "\([A-Za-z0-9_]*\)";$/\1/p' | xargs)" = "ElapsedTime EpochTime \
NodePower BMCPower MemPower package_0Power package_1Power node_uJ Node_mW BMC_mW Mem_mW \
package_0_mW package_1_mW ElapsedTimeNs"
    check "10 Hz: the rows" rows_are_ours "$file" 100000000
    start=$(attribute "$file" /node1 'Joule Start Boot ns')
    end=$((start + $(rows "$file" /node1/Energy | tail -n 1 | sed 's/.*,//')))
    sum=$(joules "$file" node1)
    true_j=$(($(cluster energy fusedseries "$start" "$end" node1) / 1000000))
    check "10 Hz: the series, $sum J, wattmeter $true_j J" within "$sum" "$true_j" 2
    # The series begins before the step's tasks and ends after them, beside busy scripts
    # by up to half a second.
    series_is_right "10 Hz" fusedseries node1 125
    check "10 Hz: the power of the memory" within "$(mean "$file" 11)" 75000 2
    step fusedseries --export=ALL,JOULE_PROFILE_PERIOD=10ms --profile=energy sleep 4
    file=$dir/${JOB}_0_node1.h5
    wait_for 60 [ -e "$file" ]
    check "100 Hz, as the user wishes: the rows" rows_are_ours "$file" 10000000
    # joule probe asks the BMC itself, for all labels.
    cluster at fusedseries node1 "$JOULE_BUILD/tools/joule/joule" probe --node node1 \
        --seconds 2 > "$SCRATCH/probe.labels"
    check "joule probe measures the memory" \
        grep -qE '^  Mem +7[0-9]\.[0-9] W' "$SCRATCH/probe.labels"
    cluster down fusedseries
}

OTHERS=share
! is_long || OTHERS="alone four share"
if [ -e "$JOULE_BUILD/plugins/acct_gather_profile_joule_hdf5.so" ] &&
    command -v h5dump > /dev/null; then
    # shellcheck source-path=SCRIPTDIR source=profile.sh
    . "$LIB/profile.sh"
    OTHERS+=" series"
else
    skip "a series of power" "there is no HDF5"
fi
up_fused fused square:100:300:50 || exit 1
# For the end of this script, whatever becomes of the other shell.
CLUSTERS+=(bmc-alone fused4 fusedshare fusedseries)
{
    TESTS_FAILED=0
    for name in $OTHERS; do
        "test_$name"
    done
    echo "failed $TESTS_FAILED"
} > "$SCRATCH/others.out" 2>&1 &

# ---- one node ----

check "the node is watched" has_watched fused $PART $LAG node1
check "slurmd says of what its power is" \
    bash -c '"$0" log fused node1 | grep -q "joule_fused: samples the energy of Node, BMC, package-0"' "$LIB/cluster"
short "one node" fused 30 2
if is_long; then
    short "one node" fused 20 2
    short "one node" fused 120 2
fi

# joule probe on the node, whose configuration has the BMC's password in a file.
cluster at fused node1 "$JOULE_BUILD/tools/joule/joule" probe --node node1 \
    --seconds 2 > "$SCRATCH/probe"
sed -n '/^BMC and RAPL together/,/^$/p' "$SCRATCH/probe" | note
check "joule probe says on what the total stands" \
    grep -q 'power now is that of  *BMC and RAPL' "$SCRATCH/probe"
check "and which lag the BMC has" grep -q 'lag of the BMC  *first order' "$SCRATCH/probe"

# ---- what fails while a step runs ----

# during SECONDS PERCENT NAME COMMAND...
during() {
    local seconds=$1 percent=$2 name=$3
    shift 3
    begin_step fused user -- --sleep "$seconds"
    sleep 2
    "$@"
    end_step
    check "$name: $STEP_J J, wattmeter $STEP_TRUE_J J" \
        within "$STEP_J" "$STEP_TRUE_J" "$percent" 2
}

restart() {
    cluster slurmd fused node1 kill
    sleep 3
    cluster slurmd fused node1 start
}

bmc_away() {
    cluster bmc fused node1 stop
    sleep 20
    cluster bmc fused node1 cont
}

counters_away() {
    cluster sim fused node1 'eio all' > /dev/null
    sleep 8
    cluster sim fused node1 'eio off' > /dev/null
}

# More often than a second try helps.
some_fail() {
    cluster sim fused node1 'eio every 2' > /dev/null
    sleep 8
    cluster sim fused node1 'eio off' > /dev/null
}

said() { # WHAT
    cluster log fused node1 | grep joule_fused | grep -q "$1"
}

during 12 3 "slurmd killed and started again" restart
check "it goes on with what it had learned" \
    bash -c '"$0" log fused node1 | grep joule_fused | grep -c "is now that of BMC and RAPL" | grep -qx 0' "$LIB/cluster"
during 12 3 "counters fail now and then" some_fail
if is_long; then
    # They have counted all the time; what the BMC had said is put right.
    during 40 3 "the counters fail" counters_away
    check "the log says that" said "the power of the BMC stands in"
    check "and when they are back" wait_for 60 said "the energy counters answer again"
    # This BMC does not even measure meanwhile, and what it says then is wrong.
    during 30 3 "the BMC hangs" bmc_away
    check "the log says what carries on" said "the counters carry on with what has been learned"
    check "and when it is over" wait_for 60 said "the BMC answers again"
fi
check "slurmd has not waited for any of it" \
    [ "$(cluster run fused sinfo -h -o %T)" = idle ]
cluster down fused

wait
grep -v '^failed ' "$SCRATCH/others.out"
TESTS_FAILED=$((TESTS_FAILED + $(sed -n 's/^failed //p' "$SCRATCH/others.out")))
finish
