#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a BMC does wrong in the middle of a step: the energy of the step, and
# how long slurmd kept others waiting, for each fault.
#
# Bounds: an RPC that goes through the energy plugin takes no more than 50 ms
# longer than without a fault; nodes are never drained; the node total never
# falls; no process, descriptor or session is left; energy is right again as
# soon as the BMC is.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/ipmi.sh"

PING=$JOULE_BUILD/tests/system/rpcping
DELAY_MS=50

up_bmc faults '--relay' 'EnergyIPMIPowerSensors=Node=DCMI
JouleSamplePeriod=500ms' --sim '--load const:200' || exit 1

bmc() {
    cluster bmc faults node1 "$@" > /dev/null
}

# ping SECONDS - asks slurmd all the while; the result is in $SCRATCH/ping
ping_slurmd() {
    cluster run faults "$PING" node1 "$1" 25 > "$SCRATCH/ping"
}

ping_value() { # NAME
    sed -n "s/.*\b$1 \([^ ]*\).*/\1/p" "$SCRATCH/ping"
}

# Within the cluster, where process ids are its own: PIDS of slurmd's readers.
readers() {
    cluster run faults sh -c 'pgrep -x joule-ipmi-read'
}

signal_reader() { # SIGNAL
    cluster run faults pkill "-$1" -x joule-ipmi-read
}

slurmd_descriptors() {
    cluster run faults sh -c 'ls "/proc/$(cat "$0")/fd" | wc -l' \
        "$(cluster dir faults)/run/slurmd-node1.pid"
}

not_drained() {
    ! cluster run faults scontrol show node node1 |
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
# STEP_TRUE_J and LAUNCH_MS, and leaves what slurmd did in $SCRATCH/ping.
hurt() {
    local seconds=$1 begin=$2 end=$3 step pinger
    { measure_step faults user -- --sleep $((seconds + 2))
      echo "${STEP_J:-?} ${STEP_TRUE_J:-?}"; } > "$SCRATCH/step" 2>&1 &
    step=$!
    wait_for 10 bash -c '"$0" run faults squeue -h -t R -o %A | grep -q .' \
        "$LIB/cluster"
    sleep 1
    ping_slurmd "$seconds" &
    pinger=$!
    sleep 0.2
    $begin
    sleep $((seconds > 3 ? 2 : 1))
    LAUNCH_MS=$(cluster user faults sh -c 'a=$(date +%s%N)
        srun --overlap -Q true && echo $((($(date +%s%N) - a) / 1000000))')
    wait $pinger
    $end
    wait $step
    read -r STEP_J STEP_TRUE_J < <(tail -n 1 "$SCRATCH/step")
}

quick_enough() {
    awk -v ms="$(ping_value max_ms)" -v base="$BASE_MS" -v most=$DELAY_MS \
        'BEGIN { exit !(ms != "" && ms - base < most) }'
}

# fault NAME SECONDS PERCENT 'BEGIN' 'END'.  The machine itself may stop a
# process for longer than the bound; what is ours would do it again.
fault() {
    local name=$1 seconds=$2 percent=$3
    for _ in 1 2 3; do
        hurt "$seconds" "$4" "$5"
        echo "# $name: $STEP_J J, wattmeter $STEP_TRUE_J J; slurmd answers in" \
            "$(ping_value median_ms) ms, at most $(ping_value max_ms) ms;" \
            "a job starts and ends in $LAUNCH_MS ms"
        quick_enough && break
    done
    check "$name: the step's energy" within "$STEP_J" "$STEP_TRUE_J" "$percent" 2
    check "$name: no call waits (at most $(ping_value max_ms) ms)" quick_enough
    check "$name: a job starts and ends ($LAUNCH_MS ms)" \
        test "${LAUNCH_MS:-9999}" -lt 1000
    check "$name: the node total does not fall" total_does_not_fall
    check "$name: the node is not drained" not_drained
    check "$name: the power is known again" wait_for 70 is_measured faults node1
}

watts_are() {
    within "$(node_field faults node1 CurrentWatts)" "$1" 2
}

nothing() { :; }

ping_slurmd 5
BASE_MS=$(ping_value max_ms)
echo "# without a fault: $(cat "$SCRATCH/ping")"
DESCRIPTORS=$(slurmd_descriptors)

bmc_stop() { bmc stop; }
bmc_cont() { bmc cont; }
fault "BMC hangs for 5 s" 5 0.5 bmc_stop bmc_cont
fault "BMC hangs for 30 s" 30 0.5 bmc_stop bmc_cont
fault "BMC hangs for 120 s" 120 0.5 bmc_stop bmc_cont

bmc_kill() { bmc kill; }
bmc_start() { bmc restart; }
fault "BMC dead for 8 s" 8 0.5 bmc_kill bmc_start
fault "BMC restarted, its session dropped" 4 1 bmc_start nothing

slow() { bmc faults delay_ms=3000; }
quick() { bmc faults; }
fault "answers take 3 s" 20 1 slow quick

lossy() { bmc relay "drop_pct=$1"; }
lossy10() { bmc relay drop_pct=10; }
lossy30() { bmc relay drop_pct=30; }
clean() { bmc relay; }
fault "10 % of the answers lost" 10 0.5 lossy10 clean
fault "30 % of the answers lost" 10 0.5 lossy30 clean
twice() { bmc relay dup=1; }
fault "every answer twice" 6 0.5 twice clean
spoilt() { bmc relay corrupt=1 drop_pct=0; }
fault "every answer spoilt" 6 0.5 spoilt clean

unavailable() { bmc faults dcmi_cc=0xD5; }
fault "refused with a completion code" 5 0.5 unavailable quick
inactive() { bmc faults dcmi_active=0; }
fault "power measurement not active" 5 0.5 inactive quick
zero() { bmc faults dcmi_w=0; }
fault "0 W" 5 0.5 zero quick
absurd() { bmc faults dcmi_w=65535; }
fault "65535 W" 5 0.5 absurd quick
short() { bmc faults dcmi_short=1; }
fault "answers cut short" 5 0.5 short quick

kill_reader() { signal_reader KILL; }
fault "reader killed" 6 0.5 kill_reader nothing
stop_reader() { signal_reader STOP; }
fault "reader stopped" 12 0.5 stop_reader nothing

# All sessions of the BMC taken, ours lost: in use again when they time out
# (30 s in ipmi_sim).
no_sessions() {
    bmc restart
    cluster run faults "$JOULE_BUILD/tests/system/hogsessions" bmc-node1 \
        admin secret 70 > "$SCRATCH/hog"
    signal_reader KILL
}
fault "all its sessions used up" 45 0.5 no_sessions nothing
check "that were many ($(cat "$SCRATCH/hog"))" test "$(cat "$SCRATCH/hog")" -gt 30

# slurmd has no descriptor left for a new reader.
no_descriptors() {
    cluster run faults sh -c 'pid=$(cat "$0") && last=$(ls "/proc/$pid/fd" |
        sort -n | tail -n 1) && prlimit --pid "$pid" --nofile=$((last + 1)):' \
        "$(cluster dir faults)/run/slurmd-node1.pid"
    signal_reader KILL
    sleep 3
    cluster run faults sh -c 'prlimit --pid "$(cat "$0")" --nofile=1024:' \
        "$(cluster dir faults)/run/slurmd-node1.pid"
}
{ measure_step faults user -- --sleep 12
  echo "${STEP_J:-?} ${STEP_TRUE_J:-?}"; } > "$SCRATCH/step" 2>&1 &
STEP=$!
sleep 2
no_descriptors
wait $STEP
read -r STEP_J STEP_TRUE_J < <(tail -n 1 "$SCRATCH/step")
check "no descriptors left for 3 s: the step's energy ($STEP_J J, $STEP_TRUE_J J)" \
    within "$STEP_J" "$STEP_TRUE_J" 0.5 2
check "no descriptors left for 3 s: the power is known again" \
    wait_for 30 is_measured faults node1
check "no descriptors left for 3 s: the node is not drained" not_drained

check "the log has a few lines only ($(bmc_log faults | wc -l))" \
    test "$(bmc_log faults | wc -l)" -lt 80
check "one reader process" bash -c '[ "$(wc -w <<< "$1")" -eq 1 ]' - \
    "$(readers)"
check "slurmd's descriptors: $DESCRIPTORS before, $(slurmd_descriptors) now" \
    test "$(slurmd_descriptors)" -le $((DESCRIPTORS + 2))

# The sensor's record has another id, or other factors, when the BMC is back:
# by record id and by name, with and without a new timestamp of the repository.
cluster down faults
for sensors in 'Node=3' 'Node="Node"'; do
    up_bmc faults '' "EnergyIPMIPowerSensors='$sensors'" \
        --sim '--load const:240' || exit 1
    for records in reordered rescaled plain rescaled,new reordered,new; do
        { measure_step faults user -- --sleep 6
          echo "${STEP_J:-?} ${STEP_TRUE_J:-?}"; } > "$SCRATCH/step" 2>&1 &
        STEP=$!
        sleep 2
        bmc restart $records
        wait $STEP
        read -r STEP_J STEP_TRUE_J < <(tail -n 1 "$SCRATCH/step")
        check "$sensors, records $records: ($STEP_J J, $STEP_TRUE_J J)" \
            within "$STEP_J" "$STEP_TRUE_J" 1 2
        check "$sensors, records $records: the power" wait_for 10 watts_are 240
    done
    cluster down faults
done

# A wrong password: one line that does not name it, energy unknown.
printf 'username admin\npassword wrongpw\n' > "$BMC_CREDENTIALS"
up wrong --energy acct_gather_energy/joule_ipmi --bmc '' --gather "$BMC_CONF" \
    --sim '--load const:200' || exit 1
check "wrong password: a job runs" cluster user wrong srun sleep 1
RAW=$(last_job_energy wrong .0)
check "wrong password: energy is blank ('$RAW')" test -z "$RAW"
check "wrong password: power is unknown" bash -c '[ "$1" = n/s ]' - \
    "$(node_field wrong node1 CurrentWatts)"
check "wrong password: the log says so, without it" bash -c \
    'lines=$("$0" log wrong node1 | grep "error.*joule_ipmi")
    echo "$lines"
    [ -n "$lines" ] && ! grep -q wrongpw <<< "$lines" && grep -q -i password <<< "$lines"' \
    "$LIB/cluster"
check "wrong password: the node is idle" wait_for 5 bash -c \
    '"$0" run wrong sinfo -h -o %T | grep -qx idle' "$LIB/cluster"
finish
