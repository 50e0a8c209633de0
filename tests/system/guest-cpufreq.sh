#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest, started by test_guest_cpufreq.sh: steps on a real
# acpi-cpufreq driver, in cgroups of v2.  CPUs 0 and 1 have a policy each, 2 and
# 3 share one.
#
# TESTS is a list of functions; each finds the policies as they were at the
# start and must leave them so.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=cpufreq.sh
. "$LIB/cpufreq.sh"
CPUFREQ=$FREQ_DIR
C=freq FREQ=freq
WHO="Slurm's own code"

TESTS=(
    the_driver
    as_simulated
    one_cpu
    the_shared_policy
    the_plugin
    one_cpu
    the_shared_policy
    two_jobs
    by_cpuset
    one_of_two_killed
    unplugged
    shown_and_restored
    all_killed
)

# All that can be set, a line a file; cpufreq.sh would ask a simulator.
# No program is started for it: it is asked often, by a slow machine.
freq_dump() {
    local policy file value
    for policy in "$CPUFREQ"/policy*; do
        for file in governor max_freq min_freq setspeed; do
            IFS= read -r value 2> /dev/null < "$policy/scaling_$file" &&
                echo "$policy/scaling_$file $value"
        done
    done
}

as_before() {
    [ "$(freq_dump)" = "$BEFORE" ]
}

# files POLICY - governor, setspeed, minimum, maximum
files() {
    (cd "$CPUFREQ/policy$1" && cat scaling_{governor,setspeed,min_freq,max_freq}) |
        tr '\n' ' '
}

is() { # GOT WANTED
    [ "$1" = "$2" ] || { printf 'got:    %s\nwanted: %s\n' "$1" "$2"; return 1; }
}

# during SRUN-OPTION... - srun's task shows what it finds in policies 0 1 2
# shellcheck disable=SC2016  # the task's
during() {
    cluster run --timeout 60 "$C" srun "$@" bash -c '
        [ "$SLURM_PROCID" = 0 ] || exit 0
        cd /sys/devices/system/cpu/cpufreq
        for p in 0 1 2; do
            cat policy$p/scaling_{governor,setspeed,min_freq,max_freq}
        done | tr "\n" " "'
}

step() { # NAME POLICIES-DURING SRUN-OPTION...
    local name=$1 wanted=$2
    shift 2
    name="$WHO: $name"
    check "$name: during the step" is "$(during "$@")" "$wanted"
    wait_for 60 as_before
    check "$name: afterwards all is as before" is "$(freq_dump)" "$BEFORE"
}

FREE='schedutil <unsupported> 1200000 2400000 '

the_driver() {
    local p
    check "policies" is "$(cd "$CPUFREQ" && echo policy*)" "policy0 policy1 policy2"
    check "their CPUs" is "$(cat "$CPUFREQ"/policy*/affected_cpus | tr '\n' /)" "0/1/2 3/"
    for p in 0 1 2; do
        check "driver of policy $p" is "$(cat "$CPUFREQ/policy$p"/scaling_driver)" \
            acpi-cpufreq
        check "policy $p at first" is "$(files "$p")" "$FREE"
    done
    note < <(grep -s . "$CPUFREQ"/policy0/*)
}

# What tests/sim/freqsim takes and refuses, this kernel takes and refuses, and
# both have the same values afterwards: the same writes to both.

SIM=$SCRATCH/sim

# write ROOT FILE VALUE - sets RESULT: ok or why not
write() {
    RESULT=$({ printf '%s\n' "$3" > "$1/policy0/$2"; } 2>&1) && RESULT=ok
    RESULT=${RESULT##*: }
}

# values ROOT - sets VALUES
values() {
    local file value
    VALUES=''
    for file in scaling_governor scaling_min_freq scaling_max_freq \
        scaling_setspeed; do
        IFS= read -r value < "$1/policy0/$file"
        VALUES+="$value "
    done
}

# Limits take effect a little after the write.
same_values() {
    local mine
    values "$SIM/cpu/cpufreq"
    mine=$VALUES
    values "$CPUFREQ"
    [ "$mine" = "$VALUES" ]
}

# both FILE VALUE - whether both say the same
both() {
    local mine
    write "$SIM/cpu/cpufreq" "$1" "$2"
    mine=$RESULT
    write "$CPUFREQ" "$1" "$2"
    WRITTEN=$((WRITTEN + 1))
    [ "$mine" = "$RESULT" ] && wait_for 10 same_values && return
    values "$SIM/cpu/cpufreq"
    echo "$1 < '$2': $RESULT, simulated $mine; $(files 0)and simulated $VALUES"
    return 1
}

# The newest that the simulator knows and this one is not older than.
kernel() {
    printf '%s\n' 6.1 6.12 7.2 "$(uname -r)" | sort -V |
        grep -m 1 -B 1 -xF "$(uname -r)" | head -n 1
}

# Those that matter most, then any.  userspace begins with the frequency of
# the moment, which is the same in both after a governor without a mind of its
# own.
rows() {
    printf '%s\n' 'scaling_governor nonsense' 'scaling_governor ' \
        'scaling_governor performancex' 'scaling_setspeed 1800000' \
        'scaling_setspeed fast' 'scaling_min_freq fast' 'scaling_min_freq -1' \
        'scaling_max_freq +1' 'scaling_max_freq ' 'scaling_cur_freq 1200000' \
        'cpuinfo_max_freq 1' 'scaling_driver x' 'affected_cpus 0' \
        'scaling_max_freq 1900000' 'scaling_min_freq 2400000' \
        'scaling_max_freq 1800000' 'scaling_max_freq 2400000 kHz' \
        'scaling_min_freq 1' 'scaling_governor powersave' \
        'scaling_governor   UserSpace' \
        'scaling_setspeed 1500000' 'scaling_max_freq 1200000' \
        'scaling_max_freq 2400000' 'scaling_setspeed 9999999' \
        'scaling_governor POWERSAVE' 'scaling_governor userspace' \
        'scaling_setspeed 0' 'scaling_setspeed 1800000x' \
        'scaling_governor performance' 'scaling_max_freq 0' \
        'scaling_governor userspace' 'scaling_max_freq 99999999'
    awk 'BEGIN {
        srand(22)
        n = split("0 1200000 1300000 1800000 1900000 2300000 2400000 3000000", khz)
        split("performance powersave userspace", governor)
        for (i = 0; i < 25; i++) {
            what = int(rand() * 4)
            if (what == 0) print "scaling_governor " governor[1 + int(rand() * 3)]
            if (what == 1) print "scaling_min_freq " khz[1 + int(rand() * n)]
            if (what == 2) print "scaling_max_freq " khz[1 + int(rand() * n)]
            if (what == 3) print "scaling_setspeed " khz[1 + int(rand() * n)]
        } }'
    printf '%s\n' 'scaling_min_freq 0' 'scaling_max_freq 99999999' \
        'scaling_governor schedutil'
}

as_simulated() {
    local row pid bad=0 WRITTEN=0 RESULT VALUES
    "$JOULE_BUILD/tests/sim/freqsim" --kernel "$(kernel)" \
        --table 1200000,1800000,2400000 "$SIM" &
    pid=$!
    check "the simulator" wait_for 60 [ -e "$SIM/ready" ]
    check "the same values at first" same_values
    while IFS= read -r row; do
        both "${row%% *}" "${row#* }" || bad=$((bad + 1))
    done < <(rows) > "$SCRATCH/rows.out"
    note < "$SCRATCH/rows.out"
    check "$WRITTEN writes do the same to the simulator and to this kernel" \
        [ "$bad" = 0 ]
    kill "$pid"
    wait "$pid"
    check "all is as before" is "$(freq_dump)" "$BEFORE"
}

# A policy with a frequency that was asked for: Slurm's own code sets its limits to
# it, too, from 24.11 on.
fixed() { # KHZ
    if [ "$WHO" = "the plugin" ] || release_is 22.05; then
        echo "userspace $1 1200000 2400000 "
    else
        echo "userspace $1 $1 $1 "
    fi
}

one_cpu() {
    step "1.5 GHz, rounded up" "$(fixed 1800000)$FREE$FREE" -n1 --cpu-freq=1500000
}

# Slurm's own code sets a step's whole cpuset, the plugin what its task is bound to.
the_shared_policy() {
    local set others=$FREE$FREE
    set=$(fixed 1200000)
    [ "$WHO" = "the plugin" ] || others=$set$set
    step "the second CPU of a policy" "$others$set" \
        -n1 --cpus-per-task=4 --cpu-bind=map_cpu:3 --cpu-freq=1200000
}

# From here on the plugin does it.
the_plugin() {
    check "slurmd with the plugin" freq_options ""
    WHO="the plugin"
}

# in_turn STATE GATE ... - each state, one entry a policy, and then the end of
# the step behind that gate
in_turn() {
    while [ $# -gt 0 ]; do
        freq_is "$1" || return 1
        freq_open "$2"
        shift 2
    done
    freq_clean_soon
}

U1200="userspace 1200000 1200000 2400000"
U1800="userspace 1800000 1200000 2400000"
FREE1=${FREE% }

# CPUs 0 to 2 and CPU 3: the higher frequency counts where both have one.
two_jobs() {
    freq_step a -n3 --cpu-freq=1200000 && freq_step b -n1 --cpu-freq=1800000
    check "$WHO: two jobs, one policy" in_turn "$U1200,$U1200,$U1800" a \
        "$FREE1,$FREE1,$U1800" b
}

# task_cpus CPUS BOUND GATE - of the task behind it: its cpuset, as libcgroup and
# we find it; what the kernel has bound it to, and where a frequency is set
task_cpus() {
    local pid wanted
    pid=$(freq_task "$3")
    wanted="$pid ours=$1 libcgroup=$1 bound=$2 used=$2"
    is "$(cluster run "$C" "$JOULE_BUILD/tests/peer/cpusets" "$pid")" "$wanted"
}

in_a_group_of_v2() { # GATE
    cluster run "$C" cat "/proc/$(freq_task "$1")/cgroup" |
        grep '^0::/.*/step_0/user/task_0$'
}

# Nobody binds the tasks: their cpusets alone say which CPUs are theirs.
by_cpuset() {
    freq_step a -n1 --cpu-bind=none --cpu-freq=1200000 &&
        freq_step b -n1 --cpu-bind=none --cpu-freq=1800000 &&
        freq_step c -n2 --cpu-bind=none --cpu-freq=1200000
    check "$WHO: jobs are in groups of v2" in_a_group_of_v2 a
    check "$WHO: the cpuset of one job" task_cpus 0 0 a
    check "$WHO: the cpuset of the other" task_cpus 1 1 b
    check "$WHO: the cpuset of the third" task_cpus 2-3 2-3 c
    check "$WHO: by cpusets alone" in_turn "$U1200,$U1800,$U1200" a \
        "$FREE1,$U1800,$U1200" b "$FREE1,$FREE1,$U1200" c
    freq_step d -n4 --cpu-bind=map_cpu:3 --cpu-freq=1200000
    check "$WHO: a cpuset of all, bound to one" task_cpus 0-3 3 d
    check "$WHO: by what it is bound to" in_turn "$FREE1,$FREE1,$U1200" d
}

kill_step() { # STEP - kill -9 of its slurmstepd
    cluster run "$C" pkill -KILL -f "^slurmstepd: \[$1\]"
}

# The steps of one job: the later one is served, until it is no more.
one_of_two_killed() {
    local job
    cluster run "$C" salloc -n4 --no-shell > "$SCRATCH/salloc" 2>&1
    job=$(last_job "$C")
    freq_step a --jobid "$job" --overlap -n1 --cpu-bind=map_cpu:2 \
        --cpu-freq=Performance &&
        freq_step b --jobid "$job" --overlap -n1 --cpu-bind=map_cpu:3 \
            --cpu-freq=1800000
    check "$WHO: two steps, one policy: the later one" \
        freq_is "$FREE1,$FREE1,$U1800"
    check "kill -9 of its slurmstepd" kill_step "$job.1"
    check "$WHO: then the other, and then none" in_turn \
        "$FREE1,$FREE1,performance <unsupported> 1200000 2400000" a
    cluster run "$C" scancel "$job"
}

# A CPU that goes and comes back within a step: the kernel keeps its limits and
# its governor, and begins anew with the speed.
unplugged() {
    local online=/sys/devices/system/cpu/cpu1/online
    freq_step a -n4 --cpu-freq=1200000
    check "CPU 1 goes offline" eval "echo 0 > $online"
    check "it comes back" eval "echo 1 > $online"
    note < <(freq_state)
    check "it goes again" eval "echo 0 > $online"
    freq_open a
    wait_for 60 freq_no_jobs
    check "$WHO: it is on record" cluster run "$C" test -e "$FREQ_JOURNAL"
    check "it comes back when the step is over" eval "echo 1 > $online"
    check "$WHO: all is as before" freq_clean_soon
}

# The last one: no slurmd is left.
all_killed() {
    freq_step a -n4 --cpu-freq=1200000-1800000:OnDemand
    check "$WHO: all CPUs are held" freq_is "$(printf '%s,%s,%s' \
        "ondemand <unsupported> 1200000 1800000"{,,})"
    cluster slurmd "$C" node1 kill
    check "kill -9 of slurmd and slurmstepd" kill_step "$(last_job "$C").0"
    check "$WHO: all is as before without them" freq_clean_soon
}

shown_and_restored() {
    local out=$SCRATCH/shown
    freq_step a -n1 --cpu-freq=1200000
    cluster run "$C" "$FREQ_TOOL" cpufreq > "$out" 2>&1
    note < "$out"
    check "joule cpufreq: a policy and its driver" \
        grep -qx 'policy2: CPUs 2-3, acpi-cpufreq, 1.2 to 2.4 GHz' "$out"
    check "joule cpufreq: what is set" grep -qx '  set        userspace 1.2 1.2-2.4' "$out"
    check "joule cpufreq: for whom" grep -qx "  held by    $(last_job "$C").0 (1200000)" "$out"
    check "joule cpufreq: what it was" grep -qx '  original   schedutil 1.2-2.4' "$out"
    check "joule cpufreq --restore" cluster run "$C" "$FREQ_TOOL" cpufreq --restore
    check "all is as before while the step still runs" freq_clean
    freq_open a
    wait_for 60 freq_no_jobs
    check "and after it" freq_clean
}

up "$C" --energy none --no-sim --cpus 4 --cgroup2 || exit 1
BEFORE=$(freq_dump)
FREQ_BOOT=$BEFORE
note <<< "$BEFORE"
for test in "${TESTS[@]}"; do
    note <<< "$test ($(cut -d ' ' -f 1 /proc/uptime) s)"
    $test
done
# It goes with the machine.
CLUSTERS=()
echo "$GUEST_END"
finish
