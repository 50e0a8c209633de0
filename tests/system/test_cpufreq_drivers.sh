#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# Every cpufreq driver that has a row of its own, policies of several CPUs, and
# kernels that refuse, delay or lose what is written.
#
# shellcheck disable=SC2015,SC2317  # the second half never fails; functions are
# called through check
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=cpufreq.sh
. "$LIB/cpufreq.sh"

# during REQUEST WANTED - policy 0 while a step runs, and all as before after it
during() {
    local out
    freq_step a -n1 --cpu-freq="$(freq_range "$1" Performance)" || { cat "$SCRATCH/step.out"; return 1; }
    out=$(freq_dump | awk -v wanted="$2" '$1 ~ /policy0\// {
        sub(/.*\//, "", $1); print $1 "=" $2 }' | paste -sd ' ')
    freq_open a
    freq_clean_soon || return 1
    grep -qE "$2" <<< "$out" || { echo "$out"; return 1; }
}

GOVERNORS=CpuFreqGovernors=OnDemand,Performance,UserSpace,PowerSave,Conservative,SchedUtil

# driver NAME 'SIMULATOR-OPTIONS' [REQUEST PATTERN]...
driver() {
    local name=$1 simulator=$2
    shift 2
    freq_up q-freqdrv "$simulator" "" --conf "$GOVERNORS" || { not_ok "$name: a cluster"; return; }
    while [ $# -ge 2 ]; do
        check "$name: $1" during "$1" "$2"
        shift 2
    done
    cluster down q-freqdrv
}

PINNED='max_freq=2000000 .*min_freq=2000000'
HELD='governor=userspace .*setspeed=2000000'
driver intel_pstate "--driver intel_pstate" 2000000 "$PINNED" \
    Performance 'governor=performance' PowerSave 'preference=power .*governor=powersave' \
    1500000-2000000 'max_freq=2000000 .*min_freq=1500000'
driver "intel_pstate without HWP" "--driver intel_pstate --no-hwp yes" 2000000 "$PINNED" \
    Performance 'governor=performance'
driver intel_cpufreq "--driver intel_cpufreq" 2000000 "$HELD" low 'setspeed=1200000'
driver cppc_cpufreq "--driver cppc_cpufreq" 2000000 "$HELD" Performance 'governor=performance'
driver pcc-cpufreq "--driver pcc-cpufreq" 2000000 "$HELD" Performance 'governor=performance'
driver amd-pstate "--driver amd-pstate" 2000000 "$HELD"
driver amd-pstate-guided "--driver amd-pstate-guided" 2000000 "$PINNED" \
    1500000-2000000 'max_freq=2000000 .*min_freq=1500000'
driver amd-pstate-epp "--driver amd-pstate-epp" 2000000 "$PINNED" Performance 'governor=performance'
driver "schedutil alone" "--governors performance,schedutil --governor schedutil" \
    2000000 "$PINNED" Performance 'governor=performance'
driver "Linux 4.18" "--kernel 4.18" 1500000-2000000 'max_freq=2000000' \
    2600000-3000000 'min_freq=2600000' 1500000-1500000:Performance 'max_freq=1500000'
driver "Linux 7.2" "--kernel 7.2" 1500000-2000000 'max_freq=2000000' \
    2600000-3000000 'min_freq=2600000' low 'setspeed=1500000'
driver "limits that come late" "--limits-delay 10ms" 1500000-2000000 'max_freq=2000000' \
    2600000-3000000:Performance 'min_freq=2600000'

# ---- one policy for both CPUs ----

freq_up q-freqdrv "--governor ondemand --per-policy 2" "" || not_ok "a cluster with one policy"
L="1500000 3000000"
two_jobs() { # FIRST-TO-END
    freq_step a -n1 --cpu-freq=2000000 || return 1
    freq_is "userspace 2000000 $L" || return 1
    freq_step b -n1 --cpu-freq=2600000 || return 1
    freq_is "userspace 2600000 $L" || return 1
    freq_step c -n1 --overcommit --overlap --cpu-freq=low &
    freq_open "$1"
    if [ "$1" = a ]; then
        freq_is "userspace 2600000 $L" || return 1
        freq_open b
    else
        freq_is "userspace 2000000 $L" || return 1
        freq_open a
    fi
    wait_for 60 test -e "$(freq_gate c).up"
    freq_open c
    wait
    freq_clean_soon
}
check "two jobs on one policy: the higher frequency, the lower job ends first" two_jobs a
freq_clear
check "two jobs on one policy: the higher frequency, the higher job ends first" two_jobs b
freq_clear
cluster down q-freqdrv

# ---- a kernel that does not take it ----

freq_up q-freqdrv "--governor ondemand" "" || not_ok "a cluster with policies"
ask() {
    cluster cpufreq q-freqdrv node1 "$@" > /dev/null
}

# refused 'COMMAND' 'COMMAND-THAT-ENDS-IT' - while a step runs; what cannot be
# put back is, as soon as it can
refused() {
    freq_step a -n2 --cpu-freq=low || return 1
    ask "$1" || return 1
    freq_open a
    wait_for 60 freq_no_jobs
    sleep 0.3
    cluster run "$FREQ" test -e $FREQ_JOURNAL || { echo "nothing is on record"; return 1; }
    ask "$2" || return 1
    freq_clean_soon
}
for errno in EBUSY EINVAL EROFS ENODEV; do
    check "writes fail with $errno" refused "fault write cpufreq/policy1/scaling_governor $errno 1 100000" "fault off"
    freq_clear
done
check "sysfs is read-only" refused "readonly on" "readonly off"
freq_clear
check "a policy's CPU goes offline" refused "offline 1" "online 1"
freq_clear

not_set() {
    local out
    ask "fault write cpufreq/policy0/scaling_governor EINVAL"
    out=$(freq_srun --cpu-freq=low -n1 echo ran 2>&1)
    ask "fault off"
    grep -qx ran <<< "$out" && grep -q 'cannot write userspace to scaling_governor of policy0' <<< "$out" ||
        { echo "$out"; return 1; }
    freq_clean_soon
}
check "a write that is refused at the start: one sentence, the step runs" not_set

vanished() {
    freq_step a -n2 --cpu-freq=low || return 1
    ask "vanish 1" || return 1
    freq_open a
    wait_for 60 freq_no_jobs
    # The kernel makes it anew, with settings of its own.
    ask "appear 1" || return 1
    freq_clean_soon
}
check "a policy that vanishes and appears" vanished
cluster down q-freqdrv
finish
