#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest, started by test_guest_cpufreq.sh: the C- and P-states of a step's
# CPUs, as a real kernel counts them, in its profile and in a trace.  CPU 0 computes at
# the highest frequency, and the others, at the lowest, have little to do.
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=/dev/null
. "$LIB/profile.sh"
CPUS=/sys/devices/system/cpu
C=states
BURN=$JOULE_BUILD/tests/system/burn
REPORT=$JOULE_BUILD/joule-report

check "cpuidle" grep -qx acpi_idle $CPUS/cpuidle/current_driver
note < <(grep -s . $CPUS/cpu0/cpuidle/state*/name $CPUS/cpu0/cpufreq/stats/time_in_state)
up "$C" --cgroup2 --cpus 4 --profile="$PROFILE" || exit 1
# The node's energy is simulated, its CPUs are the guest's.
REAL=$(cluster dir "$C")/hw/sys/devices/system/cpu
for ((cpu = 0; cpu < 4; cpu++)); do
    ln -s "$REAL/cpu$cpu/cpuidle" "$REAL/cpu$cpu/cpufreq" \
        "$(cluster dir "$C")/sim/node1/sys/devices/system/cpu/cpu$cpu/"
done
for policy in "$CPUS"/cpufreq/policy*; do
    echo userspace > "$policy/scaling_governor"
    echo 1200000 > "$policy/scaling_setspeed"
done
echo 2400000 > $CPUS/cpufreq/policy0/scaling_setspeed
check "a step" cluster user "$C" env JOULE_PROFILE_STATES=1s srun -n1 -c4 \
    --profile=energy taskset -c 0 "$BURN" 15 "$SCRATCH/burn"
wait_for 60 step_ended "$C" "$(last_job "$C")"
for format in chrome paraver otf2; do
    check "joule trace --format=$format" cluster user "$C" "$REPORT" trace \
        --format=$format --output="$SCRATCH/$format" "$(last_job "$C")"
done
check "paraver" python3 "$LIB/readtrace.py" paraver "$SCRATCH/paraver" 0
check "otf2: metrics of a node and of eight times states" test "$(otf2-print -G \
    "$SCRATCH/otf2/traces.otf2" 2> /dev/null | grep -cE '^LOCATION .*[CP]-states of CPU')" = 8
check "its states" python3 "$LIB/readtrace.py" chrome "$SCRATCH/chrome" 0 \
    "CPU 0 C-states %" C0 50 100 "CPU 0 P-states %" P0 99 100 \
    "CPU 1 C-states %" C1 60 100 "CPU 1 P-states %" P3 99 100
# It goes with the machine.
CLUSTERS=()
echo "$GUEST_END"
finish
