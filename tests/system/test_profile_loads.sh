#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The energy series of each node under three loads: its sum over time is what its
# wattmeter has, and sacct.  sacct has one number for all nodes of a step, so each
# node has a step of its own, beside one that has all four.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/profile.sh"
NODES='node1 node2 node3 node4'

# start NAME SRUN-OPTION... - a step in the background; its job into a file
start() {
    local name=$1
    shift
    {
        sleeping_step loads 40 --profile=all --acctg-freq=$FREQ "$@" &&
            echo "$JOB" > "$SCRATCH/job.$name"
    } &
}

# right LOAD NAME NODES
right() {
    JOB=$(cat "$SCRATCH/job.$2") || { not_ok "$1 load, $2" "no step"; return; }
    rm "$SCRATCH/job.$2"
    series_is_measured "$1 load, $2" loads "$3"
}

under_load() {
    local node
    for node in $NODES; do
        cluster sim loads "$node" "load $1" > "$SCRATCH/sim" ||
            { not_ok "$1" "$(cat "$SCRATCH/sim")"; return; }
    done
    for node in $NODES; do
        start "$node" -w "$node"
    done
    start "four nodes" -N4 -n4
    wait
    for node in $NODES; do
        right "${1%%:*}" "$node" "$node"
    done
    right "${1%%:*}" "four nodes" "$NODES"
}

up loads --nodes 4 --profile="$PROFILE" || exit 1
for load in const:200 square:100:300:7 ramp:100:300:11; do
    under_load $load
done
finish
