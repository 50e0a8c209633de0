# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# freqscore.sh - a list of ways in which steps with a CPU frequency begin and
# end, and of how many of them everything is put back; source it after
# cpufreq.sh.  The list is the same whoever sets the frequencies, Slurm itself
# or a plugin.
#
# shellcheck disable=SC2034,SC2317  # for the tests; called by name

# Each is a function scenario_NAME, works on the cluster FREQ, and succeeds if
# it ran as it should have.  It leaves no step behind that could still put
# anything back; whether everything was restored is seen afterwards.
SCENARIOS=(
    one_frequency one_range range_and_governor one_governor two_cpus
    two_first_ends_first two_first_ends_last
    three_123 three_132 three_213 three_231 three_312 three_321
    two_jobs
    batch_and_a_step salloc array suspended requeued cancelled time_limit
    no_program cpu_unplugged
    stepd_killed stepd_killed_with_a_range stepd_killed_then_a_step
    stepd_killed_under_another slurmd_killed both_killed reboot
)

# yes: what policies are set to is looked at as well
SCORE_SERVED=''

score_lim="1500000 3000000"
score_user() { # KHZ
    echo "userspace $1 $score_lim"
}

# served POLICY-0 [POLICY-1] - within 5 s
served() {
    [ -z "$SCORE_SERVED" ] || freq_is "$1,${2:-$FREQ_ONE}"
}

score_job() { # SALLOC-OPTION... - an allocation, sets SCORE_JOB
    local out
    out=$(cluster run --timeout 20 "$FREQ" salloc --no-shell "$@" 2>&1)
    SCORE_JOB=$(sed -n 's/.*Granted job allocation \([0-9]*\).*/\1/p' <<< "$out")
    [ -n "$SCORE_JOB" ] || { echo "$out" >&2; return 1; }
}

# score_batch SCRIPT SBATCH-OPTION... - sets SCORE_JOB
score_batch() {
    local script=$1 out
    shift
    out=$(cluster run --timeout 20 "$FREQ" sbatch --parsable -o /dev/null \
        --wrap "$script" "$@") && SCORE_JOB=${out%%;*} && [ -n "$SCORE_JOB" ]
}

# kill -9 of the slurmstepd of a step; the srun that would wait for it for ever
# goes with score_clear.
kill_step() { # JOB.STEP
    cluster run --timeout 10 "$FREQ" \
        pkill -KILL -f "^slurmstepd: \[${1//./\\.}\]"
}

alone() { # STATE SRUN-OPTION...
    local state=$1
    shift
    freq_step a "$@" || return 1
    served "$state" || return 1
    freq_open a
    wait_for 60 freq_no_jobs
}
scenario_one_frequency() {
    alone "$(score_user 2000000)" -n1 --cpu-freq=2000000
}
scenario_one_range() {
    alone "ondemand <unsupported> 1500000 2600000" -n1 \
        --cpu-freq="$(freq_range 1500000-2600000)"
}
scenario_range_and_governor() {
    alone "performance <unsupported> 2000000 2600000" -n1 \
        --cpu-freq=2000000-2600000:Performance
}
scenario_one_governor() {
    alone "performance <unsupported> $score_lim" -n1 --cpu-freq=Performance
}
scenario_two_cpus() {
    freq_step a -n2 --cpu-freq=low || return 1
    served "$(score_user 1500000)" "$(score_user 1500000)" || return 1
    freq_open a
}

# overlapping ORDER REQUEST... - steps a, b, c of one job on one CPU, begun in
# this order, that end in the other; the one that began last is served
overlapping() {
    local order=$1 names=abc i=0 request held='' states=()
    shift
    score_job -n1 || return 1
    for request; do
        freq_step ${names:i:1} --jobid "$SCORE_JOB" --overlap -n1 \
            --cpu-freq="$request" || return 1
        case $request in
        Performance) states+=("performance <unsupported> $score_lim") ;;
        *) states+=("$(score_user "$request")") ;;
        esac
        held+=$i
        i=$((i + 1))
    done
    while [ -n "$order" ]; do
        served "${states[${held: -1}]}" || return 1
        i=$((${order:0:1} - 1))
        freq_open "${names:i:1}"
        # So that this is the order in which they end.
        wait_for 5 step_gone "$SCORE_JOB.$i" || return 1
        held=${held/$i/}
        order=${order:1}
    done
}
step_gone() { # JOB.STEP
    ! cluster run --timeout 10 "$FREQ" \
        pgrep -f "^slurmstepd: \[${1//./\\.}\]"
}
scenario_two_first_ends_first() { overlapping 12 1500000 2600000; }
scenario_two_first_ends_last() { overlapping 21 1500000 2600000; }
scenario_three_123() { overlapping 123 Performance 2000000 1500000; }
scenario_three_132() { overlapping 132 Performance 2000000 1500000; }
scenario_three_213() { overlapping 213 1500000 2600000 Performance; }
scenario_three_231() { overlapping 231 1500000 2600000 Performance; }
scenario_three_312() { overlapping 312 Performance 2000000 1500000; }
scenario_three_321() { overlapping 321 Performance 2000000 1500000; }

# With --per-policy 2 the two CPUs are of one policy.
scenario_two_jobs() {
    freq_step a -n1 --cpu-freq=1500000 && freq_step b -n1 --cpu-freq=2600000 ||
        return 1
    freq_open a
    wait_for 60 one_job_left || return 1
    freq_open b
}
one_job_left() {
    [ "$(cluster run --timeout 5 "$FREQ" squeue -h | wc -l)" = 1 ]
}

scenario_batch_and_a_step() {
    local gate up
    gate=$(freq_gate batch) up=$(freq_gate batch).up
    rm -f "$gate" "$up"
    score_batch "srun --cpu-freq=2600000 true; : > $up
        until [ -e $gate ]; do sleep 0.05; done" -n1 --cpu-freq=low || return 1
    wait_for 60 test -e "$up" || return 1
    served "$(score_user 1500000)" || return 1
    freq_open batch
}
scenario_salloc() {
    local khz
    khz=$(cluster run --timeout 20 "$FREQ" salloc -n1 --cpu-freq=2600000 \
        srun cat "$FREQ_DIR/policy0/scaling_setspeed" 2> /dev/null)
    [ "$khz" = 2600000 ]
}
scenario_array() {
    score_batch "srun --cpu-freq=low sleep 0.2" -n1 --array=1-4 --cpu-freq=low &&
        wait_for 60 freq_no_jobs
}
scenario_suspended() {
    score_batch "srun sleep 4" -n1 --cpu-freq=low || return 1
    wait_for 60 freq_not_boot || return 1
    served "$(score_user 1500000)" &&
        cluster run --timeout 10 "$FREQ" scontrol suspend "$SCORE_JOB" || return 1
    # What is suspended keeps what it has.
    sleep 0.5
    served "$(score_user 1500000)" &&
        cluster run --timeout 10 "$FREQ" scontrol resume "$SCORE_JOB" &&
        wait_for 60 freq_no_jobs
}
freq_not_boot() {
    [ "$(freq_dump)" != "$FREQ_BOOT" ]
}
scenario_requeued() {
    score_batch "srun sleep 30" -n1 --requeue --cpu-freq=low || return 1
    wait_for 60 freq_not_boot || return 1
    served "$(score_user 1500000)" &&
        cluster run --timeout 10 "$FREQ" scontrol requeuehold "$SCORE_JOB"
}
scenario_cancelled() {
    score_job -n1 &&
        freq_step a --jobid "$SCORE_JOB" -n1 --cpu-freq=1500000 &&
        cluster run --timeout 10 "$FREQ" scancel "$SCORE_JOB"
}

# Slurm looks at time limits twice a minute: it is over long before that.
scenario_time_limit() {
    score_job -n1 &&
        freq_step a --jobid "$SCORE_JOB" -n1 --cpu-freq=1500000 &&
        served "$(score_user 1500000)" || return 1
    cluster run --timeout 10 "$FREQ" scontrol update "JobId=$SCORE_JOB" \
        EndTime=now+2 || return 1
    wait_for 60 freq_no_jobs
}
scenario_no_program() {
    ! freq_srun --cpu-freq=low -n2 /no/such/program > /dev/null 2>&1
}

# Out and in again in the middle of a step.
scenario_cpu_unplugged() {
    freq_step a -n2 --cpu-freq=low &&
        cluster cpufreq "$FREQ" node1 "offline 1" > /dev/null || return 1
    sleep 0.3
    cluster cpufreq "$FREQ" node1 "online 1" > /dev/null || return 1
    freq_open a
    wait_for 60 freq_no_jobs
}

stepd_killed() { # REQUEST
    score_job -n2 && freq_step a --jobid "$SCORE_JOB" -n2 --cpu-freq="$1" &&
        kill_step "$SCORE_JOB.0"
}
scenario_stepd_killed() { stepd_killed 1500000; }
scenario_stepd_killed_with_a_range() { stepd_killed "$(freq_range 1500000-2000000)"; }
scenario_stepd_killed_then_a_step() {
    stepd_killed 1500000 && score_end_jobs &&
        freq_srun -n1 --cpu-freq=2600000 true
}
scenario_stepd_killed_under_another() {
    score_job -n1 &&
        freq_step a --jobid "$SCORE_JOB" --overlap -n1 --cpu-freq=2600000 &&
        freq_step b --jobid "$SCORE_JOB" --overlap -n1 --cpu-freq=1500000 &&
        kill_step "$SCORE_JOB.1" && served "$(score_user 2600000)" || return 1
    freq_open a
    wait_for 60 step_gone "$SCORE_JOB.0"
}
scenario_slurmd_killed() {
    freq_step a -n2 --cpu-freq=low &&
        cluster slurmd "$FREQ" node1 kill &&
        cluster slurmd "$FREQ" node1 start || return 1
    freq_open a
}
scenario_both_killed() {
    stepd_killed 1500000 && cluster slurmd "$FREQ" node1 kill &&
        cluster slurmd "$FREQ" node1 start
}

# The kernel begins anew, with settings of its own; /run is empty in a real
# boot, and here it is not: the journal must be known for what it is.
scenario_reboot() {
    local id=$SCRATCH/boot_id-$FREQ rc
    freq_step a --cpu-freq=low -n2 || return 1
    cluster run --timeout 10 "$FREQ" pkill -KILL -x 'joule-cpufreq-k'
    cluster slurmd "$FREQ" node1 kill
    kill_step "$(last_job "$FREQ").0"
    echo 99999999-8888-7777-6666-555555555555 > "$id"
    cluster run "$FREQ" mount -n --bind "$id" /proc/sys/kernel/random/boot_id ||
        return 1
    freq_reset
    freq_set 0 scaling_governor schedutil
    cluster slurmd "$FREQ" node1 start
    wait_for 5 cluster run "$FREQ" test ! -e "$FREQ_JOURNAL" &&
        freq_is "schedutil <unsupported> $score_lim,$FREQ_ONE"
    rc=$?
    freq_reset
    cluster run "$FREQ" umount -n /proc/sys/kernel/random/boot_id
    return $rc
}

# score_end_jobs - all jobs, and what is left of them
score_end_jobs() {
    cluster run --timeout 20 "$FREQ" scancel -u root
    cluster run --timeout 10 "$FREQ" pkill -KILL -x srun
    cluster run --timeout 10 "$FREQ" pkill -KILL -f '/run/gate-'
    wait_for 60 freq_idle
}

# score_one NAME - 0 if everything is as at boot within 5 s, 1 (and what is
# not) if not, 2 if it did not run as it should
score_one() {
    local ran=0 restored=0
    SCORE_JOB=''
    "scenario_$1" || { ran=1; echo "it did not run as it should"; }
    freq_clean_soon || restored=1
    score_end_jobs
    freq_clear
    [ $ran = 0 ] || return 2
    return $restored
}

# score LABEL SCENARIO... - a line for each, "NAME: restored", "NAME: left
# behind: WHAT" or "NAME: failed: WHY"; then "LABEL: N of M restored"
score() {
    local label=$1 name out good=0
    shift
    for name; do
        out=$(score_one "$name" 2>&1)
        case $? in
        0) good=$((good + 1)); echo "$name: restored" ;;
        1) echo "$name: left behind: $(grep '^it is: ' <<< "$out")" ;;
        *) echo "$name: failed: $(paste -sd ' ' <<< "$out")" ;;
        esac
    done
    echo "$label: $good of $# restored"
}
