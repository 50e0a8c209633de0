#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# nodesim-selftest.sh - nodesim as its users see it: through the kernel.
#
# Run from the build directory.  Needs root and /dev/fuse (else exit 77).
# COST_SECONDS: how long the cost is measured (default 3); COST_MAX_PERCENT:
# what is allowed of one CPU (default 3; 0 only reports, for sanitizers).

set -u

bin=${NODESIM_BIN:-tests/sim}
nodesim=$bin/nodesim
# shellcheck disable=SC2034  # for selftest.sh
simulator=$nodesim mounted=dev/cpu
msrread=$bin/msrread
cost_seconds=${COST_SECONDS:-3}
cost_max=${COST_MAX_PERCENT:-3}
# shellcheck source-path=SCRIPTDIR source=selftest.sh
. "$(dirname "$0")/selftest.sh"

msr() { # CPU REGISTER
    "$msrread" "$2" 1 1 "$root/dev/cpu/$1/msr" 2>&1 | sed 's/.*: //'
}

usage_error --vendor via
usage_error --packages 0
usage_error --cpus 3 --packages 2
usage_error --start wrap-
usage_error --load sine:1
usage_error --trace-repeat
usage_error --cgroup /nonexistent
usage_error --no-such-option
usage_error --idle
"$nodesim" --idle 1 / 2>/dev/null
is "the live root is refused" $? 1

# Intel: units, counters, faults, wattmeter.

start --cpus 4 --offline 3 --load square:50:150:0.1 --start wrap-100000 \
    --wattmeter "$tmp/w.csv"
is "unit register" "$(msr 0 0x606)" $((0xa0e03))
is "unknown register" "$(msr 0 0x612)" "Input/output error"
is "AMD's register on Intel" "$(msr 0 0xc001029b)" "Input/output error"
is "offline CPU" "$(msr 3 0x611)" "No such file or directory"
is "cpuinfo lists online CPUs" "$(grep -c ^processor "$root/proc/cpuinfo")" 3
is "online" "$(cat "$root/sys/devices/system/cpu/online")" 0-2
is "package of CPU 2" \
    "$(cat "$root/sys/devices/system/cpu/cpu2/topology/physical_package_id")" 1
dd if="$root/dev/cpu/0/msr" of=/dev/null bs=4 count=1 iflag=skip_bytes \
    skip=$((0x606)) 2>&1 | grep -q "Invalid argument"
is "4 bytes are EINVAL" $? 0
is "16 bytes are the register twice" \
    "$(dd if="$root/dev/cpu/0/msr" bs=16 count=1 iflag=skip_bytes \
        skip=$((0x606)) status=none | od -An -tx8 | tr -d ' \n')" \
    "00000000000a0e0300000000000a0e03"

"$nodesim" "$root" 2>/dev/null
is "a second nodesim is refused" $? 1
is "and does no harm" "$(msr 0 0x606)" $((0xa0e03))

read -r from _ <<<"$(ask energy)"
before=$(msr 0 0x611)
sleep 1
after=$(msr 0 0x611)
is "sync" "$(ask sync)" ok
read -r to _ <<<"$(ask energy)"
ask sync >/dev/null
# 50 W a package less 15 % DRAM for about a second, across the wrap perhaps
between "package counter moves by about 42.5 J" \
    $((((after - before) & 0xffffffff) * 1000 >> 14)) 40000 55000
uj=$("$nodesim" --integrate "$tmp/w.csv" "$from" "$to")
between "wattmeter says 100 W" $((uj * 1000 / ((to - from) / 1000))) 94000 \
    106000
"$nodesim" --integrate "$tmp/w.csv" 0 "$to" 2>/dev/null
is "integral from before the log" $? 2

is "eio all" "$(ask 'eio all')" ok
is "counter under eio" "$(msr 0 0x611)" "Input/output error"
is "unit under eio" "$(msr 0 0x606)" $((0xa0e03))
is "eio off" "$(ask 'eio off')" ok
is "freeze" "$(ask freeze)" ok
before=$(msr 0 0x611)
read -r _ uj_before _ <<<"$(ask energy)"
sleep 0.3
is "frozen counter" "$(msr 0 0x611)" "$before"
is "thaw" "$(ask thaw)" ok
after=$(msr 0 0x611)
between "after the thaw it goes on from there" \
    $((((after - before) & 0xffffffff) * 1000 >> 14)) 0 5000
read -r _ uj_after _ <<<"$(ask energy)"
between "the wattmeter went on" $((uj_after - uj_before)) 20000000 60000000
ask "no such command" 2>/dev/null
is "unknown command" $? 1
stop
is "the last line is whole" "$(tail -c 1 "$tmp/w.csv" | od -An -tx1)" " 0a"
is "the log never falls" \
    "$(awk -F, 'NR > 2 && ($3 < uj || $1 < ns) { bad++ }
                { ns = $1; uj = $3 } END { print bad + 0 }' "$tmp/w.csv")" 0

# AMD: registers one byte apart, compared while they stand still.

start --vendor amd --model 0x11 --cpus 4 --sparse --load const:2000 \
    --start 5000000000
sleep 0.3
ask freeze >/dev/null
is "AMD unit register" "$(msr 1 0xc0010299)" $((0xa1003))
package=$(msr 1 0xc001029b)
core=$(msr 1 0xc001029a)
between "package moves, in 64 bits" "$package" 5000001000 6000000000
between "core is half of 70 % of the package" \
    $((core - 5000000000 - (package - 5000000000) * 35 / 100)) -1 1
is "Intel's register on AMD" "$(msr 1 0x611)" "Input/output error"
is "CPUs are sparse" "$(cd "$root/dev/cpu" && echo *)" "1 3 5 7"

# A nodesim that was killed leaves a dead mount; the next one removes it.

{
    kill -9 $pid
    wait $pid
} 2>/dev/null
start --dead
is "dead counter" "$(msr 0 0x611)" 0
stop

# Driven by the CPU time of a real process: 10 W x its CPU seconds, no floor.

timeout 5 sh -c 'while :; do :; done' &
burner=$!
start --idle 0 --busy 10 --pid $burner
sleep 1
read -r _ uj _ <<<"$(ask energy)"
kill $burner
wait $burner 2>/dev/null
sleep 0.3
between "a busy process costs up to 10 W" "$uj" 3000000 13500000
read -r _ uj _ <<<"$(ask energy)"
read -r _ uj_after _ <<<"$(ask energy)"
is "a dead one costs nothing more" "$uj_after" "$uj"
stop

# What it costs: 4 packages at 1 Hz and 100 Hz, log every 10 ms, driven by
# the CPU time of the root cgroup.

cgroup=
for dir in /sys/fs/cgroup/cpuacct /sys/fs/cgroup /sys/fs/cgroup/cpu,cpuacct; do
    [ -e "$dir/cpuacct.usage" ] || [ -e "$dir/cpu.stat" ] || continue
    cgroup=$dir
    break
done
[ -n "$cgroup" ] || echo "note: no cgroup here, cost without"
for hz in 1 100; do
    start --packages 4 --cpus 4 ${cgroup:+--cgroup "$cgroup"} \
        --wattmeter "$tmp/cost.csv"
    read -r cpu_before _ </proc/$pid/schedstat
    "$msrread" 0x611 $hz $((hz * cost_seconds + 1)) \
        "$root"/dev/cpu/{0,1,2,3}/msr >/dev/null
    read -r cpu_after _ </proc/$pid/schedstat
    # hundredths of a percent of one CPU
    cost=$(((cpu_after - cpu_before) / (cost_seconds * 100000)))
    printf 'note: cost at %d Hz: %d.%02d %% of one CPU\n' $hz $((cost / 100)) \
        $((cost % 100))
    [ "$cost_max" -eq 0 ] || between "cost at $hz Hz in 0.01 %" $cost 0 \
        $((cost_max * 100 - 1))
    stop
done

finish
