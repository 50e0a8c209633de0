#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# Counters of all kinds: wraps within a step, units, widths, packages, and
# readings that fail.  The joules must be the wattmeter's each time.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# kind NAME SECONDS 'NODESIM-OPTIONS'
kind() {
    local name=$1 seconds=$2
    up kind --sim "$3" || { not_ok "$name: the cluster starts"; return; }
    if measure_step kind user -- --sleep "$seconds" 2> "$SCRATCH/err"; then
        echo "# $name: sacct $STEP_J J, wattmeter $STEP_TRUE_J J"
        # Up to 15 ms of the start of a step lie before the task's own first
        # instruction: 1.5 J at 100 W, and 0.2 % of 8 s at any power.
        check "$name" step_within 0.2 1.5
    else
        not_ok "$name" "$(cat "$SCRATCH/err")"
    fi
    [ -z "${4:-}" ] || "$4"
    cluster down kind
}

wraps_are_many() {
    check "no error or jump in slurmd's log" bash -c \
        '! "$0" log kind node1 | grep joule_rapl | grep -q error' \
        "$LIB/cluster"
}

# 2^32 counts of 15.3 uJ are 65.5 kJ: 16 kW on one package wrap it every 4 s.
kind "five wraps in a step at 15.3 uJ" 22 \
    '--packages 1 --model 0x55 --esu 16 --load const:16000 --dram-share 0.1 --start wrap-100000' \
    wraps_are_many
kind "AMD, 32 bits, near the wrap" 4 \
    '--vendor amd --family 0x17 --model 0x31 --start wrap-100000 --load const:90'
kind "AMD, 64 bits" 4 \
    '--vendor amd --family 0x19 --model 0x11 --start wrap-100000 --load const:90'
kind "four packages" 8 '--packages 4 --cpus 8 --load const:200'
kind "Haswell-EP, DRAM at 15.3 uJ" 4 \
    '--model 0x3F --esu 14 --load const:90 --dram-share 0.4'
kind "Ice Lake-SP, DRAM at 15.3 uJ" 4 \
    '--model 0x6A --esu 14 --load const:90 --dram-share 0.4'
kind "Sapphire Rapids, DRAM at the ordinary unit" 4 \
    '--model 0x8F --esu 14 --load const:90 --dram-share 0.4 --psys'
kind "Silvermont, microjoule units" 4 \
    '--model 0x37 --esu 5 --packages 1 --load const:15'

for model in 0x3F 0x6A 0x8F; do
    kind "powercap, model $model, units that Linux has rounded" 4 \
        "--model $model --powercap --no-msr --load const:90 --dram-share 0.4"
done
kind "powercap, four wraps in a step" 18 \
    '--packages 1 --esu 16 --powercap --no-msr --load const:16000 --dram-share 0.1'
kind "powercap, AMD" 4 \
    '--vendor amd --family 0x19 --model 0x11 --powercap --no-msr --load const:90'
kind "powercap, two packages of two dies" 4 \
    '--packages 2 --dies 2 --cpus 8 --powercap --no-msr --load const:90'

# Every 7th reading of a counter fails.
up eio --sim '--packages 2 --cpus 4 --load const:80' || exit 1
cluster sim eio node1 'eio every 7' > /dev/null
measure_step eio user -- --sleep 8 &&
    check "EIO on every 7th reading: the step ($STEP_J J, $STEP_TRUE_J J)" \
        step_within 0.2 1.5
cluster sim eio node1 'eio off' > /dev/null

# Nothing answers for 2 s in mid-step: the next reading has it all.
begin_step eio user -- --sleep 6
sleep 1.5
FROM_NS=$(now_ns)
cluster sim eio node1 'eio all' > /dev/null
sleep 2
cluster sim eio node1 'eio off' > /dev/null
TO_NS=$(now_ns)
end_step
check "2 s were in mid-step" step_lasts "$FROM_NS" "$TO_NS"
check "no answer for 2 s in mid-step ($STEP_J J, $STEP_TRUE_J J)" \
    step_within 0.2 1.5
watts_are() {
    [ "$(cluster run eio scontrol show node node1 |
        sed -n 's/.*CurrentWatts=\([^ ]*\).*/\1/p')" = "$1" ]
}
check "the watts are right again" wait_for 60 watts_are 80
check "failed readings are said once" test \
    "$(cluster log eio node1 | grep -c 'reading energy counter')" -eq 1

# The CPU on which package 1 is read goes offline; then the package's last one.
said() { cluster log eio node1 | grep joule_rapl | grep -q "$1"; }
begin_step eio user -- --sleep 5
cluster sim eio node1 'offline 2' > /dev/null
end_step
check "a CPU goes offline in mid-step ($STEP_J J, $STEP_TRUE_J J)" \
    step_within 0.2 1.5
check "the log says where the package is read now" said 'is read on CPU 3 now'
begin_step eio user -- --sleep 8
cluster sim eio node1 'offline 3' > /dev/null
check "a package that nobody can read: watts are unknown" \
    wait_for 60 watts_are "$UNKNOWN_WATTS"
end_step
check "the step that ends meanwhile has no energy ('$STEP_J')" \
    test -z "$STEP_J"
check "the log says so" said 'package-1 answers on no CPU'
cluster sim eio node1 'online 3' > /dev/null
check "it is back, and the watts" wait_for 60 watts_are 80
begin_step eio user -- --sleep 9
cluster sim eio node1 'offline 3' > /dev/null
check "it goes once more" wait_for 7 watts_are "$UNKNOWN_WATTS"
cluster sim eio node1 'online 2' > /dev/null
end_step
check "it comes back in mid-step ($STEP_J J, $STEP_TRUE_J J)" \
    step_within 0.2 1.5
finish
