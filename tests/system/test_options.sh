#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default
#
# Every bad value of every option: one sentence with key, value and what is
# allowed, with the file and line; the default is used and slurmd goes on.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

shows() {
    cluster run options scontrol show config |
        grep -qE "^$1 *= $2\$"
}

# Each key, what it allows, and bad values of it.  (An unquoted blank ends the daemon
# in Slurm's own parser, and no value at all is none.)
BAD='JouleSamplePeriod|10ms to 60s|9ms 61s 0 -1 1x abc 1e3 9999999999999999999s 0x10
JouleRAPLDomains|package,dram or package or psys|dram psys,package pp0 package,package core,dram package,;
JouleSensors|auto, or some of cray, fused, hwmon, ipmi and rapl|gpu cray,gpu
JouleCPUCounters|auto, msr or powercap|perf msr,powercap
JouleAttribution|cputime, alloc or node|jobs cputime,alloc Node1
JouleIdleWatts|0 to 100000|-1 100001 1.5 20W
JouleUserPeriod|10ms to 3600s|9ms 3601s
JouleProfileNode|alone or always|never Always1'

# bad LINE KEY=VALUE RANGE - what the log must say of this line of acct_gather.conf
bad() {
    local line
    check "$2 is said" wait_for 60 grep -q "error: .*${2%%=*}=" "$LOG"
    line=$(grep "error: .*${2%%=*}=" "$LOG")
    check "$2: once, with file, line, value and range" bash -c '
        [ "$(printf "%s\n" "$1" | wc -l)" -eq 1 ] || { echo "$1"; exit 1; }
        case $1 in *acct_gather.conf:$2:*"$3"*"$4"*) exit 0 ;; esac
        echo "$1"; exit 1' - "$line" "$1" "$2" "$3"
}

# round N - slurmd with the Nth bad value of each key that has one; 1 if none has
round() {
    local key range values lines=('# one line before') ranges=('') i
    while IFS='|' read -r key range values; do
        read -r -a values <<< "$values"
        [ -n "${values[$1]-}" ] || continue
        lines+=("$key=${values[$1]}")
        ranges+=("$range")
    done <<< "$BAD"
    [ ${#lines[@]} -gt 1 ] || return 1
    printf '%s\n' "${lines[@]}" > "$(cluster dir options)/etc/acct_gather.conf"
    cluster slurmd options node1 stop
    : > "$LOG"
    check "${lines[*]:1}: slurmd goes on" cluster slurmd options node1 start
    for ((i = 1; i < ${#lines[@]}; i++)); do
        bad $((i + 1)) "${lines[i]}" "${ranges[i]}"
    done
    # A slurmd that is back at once has no power before its next sample.
    check "${lines[*]:1}: a job is measured all the same" wait_for 10 bash -c \
        '[ -n "$("$0" run options scontrol show node node1 |
            sed -n "s/.*CurrentWatts=\([0-9]*\).*/\1/p")" ]' "$LIB/cluster"
}

up options --sim '--load const:60' || exit 1
LOG=$(cluster dir options)/log/slurmd-node1.log
for ((n = 0; ; n++)); do
    round $n || break
done

# Good values are shown and used.
cluster down options
up options --sim '--load const:60 --psys --filtering --model 0x8F' \
    --gather 'JouleSamplePeriod=250ms
JouleRAPLDomains=psys
JouleQuietPeriod=10s' || exit 1
check "JouleSamplePeriod=250ms is shown" shows JouleSamplePeriod 250ms
check "JouleRAPLDomains=psys is shown" shows JouleRAPLDomains psys
check "and used" bash -c '"$0" log options node1 | grep -q "every 250ms"' \
    "$LIB/cluster"
check "JouleQuietPeriod: one line in the log" test "$(cluster log options node1 |
    grep -c 'acct_gather.conf:[0-9]*: JouleQuietPeriod is no longer used: ')" -eq 1
check "and it is not shown" bash -c '! "$0" run options scontrol show config |
    grep -q JouleQuietPeriod' "$LIB/cluster"
check "energy filtering is on: one line in the log" test \
    "$(cluster log options node1 | grep -c 'energy filtering is on')" -eq 1
check "and joule probe says so" bash -c \
    '"$0" run options "$JOULE_BUILD/tools/joule/joule" probe --no-conf \
        --root "$1" | grep -qi filtering' "$LIB/cluster" \
    "$(cluster dir options)/sim/node1"
cluster down options

# A machine without the domain that is asked for.
up options --sim '--load const:60' --gather 'JouleRAPLDomains=psys' || exit 1
check "psys asked for, but not there: one sentence" bash -c \
    '"$0" log options node1 | grep -q "error: joule_rapl: .*psys"' "$LIB/cluster"
check "and jobs run" cluster user options srun true
finish
