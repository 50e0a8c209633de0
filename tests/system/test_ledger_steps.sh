#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all alone
#
# Steps in numbers: 10,000 of them leave nothing behind, who asks without end
# costs slurmd little, and a sampler that does not answer delays a step by no
# more than it waits.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=ledger.sh
. "$LIB/ledger.sh"
MANY=10000 PARALLEL=64
FLOOD_S=10
PERCENT_MAX=5     # of a core, while somebody asks without end
DELAY_MAX_MS=250  # of a step whose begin and end nobody answers: three waits of 50

# Whether slurmd has no user's file open: that is so a period after his last step.
# shellcheck disable=SC2016  # the other shell's
files_closed() {
    local open
    open=$(cluster run "$C" sh -c 'ls -l "/proc/$(cat "$0")/fd"' \
        "$(cluster dir "$C")/run/slurmd-node1.pid") && [ -n "$open" ] &&
        [[ $open != */users/* ]]
}

# What slurmd has: descriptors, resident KiB, CPU time in ticks of 10 ms.
# shellcheck disable=SC2016  # the other shell's
slurmd_has() {
    cluster run "$C" sh -c 'cd "/proc/$(cat "$0")" && ls fd | wc -l &&
        sed -n "s/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p" status &&
        sed "s/.*) //" stat | cut -d " " -f 12,13 | tr " " +  | sed "s/$//"' \
        "$(cluster dir "$C")/run/slurmd-node1.pid" | tr '\n' ' '
}

storm() { # COUNT
    cluster run --timeout 300 "$C" "$STEPS" --crash 5 node1 "$1" $PARALLEL |
        tee "$SCRATCH/storm"
}

storm_value() {
    sed -nE "s/(.* )?$1=([^ ]*).*/\2/p" "$SCRATCH/storm"
}

many_steps() {
    local fds rss ticks fds_now rss_now ticks_now slots gone
    note < <(storm 1000)
    check "after 1,000 steps nothing is in the ledger" wait_for 60 ledger_is_empty
    cp "$SCRATCH/ledger" "$SCRATCH/before"
    check "the file of their user is closed" wait_for 5 files_closed
    read -r fds rss ticks < <(slurmd_has)
    note < <(storm $MANY)
    check "$MANY steps" [ "$(storm_value steps)" = $MANY ]
    check "none had no room" [ "$(storm_value refused)" = 0 ]
    check "$(storm_value final) had their final row, $(storm_value unfinished) waited too short" \
        [ $(($(storm_value final) + $(storm_value unfinished))) = \
            $((MANY - $(storm_value crashed))) ]
    check "most had" [ "$(storm_value final)" -gt $((MANY / 2)) ]
    check "none that was answered had no final row" [ "$(storm_value wrong)" = 0 ]
    check "nothing is in the ledger" wait_for 60 ledger_is_empty
    check "jobs and rest are what the node used" ledger_adds_up
    gone=$(ledger_since before gone_uj)
    check "their rows ($(storm_value uj) uJ) are in what is gone ($gone uJ)" \
        [ "$(storm_value uj)" -le "$gone" ]
    check "and all that is gone was theirs" \
        [ "$gone" = "$(ledger_since before jobs_uj)" ]
    read -r slots < <(sed -n 's/^ledger.* slots=\([0-9]*\).*/\1/p' "$SCRATCH/ledger")
    check "the ledger has $slots slots for $PARALLEL steps at a time" \
        [ "$slots" -le $((4 * PARALLEL)) ]
    check "the file of their user is closed again" wait_for 5 files_closed
    read -r fds_now rss_now ticks_now < <(slurmd_has)
    check "slurmd has $fds_now descriptors, $fds before" [ "$fds_now" -le "$fds" ]
    check "slurmd has $rss_now KiB, $rss before" [ "$rss_now" -le $((rss + 512)) ]
    note <<< "slurmd used $((ticks_now - ticks))0 ms of CPU time"
}

# While nobody asks, its other threads use some, too.
ask_without_end() {
    local before after flooder
    read -r _ _ before < <(slurmd_has)
    cluster run "$C" "$STEPS" --flood ${FLOOD_S}s node1 > "$SCRATCH/flood" &
    flooder=$!
    sleep 1
    cluster run "$C" "$STEPS" --ask 100 node1 > "$SCRATCH/storm"
    wait $flooder
    read -r _ _ after < <(slurmd_has)
    note < "$SCRATCH/flood"
    note < "$SCRATCH/storm"
    check "$(cat "$SCRATCH/flood") cost slurmd $((after - before))0 ms in $FLOOD_S s" \
        [ $((after - before)) -le $((FLOOD_S * PERCENT_MAX)) ]
    check "others are answered meanwhile" [ "$(storm_value answered)" = 100 ]
    check "within $(storm_value worst_us) us" \
        [ "$(storm_value worst_us)" -lt 50000 ]
}

# The sampler's thread alone is stopped, by the freezer: with all of slurmd
# stopped no step would begin, whatever it asked for.
FROZEN=''
freeze() {
    local top tid
    top=$(grep -m 1 freezer "$(cluster dir "$C")/cgroups") || return 1
    mkdir -p "$top/node1/frozen"
    while read -r tid; do
        [ "$(cat "/proc/$tid/comm" 2> /dev/null)" = joule_sampler ] || continue
        FROZEN=$top/node1/frozen
        echo "$tid" > "$FROZEN/tasks" && echo FROZEN > "$FROZEN/freezer.state"
    done < "$top/node1/tasks"
    [ -n "$FROZEN" ] && wait_for 2 grep -qx FROZEN "$FROZEN/freezer.state"
}

thaw() {
    local tid
    [ -n "$FROZEN" ] || return 0
    echo THAWED > "$FROZEN/freezer.state"
    while read -r tid; do
        echo "$tid" > "$FROZEN/../tasks"
    done < "$FROZEN/tasks"
    rmdir "$FROZEN"
    FROZEN=''
}

no_answer() {
    local normal stuck
    cluster run "$C" salloc -Q -n1 --no-shell
    JOB=$(last_job "$C")
    normal=$(steps_ms)
    if freeze; then ok "the sampler is stopped"; else not_ok "the sampler is stopped"; fi
    stuck=$(steps_ms)
    check "a step takes $stuck ms without an answer, $normal ms with one" \
        [ $((stuck - normal)) -lt $DELAY_MAX_MS ]
    thaw
    cluster run "$C" scancel "$JOB"
    check "nothing is in the ledger" wait_for 60 ledger_is_empty
    check "jobs and rest are what the node used" ledger_adds_up
}

# charged STEP TRUE LESS MORE - whether sacct has it, in J
charged() {
    awk -v j="$(step_energy "$C" "$1")" -v true="$2" -v less="$3" -v more="$4" '
        BEGIN {
            printf "%s J of %s J, %s less to %s more allowed\n", j, true, less, more
            exit !(j != "" && j >= true - less && j <= true + more)
        }'
}

# What the node uses in a second, at most.
most_w() {
    echo $((IDLE_W + CPUS * BUSY_W))
}

# It begins with nobody there; the first sample charges it from its begin on.
begins_alone() {
    local seconds cpu
    freeze
    start_job a 5
    sleep 2.5
    thaw
    wait
    read -r seconds cpu < <(burnt a)
    check "a step that began while the sampler was stopped" charged \
        "$(job_number a).0" "$(truth_j "$seconds" "$cpu")" $((BUSY_W / 2)) $((BUSY_W / 2))
    check "its job" charged \
        "$(job_number a)" "$(truth_j "$seconds" "$cpu")" "$(most_w)" "$(most_w)"
}

# shellcheck disable=SC2016  # the other shell's
slurmd_signal() {
    cluster run "$C" sh -c 'kill -$1 "$(cat "$0")"' \
        "$(cluster dir "$C")/run/slurmd-node1.pid" "$1"
}

# slurmd is stopped for 5 s, about a second before the step ends, which is not
# charged what it used after the last sample; the job is, when slurmd goes on.
ends_alone() {
    local srun stopped_ns over_ns ended_ns seconds cpu job_seconds
    start_job a 4
    srun=$!
    wait_for 60 job_runs a
    sleep 3
    slurmd_signal STOP
    stopped_ns=$(now_ns)
    wait $srun
    over_ns=$(now_ns)
    ended_ns=$(cut -d ' ' -f 2 "$SCRATCH/a.burn")
    check "slurmd is stopped before the step's end" [ "$stopped_ns" -lt "$ended_ns" ]
    check "the step is over $(((over_ns - ended_ns) / 1000000)) ms after its task" \
        [ $((over_ns - ended_ns)) -lt 1000000000 ]
    sleep 5
    slurmd_signal CONT
    wait_for 60 job_is_over a
    read -r seconds cpu < <(burnt a)
    check "the step that ended while slurmd was stopped" charged "$(job_number a).0" \
        "$(truth_j "$seconds" "$cpu")" \
        "$(awk -v w="$(most_w)" -v ns=$((ended_ns - stopped_ns)) \
            'BEGIN { print w * (1 + ns / 1e9) }')" 10
    job_seconds=$(awk -v s="$seconds" -v ns=$(($(now_ns) - ended_ns)) \
        'BEGIN { print s + ns / 1e9 }')
    check "its job" charged "$(job_number a)" "$(truth_j "$job_seconds" "$cpu")" \
        "$(most_w)" "$(most_w)"
    check "nothing is in the ledger" wait_for 60 ledger_is_empty
    check "jobs and rest are what the node used" ledger_adds_up
}

# sleeper NAME COMMAND... - a step of a job of all CPUs that sleeps: it holds them,
# and so has all that the idle node used; its job has no more but for its edges.
sleeper() {
    local name=$1 from to idle most
    shift
    rm -f "$SCRATCH/sleeper"
    "$@" > /dev/null 2>&1
    wait_for 20 test -s "$SCRATCH/sleeper"
    wait_for 20 job_is_over "$name"
    read -r from to < "$SCRATCH/sleeper"
    idle=$(awk -v w=$IDLE_W -v ns=$((to - from)) 'BEGIN { print w * ns / 1e9 }')
    sleep 0.7 # until the wattmeter's log has half a second more
    most=$(cluster energy "$C" $((from - 500000000)) $((to + 500000000)))
    check "$name: its step" charged "$(job_number "$name").0" "$idle" 1 $IDLE_W
    check "the wattmeter had $most uJ at most" awk -v uj="$most" \
        -v j="$(step_energy "$C" "$(job_number "$name").0")" \
        'BEGIN { exit !(j != "" && j <= uj / 1e6 + 1) }'
}

sleepers() {
    local job
    sleeper srun cluster user "$C" srun -Q -n1 -c "$CPUS" -J srun \
        "$STAMP" --sleep 4 "$SCRATCH/sleeper"
    sleeper batch cluster user "$C" sbatch -Q -n1 -c "$CPUS" -J batch \
        -o /dev/null --wrap "sleep 2
            srun -c $CPUS $STAMP --sleep 4 $SCRATCH/sleeper; sleep 2"
    job=$(job_number batch)
    check "the script that waits for it" charged "$job.batch" $((4 * IDLE_W)) \
        $IDLE_W $((2 * IDLE_W))
    check "the job is both" charged "$job" "$(($(step_energy "$C" "$job.0") +
        $(step_energy "$C" "$job.batch")))" 1 $IDLE_W
}

if [ -z "$(machine_cpuacct)" ]; then
    skip "many steps" "the CPU time of this machine is not in a cgroup v1"
    finish
fi
ledger_up steps --cgroup || exit 1
# What is frozen cannot be killed.
trap 'thaw; ledger_cleanup' EXIT
many_steps
ask_without_end
no_answer
sleepers
begins_alone
ends_alone
finish
