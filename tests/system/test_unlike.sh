#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default measures
#
# A cluster of unlike nodes under one slurm.conf: acct_gather_energy/joule takes what
# each has, and says so.  What sacct says of a step is what the wattmeter does, to 0.1 %
# or 1 J, and on a Cray blade to what it uses in 0.1 s, since that is how often the
# blade's controller counts.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=profile.sh
. "$LIB/profile.sh"

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

up unlike --nodes 4 --energy acct_gather_energy/joule --profile=$PROFILE \
    --gather JouleAttribution=node --sim '--packages 2 --cpus 4 --powercap --load const:60' \
    --sim2 '--vendor amd --family 0x19 --model 0x11 --powercap --no-msr --load const:60' \
    --sim3 '--cray --load const:60' \
    --sim4 '--packages 2 --cpus 4 --grace --no-msr --load square:30:120:8' || exit 1
check "a node with MSR devices" says node1 "this node is measured by joule_rapl: "
check "... and why by no more" says node1 "this node is measured by joule_rapl: " \
    "; not cray: cannot open /sys/cray/pm_counters/energy: No such file or directory; \
not fused: there is no /dev/ipmi0"
check "a node with powercap alone" says node2 \
    "the energy counters are read in /sys/class/powercap: there is no /dev/cpu/0/msr"
check "a Cray blade" says node3 \
    "this node is measured by joule_cray: the counters of the blade's controller"
check "Grace" says node4 "this node is measured by joule_hwmon: the power meters of Grace"
check "... by its modules alone" says node4 \
    "the node's power is that of its modules, with GPU and memory (hwmon)"
energy_is_right "MSR devices, 4 s" 1 -w node1
energy_is_right "powercap, 4 s" 1 -w node2
energy_is_right "a Cray blade, 4 s" 6.5 -w node3
# A meter is asked once a second: what changes between is a trapezoid.
energy_is_right "Grace, 4 s" 50 -w node4
energy_is_right "all of them, 4 s" 60 -N4 -n4
# slurmstepd chooses what slurmd has chosen.
if step unlike -N3 -n3 -w node1,node2,node3 --profile=energy --acctg-freq=energy=1 sleep 5; then
    wait_for 20 ls "$(profile_dir unlike)/${JOB}_0_node3.h5" > /dev/null
    series_is_right "MSR devices, powercap and a Cray blade" unlike "node1 node2 node3" 20
else
    not_ok "a step with a profile"
fi
cluster slurmd unlike node3 stop && sleep 2 && cluster slurmd unlike node3 start
check "a Cray blade: the total goes on over a restart of slurmd" \
    says node3 "the node total goes on from"
energy_is_right "a Cray blade, 4 s, after it" 6.5 -w node3
# probe NODE TEXT
probe() {
    cluster at unlike "$1" "$JOULE_BUILD/tools/joule/joule" probe --node "$1" \
        > "$SCRATCH/probe" 2>&1
    cat "$SCRATCH/probe"
    grep -q "measured by *$2" "$SCRATCH/probe" &&
        grep -q '^A job on this node would be measured\.' "$SCRATCH/probe"
}
check "joule probe: MSR devices" probe node1 joule_rapl
check "joule probe: powercap" probe node2 joule_rapl
check "joule probe: a Cray blade" probe node3 joule_cray
check "joule probe: Grace" probe node4 joule_hwmon
check_not "MSRs and powercap count the same" says node1 "the MSRs count"
finish
