#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default measures
#
# The energy of steps by the BMC: what sacct says against the wattmeter, 0.5 %
# for a minute (20 s in a default run) at one reading a second, with a BMC that does not lag.
#
# A reading a second sees only what is slower than that.  The square wave has
# halves of whole seconds, and the step has whole waves: what a trapezoid adds
# at a rising edge, it takes away at the next falling one.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/ipmi.sh"

# energy_is_right NAME CLUSTER PERCENT J USER SRUN-OPTION... -- TASK...
energy_is_right() {
    local name=$1 cluster=$2 percent=$3 joules=$4
    shift 4
    if ! measure_step "$cluster" "$@" 2> "$SCRATCH/step.$BASHPID"; then
        not_ok "$name" "$(cat "$SCRATCH/step.$BASHPID")"
        return
    fi
    echo "# $name: sacct $STEP_J J, wattmeter $STEP_TRUE_J J"
    check "$name" step_within "$percent" "$joules"
}

LONGEST=20
! is_long || LONGEST=60
up_bmc loads '' 'EnergyIPMIPowerSensors=Node=DCMI' --nodes 4 \
    --sim '--load const:200' --sim3 '--load square:100:300:20' \
    --sim4 '--load ramp:200:500:300' || exit 1

# The longest step of each load runs beside the others, the first on two nodes.
longest() { # LOAD NODE...
    local load=$1 nodes
    shift
    nodes=$*
    energy_is_right "$load load, $# node(s), $LONGEST s" loads 0.5 0 \
        user -w "${nodes// /,}" -N $# -n $# -- --sleep $LONGEST \
        > "$SCRATCH/longest.$load" 2>&1 &
}
# An edge of the square just before the step is not in the BMC's last reading, and the
# energy that is carried on from there is wrong until the next: srun begins three to five
# seconds after one, and the next is ten after it.
# shellcheck disable=SC2317  # called through wait_for
after_an_edge() {
    local now ago joules joule_at=()
    now=$(now_ns)
    for ago in 1 3 5; do
        joules=$(cluster energy loads $((now - ago * 1000000000 - 200000000)) \
            $((now - ago * 1000000000)) node3) && [ -n "$joules" ] || return
        joule_at+=($((joules / 5000000)))
    done
    [ "${joule_at[0]}" -eq "${joule_at[1]}" ] && [ "${joule_at[1]}" -ne "${joule_at[2]}" ]
}
wait_for 30 after_an_edge || not_ok "an edge of the square load" "none in 30 s"
longest constant node1 node2
longest square node3
longest ramp node4
wait
cat "$SCRATCH"/longest.*
TESTS_FAILED=$((TESTS_FAILED + $(cat "$SCRATCH"/longest.* | grep -c '^not ok')))

# A step is some milliseconds longer than its tasks; 20 ms are 4 J here.
for seconds in 0.3 2 10; do
    energy_is_right "constant load, one node, $seconds s" loads 0.5 4 \
        user -w node1 -- --sleep $seconds
done
check "CurrentWatts within 2 %" within "$(node_field loads node1 CurrentWatts)" 200 2
check "AveWatts within 2 %" within "$(node_field loads node1 AveWatts)" 200 2
check "one message for each reading" bash -c '
    before=$("$0" bmc loads node1 count) && sleep 5 &&
        after=$("$0" bmc loads node1 count) || exit 1
    echo "before: $before"; echo "after: $after"
    # Once a minute the record is looked at again.
    awk -v a="${before##*total=}" -v b="${after##*total=}" \
        "BEGIN { n = b - a; print n; exit !(n >= 4 && n <= 11) }"' "$LIB/cluster"

# The load begins with the step and outlasts it: its edges are where the error is.
# Between two readings the plugin takes the power to change when the step
# begins, not bit by bit: that would be off by 75 J and more.  A step may be some
# tens of milliseconds longer than its tasks.
ASK="$JOULE_BUILD/tests/sim/nodesim --ask $(cluster dir loads)/sim/node4"
for seconds in 3 3.3 $(! is_long || echo 3.6 10); do
    cluster sim loads node4 'load const:100' > /dev/null
    # The BMC must have said so: what it said last is carried on to the next step.
    sleep 1.5
    energy_is_right "load with the step, $seconds s" loads 0.5 20 run -w node4 -- \
        sh -c "$ASK 'load const:400' && sleep $seconds"
done

# slurmd away in the middle of a step: the time between the last reading and the
# next is bridged, and said.
begin_step loads user -w node1 -- --sleep 16
sleep 2
FROM_NS=$(now_ns)
cluster slurmd loads node1 kill
sleep 8
cluster slurmd loads node1 start
TO_NS=$(now_ns)
end_step
check "slurmd away for 8 s: in mid-step" step_lasts "$FROM_NS" "$TO_NS"
check "slurmd away for 8 s: the step's energy ($STEP_J J, $STEP_TRUE_J J)" \
    step_within 0.5 4
check "slurmd away for 8 s: the total goes on" bash -c \
    '"$0" log loads node1 | grep -q "the node total goes on from"' "$LIB/cluster"
check "slurmd away for 8 s: the gap is in the total" bash -c '
    gap=$("$0" run loads "$JOULE_BUILD/tools/joule/joule" probe --json --no-conf \
        --seconds 0.1 --node node1 | grep -o "\"gap_[a-z]*\": *[0-9.]*")
    echo "$gap"
    grep -qE "[1-9]" <<< "${gap#*:}"' "$LIB/cluster"
cluster down loads

# Sensors by record, by name, several of them, and none named.
up_bmc sensors '' 'EnergyIPMIPowerSensors="Node=PSU1,PSU2;Mem=DRAM;Cpus=CPU0,CPU1"
JouleSamplePeriod=200ms
JouleAttribution=cputime
JouleProfileNode=always' --sim '--load const:240' --profile || exit 1
check "named sensors: the power of the node" \
    within "$(node_field sensors node1 CurrentWatts)" 240 2
check "the log names the sensors" bash -c \
    '"$0" log sensors node1 | grep joule_ipmi | grep -q PSU1' "$LIB/cluster"

# The energy series of a step, as Slurm's own sh5util reads it.
# series JOB FILE - least, greatest and mean of each column of step 0
# shellcheck disable=SC2317  # called through check
series() {
    cluster user sensors sh -c '
        cd "$HOME" && sh5util -j "$1" -o merged.h5 &&
            sh5util -j "$1" -E -s Energy -i merged.h5 -o series.csv' - "$1" \
        > "$SCRATCH/sh5util" 2>&1 &&
        cp "$(cluster dir sensors)/home/alice/series.csv" "$2"
}

column() { # FILE NAME
    awk -F, -v name="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
        NR == 2 && at { print $at }' "$1"
}

check "a profiled step" cluster user sensors \
    srun --profile=energy --acctg-freq=energy=1 sleep 8
check "sh5util reads its series" series "$(last_job sensors)" "$SCRATCH/series.csv"
note < "$SCRATCH/sh5util"
# The memory has 15 % of what nodesim's load says, the sockets have the rest.  Watts are
# whole ones; the rows of a constant load have no other reason to differ.
for wanted in NodePower:240:0.1 MemPower:36:0.1 CpusPower:204:0.1 Node_mW:240000:0.01 \
    Mem_mW:36000:0.01 Cpus_mW:204000:0.01; do
    IFS=: read -r name value percent <<< "$wanted"
    for of in Min Avg Max; do
        check "column $name: $of" within \
            "$(column "$SCRATCH/series.csv" "${of}_$name")" "$value" "$percent"
    done
done
joules_a_second() {
    local name
    for name in Min_node_uJ Max_node_uJ Min_EpochTime Max_EpochTime; do
        column "$1" $name
    done | xargs | awk '{ printf "%.3f\n", ($2 - $1) / ($4 - $3) / 1e6 }'
}
check "column node_uJ: the joules of a second" \
    within "$(joules_a_second "$SCRATCH/series.csv")" 240 2
cluster down sensors
up_bmc first '' '' --sim '--load const:240' || exit 1
check "no sensor named: the whole node" \
    within "$(node_field first node1 CurrentWatts)" 240 2
check "joule probe, by the cluster's configuration" cluster run first \
    "$JOULE_BUILD/tools/joule/joule" probe --seconds 1 --node node1 \
    --conf "$(cluster dir first)/etc"

# A BMC that takes a new value every 3 s, asked five times a second.
refresh() {
    cluster run slow "$JOULE_BUILD/tools/joule/joule" probe --seconds 0.1 \
        --node node1 --conf "$(cluster dir slow)/etc" |
        sed -n 's/^ *refreshed by BMC *after \([^ ]*\) s or later: \([0-9]*\) .*/\1 \2/p' \
            > "$SCRATCH/refresh"
    [ -s "$SCRATCH/refresh" ]
}
up_bmc slow '--update 3s' 'EnergyIPMIPowerSensors=Node=DCMI
JouleSamplePeriod=200ms' --sim '--load ramp:100:300:600' || exit 1
check "a BMC that refreshes its value seldom" wait_for 60 refresh
sleep 6
check "the time between its values" refresh
read -r refresh_s held < "$SCRATCH/refresh"
check "is known ($refresh_s s)" within "$refresh_s" 3 8
check "values that were not refreshed are counted ($held)" test "$held" -ge 24
cluster down slow

# What nobody may see.
check "the password is in no log" bash -c \
    '! grep -rqs secret "$(dirname "$1")"' - \
    "$(cluster dir first)/log/slurmd-node1.log"
check_not "nor in scontrol show config" bash -c \
    '"$0" run first scontrol show config | grep -i secret' "$LIB/cluster"
finish
