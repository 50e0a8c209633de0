#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest, started by test_guest_cpufreq.sh: steps on a real
# acpi-cpufreq driver.  CPUs 0 and 1 have a policy each, 2 and 3 share one.
#
# TESTS is a list of functions; each finds the policies as they were at the
# start and must leave them so.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
CPUFREQ=/sys/devices/system/cpu/cpufreq
C=freq

TESTS=(
    the_driver
    as_simulated
    one_cpu
    a_governor
    a_range
    the_shared_policy
    all_cpus
)

# All that can be set, a line a file.
state() {
    grep -H . "$CPUFREQ"/policy*/scaling_{governor,min_freq,max_freq,setspeed}
}

as_before() {
    [ "$(state)" = "$BEFORE" ]
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
    check "$name: during the step" is "$(during "$@")" "$wanted"
    wait_for 10 as_before
    check "$name: afterwards all is as before" is "$(state)" "$BEFORE"
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
    [ "$mine" = "$RESULT" ] && wait_for 2 same_values && return
    values "$SIM/cpu/cpufreq"
    echo "$1 < '$2': $RESULT, simulated $mine; $(files 0)and simulated $VALUES"
    return 1
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
        for (i = 0; i < 80; i++) {
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
    "$JOULE_BUILD/tests/sim/freqsim" --table 1200000,1800000,2400000 "$SIM" &
    pid=$!
    check "the simulator" wait_for 5 [ -e "$SIM/ready" ]
    check "the same values at first" same_values
    while IFS= read -r row; do
        both "${row%% *}" "${row#* }" || bad=$((bad + 1))
    done < <(rows) > "$SCRATCH/rows.out"
    note < "$SCRATCH/rows.out"
    check "$WRITTEN writes do the same to the simulator and to this kernel" \
        [ "$bad" = 0 ]
    kill "$pid"
    wait "$pid"
    check "all is as before" is "$(state)" "$BEFORE"
}

one_cpu() {
    step "1.8 GHz" "userspace 1800000 1200000 2400000 $FREE$FREE" \
        -n1 --cpu-freq=1800000
    step "1.5 GHz, rounded up" "userspace 1800000 1200000 2400000 $FREE$FREE" \
        -n1 --cpu-freq=1500000
}

a_governor() {
    step "performance" "performance <unsupported> 1200000 2400000 $FREE$FREE" \
        -n1 --cpu-freq=Performance
}

a_range() {
    step "a range with a governor" \
        "ondemand <unsupported> 1200000 1800000 $FREE$FREE" \
        -n1 --cpu-freq=1200000-1800000:OnDemand
}

the_shared_policy() {
    step "the second CPU of a policy" \
        "$FREE${FREE}userspace 1200000 1200000 2400000 " \
        -n1 --cpus-per-task=4 --cpu-bind=map_cpu:3 --cpu-freq=1200000
}

all_cpus() {
    step "four tasks" \
        "userspace 1200000 1200000 2400000 userspace 1200000 1200000 2400000 userspace 1200000 1200000 2400000 " \
        -n4 --cpu-freq=1200000
}

up "$C" --energy none --no-sim --cpus 4 || exit 1
BEFORE=$(state)
note <<< "$BEFORE"
for test in "${TESTS[@]}"; do
    note <<< "$test ($(cut -d ' ' -f 1 /proc/uptime) s)"
    $test
done
cluster down "$C"
CLUSTERS=()
echo "$GUEST_END"
finish
