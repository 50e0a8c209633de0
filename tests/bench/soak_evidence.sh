# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# soak_evidence.sh - what the cluster of a soak is at while something of it is left;
# for bench_soak.sh.  $C is the cluster, $NODES the number of its nodes.

# What every thread of a process waits in; with gdb its stack, too.
STACKS='for pid in $(pgrep "^(slurmd|slurmctld|slurmstepd|joule-ipmi-read|srun)"); do
    echo "== $(tr "\0" " " < /proc/$pid/cmdline) ($pid)"
    if command -v gdb; then
        timeout 20 gdb -q -batch -p $pid -ex "thread apply all bt"
    else
        for task in /proc/$pid/task/*; do
            echo "${task##*/} $(cat $task/wchan) $(cat $task/syscall)"
        done
    fi
done 2> /dev/null'

# evidence WHY - the jobs that are left, and the end of the logs, on stderr; all logs,
# ledgers and stacks in $BENCH_OUT/soak-left.
evidence() {
    local dir=$BENCH_OUT/soak-left i log
    rm -rf "$dir" && mkdir -p "$dir" || return 1
    say "$1: logs and stacks are in $dir"
    {
        cluster run --timeout 20 "$C" squeue -a -o '%i %j %T %M %r %N'
        cluster run --timeout 20 "$C" squeue -a -s
        cluster run --timeout 20 "$C" ps -eo pid,ppid,stat,wchan:24,lstart,args
    } > "$dir/jobs" 2>&1
    cluster run --timeout 300 "$C" bash -c "$STACKS" > "$dir/stacks" 2>&1
    for ((i = 1; i <= NODES; i++)); do
        ledger_of "$C" "node$i" > "$dir/ledger-node$i" 2>&1
    done
    cp -r "$(cluster dir "$C")/log" "$SCRATCH/faults" "$SCRATCH"/plan-* "$dir"
    cat "$dir/jobs" >&2
    for log in "$dir"/ledger-node*; do
        echo "${log##*/}: $(head -c 2000 "$log")" >&2
    done
    for log in "$dir"/log/slurmd-node*.log; do
        echo "the end of ${log##*/}:" >&2
        tail -n 25 "$log" >&2
    done
}
