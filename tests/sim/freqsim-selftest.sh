#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# freqsim-selftest.sh - freqsim as its users see it: through the kernel.
#
# Run from the build directory.  Needs root and /dev/fuse (else exit 77).

set -u

# shellcheck disable=SC2034  # for selftest.sh
simulator=${FREQSIM_BIN:-tests/sim}/freqsim mounted=cpu
# shellcheck source-path=SCRIPTDIR source=selftest.sh
. "$(dirname "$0")/selftest.sh"

cpu=$root/cpu
policy=$cpu/cpufreq/policy0

# Below LC_ALL=C the words are those of the C library.
export LC_ALL=C

put() { # FILE TEXT ; prints ok or why not
    { printf '%s\n' "$2" >"$1"; } 2>"$tmp/err" && echo ok && return
    sed -n '$s/.*: //p' "$tmp/err"
}

get() { # FILE
    cat "$1" 2>&1 | sed '$s/^cat: .*: //'
}

usage_error --driver speedstep
usage_error --cpus 0-
usage_error --per-policy 0
usage_error --driver cppc_cpufreq --min-khz 2000000 --max-khz 1000000
usage_error --table 1500000,
usage_error --driver intel_pstate --table 1500000
usage_error --governors performance,performance
usage_error --no-such-option 1
usage_error --load
timeout 10 "$simulator" --base /nonexistent "$root" 2>/dev/null
is "a base that is not there" $? 1
timeout 10 "$simulator" --nodesim /nonexistent "$root" 2>/dev/null
is "a nodesim that is not there" $? 1

mkdir -p "$tmp/base/cpu0/topology" "$tmp/base/cpu1/topology" "$tmp/base/smt" \
    "$tmp/base/cpu2"
echo 7 >"$tmp/base/cpu1/topology/core_id"
echo 1 >"$tmp/base/smt/active"
echo wrong >"$tmp/base/online"
chmod 755 "$tmp"
start --base "$tmp/base" --cpus 0-1 --load 30 --log "$tmp/log"
is "the directory" "$(cd "$cpu" && echo *)" \
    "cpu0 cpu1 cpufreq kernel_max offline online possible present smt"
is "a CPU's directory" "$(cd "$cpu/cpu1" && echo *)" "cpufreq online topology"
is "what is beside it" "$(cat "$cpu/cpu1/topology/core_id" "$cpu/smt/active")" \
    $'7\n1'
is "it cannot be written" "$(put "$cpu/smt/active" 0)" "Permission denied"
is "links resolve" "$(readlink -f "$cpu/cpu1/cpufreq")" "$cpu/cpufreq/policy1"
is "size and mode" "$(stat -c '%s %a' "$policy/scaling_governor")" "4096 644"
is "mode of cpuinfo_cur_freq" "$(stat -c %a "$policy/cpuinfo_cur_freq")" 400
is "others may read" "$(setpriv --reuid 65534 --clear-groups \
    sh -c "cd / && cat '$policy/scaling_driver'" 2>&1)" \
    acpi-cpufreq
is "others may not write" "$(setpriv --reuid 65534 --clear-groups \
    sh -c "cd / && echo performance >'$policy/scaling_governor'" 2>&1 |
    sed 's/.*: //')" "Permission denied"
is "no files can be made" "$(put "$policy/mine" 1)" "Permission denied"
is "root cannot write 0444" "$(put "$policy/scaling_cur_freq" 1500000)" \
    "Permission denied"
is "an unknown governor" "$(put "$policy/scaling_governor" fast)" \
    "Invalid argument"
is "no speed without userspace" "$(put "$policy/scaling_setspeed" 2000000)" \
    "Invalid argument"
is "and none to read" "$(get "$policy/scaling_setspeed")" "<unsupported>"
is "a governor" "$(put "$policy/scaling_governor" userspace)" ok
is "a speed" "$(put "$policy/scaling_setspeed" 2100000)" ok
is "rounded up" "$(get "$policy/scaling_cur_freq")" 2600000
is "a long write is cut" "$(head -c 5000 /dev/zero | tr '\0' ' ' |
    dd of="$policy/scaling_min_freq" bs=5000 count=1 2>&1 |
    grep -c 'Invalid argument')" 1
exec 3<"$policy/scaling_max_freq"
is "read in pieces" "$(head -c 3 <&3)$(head -c 10 <&3)" 3000000
exec 3<&-
printf 2000000 1<>"$policy/scaling_max_freq"
is "without truncation" "$(get "$policy/scaling_max_freq")" 2000000
is "dump" "$(ask dump | grep policy0)" \
    "cpufreq/policy0/scaling_governor userspace
cpufreq/policy0/scaling_max_freq 2000000
cpufreq/policy0/scaling_min_freq 1500000
cpufreq/policy0/scaling_setspeed 2000000"
is "the log has who wrote what" \
    "$(awk '$3 != "sh" { print $4, $5, $6 }' "$tmp/log" | head -n 4)" \
    "cpufreq/policy0/scaling_governor fast EINVAL
cpufreq/policy0/scaling_setspeed 2000000 EINVAL
cpufreq/policy0/scaling_governor userspace ok
cpufreq/policy0/scaling_setspeed 2100000 ok"
is "and by whom" "$(awk -v pid=$$ '$2 == pid' "$tmp/log" | wc -l)" 1
is "number of writes" "$(ask writes)" "$(wc -l <"$tmp/log")"

is "a fault" "$(ask 'fault write */scaling_min_freq EBUSY 2')" ok
is "the first write goes well" "$(put "$policy/scaling_min_freq" 1500000)" ok
is "the second does not" "$(put "$policy/scaling_min_freq" 1500000)" \
    "Device or resource busy"
is "the third does" "$(put "$policy/scaling_min_freq" 1500000)" ok
ask 'fault read */scaling_governor EIO 1 0' >/dev/null
is "a read that fails" "$(get "$policy/scaling_governor")" "Input/output error"
ask 'fault off' >/dev/null
is "no faults" "$(get "$policy/scaling_governor")" userspace
ask 'fault write x EWHAT' 2>/dev/null
is "a fault that is none" $? 1
ask 'readonly on' >/dev/null
is "read-only" "$(put "$policy/scaling_governor" performance)" \
    "Read-only file system"
ask 'readonly off' >/dev/null

is "offline" "$(put "$cpu/cpu1/online" 0)" ok
is "lists of CPUs" "$(cat "$cpu/online" "$cpu/offline")" $'0\n1'
is "a policy asleep" "$(get "$cpu/cpu1/cpufreq/scaling_governor")" \
    "Device or resource busy"
is "no topology" "$(cat "$cpu/cpu1/topology/core_id" 2>&1 | sed 's/.*: //')" \
    "No such file or directory"
is "CPU 0 stays" "$(put "$cpu/cpu0/online" 0)" "Permission denied"
is "online by command" "$(ask 'online 1')" ok
is "as before" "$(cat "$cpu/cpu1/topology/core_id" \
    "$cpu/cpu1/cpufreq/scaling_governor")" $'7\nschedutil'

exec 3<"$policy/scaling_max_freq"
is "vanish" "$(ask 'vanish 0')" ok
is "to who has it open" "$(cat <&3 2>&1 | sed 's/.*: //')" "No such device"
exec 3<&-
is "to who opens it" "$(get "$policy/scaling_max_freq")" \
    "No such file or directory"
is "to who looks" "$(stat "$policy" 2>&1 | sed 's/.*: //')" \
    "No such file or directory"
is "its link" "$(readlink "$cpu/cpu0/cpufreq")" ""
is "the list" "$(cd "$cpu/cpufreq" && echo *)" "boost policy1"
is "appear" "$(ask 'appear 0')" ok
is "as new" "$(get "$cpu/cpu0/cpufreq/scaling_max_freq")" 3000000
timeout 10 "$simulator" "$root" 2>/dev/null
is "a second freqsim is refused" $? 1
stop

# intel_pstate, and limits that take effect later.

start --driver intel_pstate --cpus 0-127 --limits-delay 200ms
is "128 policies" "$(find "$cpu/cpufreq" -name 'policy*' | wc -l)" 128
is "EPP" "$(put "$policy/energy_performance_preference" power)" ok
is "performance" "$(put "$policy/scaling_governor" performance)" ok
is "EPP under performance" \
    "$(put "$policy/energy_performance_preference" power)" \
    "Device or resource busy"
is "a limit" "$(put "$policy/scaling_max_freq" 2000000)" ok
is "not yet" "$(get "$policy/scaling_max_freq")" 3000000
sleep 0.3
is "now" "$(get "$policy/scaling_max_freq")" 2000000
is "the frequency follows" "$(get "$policy/scaling_cur_freq")" 2000000
is "passive" "$(put "$cpu/intel_pstate/status" passive)" ok
is "another driver" "$(get "$policy/scaling_driver")" intel_cpufreq
is "no hwp_dynamic_boost" \
    "$(stat "$cpu/intel_pstate/hwp_dynamic_boost" 2>&1 | sed 's/.*: //')" \
    "No such file or directory"
stop

finish
