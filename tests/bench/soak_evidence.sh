# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# soak_evidence.sh - what the cluster of a soak is at while something of it is left;
# for bench_soak.sh.  $C is the cluster, $NODES the number of its nodes.

# What every thread of a process waits in; with gdb its stack, too.
# shellcheck disable=SC2016  # expanded where it is run
STACKS='for pid in $(pgrep "^(slurmd|slurmctld|slurmstepd|joule-ipmi-read)"); do
    echo "== $(tr "\0" " " < /proc/$pid/cmdline) ($pid)"
    if command -v gdb; then
        timeout 20 gdb -q -batch -p $pid -ex "thread apply all bt"
    fi
    for task in /proc/$pid/task/*; do
        echo "$(cat $task/comm $task/wchan $task/syscall | tr "\n" " ")"
    done
    cat /proc/$pid/cgroup
done 2> /dev/null'

# stuck_program FILE - prints a script for UnkillableStepProgram, which slurmstepd runs
# when a step does not end that was killed, and before it drains the node: everything
# that may be seen then is added to FILE.
stuck_program() {
    printf '#!/bin/bash\nexec >> %q 2>&1\ndate\nenv | grep SLURM\n%s\n' "$1" "$STACKS"
}

# evidence WHY - the jobs that are left, and the end of the logs, on stderr; all logs,
# ledgers and stacks in a new directory in $BENCH_OUT/soak-left.
evidence() {
    local dir i log
    mkdir -p "$BENCH_OUT/soak-left" &&
        dir=$(mktemp -d "$BENCH_OUT/soak-left/$(date +%F-%H%M%S).XXXX") || return 1
    say "$1: logs and stacks are in $dir"
    {
        cluster run --timeout 20 "$C" squeue -a -o '%i %j %T %M %r %N'
        cluster run --timeout 20 "$C" squeue -a -s
        cluster run --timeout 20 "$C" ps -eo pid,ppid,stat,wchan:24,lstart,args
    } > "$dir/jobs" 2>&1
    cp -r "$(cluster dir "$C")/log" "$SCRATCH/faults" "$SCRATCH"/plan-* "$dir"
    cp "$SCRATCH/soak/stuck" "$dir" 2> /dev/null
    cluster run --timeout 120 "$C" bash -c "$STACKS" > "$dir/stacks" 2>&1
    for ((i = 1; i <= NODES; i++)); do
        ledger_of "$C" "node$i" > "$dir/ledger-node$i" 2>&1
    done
    cat "$dir/jobs" >&2
    echo "what steps wait in:" >&2
    awk '/^== /{ wanted = /^== slurmstepd/ } wanted' "$dir/stacks" | head -n 60 >&2
    for log in "$dir"/ledger-node*; do
        echo "${log##*/}: $(head -c 2000 "$log")" >&2
    done
    for log in "$dir"/log/slurmd-node*.log; do
        echo "the end of ${log##*/}:" >&2
        tail -n 25 "$log" >&2
    done
    echo "slurmctld of nodes:" >&2
    grep -iE 'drain|not respond|state set|reason' "$dir"/log/slurmctld.log |
        tail -n 25 >&2
}
