#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default measures
#
# What sacct says of a step against the wattmeter over the time of its tasks, and no
# more than 30 ms on either side, in which slurmstepd starts a task and reaps it: 0.1 %
# or 1 J, whichever is more, from 0.3 s to a minute (20 s in a default run), on one, two
# and four nodes, at constant, square-wave and ramp load.
#
# One task a node: when several end together, slurmstepd of 22.05 looks for
# the next one 0.1 s later, and the step lasts that much longer than its tasks
# (doc/slurm-abi.md).
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# energy_is_right NAME CLUSTER SRUN-OPTION... -- TASK...
energy_is_right() {
    local name=$1
    shift
    if ! measure_step "$1" user "${@:2}" 2> "$SCRATCH/step.$BASHPID"; then
        not_ok "$name" "$(cat "$SCRATCH/step.$BASHPID")"
        return
    fi
    echo "# $name: sacct $STEP_J J, wattmeter $STEP_TRUE_J to $STEP_MOST_J J"
    check "$name" step_within 0.1 1
}

LONGEST=20
! is_long || LONGEST=60
# Node 2 has no MSR devices, and powercap.
up loads --nodes 4 --sim '--load const:60' --sim2 '--load const:60 --powercap --no-msr' \
    --sim3 '--load square:30:120:1.7' \
    --sim4 '--load ramp:20:100:3.3' || exit 1
declare -A NODE=([constant]=node1 [square]=node3 [ramp]=node4)

# The longest step of each load runs beside the others.
for load in "${!NODE[@]}"; do
    energy_is_right "$load load, $LONGEST s" loads -w "${NODE[$load]}" -- \
        --sleep $LONGEST > "$SCRATCH/longest.$load" 2>&1 &
done
wait
cat "$SCRATCH"/longest.*
TESTS_FAILED=$((TESTS_FAILED + $(cat "$SCRATCH"/longest.* | grep -c '^not ok')))

for load in "${!NODE[@]}"; do
    for seconds in 0.3 2 $(! is_long || echo 10); do
        energy_is_right "$load load, $seconds s" loads -w "${NODE[$load]}" -- \
            --sleep "$seconds"
    done
done
energy_is_right "two nodes, 2 s" loads -w node1,node2 -N2 -n2 -- --sleep 2
energy_is_right "four nodes, 5 s" loads -N4 -n4 -- --sleep 5
check "slurmd says where it reads" bash -c '"$0" log loads node2 |
    grep -q "counters are read in /sys/class/powercap: there is no /dev/cpu/0/msr"' \
    "$LIB/cluster"
energy_is_right "powercap, 5 s" loads -w node2 -- --sleep 5
cluster slurmd loads node2 stop && sleep 2 && cluster slurmd loads node2 start
check "powercap: the node's total goes on over a restart" bash -c '"$0" log loads node2 |
    grep -q "the node total goes on from"' "$LIB/cluster"
energy_is_right "powercap, after a restart of slurmd, 2 s" loads -w node2 -- --sleep 2
finish
