#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default
#
# Nodes that cannot measure: jobs run, energy is blank, nothing is drained,
# and the log says once what is missing and how to mend it.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# cannot NAME 'SENTENCE' UP-OPTION...
cannot() {
    local name=$1 sentence=$2 raw
    shift 2
    up missing "$@" || { not_ok "$name: the cluster starts"; return; }
    # 1 s for the task; the sampler decides after 3 s without movement.
    sleep 4
    check "$name: a job runs" cluster user missing srun sleep 1
    raw=$(last_job_energy missing .0)
    check "$name: its energy is blank ('$raw')" test -z "$raw"
    check "$name: the node is idle" wait_for 60 bash -c \
        '"$0" run missing sinfo -h -o %T | grep -qx idle' "$LIB/cluster"
    check "$name: no drain" bash -c \
        '! "$0" run missing scontrol show node node1 | grep -qE "DRAIN|Reason="' \
        "$LIB/cluster"
    check "$name: watts are unknown" bash -c \
        '"$0" run missing scontrol show node node1 | grep -q "CurrentWatts=$1"' \
        "$LIB/cluster" "$UNKNOWN_WATTS"
    check "$name: one line in the log" test \
        "$(cluster log missing node1 | grep -c 'error:.*joule_rapl')" -eq 1
    check "$name: it says what and how" bash -c \
        '"$0" log missing node1 | grep "joule_rapl" | grep -q "$1"' \
        "$LIB/cluster" "$sentence"
    cluster down missing
}

cannot "no MSR device" 'modprobe msr' --no-sim
cannot "registers that read 0 and never move" 'do not move' --sim '--dead'

# The registers are there, but reading them fails, as in other guests.
up missing --sim '--load const:70' || exit 1
cluster slurmd missing node1 stop
cluster sim missing node1 eio all > /dev/null
cluster run missing sh -c ': > "$0"' "$(cluster dir missing)/log/slurmd-node1.log"
cluster slurmd missing node1 start
check "registers that refuse: a job runs" cluster user missing srun sleep 1
raw=$(last_job_energy missing .0)
check "registers that refuse: its energy is blank ('$raw')" test -z "$raw"
check "registers that refuse: the node is idle" wait_for 60 bash -c \
    '"$0" run missing sinfo -h -o %T | grep -qx idle' "$LIB/cluster"
check "registers that refuse: one line in the log, with the reason" bash -c \
    '"$0" log missing node1 | grep "error:.*joule_rapl" > "$1/lines"
    cat "$1/lines" >&2
    [ "$(wc -l < "$1/lines")" -eq 1 ] && grep -q "Input/output error" "$1/lines"' \
    "$LIB/cluster" "$SCRATCH"
cluster down missing

# The registers answer when slurmd starts, and later no longer.
up missing --sim '--load const:70' || exit 1
cluster sim missing node1 freeze > /dev/null
check "frozen counters: watts are unknown" wait_for 60 bash -c \
    '"$0" run missing scontrol show node node1 | grep -q "CurrentWatts=$1"' \
    "$LIB/cluster" "$UNKNOWN_WATTS"
check "frozen counters: a job runs" cluster user missing srun sleep 1
cluster sim missing node1 thaw > /dev/null
check "thawed counters: the watts are back" wait_for 60 bash -c \
    '"$0" run missing scontrol show node node1 | grep -q "CurrentWatts=70"' \
    "$LIB/cluster"
finish
