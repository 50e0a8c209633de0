#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# Slurm's own srun --cpu-freq on simulated frequency policies: which files it
# writes, in which order, and what it leaves behind.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# writes CLUSTER - what was written since the last call: POLICY/FILE=VALUE
WRITES_SEEN=0
writes() {
    "$LIB/cluster" log "$1" cpufreq-node1.log | tail -n "+$((WRITES_SEEN + 1))" |
        awk '{ sub("cpufreq/policy", "", $4); sub("scaling_", "", $4)
               printf "%s%s=%s%s", n++ ? " " : "", $4, $5,
                      $6 == "ok" ? "" : "(" $6 ")" }
             END { print "" }'
}

seen() { # CLUSTER
    WRITES_SEEN=$("$LIB/cluster" log "$1" cpufreq-node1.log | wc -l)
}

is() { # GOT WANTED
    [ "$1" = "$2" ] || { printf 'got:    %s\nwanted: %s\n' "$1" "$2"; return 1; }
}

# step NAME SRUN-OPTIONS WRITES-AT-START WRITES-AT-END
step() {
    local during
    seen freqs
    # shellcheck disable=SC2016,SC2086  # the task's; a list of options
    during=$(cluster run --timeout 30 freqs srun $2 \
        sh -c '[ $SLURM_PROCID != 0 ] || wc -l < "$0"' \
        "$(cluster dir freqs)/log/cpufreq-node1.log")
    [[ $during =~ ^[0-9]+$ ]] || during=0
    wait_for 5 state_is "$BEFORE"
    check "$1: what is written" is "$(writes freqs)" "${3:+$3${4:+ }}$4"
    check "$1: how much of it before the task runs" is \
        "$((during - WRITES_SEEN))" "$(wc -w <<< "$3")"
    check "$1: everything is as before" is "$(cluster cpufreq freqs node1 dump)" "$BEFORE"
}

state_is() {
    [ "$(cluster cpufreq freqs node1 dump)" = "$1" ]
}

# With one of the task plugins: with both, Slurm writes everything twice.
up freqs --linuxproc --no-sim --energy none \
    --cpufreq '--governor ondemand --load 30' || exit 1
BEFORE=$(cluster cpufreq freqs node1 dump)
note <<< "$BEFORE"
check "the frequency at first" is \
    "$(cluster cpufreq freqs node1 'get cpufreq/policy0/scaling_cur_freq')" 2000000
check "a node's files by 'cluster at'" is \
    "$(cluster at freqs node1 cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver)" \
    acpi-cpufreq

if release_is 22.05; then
    step "one frequency" --cpu-freq=2000000 \
        "0/governor=userspace 0/setspeed=2000000" \
        "0/governor=userspace 0/setspeed=2000000 0/governor=ondemand"
    step "low" --cpu-freq=Low \
        "0/governor=userspace 0/setspeed=1500000" \
        "0/governor=userspace 0/setspeed=2000000 0/governor=ondemand"
    step "one that is not there" --cpu-freq=2100000 \
        "0/governor=userspace 0/setspeed=2600000" \
        "0/governor=userspace 0/setspeed=2000000 0/governor=ondemand"
    step "a range" --cpu-freq=1500000-2600000 \
        "0/max_freq=2600000 0/min_freq=1500000" \
        "0/max_freq=3000000 0/min_freq=1500000"
    step "a range below the present one" --cpu-freq=1500000-1500000 \
        "0/governor=userspace 0/setspeed=1500000 0/governor=ondemand 0/max_freq=1500000 0/min_freq=1500000" \
        "0/max_freq=3000000 0/min_freq=1500000"
    step "two tasks" "-n2 --cpu-freq=2600000" \
        "0/governor=userspace 0/setspeed=2600000 1/governor=userspace 1/setspeed=2600000" \
        "0/governor=userspace 0/setspeed=2000000 0/governor=ondemand 1/governor=userspace 1/setspeed=2000000 1/governor=ondemand"
else
    # Later releases set the limits to the one frequency as well.
    BACK="0/governor=userspace 0/setspeed=2000000 0/max_freq=3000000 0/min_freq=1500000 0/governor=ondemand"
    step "one frequency" --cpu-freq=2000000 \
        "0/max_freq=2000000 0/min_freq=2000000 0/governor=userspace 0/setspeed=2000000 0/governor=userspace" \
        "$BACK"
    step "low" --cpu-freq=Low \
        "0/governor=userspace 0/setspeed=1500000 0/max_freq=1500000 0/min_freq=1500000 0/governor=userspace 0/setspeed=1500000 0/governor=userspace" \
        "$BACK"
    HIGHER="0/max_freq=2600000 0/governor=userspace 0/setspeed=2600000 0/min_freq=2600000 0/governor=userspace 0/setspeed=2600000 0/governor=userspace"
    step "one that is not there" --cpu-freq=2100000 "$HIGHER" "$BACK"
    step "two tasks" "-n2 --cpu-freq=2600000" \
        "$HIGHER ${HIGHER//0\//1/}" "$BACK ${BACK//0\//1/}"
fi
step "a range and a governor" --cpu-freq=1500000-2600000:Performance \
    "0/max_freq=2600000 0/min_freq=1500000 0/governor=performance" \
    "0/max_freq=3000000 0/min_freq=1500000 0/governor=ondemand"
step "a governor" --cpu-freq=Performance \
    "0/governor=performance" "0/governor=ondemand"
step "nothing" "" "" ""

# Faults reach Slurm.
seen freqs
cluster cpufreq freqs node1 'fault write */scaling_governor EBUSY' > /dev/null
cluster run --timeout 30 freqs srun --cpu-freq=Performance true > /dev/null 2>&1
check "an EBUSY is logged" is "$(writes freqs | awk '{ print $1 }')" \
    "0/governor=performance(EBUSY)"
cluster cpufreq freqs node1 'fault off' > /dev/null
wait_for 5 state_is "$BEFORE"
check_not "an unknown command is refused" cluster cpufreq freqs node1 nonsense
check_not "a node without policies is refused" cluster cpufreq freqs node2 dump
cluster down freqs
CLUSTERS=()

# Slurm knows one way to set a frequency, and intel_pstate does not have it;
# without a list of frequencies Slurm makes one up.
up intel --linuxproc --no-sim --energy none \
    --cpufreq '--driver intel_pstate --load 30' || exit 1
BEFORE=$(cluster cpufreq intel node1 dump)
seen intel
cluster run --timeout 30 intel srun --cpu-freq=2000000 true > /dev/null 2>&1
LIMITS=("" "" "")
release_is 22.05 || LIMITS=("0/max_freq=2028559 " \
    "0/governor=powersave 0/min_freq=2028559 0/governor=userspace(EINVAL) 0/setspeed=2028559(EINVAL) " \
    "0/max_freq=3000000 0/min_freq=1200000 ")
check "intel_pstate refuses what Slurm writes" is "$(writes intel)" \
    "${LIMITS[0]}0/governor=userspace(EINVAL) 0/setspeed=2028559(EINVAL) ${LIMITS[1]}0/governor=userspace(EINVAL) 0/setspeed=1700000(EINVAL) ${LIMITS[2]}0/governor=powersave"
check "and stays as it is" is "$(cluster cpufreq intel node1 dump)" "$BEFORE"
cluster down intel
CLUSTERS=()
finish
