#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all alone
#
# A sweep as a user does it: a load of the CPU and a load of the memory at every
# frequency that the node has, set by spank_joule, measured by
# joule_rapl, read with sacct.  A step is some milliseconds longer than its task,
# and on a busy machine many: that is allowed for.
#
# Work that is all CPU takes least at r = (FLOOR / 2 BUSY)^(1/3) = 0.635, 1.9 GHz:
# 2.0 GHz is the nearest one here.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=cpufreq.sh
. "$LIB/cpufreq.sh"
# shellcheck source-path=SCRIPTDIR source=sweep.sh
. "$LIB/sweep.sh"

FREQ=r-sweep
KHZ="1200000 1500000 2000000 2600000 3000000"
HIGHEST=3000000
FLOOR=100 BUSY=195.3125
WORK=2                  # seconds at the highest frequency

follows_model() { # TABLE
    [ "$(wc -l < "$1")" = 6 ] && ! grep -q ^off "$1"
}

# sweep NAME MEMORY KHZ-OF-THE-MINIMUM
sweep() {
    local name=$1 memory=$2 wanted=$3 khz out=$SCRATCH/table
    for khz in $KHZ; do
        sweep_row $FREQ "$memory" "$khz" || echo "$khz"
    done > "$SCRATCH/rows"
    sweep_table "$memory" < "$SCRATCH/rows" > "$out"
    note < "$out"
    check "$name: time falls, and both follow the model" follows_model "$out"
    check "$name: the model's minimum" test "$(sweep_least 9 "$out")" = "$wanted"
    check "$name: sacct's minimum" test "$(sweep_least 7 "$out")" = "$wanted"
    check "$name: everything is as before" freq_clean
}

# Asked, set and achieved: what srun -v says, and the series of the profile.

SH5UTIL=$JOULE_BUILD/tools/sh5util/sh5util

# series JOB SERIES - as CSV, without its head
series() {
    local file=$SCRATCH/$1.h5
    [ -e "$file" ] || cluster run $FREQ "$SH5UTIL" -S -j "$1" -o "$file" \
        > "$file.out" 2>&1 || { cat "$file.out"; return 1; }
    "$SH5UTIL" -j "$1" -E -l Node:TimeSeries -s "$2" -i "$file" -o "$file.$2" &&
        cat "$file.$2"
}

# column NAME < CSV - its values
column() {
    awk -F, -v name="$1" '
        !at { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
        { print $at }'
}

# all_within LOW HIGH LEAST < NUMBERS - each; at least so many
all_within() {
    awk -v low="$1" -v high="$2" -v least="$3" '
        { print } $1 ~ /nan/ { next } { n++ } $1 < low || $1 > high { bad++ }
        END { exit bad > 0 || n < least }'
}

# achieved REQUEST MIN MAX - kHz that were set; at most 3 % beside them ran
achieved() {
    local out=$SCRATCH/achieved job khz low high
    low=$(($2 * 97 / 100)) high=$(($3 * 103 / 100))
    cluster run $FREQ srun -v -n1 --cpu-freq="$1" --profile=all \
        --acctg-freq=task=1,energy=1 \
        "$FREQLOAD" --ref-khz $HIGHEST 2 0.9 > "$out" 2>&1
    note < <(grep joule_cpufreq: "$out")
    khz=$(sed -n 's/.*ran at \([0-9]*\) kHz on average (counted by the CPUs)/\1/p' "$out")
    check "$1: what the CPUs have counted" all_within $low $high 1 <<< "$khz"
    job=$(last_job $FREQ)
    series "$job" CPUFreq > "$out"
    note < "$out"
    check "$1: the series: set" eval "column MinKHz < $out | all_within $2 $2 2 &&
        column MaxKHz < $out | all_within $3 $3 2"
    check "$1: the series: achieved" \
        eval "column KHz < $out | all_within $low $high 2"
    series "$job" Task_0 > "$out"
    note < "$out"
}

sweep_up $FREQ --profile=acct_gather_profile/joule_hdf5 || exit 1
sweep_possible $FREQ || {
    skip "the sweep" "there are no v1 cgroups to measure CPU time"
    finish
}
check "slurmd with the plugin" freq_options ""
FREQ_BOOT=$(freq_dump)
sweep "work of the CPU" 0 2000000
sweep "work that waits for memory" 0.9 1200000
achieved 1500000 1500000 1500000
achieved 2000000-2600000:Performance 2000000 2600000
cluster down $FREQ
CLUSTERS=()
finish
