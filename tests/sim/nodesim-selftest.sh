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

# However slow the machine is, the node's energy asked for before and after a reading
# says between what it must be.
node_uj() {
    local uj
    read -r _ uj _ <<<"$(ask energy)"
    echo "$uj"
}

now_us() {
    echo "${EPOCHREALTIME//[.,]/}"
}

# counted_mj BEFORE AFTER - of two readings of a package's counter
counted_mj() {
    echo $(((($2 - $1) & 0xffffffff) * 1000 >> 14))
}

# package_mj UJ [ROOM] - what a package has of the node's energy: half, less 15 % DRAM;
# ROOM mJ more
package_mj() {
    echo $(($1 * 85 / 200000 + ${2:-0}))
}

# logged LOG - the last line of the wattmeter's, of now: ns uj
logged() {
    local ns uj line
    ask sync >/dev/null
    while IFS=, read -r ns _ uj _; do
        line="$ns $uj"
    done < <(tail -n 3 "$1") # but for what comes after its last newline
    echo "$line"
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

read -r from from_uj <<<"$(logged "$tmp/w.csv")"
outer=$(node_uj)
before=$(msr 0 0x611)
inner=$(node_uj)
sleep 1
inner=$(($(node_uj) - inner))
after=$(msr 0 0x611)
outer=$(($(node_uj) - outer))
# across the wrap perhaps
between "package counter moves by its part of the node's energy" \
    "$(counted_mj "$before" "$after")" "$(package_mj $inner -1)" \
    "$(package_mj $outer 1)"
is "sync" "$(ask sync)" ok
read -r to to_uj <<<"$(logged "$tmp/w.csv")"
uj=$("$nodesim" --integrate "$tmp/w.csv" "$from" "$to")
is "the integral of the log is what it says" "$uj" $((to_uj - from_uj))
# a second and more, in periods of a tenth
between "wattmeter says 100 W" $((uj * 1000 / ((to - from) / 1000))) 97000 \
    103000
"$nodesim" --integrate "$tmp/w.csv" 0 "$to" 2>/dev/null
is "integral from before the log" $? 2

is "eio all" "$(ask 'eio all')" ok
is "counter under eio" "$(msr 0 0x611)" "Input/output error"
is "unit under eio" "$(msr 0 0x606)" $((0xa0e03))
is "eio off" "$(ask 'eio off')" ok
is "freeze" "$(ask freeze)" ok
before=$(msr 0 0x611)
us_before=$(now_us)
uj_before=$(node_uj)
sleep 0.3
is "frozen counter" "$(msr 0 0x611)" "$before"
uj_thaw=$(node_uj)
is "thaw" "$(ask thaw)" ok
after=$(msr 0 0x611)
uj_after=$(node_uj)
between "after the thaw it goes on from there" \
    "$(counted_mj "$before" "$after")" 0 "$(package_mj $((uj_after - uj_thaw)) 1)"
between "the wattmeter went on" $((uj_after - uj_before)) 20000000 \
    $((($(now_us) - us_before) * 150))
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

(ulimit -t 60 && exec sh -c 'while :; do :; done') & # not for ever
burner=$!
us_before=$(now_us)
start --idle 0 --busy 10 --pid $burner
from=$(node_uj)
read -r ns_before _ </proc/$burner/schedstat
sleep 1
read -r ns_after _ </proc/$burner/schedstat
uj=$(node_uj)
# of a process that runs, schedstat is some ticks old
between "a busy process costs 10 W of CPU time" $((uj - from)) \
    $(((ns_after - ns_before) / 100 - 200000)) $((($(now_us) - us_before) * 10))
kill $burner
wait $burner 2>/dev/null
uj=$(node_uj)
is "a dead one costs nothing more" "$(node_uj)" "$uj"
stop

# The root cgroup of CPU time, v1 or v2.

cgroup=
for dir in /sys/fs/cgroup/cpuacct /sys/fs/cgroup /sys/fs/cgroup/cpu,cpuacct; do
    [ -e "$dir/cpuacct.usage" ] || [ -e "$dir/cpu.stat" ] || continue
    cgroup=$dir
    break
done

# Jobs in cgroups as Slurm makes them: their energy is that of their CPU time,
# of one that has gone too, and all of it adds up to the wattmeter's.

node_group=$cgroup/nodesim-selftest-$$
groups_remove() {
    local procs
    procs=$(find "$node_group" -name cgroup.procs -exec cat {} + 2>/dev/null)
    # shellcheck disable=SC2086
    [ -z "$procs" ] || kill -9 $procs
    for _ in $(seq 50); do
        find "$node_group" -depth -type d -exec rmdir {} + 2>/dev/null
        [ -d "$node_group" ] || return 0
        sleep 0.02
    done
}

job_group() { # JOB ; makes it, prints where its tasks are
    local dir=$node_group/slurm_node1/uid_0/job_$1

    [ -e "$cgroup/cpuacct.usage" ] || dir+=/step_0/user
    mkdir -p "$dir" && echo "$dir"
}

used_ns() { # GROUP
    if [ -e "$1/cpuacct.usage" ]; then
        cat "$1/cpuacct.usage"
    else
        sed -n 's/^usage_usec \(.*\)/\1000/p' "$1/cpu.stat"
    fi
}

end_tasks() { # GROUP ; until nothing of them counts any more
    # shellcheck disable=SC2046
    kill -9 $(cat "$1/cgroup.procs")
    for _ in $(seq 100); do
        [ -n "$(cat "$1/cgroup.procs")" ] || break
        sleep 0.02
    done
    is "no task of ${1##*/} is left" "$(cat "$1/cgroup.procs")" ""
    # One that is no longer in the list has a last moment on its CPU to come.
    sleep 0.1
}

burn() { # GROUP ; in the background, 60 s at most
    # shellcheck disable=SC2016
    (timeout 60 sh -c 'echo $$ >"$0/cgroup.procs"; while :; do :; done' "$1" &)
}

job_field() { # NAME FIELD
    ask jobs | tr ';' '\n' | awk -v name="$1" -v field="$2" \
        'NR > 1 && $1 == name { print $field }'
}

if [ -z "$cgroup" ] || ! mkdir "$node_group" 2>/dev/null; then
    echo "note: no cgroup can be made here, nothing of jobs"
else
    trap 'groups_remove; cleanup' EXIT
    usage_error --packages 1 --jobs "$node_group" --log-ms 11
    usage_error --packages 1 --jobs "$node_group/none"
    usage_error --packages 1 --jobs "$node_group" --jobs-also "$tmp/none"
    usage_error --packages 1 --jobs-also "$tmp"
    seven=$(job_group 7)
    start --packages 1 --idle 20 --busy 10 --jobs "$node_group" \
        --wattmeter "$tmp/jobs.csv"
    is "an intensity before there is the job" "$(ask 'intensity 8 2.5')" ok
    burn "$seven"
    sleep 0.5
    outer=$(now_us)
    eight=$(job_group 8)
    burn "$eight"
    for _ in $(seq 100); do
        [ -z "$(job_field 8 5)" ] || break
        sleep 0.02
    done
    is "the job is found" "$(job_field 8 1)" 8
    inner=$(now_us)
    sleep 1
    end_tasks "$eight"
    eight_ns=$(used_ns "$eight")
    inner=$(($(now_us) - inner))
    ask jobs >/dev/null # it has seen the end of it
    find "$node_group/slurm_node1/uid_0/job_8" -depth -type d -exec rmdir {} +
    outer=$(($(now_us) - outer))
    end_tasks "$seven"
    seven_ns=$(used_ns "$seven")
    is "the CPU time of a job" "$(job_field 7 2)" "$seven_ns"
    is "and what it cost" "$(job_field 7 3)" $((seven_ns * 10))
    is "the CPU time of one that has gone" "$(job_field 8 2)" "$eight_ns"
    is "and what it cost, two and a half times as much" \
        "$(job_field 8 3)" $((eight_ns * 25))
    between "it was there from its first task to its end, in us" \
        $((($(job_field 8 6) - $(job_field 8 5)) / 1000)) $((inner - 1000)) \
        $((outer + 1000)) # of two clocks
    between "all of it adds up" "$(ask jobs | tr ';' '\n' | awk '
        NR == 1 { node = $2; sum = $3; next } { sum += $3; share += $4 }
        END { printf "%.0f\n", node - sum }')" 0 3
    between "and by CPU time too" "$(ask jobs | tr ';' '\n' | awk '
        NR > 1 { sum += $3; share += $4 } END { printf "%.0f\n", sum - share }')" \
        -3 3
    if [ -e "$cgroup/cpuacct.usage" ]; then
        # The counters are in ns, the ticks of two CPUs or more are 10 ms.
        between "its /proc/stat has that CPU time and no other" \
            $(($(awk '/^cpu[0-9]/ { t += $2 } END { print t }' \
                "$root/dev/cpu/stat") - $(cat "$node_group/cpuacct.usage") / 10000000)) \
            -"$(grep -c ^processor /proc/cpuinfo)" 0
        is "others may read it" "$(stat -c %a "$root/dev/cpu/stat")" 444
    fi
    read -r _ before_nj _ <<<"$(ask jobs)"
    ask sync >/dev/null
    IFS=, read -r _ _ uj _ <<<"$(tail -n 1 "$tmp/jobs.csv")"
    read -r _ after_nj _ <<<"$(ask jobs)"
    between "the wattmeter says the same" "$uj" $((before_nj / 1000)) \
        $((after_nj / 1000))
    stop
    groups_remove
    trap cleanup EXIT
fi

# What it costs: 4 packages at 1 Hz and 100 Hz, log every 10 ms, driven by
# the CPU time of the root cgroup.

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
