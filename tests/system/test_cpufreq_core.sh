#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The same list of ends a step may come to, three times: with the plugin, with
# the plugin and Slurm's own code (core=on), and with Slurm's own code alone,
# whose score is printed.  A point is a list entry after which everything is as
# before within 5 s.
#
# shellcheck disable=SC2015,SC2317  # the second half never fails; functions are
# called through check
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=cpufreq.sh
. "$LIB/cpufreq.sh"

MODE=''    # ours or theirs: theirs cannot fail the test
SCORE=0 POSSIBLE=0

point() { # NAME COMMAND...
    local name=$1 out
    shift
    POSSIBLE=$((POSSIBLE + 1))
    if out=$("$@" 2>&1 && freq_clean_soon 2>&1); then
        SCORE=$((SCORE + 1))
        [ $MODE = theirs ] || ok "$LABEL: $name"
    elif [ $MODE = theirs ]; then
        note <<< "$LABEL: $name: not as before: $(freq_state)"
    else
        not_ok "$LABEL: $name" "$out"
    fi
    freq_clear
    wait_for 20 freq_idle
}

kill_stepd() {
    cluster run --timeout 10 "$FREQ" pkill -KILL -x slurmstepd
}

plain() { freq_srun --cpu-freq="$1" -n2 sleep 0.2; }
overlapping() { # ORDER of ending
    local job gate
    cluster run "$FREQ" salloc -n1 --no-shell > /dev/null 2>&1
    job=$(last_job "$FREQ")
    freq_step a --jobid "$job" --overlap --cpu-freq=Performance -n1
    freq_step b --jobid "$job" --overlap --cpu-freq=2000000 -n1
    for gate in $(sed 's/./& /g' <<< "$1"); do
        freq_open "$gate"
        sleep 1
    done
}
cancelled() {
    freq_step a --cpu-freq=low -n2
    cluster run "$FREQ" scancel "$(last_job "$FREQ")"
}
stepd_killed() {
    freq_step a "--cpu-freq=$1" -n2
    kill_stepd
}
both_killed() {
    freq_step a --cpu-freq=low -n2
    cluster run "$FREQ" pkill -KILL -x slurmd
    kill_stepd
    cluster slurmd "$FREQ" node1 start
}
next_dirty() {
    freq_step a --cpu-freq=low -n2
    kill_stepd
    freq_srun --overlap --cpu-freq=Performance -n1 sleep 0.2
}
slurmd_killed() {
    freq_step a --cpu-freq=low -n2
    cluster slurmd "$FREQ" node1 kill
    cluster slurmd "$FREQ" node1 start
    freq_open a
}
no_program() { freq_srun --cpu-freq=low -n2 /no/such/program; true; }

list() {
    SCORE=0 POSSIBLE=0
    for request in 2000000 low 1500000-2600000 2000000-2600000:Performance Performance; do
        point "--cpu-freq=$request" plain "$request"
    done
    point "two steps, the first ends first" overlapping ab
    point "two steps, the second ends first" overlapping ba
    point "scancel" cancelled
    point "no such program" no_program
    point "slurmd killed" slurmd_killed
    point "slurmstepd killed" stepd_killed low
    point "slurmstepd killed, with a range" stepd_killed 1500000-2000000
    point "slurmstepd killed, another step behind it" next_dirty
    point "slurmd and slurmstepd killed" both_killed
}

freq_up q-freqcore "--governor ondemand" "" || { not_ok "a cluster with policies"; finish; }
cluster run q-freqcore scontrol update PartitionName=test OverSubscribe=FORCE:4
LABEL="the plugin" MODE=ours
list
OURS=$SCORE
freq_options "core=on"
cluster run q-freqcore scontrol update PartitionName=test OverSubscribe=FORCE:4
LABEL="core=on" MODE=ours
list
freq_options none
cluster run q-freqcore scontrol update PartitionName=test OverSubscribe=FORCE:4
LABEL="Slurm alone" MODE=theirs
list
note <<< "as before within 5 s: the plugin $OURS of $POSSIBLE, Slurm alone $SCORE of $POSSIBLE"
check "the plugin's score is not below Slurm's" test "$OURS" -ge "$SCORE"
cluster down q-freqcore

# ---- without what Slurm's own code needs ----

freq_up q-freqcore "--governor ondemand" "" --conf 'TaskPlugin=task/none
CpuFreqDef=Performance' || not_ok "a cluster without a task plugin"
no_task_plugin() {
    freq_step a -n1 --cpu-freq=low || return 1
    # Bound to nothing, it may use both.
    freq_is "userspace 1500000 1500000 3000000,userspace 1500000 1500000 3000000" || return 1
    freq_open a
    freq_clean_soon
}
check "TaskPlugin=task/none" no_task_plugin
default() {
    freq_step a -n1 || return 1
    freq_is "performance <unsupported> 1500000 3000000,performance <unsupported> 1500000 3000000" || return 1
    freq_open a
    freq_clean_soon
}
check "CpuFreqDef" default
cluster down q-freqcore
finish
