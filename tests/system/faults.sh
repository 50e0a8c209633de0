# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# faults.sh - a fault in the middle of a step measured by the BMC: the energy of
# the step, and how long slurmd kept others waiting.  Source it after lib.sh and
# ipmi.sh; $C is the cluster, of one node.
#
# Bounds: an RPC that goes through the energy plugin takes no more than
# $DELAY_MS longer than without a fault; nodes are never drained; the node total
# never falls; no process, descriptor or session is left; energy is right again
# as soon as the BMC is.

PING=$JOULE_BUILD/tests/system/rpcping
# A call that waits for the BMC waits for seconds; the machine itself may stop a process
# for less.
DELAY_MS=200
LAUNCH_MAX_MS=1000
NODE_S=0    # the controller may take so long to see that the node answers

bmc() {
    cluster bmc "$C" node1 "$@" > /dev/null
}

# ping SECONDS - asks slurmd all the while; the result is in $SCRATCH/$C.ping
ping_slurmd() {
    cluster run "$C" "$PING" node1 "$1" 25 > "$SCRATCH/$C.ping"
}

ping_value() { # NAME
    sed -n "s/.*\b$1 \([^ ]*\).*/\1/p" "$SCRATCH/$C.ping"
}

# Within the cluster, where process ids are its own: PIDS of slurmd's readers.
readers() {
    cluster run "$C" sh -c 'pgrep -x joule-ipmi-read'
}

signal_reader() { # SIGNAL
    cluster run "$C" pkill "-$1" -x joule-ipmi-read
}

# The fewest of ten looks: a request to slurmd has some for a moment.
slurmd_descriptors() {
    cluster run "$C" sh -c 'pid=$(cat "$0")
        for i in 0 1 2 3 4 5 6 7 8 9; do
            ls "/proc/$pid/fd" | wc -l
            sleep 0.1
        done | sort -n | head -n 1' "$(cluster dir "$C")/run/slurmd-node1.pid"
}

not_drained() {
    ! cluster run "$C" scontrol show node node1 |
        grep -qE 'DRAIN|DOWN|NOT_RESPONDING|Reason='
}

LAST_J=0
total_does_not_fall() {
    local now
    now=$(ping_value joules)
    [ "$now" = unknown ] && now=$LAST_J
    [ "$now" -ge "$LAST_J" ] || { echo "$now J after $LAST_J J"; return 1; }
    LAST_J=$now
}

# hurt SECONDS 'BEGIN' 'END' - a step of SECONDS and 2 s; BEGIN and END are the
# commands that make the fault and end it, within the step.  Sets STEP_J,
# STEP_TRUE_J and LAUNCH_MS, and leaves what slurmd did in $SCRATCH/$C.ping.
hurt() {
    local seconds=$1 begin=$2 end=$3 pinger
    begin_step "$C" user -- --sleep $((seconds + 2))
    sleep 1
    ping_slurmd "$seconds" &
    pinger=$!
    sleep 0.2
    $begin
    sleep $((seconds > 3 ? 2 : 1))
    LAUNCH_MS=$(cluster user "$C" sh -c 'a=$(date +%s%N)
        srun --overlap -Q true && echo $((($(date +%s%N) - a) / 1000000))')
    wait $pinger
    $end
    end_step
}

quick_enough() {
    awk -v ms="$(ping_value max_ms)" -v base="$BASE_MS" -v most=$DELAY_MS \
        'BEGIN { exit !(ms != "" && ms - base < most) }'
}

# fault NAME SECONDS PERCENT 'BEGIN' 'END'
fault() {
    local name=$1 seconds=$2 percent=$3
    hurt "$seconds" "$4" "$5"
    echo "# $name: $STEP_J J, wattmeter $STEP_TRUE_J J; slurmd answers in" \
        "$(ping_value median_ms) ms, at most $(ping_value max_ms) ms;" \
        "a job starts and ends in $LAUNCH_MS ms"
    check "$name: the step's energy" step_within "$percent" 2
    check "$name: no call waits (at most $(ping_value max_ms) ms)" quick_enough
    check "$name: a job starts and ends ($LAUNCH_MS ms)" \
        test "${LAUNCH_MS:-99999}" -lt $LAUNCH_MAX_MS
    check "$name: the node total does not fall" total_does_not_fall
    check "$name: the node is not drained" wait_for $NODE_S not_drained
    check "$name: the power is known again" wait_for 300 is_measured "$C" node1
}

watts_are() {
    within "$(node_field "$C" node1 CurrentWatts)" "$1" 2
}

nothing() { :; }

# begin - what holds without a fault, to compare with
begin() {
    ping_slurmd 5
    BASE_MS=$(ping_value max_ms)
    echo "# $C without a fault: $(cat "$SCRATCH/$C.ping")"
    DESCRIPTORS=$(slurmd_descriptors)
}

# end - what a cluster looks like after all its faults
end() {
    check "$C: the log has a few lines only ($(bmc_log "$C" | wc -l))" \
        test "$(bmc_log "$C" | wc -l)" -lt 50
    check "$C: one reader process" bash -c '[ "$(wc -w <<< "$1")" -eq 1 ]' - \
        "$(readers)"
    check "$C: slurmd's descriptors: $DESCRIPTORS, then $(slurmd_descriptors)" \
        test "$(slurmd_descriptors)" -le $((DESCRIPTORS + 2))
}
