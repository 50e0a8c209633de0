#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default
#
# What sacct says of a step against the wattmeter over the step's own time:
# 0.1 % or 1 J, whichever is more, from 0.3 s to 60 s, on one, two and four
# nodes, at constant, square-wave and ramp load.
#
# One task a node: when several end together, slurmstepd of 22.05 looks for
# the next one 0.1 s later, and the step lasts that much longer than its tasks
# (doc/dataflow.md).
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# energy_is_right NAME CLUSTER SRUN-OPTION... -- TASK...
energy_is_right() {
    local name=$1
    shift
    if ! measure_step "$1" user "${@:2}" 2> "$SCRATCH/step.out"; then
        not_ok "$name" "$(cat "$SCRATCH/step.out")"
        return
    fi
    echo "# $name: sacct $STEP_J J, wattmeter $STEP_TRUE_J J"
    check "$name" step_within 0.1 1
}

up const --nodes 4 --sim '--load const:60' || exit 1
for seconds in 0.3 2 10; do
    energy_is_right "constant load, $seconds s" const \
        -w node1 -- --sleep $seconds
done
energy_is_right "two nodes, 2 s" const \
    -w node1,node2 -N2 -n2 -- --sleep 2
energy_is_right "four nodes, 20 s" const -N4 -n4 -- --sleep 20

up square --sim '--load square:30:120:1.7' || exit 1
up ramp --sim '--load ramp:20:100:3.3' || exit 1

# The minute of each load runs beside the others.
minute() {
    energy_is_right "$1 load, 60 s" "$1" -w node1 -- --sleep 60
}
for load in const square ramp; do
    minute "$load" > "$SCRATCH/minute.$load" 2>&1 &
done
wait
cat "$SCRATCH"/minute.*
TESTS_FAILED=$((TESTS_FAILED + $(cat "$SCRATCH"/minute.* | grep -c '^not ok')))

for load in square ramp; do
    for seconds in 0.3 10; do
        energy_is_right "$load load, $seconds s" "$load" -- --sleep $seconds
    done
done
finish
