#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default measures
#
# slurmd killed, restarted, reconfigured and away while a step runs: the
# step's energy stays right and the node total never falls.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

up restart --sim '--load const:90' || exit 1

# The node total as the ledger has it; slurmctld's figure is not printed by
# scontrol.
node_total_uj() {
    cluster run restart "$JOULE_BUILD/tools/joule/joule" probe --json --no-conf \
        --seconds 0.1 --node node1 |
        sed -n 's/.*"node_total_uj": *\([0-9]*\).*/\1/p' | head -n 1
}

TOTAL_UJ=0
total_does_not_fall() {
    local now
    now=$(node_total_uj)
    awk -v now="$now" -v before="$TOTAL_UJ" 'BEGIN {
        printf "%s uJ after %s uJ\n", now, before
        exit !(now != "" && now + 0 >= before + 0 && now + 0 > 0) }' || return 1
    TOTAL_UJ=$now
}

# during SECONDS NAME COMMAND... - a step of SECONDS, COMMAND in its middle; it may
# last up to half a second longer than its task (90 W)
during() {
    local seconds=$1 name=$2
    shift 2
    begin_step restart user -- --sleep "$seconds"
    sleep 1.5
    "$@"
    end_step
    check "$name: the step ($STEP_J J, wattmeter $STEP_TRUE_J J)" \
        within "$STEP_J" "$STEP_TRUE_J" 4 45
    if total_does_not_fall > "$SCRATCH/total"; then
        ok "$name: the node total does not fall"
    else
        not_ok "$name: the node total does not fall" "$(cat "$SCRATCH/total")"
    fi
}

kill_and_start() {
    cluster slurmd restart node1 kill
    cluster slurmd restart node1 start
}

away() {
    cluster slurmd restart node1 stop
    sleep 10
    cluster slurmd restart node1 start
}

reconfigure() {
    cluster run restart scontrol reconfigure
}

during 5 "slurmd killed and started again" kill_and_start
check "the total was continued" bash -c \
    '"$0" log restart node1 | grep -q "the node total goes on from"' \
    "$LIB/cluster"
during 5 "reconfigure" reconfigure
during 14 "slurmd away for 10 s" away

# The end of a step falls into slurmd's absence.
begin_step restart user -- --sleep 5
sleep 1.5
cluster slurmd restart node1 kill
FROM_NS=$(now_ns)
sleep 4.5
TO_NS=$(now_ns)
cluster slurmd restart node1 start
end_step
check "a step ends while slurmd is away" \
    test "${STEP_END_NS:-0}" -gt "$FROM_NS" -a "${STEP_END_NS:-0}" -lt "$TO_NS"
check "a step that ends while slurmd is away ($STEP_J J, $STEP_TRUE_J J)" \
    step_within 1 1
finish
