#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The CPUs come back within 5 s: kill -9 of slurmstepd at any moment, of slurmd,
# of what looks after them, and of all of them.  More ends: test_freqscore.sh.
#
# shellcheck disable=SC2015,SC2317  # the second half never fails; functions are
# called through check
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=cpufreq.sh
. "$LIB/cpufreq.sh"
MOMENTS=${JOULE_TEST_MOMENTS:-$(if is_long; then echo 30; else echo 5; fi)}

# kill_all NAME... - SIGKILL to all slurmstepd, slurmd, keeper at once.  A
# slurmstepd is known by its title, "slurmstepd: [7.0]", or not yet.
# shellcheck disable=SC2016  # the other shell's
kill_all() {
    cluster run --timeout 10 "$FREQ" bash -c 'pids=
        for dir in /proc/[0-9]*; do
            read -r name < $dir/comm || continue
            case " $* " in *" $name "*) pids+=" ${dir#/proc/}" ;; esac
        done 2> /dev/null
        kill -KILL $pids 2> /dev/null' kill "$@"
}

# A step on both CPUs, killed a while after its slurmstepd began.
killed_after() { # SECONDS
    freq_srun --cpu-freq=low -n2 sleep 30 > /dev/null 2>&1 &
    cluster run --timeout 20 "$FREQ" bash -c "until pgrep -x slurmstepd; do :; done
        sleep $1; pkill -KILL -x slurmstepd" > /dev/null
    freq_clean_soon || return 1
    freq_clear
    wait_for 60 freq_idle
}

freq_up q-freqkill "--governor ondemand" "batch=yes" || { not_ok "a cluster with policies"; finish; }

missed=0 worst=''
for ((n = 0; n < MOMENTS; n++)); do
    moment=0.$(printf %03d $((RANDOM % 250)))
    out=$(killed_after "$moment" 2>&1) ||
        { missed=$((missed + 1)); worst="after $moment s: $out"; freq_clear; }
done
check "slurmstepd killed at $MOMENTS random moments" test "$missed" = 0
[ $missed = 0 ] || note <<< "$missed missed, the last $worst"
in_the_log() {
    cluster log "$FREQ" node1 |
        grep -q '^\[20.*\] joule_cpufreq: put back the CPU frequencies of'
}
check "slurmd's log says so" in_the_log

next_step() {
    local out
    freq_step a --cpu-freq=low -n1 || return 1
    kill_all joule-cpufreq-k
    kill_all slurmstepd
    # There is nobody but the next step, which asks for nothing.
    freq_is "userspace 1500000 1500000 3000000,$FREQ_ONE" || return 1
    out=$(freq_srun --overlap -n1 cat "$FREQ_DIR/policy0/scaling_governor") || return 1
    [ "$out" = ondemand ] && freq_clean_soon
}
freq_options "batch=yes"
cluster run q-freqkill scontrol update PartitionName=test OverSubscribe=FORCE:4
check "slurmstepd and the keeper killed: the next step puts back" next_step
freq_clear
freq_restart

slurmd_killed() {
    freq_step a --cpu-freq=low -n2 || return 1
    kill_all slurmd
    freq_is "userspace 1500000 1500000 3000000,userspace 1500000 1500000 3000000" || return 1
    freq_open a
    freq_clean_soon
}
check "slurmd killed: the step puts back at its end" slurmd_killed
cluster slurmd q-freqkill node1 start
wait_for 60 freq_idle
freq_clear

all_killed() {
    freq_step a --cpu-freq=low -n2 || return 1
    kill_all slurmd slurmstepd joule-cpufreq-k
    freq_is "userspace 1500000 1500000 3000000,userspace 1500000 1500000 3000000" || return 1
    cluster slurmd "$FREQ" node1 start && freq_clean_soon
}
check "all of them killed: put back when slurmd starts" all_killed
freq_clear
wait_for 60 freq_idle

batch_killed() {
    cluster run "$FREQ" bash -c "printf '#!/bin/bash\nsleep 30\n' |
        sbatch -n1 --cpu-freq=low -o /dev/null" > /dev/null
    freq_is "userspace 1500000 1500000 3000000,$FREQ_ONE" || return 1
    kill_all slurmstepd
    freq_clean_soon
}
check "a batch script's slurmstepd killed" batch_killed
freq_clear
cluster down q-freqkill
finish
