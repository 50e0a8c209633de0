#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default measures
#
# Two jobs of one CPU compute, the one all the time, the other a third of it, and
# something goes wrong in the middle: energy is neither lost nor made, and no job
# gains or loses more than what the node uses in one interval of the sampler, 1 s,
# against what the wattmeter and its own CPU time say.
#
# shellcheck disable=SC2317  # functions are called through check
# shellcheck disable=SC2034,SC2154  # for ledger.sh
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=ledger.sh
. "$LIB/ledger.sh"

# Of job b, a batch script: its tasks go on.  They are the job's as long as it is
# there, if it has a group, and else nobody's from then on.
kill_stepd() {
    local cpu_ns killed_ns pid
    pid=$(burn_pid b) || return 1
    cluster run "$C" pkill -KILL -f "^slurmstepd: \[$JOB_B.batch\]" || return 1
    killed_ns=$(now_ns)
    cpu_ns=$(cpu_ns_of "$pid")
    [ "$cpu_ns" -gt 0 ] || return 1
    wait_for 60 no_batch_row || return 1
    REMARK="its row was there for $((($(now_ns) - killed_ns) / 1000000)) ms more"
    cluster run "$C" scancel "$JOB_B"
    wait_for 60 job_is_over b
    [ -z "$(step_group "$JOB_B" batch)" ] || cpu_ns=$(cpu_ns_of "$pid")
    TRUE_CPU[b]=$(seconds "$cpu_ns")
    cluster run "$C" kill -KILL "$pid"
}

# The steps of both end while slurmd is away.  Job a ends when slurmd is back,
# job b, a batch script, goes on.
away_at_an_end() {
    cluster slurmd "$C" node1 kill && wait_for 60 test -s "$SCRATCH/a.burn" &&
        wait_for 60 test -s "$SCRATCH/b.burn" || return 1
    sleep 3
    cluster slurmd "$C" node1 start
}

seconds() { # NS
    awk -v ns="$1" 'BEGIN { print ns / 1e9 }'
}

start_batch_step() { # SECONDS
    rm -f "$SCRATCH/b.burn"
    cluster user "$C" sbatch -Q --no-requeue -n1 -J b -o /dev/null --wrap \
        "srun --overlap $BURN --duty 10 $1 $SCRATCH/b.burn; sleep 8" \
        > "$SCRATCH/b.out" 2>&1
}

burn_pid() { # NAME
    cluster run "$C" pgrep -f "^[^ ]*/burn .*/$1.burn\$"
}

# The CPU time of process $1, in ticks of 10 ms (proc(5)).
cpu_ns_of() {
    cluster run "$C" cat "/proc/$1/stat" | sed 's/.*) //' |
        awk '{ printf "%.0f\n", ($12 + $13) * 1e7 }'
}

no_batch_row() {
    ledger published published && ! grep -q "^row .* job=$JOB_B .* kind=other" \
        "$SCRATCH/published"
}

# The step's first process leaves for a group of the user's own making below the
# extern step, and its child computes where it was.
start_hiding() {
    local group=/sys/fs/cgroup/cpuacct/slurm_node1/uid_5001
    rm -f "$SCRATCH/a.burn"
    # shellcheck disable=SC2016  # the other shell's
    cluster user "$C" srun -Q -n1 -J a sh -c \
        'x=$0/job_$SLURM_JOB_ID/step_extern/x; mkdir "$x" || exit 1
        "$@" & echo 0 > "$x/cgroup.procs" || exit 1; wait' \
        "$group" "$BURN" "$SECONDS_EACH" "$SCRATCH/a.burn" > "$SCRATCH/a.out" 2>&1 &
}

# That is so, while it computes.
is_hidden() {
    local dir
    dir=$(step_group "$JOB_A" extern)/x
    grep -q . "$dir/cgroup.procs" || { cat "$SCRATCH/a.out"; return 1; }
    grep -qF ".0" <(cluster run "$C" squeue -h -s -j "$JOB_A")
}

makes_no_group() {
    # shellcheck disable=SC2016  # the other shell's
    cluster user "$C" srun -Q -n1 sh -c '
        for dir in "$0"/job_$SLURM_JOB_ID "$0"/job_$SLURM_JOB_ID/step_*; do
            ! mkdir "$dir/x" || exit 1
        done' /sys/fs/cgroup/cpuacct/slurm_node1/uid_5001 2>&1 |
        tee "$SCRATCH/groups" | grep "Permission denied"
}

says_foreign() {
    cluster log "$C" node1 |
        grep "job $JOB_A has 1 cgroups that Slurm has not made"
}

# A group with tasks stays: they go elsewhere first, and are not the step's any
# more.
remove_group() {
    local dir pid cpu_ns
    dir=$(step_group "$JOB_A" 0) || return 1
    while read -r pid; do
        echo "$pid" > "${dir%%/node1/*}/node1/cgroup.procs"
    done < <(find "$dir" -name cgroup.procs -exec cat {} +)
    cpu_ns=$(cat "$dir/cpuacct.usage")
    find "$dir" -depth -type d -exec rmdir {} +
    [ ! -e "$dir" ] || return 1
    TRUE_CPU[a]=$(seconds "$cpu_ns")
}

# v1 lets root do that.
reset_counter() {
    local dir used
    dir=$(step_group "$JOB_A" 0) || return 1
    used=$(cat "$dir/cpuacct.usage")
    echo 0 > "$dir/cpuacct.usage"
    [ "$(cat "$dir/cpuacct.usage")" -lt "$used" ] || return 1
    sleep 2
    ledger ledger && [ "$(row_value "$JOB_A" numbered backwards)" = 1 ]
}

# What is the same with and without cgroups; ALLOWED_MANY is for many processes.
common() {
    history "$1, slurmd restarted" restart
    history "$1, slurmd killed" kill_slurmd
    history "$1, slurmd killed, away for 4 s" away
    history "$1, a step ends while slurmd is away" away_at_an_end '' \
        "start_batch_step 9"
    history "$1, reconfigured" reconfigure
    ALLOWED=${ALLOWED_MANY:-$ALLOWED} history "$1, 1,000 processes" nothing \
        "start_job a --living 300 --short 700 $SECONDS_EACH"
    ALLOWED=1 history "$1, slurmstepd killed" kill_stepd \
        "start_job a --duty 33 $SECONDS_EACH" "start_batch b 20"
}

if [ -z "$(machine_cpuacct)" ]; then
    skip "faults of a ledger" "the CPU time of this machine is not in a cgroup v1"
    finish
fi
ledger_up faults-cgroup --cgroup || exit 1
if ! is_long; then
    history "slurmd restarted" restart
    history "a step ends while slurmd is away" away_at_an_end '' "start_batch_step 9"
    ALLOWED=1 history "slurmstepd killed" kill_stepd \
        "start_job a --duty 33 $SECONDS_EACH" "start_batch b 20"
    check "no word of a ledger that does not add up" no_fault_in_the_log
    finish
fi
common "cgroups"
history "cgroups, out of its session and from its parent" nothing \
    "start_job a --escape 0 $SECONDS_EACH"
# Later releases do not leave the directories of a job to its user.
if release_is 22.05; then
    history "cgroups, a process hides in a group of its own" is_hidden start_hiding
    check "cgroups: slurmd says that there was one" says_foreign
else
    check "cgroups: a user can make no group in his job" makes_no_group
fi
ALLOWED=1 history "cgroups, the step's group removed" remove_group
ALLOWED=1 history "cgroups, CPU time set to 0" reset_counter
check "cgroups: no word of a ledger that does not add up" no_fault_in_the_log
cluster down faults-cgroup
ledger_up faults-proc --linuxproc || exit 1
# /proc counts a process's CPU time in ticks of 10 ms, up to one less than it was:
# 300 of them that live lack up to three seconds, and one and a half as a rule.
ALLOWED_MANY=1
common "no cgroups"
# Who looks for processes has to see it before its parent is gone.
history "no cgroups, out of its session and from its parent" nothing \
    "start_job a --escape 1500 $SECONDS_EACH"
check "no cgroups: no word of a ledger that does not add up" no_fault_in_the_log
finish
