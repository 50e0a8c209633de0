#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# Who reads acct_gather.conf, and when: a step has what its slurmd has, however
# often its slurmstepd is told; scontrol reconfigure takes over what has been
# changed, in the same process or in a new one, and the counters go on.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
JOULE=$JOULE_BUILD/tools/joule/joule

# A job of one of the node's two CPUs is charged half of it, or all.
ALLOC="JouleAttribution=alloc
JouleIdleWatts=0"
NODE="JouleAttribution=node
JouleIdleWatts=0"

# shellcheck disable=SC2016  # the other shell's
configure() { # LINES
    cluster run reread sh -c 'echo "$0" > "${SLURM_CONF%/*}/acct_gather.conf"' "$1"
}

slurmd_pid() {
    cat "$(cluster dir reread)/run/slurmd-node1.pid"
}

slurmd_process() {
    cluster run reread sh -c 'readlink /proc/$(cat "$0")/exe > /dev/null &&
        cat "$0" && cut -d " " -f 22 "/proc/$(cat "$0")/stat"' \
        "$(cluster dir reread)/run/slurmd-node1.pid" | xargs
}

total_uj() {
    cluster run reread "$JOULE" probe --json --no-conf --seconds 0.1 --node node1 |
        sed -n 's/.*"node_total_uj": *\([0-9]*\).*/\1/p' | head -n 1
}

# charged PART - a step of one CPU, of the wattmeter's joules
charged() {
    measure_step reread user -n1 -- --sleep 3 && near_truth "$1"
}

# What slurmstepd has open of the counters, while a step runs.
registers_open() {
    local job
    rm -f "$SCRATCH/seen"
    # shellcheck disable=SC2016
    cluster user reread srun -J held -n1 sh -c \
        'touch "$0/runs"; until [ -e "$0/seen" ]; do sleep 0.2; done' \
        "$SCRATCH" > /dev/null 2>&1 &
    wait_for 60 [ -e "$SCRATCH/runs" ]
    job=$(cluster run reread squeue -h -n held -o %A)
    # shellcheck disable=SC2016  # the other shell's
    cluster run reread sh -c 'for pid in $(pgrep -f "^slurmstepd: \[$0\.0\]"); do
        ls -l "/proc/$pid/fd"; done | grep -c "/msr$"' "$job"
    rm -f "$SCRATCH/runs"
    touch "$SCRATCH/seen"
    wait
}

reconfigured() {
    wait_for 60 cluster run reread sh -c \
        'sinfo -h -N -t idle -o %N | grep -qx node1'
}

up reread --sim '--packages 2 --load const:100' --gather "$ALLOC" || exit 1
REGISTERS=$(cluster run reread sh -c 'ls -l "/proc/$(cat "$0")/fd"' \
    "$(cluster dir reread)/run/slurmd-node1.pid" | grep -c '/msr$')
check "slurmd has $REGISTERS register files open" [ "$REGISTERS" -gt 0 ]
check "a step has as many, once" [ "$(registers_open)" = "$REGISTERS" ]
check "a step is charged by its CPUs" charged 0.5

# Nobody has told slurmd.
configure "$NODE"
check "a file that slurmd has not read: the step does as slurmd" charged 0.5
check "and has the registers open once" [ "$(registers_open)" = "$REGISTERS" ]
check "slurmd's log has no error" eval \
    '! cluster log reread node1 | grep -E "error: .*(joule_rapl|slurm-joule:)"'

# Told, it continues: in 22.05 in the same process, then in a new one.
BEFORE=$(slurmd_process) TOTAL=$(total_uj)
check "reconfigure" cluster run --timeout 20 reread scontrol reconfigure
check "the node is there again" reconfigured
sleep 2
if release_is 22.05; then
    check "it is the same process" [ "$(slurmd_process)" = "$BEFORE" ]
else
    check "it is another process" [ "$(slurmd_process)" != "$BEFORE" ]
fi
check "the node total goes on from what it was" [ "$(total_uj)" -gt "$TOTAL" ]
check "it says so" [ "$(cluster log reread node1 |
    grep -c 'the node total goes on from')" -ge 1 ]
check "steps do as the file says now" charged 1
check "one register file for each package" [ "$(cluster run reread sh -c \
    'ls -l "/proc/$(cat "$0")/fd"' "$(cluster dir reread)/run/slurmd-node1.pid" |
    grep -c '/msr$')" = "$REGISTERS" ]
check "one sampler" [ "$(cluster run reread sh -c 'cat /proc/[0-9]*/task/*/comm' |
    grep -c '^joule_sampler')" = 1 ]

# A step that begins before and ends after.
begin_step reread user -n1 -- --sleep 9
sleep 1.5
FROM_NS=$(now_ns)
for _ in 1 2 3; do
    cluster run --timeout 20 reread scontrol reconfigure
    sleep 1.5
done
TO_NS=$(now_ns)
end_step
check "three reconfigurations in mid-step" step_lasts "$FROM_NS" "$TO_NS"
check "a step over three reconfigurations ($STEP_J J, wattmeter $STEP_TRUE_J J)" \
    near_truth
check "no child is left of them" wait_for 5 [ "$(cluster run reread pgrep -c \
    -x 'slurmd|slurmd-wlm')" = 1 ]

# A value that means nothing: said by slurmd, not by each step.
configure "$NODE
JouleSamplePeriod=never"
cluster run --timeout 20 reread scontrol reconfigure
check "the node is there after a bad value" reconfigured
check "a step runs" charged 1
check "the bad value is said once" [ "$(cluster log reread node1 |
    grep -c 'error: .*JouleSamplePeriod=never')" = 1 ]
finish
