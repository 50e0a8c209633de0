#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# What is seen while a job runs: sstat, and the node's watts in scontrol.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

up live --sim '--load const:150' || exit 1

node_watts() {
    cluster run live scontrol show node node1 |
        sed -n "s/.*$1=\([^ ]*\).*/\1/p"
}

watts_are_right() {
    within "$(node_watts "$1")" 150 2
}

sstat_joules() {
    cluster run live sstat -a -n -P -j "$1" -o ConsumedEnergyRaw |
        head -n 1
}

# sstat's figure is up to a task interval (1 s) older or younger than now.
sstat_is_right() {
    JOULES=$(sstat_joules "$JOB.0")
    TRUE_J=$(awk -v ns=$(($(now_ns) - BEGIN)) \
        'BEGIN { printf "%.1f\n", ns / 1e9 * 150 }')
    within "$JOULES" "$TRUE_J" 2 160
}

cluster user live srun -J live sleep 16 &
SRUN=$!
check "the step starts" wait_for 60 \
    cluster run live bash -c 'squeue -h -t R -o %A | grep -q .'
JOB=$(last_job live)
BEGIN=$(now_ns)
sleep 6
# Beside others a poll may be late.
wait_for 4 sstat_is_right
check "sstat during the step ($JOULES J, about $TRUE_J J)" \
    within "$JOULES" "$TRUE_J" 2 160
check "CurrentWatts within 2 % ($(node_watts CurrentWatts))" \
    watts_are_right CurrentWatts
check "AveWatts within 2 % ($(node_watts AveWatts))" watts_are_right AveWatts
wait $SRUN
check "the step ends well" test $? -eq 0

cluster sim live node1 'load const:80' > /dev/null
check "CurrentWatts follows the load within 4 s" wait_for 4 \
    bash -c '[ "$("$0" run live scontrol show node node1 |
        sed -n "s/.*CurrentWatts=\([^ ]*\).*/\1/p")" = 80 ]' "$LIB/cluster"

check "scontrol show config lists our options" bash -c \
    '"$0" run live scontrol show config | grep -q "JouleSamplePeriod *= 1s"' \
    "$LIB/cluster"
finish
