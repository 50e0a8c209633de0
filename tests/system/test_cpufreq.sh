#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default
#
# srun --cpu-freq with spank_joule: every form of a request, batch scripts,
# options of the plugin and of slurm.conf.  How steps end: test_freqscore.sh.
#
# shellcheck disable=SC2015,SC2317  # the second half never fails; functions are
# called through check
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=cpufreq.sh
. "$LIB/cpufreq.sh"

# request TEXT STATE-OF-POLICY-0 - set while the step runs, back when srun is
request() {
    local out
    out=$(freq_srun ${1:+--cpu-freq="$1"} -n1 bash -c "cd $FREQ_DIR/policy0
        g=\$(cat scaling_governor) s='<unsupported>'
        [ \$g != userspace ] || s=\$(cat scaling_setspeed)
        echo \$g \$s \$(cat scaling_min_freq) \$(cat scaling_max_freq)" 2>&1 |
        grep -v '^srun: job [0-9]* ') # has to wait for the one before
    [ "$out" = "$2" ] || { echo "$out"; return 1; }
    # At once: srun is told afterwards.
    freq_clean
}

# Refused by srun itself, or told by one sentence: the step runs as it is.
told() { # TEXT WORDS
    local out
    out=$(freq_srun --cpu-freq="$1" -n1 echo ran 2>&1)
    grep -q -- "$2" <<< "$out" && grep -qx ran <<< "$out" || { echo "$out"; return 1; }
    [ "$(grep -c joule_cpufreq <<< "$out")" = 1 ] || { echo "$out"; return 1; }
    freq_clean
}

# A range without a governor is for srun of 22.05 alone (without CpuFreqDef).
range() { # TEXT STATE
    if release_is 22.05; then
        check "range $1" request "$1" "$2"
    else
        check "range $1: srun wants a governor" refused_by_srun "$1"
    fi
}

refused_by_srun() {
    local out
    out=$(freq_srun --cpu-freq="$1" -n1 echo ran 2>&1) && { echo "$out"; return 1; }
    grep -q 'choose a governor' <<< "$out" && ! grep -qx ran <<< "$out" ||
        { echo "$out"; return 1; }
    freq_clean
}

freq_up q-freq "--governor ondemand" "" --conf 'CpuFreqGovernors=OnDemand,Performance,UserSpace,PowerSave,Conservative' ||
    { not_ok "a cluster with policies"; finish; }

L="1500000 3000000"
check "a step without a request" request "" "$FREQ_ONE"
check "exact" request 2000000 "userspace 2000000 $L"
check "rounded up" request 2100000 "userspace 2600000 $L"
check "low" request Low "userspace 1500000 $L"
check "medium" request Medium "userspace 2000000 $L"
check "highm1" request HighM1 "userspace 2600000 $L"
check "high" request High "userspace 3000000 $L"
range 1500000-2600000 "ondemand <unsupported> 1500000 2600000"
range Low-Medium "ondemand <unsupported> 1500000 2000000"
check "range and governor" request 2000000-2600000:Performance \
    "performance <unsupported> 2000000 2600000"
range 2000000-2000000 "userspace 2000000 $L"
check "governor" request PowerSave "powersave <unsupported> $L"
check "governor userspace" request UserSpace "userspace 1500000 $L"
check "too high" told 9000000 "more than the hardware has"
check "too low" told 1000 "less than the hardware has"

both() {
    freq_srun --cpu-freq=low -n2 bash -c "cat $FREQ_DIR/policy*/scaling_setspeed" 2>&1 |
        sort | uniq -c | grep -q '^ *4 1500000$' && freq_clean
}
check "both CPUs of a step" both

verbose() {
    local out
    out=$(freq_srun -v --cpu-freq=2100000 -n1 sleep 0.2 2>&1 | grep joule_cpufreq:)
    grep -q 'set userspace, 2600000 to 2600000 kHz, on CPUs 0 ' <<< "$out" &&
        grep -q 'ran at 2600000 kHz on average' <<< "$out" || { echo "$out"; return 1; }
}
check "srun -v says what was set and what was achieved" verbose
quiet() {
    local out
    out=$(freq_srun --cpu-freq=2100000 -n1 echo ran 2>&1)
    grep -qx ran <<< "$out" && ! grep joule <<< "$out"
}
check "nothing is said without -v" quiet

# Who is not root gets the same, and sees the policies but not who holds them.
as_user() {
    local out
    out=$(cluster user q-freq srun --cpu-freq=2100000 -n1 cat "$FREQ_DIR/policy0/scaling_setspeed" 2>&1)
    [ "$out" = 2600000 ] && freq_clean || { echo "$out"; return 1; }
    freq_step a --cpu-freq=low -n1 || return 1
    out=$(cluster user q-freq srun --overcommit --overlap -n1 "$FREQ_TOOL" cpufreq 2>&1)
    grep -q 'policy0: CPUs 0, acpi-cpufreq' <<< "$out" && ! grep -q 'held by' <<< "$out" &&
        grep -q 'Permission denied' <<< "$out" || { echo "$out"; return 1; }
    cluster user q-freq "$FREQ_TOOL" cpufreq --restore && return 1
    freq_is "userspace 1500000 $L,$FREQ_ONE" || return 1
    freq_open a
    freq_clean_soon
}
check "a user who is not root" as_user

# ---- batch scripts ----

batch() { # OPTIONS STATE
    local out
    out=$(cluster dir "$FREQ")/run/batch.out
    cluster run "$FREQ" bash -c "printf '#!/bin/bash\ncat $FREQ_DIR/policy0/scaling_governor\n' |
        sbatch -n1 -W -o $out $1" > /dev/null || return 1
    [ "$(cat "$out")" = "$2" ] || { cat "$out"; return 1; }
    freq_clean_soon
}
check "batch=no: a batch script runs as it is" batch "--cpu-freq=low" ondemand

freq_options "batch=yes" || not_ok "restart with batch=yes"
check "batch=yes: a batch script has its frequency" batch "--cpu-freq=low" userspace
check "a batch script without a request" batch "" ondemand
nested() {
    local out
    out=$(cluster dir "$FREQ")/run/nested.out
    cluster run "$FREQ" bash -c "printf '#!/bin/bash\ncd $FREQ_DIR/policy0\ncat scaling_setspeed\nsrun --cpu-freq=2600000 cat scaling_setspeed\nsrun cat scaling_setspeed\ncat scaling_setspeed\n' |
        sbatch -n1 -W --cpu-freq=low -o $out" > /dev/null || return 1
    # What srun says where it has to wait for the step before is no frequency.
    [ "$(grep -v '^srun: ' "$out" | paste -sd ,)" = 1500000,2600000,1500000,1500000 ] ||
        { cat "$out"; return 1; }
    freq_clean_soon
}
check "steps within a batch script, and the script again after them" nested

# ---- other options ----

freq_options "strict=yes" || not_ok "restart with strict=yes"
strict() {
    local out
    out=$(freq_srun --cpu-freq=9000000 -n2 echo ran 2>&1) && { echo "$out"; return 1; }
    grep -q 'more than the hardware has' <<< "$out" && ! grep -qx ran <<< "$out" ||
        { echo "$out"; return 1; }
    freq_clean_soon
}
check "strict=yes: a step that cannot have its frequency fails" strict
wait_for 60 freq_idle
check "strict=yes: others run" request 2000000 "userspace 2000000 $L"

freq_options "" || not_ok "restart with the defaults"
# An upper limit of the administrator's, 2 GHz, and a step that asks for 3 GHz:
# it runs at KHZ below the limit MAX.
site_limits() { # KHZ MAX
    local out
    freq_set 0 scaling_max_freq 2000000
    out=$(freq_srun --cpu-freq=high -n1 bash -c "cd $FREQ_DIR/policy0
        echo \$(cat scaling_setspeed scaling_max_freq)" 2>&1)
    freq_is "ondemand <unsupported> 1500000 2000000,$FREQ_ONE" || return 1
    freq_reset
    grep -qx "$1 $2" <<< "$out" || { echo "$out"; return 1; }
    [ "$1" = 3000000 ] || grep -q "above the site's limit" <<< "$out" || { echo "$out"; return 1; }
}
check "no step lifts the administrator's limits" site_limits 2000000 2000000

freq_options "corre=on batch=maybe lock_wait=0 limits=hardware" ||
    not_ok "restart with bad options"
check "limits=hardware: a step does" site_limits 3000000 3000000
bad_options() {
    cluster log "$FREQ" node1 | grep -q 'error: joule_cpufreq: plugstack.conf: corre=on is no option' &&
        request 2000000 "userspace 2000000 $L"
}
check "bad options are told, and the defaults hold" bad_options

damaged() {
    local out
    cluster run "$FREQ" bash -c "mkdir -p -m 700 ${FREQ_JOURNAL%/*} && echo x > $FREQ_JOURNAL && chmod 600 $FREQ_JOURNAL"
    out=$(freq_srun --cpu-freq=low -n1 cat "$FREQ_DIR/policy0/scaling_governor" 2>&1)
    grep -qx ondemand <<< "$out" && grep -q 'joule cpufreq --discard' <<< "$out" || { echo "$out"; return 1; }
    cluster at "$FREQ" node1 "$FREQ_TOOL" cpufreq > /dev/null && return 1
    cluster at "$FREQ" node1 "$FREQ_TOOL" cpufreq --discard &&
        request 2000000 "userspace 2000000 $L"
}
check "a damaged journal is refused with a sentence" damaged

shown() {
    local out
    freq_step a --cpu-freq=low -n1 || return 1
    out=$(cluster at "$FREQ" node1 "$FREQ_TOOL" cpufreq)
    grep -q "held by    $(last_job "$FREQ").0 (low)" <<< "$out" &&
        grep -q 'original   ondemand 1.5-3.0' <<< "$out" || { echo "$out"; return 1; }
    cluster at "$FREQ" node1 "$FREQ_TOOL" cpufreq --restore && freq_clean || return 1
    freq_open a
    freq_clean_soon
}
check "joule cpufreq shows and restores" shown
cluster down q-freq

# ---- without what Slurm's own code needs ----

freq_up q-freq "--governor ondemand" "" --conf 'TaskPlugin=task/none
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
cluster down q-freq
finish
