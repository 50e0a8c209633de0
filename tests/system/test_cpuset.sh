#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The CPUs of a process's cpuset, with this machine's cgroup v1: as the kernel,
# libcgroup and we find them.  Those of v2 are in guest-cpufreq.sh.
#
# shellcheck disable=SC2317  # functions are called by name
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
CPUSETS=$JOULE_BUILD/tests/peer/cpusets
NAME=joule-cpuset.$$
TOP_GROUP=''
HELD=()

cleanup() {
    local pid
    for pid in "${HELD[@]}"; do
        kill "$pid" 2> /dev/null
        wait "$pid" 2> /dev/null
    done
    [ -z "$TOP_GROUP" ] || find "$TOP_GROUP" -depth -type d -exec rmdir {} \;
    lib_cleanup
}
trap cleanup EXIT

# The directory of this process's group in the cpuset hierarchy of v1.
own_group() {
    local point group
    point=$(awk '$4 == "/" && / - cgroup / && ("," $NF ",") ~ /,cpuset,/ {
        print $5; exit }' /proc/self/mountinfo)
    group=$(sed -nE 's/^[0-9]+:([^:]*,)?cpuset(,[^:]*)?:(.*)/\3/p' /proc/self/cgroup)
    [ -n "$point" ] && [ -w "$point${group%/}/cgroup.procs" ] &&
        echo "$point${group%/}"
}

# make_group DIR CPUS - below the one that is there
make_group() {
    mkdir "$1" && cat "${1%/*}/cpuset.mems" > "$1/cpuset.mems" &&
        echo "$2" > "$1/cpuset.cpus"
}

# hold GROUP - a process in it, the last one of HELD
hold() {
    sleep 300 &
    HELD+=($!)
    echo $! > "$1/cgroup.procs"
}

# all_say CPUS BOUND PID - its cpuset, as libcgroup and we find it; what the
# kernel has bound it to, and where we set a frequency
all_say() {
    local wanted="$3 ours=$1 libcgroup=$1 bound=$2 used=$2" got
    got=$("$CPUSETS" "$3")
    [ "$got" = "$wanted" ] || { printf 'got    %s\nwanted %s\n' "$got" "$wanted"; return 1; }
}

if ! own=$(own_group); then
    skip "cpusets of cgroup v1" "no cpuset hierarchy of v1 that could be written"
    finish
fi
cpus=$(cat "$own/cpuset.cpus")
last=${cpus##*[-,]}
TOP_GROUP=$own/$NAME
check "a group of all CPUs ($cpus)" make_group "$TOP_GROUP" "$cpus"
check "one of one CPU in it" make_group "$TOP_GROUP/one" "$last"
# What a user's name may put there.
check "one with a strange name" make_group "$TOP_GROUP/a:b c" "$last"
check "one whose CPUs come from above" make_group "$TOP_GROUP/one/below" "$last"

hold "$TOP_GROUP"
check "all CPUs" all_say "$cpus" "$cpus" "${HELD[-1]}"
hold "$TOP_GROUP/one"
check "one CPU" all_say "$last" "$last" "${HELD[-1]}"
hold "$TOP_GROUP/one/below"
check "one CPU, further down" all_say "$last" "$last" "${HELD[-1]}"
# libcgroup 2.0 takes this name for another one.
hold "$TOP_GROUP/a:b c"
"$CPUSETS" "${HELD[-1]}" > "$SCRATCH/strange"
note < "$SCRATCH/strange"
check "a strange name" grep -qx "${HELD[-1]} ours=$last libcgroup=.* bound=$last used=$last" \
    "$SCRATCH/strange"
hold "$TOP_GROUP"
taskset -cp "$last" "${HELD[-1]}" > /dev/null
check "all CPUs, but bound to one" all_say "$cpus" "$last" "${HELD[-1]}"
check_not "no process" "$CPUSETS" 999999999
note < <("$CPUSETS" --bench)
finish
