#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default measures
#
# A cluster of unlike nodes under one slurm.conf: acct_gather_energy/joule takes what
# each has, and says so.  What sacct says of a step is what the wattmeter does, to 0.1 %
# or 1 J, and on a Cray blade to what it uses in 0.1 s, since that is how often the
# blade's controller counts.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# says NODE TEXT - slurmd's log there
says() {
    cluster log unlike "$1" | grep -F "joule: $2" | grep -F -- "${3:-}"
}

# energy_is_right NAME JOULES SRUN-OPTION...
energy_is_right() {
    local name=$1 j=$2
    shift 2
    if ! measure_step unlike user "$@" -- --sleep 4 2> "$SCRATCH/err"; then
        not_ok "$name" "$(cat "$SCRATCH/err")"
        return
    fi
    echo "# $name: sacct $STEP_J J, wattmeter $STEP_TRUE_J to $STEP_MOST_J J"
    check "$name" step_within 0.1 "$j"
}

up unlike --nodes 4 --energy acct_gather_energy/joule \
    --gather JouleAttribution=node --sim '--packages 2 --cpus 4 --load const:60' \
    --sim2 '--vendor amd --family 0x19 --model 0x11 --powercap --no-msr --load const:60' \
    --sim3 '--cray --load const:60' \
    --sim4 '--family 6 --model 0xad --powercap --load const:60' || exit 1
check "a node with MSR devices" says node1 "this node is measured by joule_rapl: "
check "... and why by no more" says node1 "this node is measured by joule_rapl: " \
    "; not cray: cannot open /sys/cray/pm_counters/energy: No such file or directory; \
not fused: there is no /dev/ipmi0"
check "a node with powercap alone" says node2 \
    "the energy counters are read in /sys/class/powercap: there is no /dev/cpu/0/msr"
check "a Cray blade" says node3 \
    "this node is measured by joule_cray: the counters of the blade's controller"
check "Granite Rapids" says node4 "the energy counters are read in /sys/class/powercap: \
the kernel knows more of them on this CPU (Granite Rapids)"
energy_is_right "MSR devices, 4 s" 1 -w node1
energy_is_right "powercap, 4 s" 1 -w node2
energy_is_right "a Cray blade, 4 s" 6.5 -w node3
energy_is_right "Granite Rapids, 4 s" 1 -w node4
energy_is_right "all of them, 4 s" 9.5 -N4 -n4
cluster slurmd unlike node3 stop && sleep 2 && cluster slurmd unlike node3 start
check "a Cray blade: the total goes on over a restart of slurmd" \
    says node3 "the node total goes on from"
energy_is_right "a Cray blade, 4 s, after it" 6.5 -w node3
check "joule probe says it, too" bash -c '"$0" at unlike node3 "$1" probe --node node3 |
    tee /dev/stderr | grep -q "measured by *joule_cray: the counters of the blade"' \
    "$LIB/cluster" "$JOULE_BUILD/tools/joule/joule"
finish
