# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# freqscore.sh - a list of ways in which steps with a CPU frequency end, and of
# how many of them everything is put back; on clusters with simulated frequency
# policies (cluster up --cpufreq).  Source it after lib.sh; the list is the
# same whoever sets the frequencies, Slurm itself or a plugin.
#
# shellcheck disable=SC2034,SC2317  # for the tests; called by name

# Seconds within which everything must be as it was before a step.
SCORE_RESTORE_S=5

declare -A SCORE_PIDS

# score_state CLUSTER [NODE] - all that can be set, a line a file
score_state() {
    "$LIB/cluster" cpufreq "$1" "${2:-node1}" dump
}

# score_same CLUSTER STATE [NODE] - whether that is how it is
score_same() {
    [ "$(score_state "$1" "${3:-node1}")" = "$2" ]
}

# score_restored CLUSTER STATE [NODE] - whether it soon is; what is not, is
# printed
score_restored() {
    wait_for "$SCORE_RESTORE_S" score_same "$@" && return
    diff <(echo "$2") <(score_state "$1" "${3:-node1}") | grep '^[<>]'
    return 1
}

# score_put_back CLUSTER STATE [NODE] - make it so, as an administrator would
score_put_back() {
    local path value order
    # What a file takes may hang on another one: governors, then limits, then
    # the rest.
    for order in scaling_governor scaling_m . scaling_min; do
        while read -r path value; do
            [[ $path == *$order* || $order = . ]] || continue
            "$LIB/cluster" cpufreq "$1" "${3:-node1}" \
                "set $path $value" > /dev/null 2>&1
        done <<< "$2"
    done
    score_same "$@"
}

# score_job CLUSTER [SALLOC-OPTION...] - an allocation; sets SCORE_JOB
score_job() {
    local cluster=$1 out
    shift
    out=$("$LIB/cluster" run --timeout 20 "$cluster" salloc --no-shell "$@" 2>&1)
    SCORE_JOB=$(sed -n 's/.*Granted job allocation \([0-9]*\).*/\1/p' <<< "$out")
    [ -n "$SCORE_JOB" ] || { echo "$out" >&2; return 1; }
}

# score_begin CLUSTER NAME SRUN-OPTION... - a step that runs until score_end;
# returns when its task runs, 1 if it never does
score_begin() {
    local cluster=$1 name=$2 file=$SCRATCH/step.$2
    shift 2
    rm -f "$file".*
    # shellcheck disable=SC2016  # the task's
    "$LIB/cluster" run --timeout 120 "$cluster" srun "$@" sh -c '
        : > "$0.up"
        while [ ! -e "$0.go" ]; do sleep 0.05; done' "$file" \
        > "$file.out" 2>&1 &
    SCORE_PIDS[$name]=$!
    wait_for 10 [ -e "$file.up" ] || { cat "$file.out"; return 1; }
}

# score_end NAME - let it end; returns srun's status
score_end() {
    : > "$SCRATCH/step.$1.go"
    wait "${SCORE_PIDS[$1]}"
}

# score_kill CLUSTER JOB.STEP - kill -9 of its slurmstepd, and of the srun that
# would wait for it for ever
score_kill() {
    "$LIB/cluster" run --timeout 10 "$1" \
        pkill -KILL -f "^slurmstepd: \[${2//./\\.}\]" || return 1
    "$LIB/cluster" run --timeout 10 "$1" pkill -KILL -x srun
    true
}

# score_clear CLUSTER - end all jobs and what is left of them
score_clear() {
    local name
    for name in "${!SCORE_PIDS[@]}"; do
        : > "$SCRATCH/step.$name.go"
    done
    "$LIB/cluster" run --timeout 20 "$1" scancel -u root
    "$LIB/cluster" run --timeout 10 "$1" pkill -KILL -x srun
    wait "${SCORE_PIDS[@]}" 2> /dev/null
    SCORE_PIDS=()
    "$LIB/cluster" run --timeout 10 "$1" pkill -KILL -f "$SCRATCH/step\."
    wait_for 20 score_idle "$1"
}
score_idle() {
    [ -z "$("$LIB/cluster" run --timeout 10 "$1" squeue -h)" ]
}

# Scenarios: called with the cluster, each leaves no step behind that could
# still put anything back, and succeeds if it ran as it should have; whether
# everything was restored is seen afterwards.

SCENARIOS=(
    one_frequency one_range one_governor
    two_first_ends_first two_first_ends_last
    three_123 three_132 three_213 three_231 three_312 three_321
    two_jobs_one_policy
    cancelled time_limit
    stepd_killed stepd_killed_then_a_step stepd_killed_under_another
    slurmd_killed both_killed
)

alone() { # CLUSTER SRUN-OPTION
    "$LIB/cluster" run --timeout 30 "$1" srun -n1 "$2" true > /dev/null 2>&1
}
scenario_one_frequency() { alone "$1" --cpu-freq=2000000; }
scenario_one_range() { alone "$1" --cpu-freq=1500000-2600000; }
scenario_one_governor() { alone "$1" --cpu-freq=Performance; }

# overlapping CLUSTER ORDER FREQUENCY... - steps of one job on one CPU, begun
# in turn, which end in that order
overlapping() {
    local cluster=$1 order=$2 i=0 khz
    shift 2
    score_job "$cluster" -n1 || return 1
    for khz; do
        i=$((i + 1))
        score_begin "$cluster" $i --jobid "$SCORE_JOB" --overlap -n1 \
            --cpu-freq="$khz" || return 1
    done
    while [ -n "$order" ]; do
        score_end "${order:0:1}" || return 1
        order=${order:1}
    done
}
scenario_two_first_ends_first() { overlapping "$1" 12 1500000 2600000; }
scenario_two_first_ends_last() { overlapping "$1" 21 1500000 2600000; }
scenario_three_123() { overlapping "$1" 123 1500000 2600000 Performance; }
scenario_three_132() { overlapping "$1" 132 1500000 2600000 Performance; }
scenario_three_213() { overlapping "$1" 213 1500000 2600000 Performance; }
scenario_three_231() { overlapping "$1" 231 1500000 2600000 Performance; }
scenario_three_312() { overlapping "$1" 312 1500000 2600000 Performance; }
scenario_three_321() { overlapping "$1" 321 1500000 2600000 Performance; }

# With --per-policy 2 the two CPUs are of one policy.
scenario_two_jobs_one_policy() {
    score_begin "$1" 1 -n1 --cpu-freq=1500000 &&
        score_begin "$1" 2 -n1 --cpu-freq=2600000 && score_end 1 && score_end 2
}

scenario_cancelled() {
    score_job "$1" -n1 &&
        score_begin "$1" 1 --jobid "$SCORE_JOB" -n1 --cpu-freq=1500000 &&
        "$LIB/cluster" run --timeout 10 "$1" scancel "$SCORE_JOB"
}

# Slurm looks at time limits every so many seconds: the step is not over when
# the limit is.
scenario_time_limit() {
    score_job "$1" -n1 &&
        score_begin "$1" 1 --jobid "$SCORE_JOB" -n1 --time=0:02 \
            --cpu-freq=1500000 && ! wait "${SCORE_PIDS[1]}"
}

stepd_killed() { # CLUSTER
    score_job "$1" -n1 &&
        score_begin "$1" 1 --jobid "$SCORE_JOB" -n1 --cpu-freq=1500000 &&
        score_kill "$1" "$SCORE_JOB.0"
}
scenario_stepd_killed() { stepd_killed "$1"; }
scenario_stepd_killed_then_a_step() {
    stepd_killed "$1" && score_clear "$1" && alone "$1" --cpu-freq=2600000
}
scenario_stepd_killed_under_another() {
    score_job "$1" -n1 &&
        score_begin "$1" 1 --jobid "$SCORE_JOB" --overlap -n1 --cpu-freq=1500000 &&
        score_begin "$1" 2 --jobid "$SCORE_JOB" --overlap -n1 --cpu-freq=2600000 &&
        "$LIB/cluster" run --timeout 10 "$1" \
            pkill -KILL -f "^slurmstepd: \[$SCORE_JOB\.0\]" && score_end 2
}
scenario_slurmd_killed() {
    score_job "$1" -n1 &&
        score_begin "$1" 1 --jobid "$SCORE_JOB" -n1 --cpu-freq=1500000 &&
        "$LIB/cluster" slurmd "$1" node1 kill &&
        "$LIB/cluster" slurmd "$1" node1 start && score_end 1
}
scenario_both_killed() {
    score_job "$1" -n1 &&
        score_begin "$1" 1 --jobid "$SCORE_JOB" -n1 --cpu-freq=1500000 &&
        "$LIB/cluster" slurmd "$1" node1 kill &&
        score_kill "$1" "$SCORE_JOB.0" &&
        "$LIB/cluster" slurmd "$1" node1 start
}

# score_one CLUSTER NAME STATE - run it: 0 if everything is as in STATE
# soon afterwards, 1 (and what is not) if not, 2 if it did not run as it should
score_one() {
    local ran=0 restored=0
    "scenario_$2" "$1" || ran=1
    score_restored "$1" "$3" || restored=1
    score_clear "$1"
    score_put_back "$1" "$3" || { echo "cannot put back the state"; return 2; }
    [ $ran = 0 ] || { echo "$2 did not run as it should"; return 2; }
    return $restored
}

# score CLUSTER LABEL [SCENARIO...] - all of them, or these; prints the
# line "LABEL: N of M restored" after a remark for each, and returns 1 if one
# did not run as it should
score() {
    local cluster=$1 label=$2 name state out good=0 all=0 failed=0
    shift 2
    [ $# -gt 0 ] || set -- "${SCENARIOS[@]}"
    state=$(score_state "$cluster")
    for name; do
        out=$(score_one "$cluster" "$name" "$state" 2>&1)
        case $? in
        0) good=$((good + 1)); out=restored ;;
        # Not what the shell says of what was killed.
        1) out="left behind: $(sed -n 's/^> //p' <<< "$out" | paste -sd ,)" ;;
        *) failed=1 ;;
        esac
        all=$((all + 1))
        note <<< "$label: $name: $out"
    done
    echo "$label: $good of $all restored"
    return $failed
}
