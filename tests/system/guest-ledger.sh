#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest, started by test_guest_ledger.sh: a node divided among jobs by
# CPU time, with cgroup v2.
#
# A job is there from the registration of its extern step to its last line in
# slurmd's log: in an emulated machine, where all takes ten times as long, that
# is seconds longer than its task runs.
#
# The kernel's time of all CPUs lacks ticks while the machine that emulates it
# has something else to do; that of groups is of the scheduler's clock, and lacks
# nothing.  So the node is what is in Slurm's groups (nodesim --jobs).
#
# shellcheck disable=SC2317  # functions are called through check
# shellcheck disable=SC2034  # for ledger.sh
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=ledger.sh
. "$LIB/ledger.sh"
BUSY_W=30
SECONDS_EACH=45

# both_registered - the rows that are there while both jobs run
both_registered() {
    ledger running && [ "$(grep -c '^claim .*kind=extern' "$SCRATCH/running")" = 2 ] &&
        [ "$(grep -c '^claim .*kind=numbered' "$SCRATCH/running")" = 2 ]
}

claim_value() { # JOB KIND KEY
    sed -nE "/ job=$1 .* kind=$2 /s/^claim (.* )?$3=([^ ]*).*/\2/p" "$SCRATCH/running"
}

# seconds_there JOB
seconds_there() {
    awk -v from="$(claim_value "$1" extern began_ns)" -v to="$(extern_over_ns "$1")" \
        'BEGIN { printf "%.3f\n", (to - from) / 1e9 }'
}

job_is_right() { # NAME
    local job j true cpu there
    job=$(job_number "$1")
    j=$(step_energy "$C" "$job" 60)
    there=$(seconds_there "$job")
    read -r _ cpu < <(burnt "$1")
    true=$(truth_j "$there" "$cpu")
    check "job $1, $there s with $cpu s of CPU time, is charged $j J of $true J" \
        within "$j" "$true" 2
}

# The directory of a job's groups.  26.05 names it by the job's SLUID: that of the
# slurmstepd of its first step, then.
job_dir() { # JOB
    local pid
    if ! release_is 26.05; then
        find /sys/fs/cgroup/system.slice -type d -name "job_$1" | grep .
        return
    fi
    pid=$(cluster run "$C" pgrep -f "^slurmstepd: \\[$1\\.0\\]") &&
        cluster run "$C" sed -n 's|^0::\(/.*\)/step_0/.*|/sys/fs/cgroup\1|p' \
            "/proc/$pid/cgroup" | grep .
}

# CPU time in ns that slurmstepd of a job's steps has used by itself.
stepd_ns() { # JOB
    cat "$(job_dir "$1")"/step_*/slurm/cpu.stat |
        awk '$1 == "usage_usec" { us += $2 } END { print us * 1000 }'
}

group_is_v2() {
    cluster run "$C" sh -c 'cat /proc/self/cgroup' | grep -qx 0::/ &&
        [ -d "$(job_dir "$1")/step_0/user" ]
}

two_jobs() {
    local charged true job
    ledger before
    start_job a $SECONDS_EACH
    start_job b --duty 33 $SECONDS_EACH
    check "two jobs run, with an extern and a numbered step each" \
        wait_for 60 both_registered
    note < "$SCRATCH/running"
    check "their groups are of v2" group_is_v2 "$(job_number a)"
    wait
    wait_for 60 job_is_over a
    wait_for 60 job_is_over b
    for job in a b; do
        job_is_right $job
    done
    ledger ledger
    note < "$SCRATCH/ledger"
    check "jobs and rest are what the node used" ledger_adds_up
    charged=$(ledger_since before charged_uj)
    true=$(true_uj_since before)
    check "the node's energy ($charged uJ) is the wattmeter's ($true uJ)" \
        within "$charged" "$true" 0.1
    check "CPU time was always known" [ "$(ledger_since before unknown)" = 0 ]
}

# Its slurmstepd is busy, it is not.
a_sleeping_job() {
    local job there cpu stepd_ns above true
    start_job c --duty 0 15
    wait_for 60 sleeper_registered
    job=$(job_number c)
    sleep 5
    stepd_ns=$(stepd_ns "$job")
    wait
    wait_for 60 job_is_over c
    check "slurmstepd of a sleeping job used $((stepd_ns / 1000000)) ms of CPU time" \
        [ "$stepd_ns" -gt 100000000 ]
    job_is_right c
    there=$(seconds_there "$job")
    read -r _ cpu < <(burnt c)
    above=$(awk -v j="$(step_energy "$C" "$job")" -v floor="$(truth_j "$there" 0)" \
        'BEGIN { printf "%.1f\n", j - floor }')
    true=$(truth_j 0 "$cpu")
    check "above the floor it is charged $above J: $true J of its own, and none of the \
$(truth_j 0 "$(awk -v ns="$stepd_ns" 'BEGIN { print ns / 1e9 }')") J of slurmstepd" \
        within "$above" "$true" 0 5
}

sleeper_registered() {
    ledger running && grep -q '^claim .*kind=numbered' "$SCRATCH/running"
}

C=guest
up "$C" --cgroup2 --contain --cpus "$CPUS" --gather "$LEDGER_CONF" \
    --sim "--packages 1 --no-dram --cpus $CPUS --idle $IDLE_W --busy $BUSY_W --jobs %c" ||
    exit 1
two_jobs
a_sleeping_job
check "nothing stays in the ledger" wait_for 60 ledger_is_empty
# It goes with the machine.
CLUSTERS=()
echo "$GUEST_END"
finish
