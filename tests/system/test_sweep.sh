#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: alone
#
# A sweep as a user does it: a load of the CPU and a load of the memory at every
# frequency that the node has, set by spank_joule_cpufreq, measured by
# joule_rapl, read with sacct.  A step is some milliseconds longer than its task,
# and on a busy machine many: that is allowed for.
#
# The node draws FLOOR watts, a busy CPU BUSY more at the highest frequency and
# by the cube of it below.  Work of which the fraction M waits for memory takes
# T = (1 - M) / r + M seconds, at r of the highest frequency, and FLOOR x T +
# BUSY x r^3 x T joules.  Work that is all CPU takes least at
# r = (FLOOR / 2 BUSY)^(1/3) = 0.635, 1.9 GHz: 2.0 GHz is the nearest one here.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=cpufreq.sh
. "$LIB/cpufreq.sh"

FREQ=r-sweep
FREQLOAD=$JOULE_BUILD/tests/sim/freqload
KHZ="1200000 1500000 2000000 2600000 3000000"
HIGHEST=3000000
FLOOR=100 BUSY=195.3125 # 100 W at nodesim's 2.4 GHz
WORK=2                  # seconds at the highest frequency

# one_row MEMORY KHZ - kHz, mean kHz, CPU seconds, elapsed s, sacct J, true J
one_row() {
    measure_step $FREQ run -n1 --cpu-freq="$2" -- sh -c \
        "'$FREQLOAD' --ref-khz $HIGHEST $WORK $1 > '$SCRATCH/load'" || return 1
    awk -v khz="$2" -v ns=$((STEP_END_NS - STEP_START_NS)) -v j="$STEP_J" \
        -v true_j="$STEP_TRUE_J" '
        { printf "%d %d %.3f %.3f %s %s\n", khz, $2, $1, ns / 1e9, j, true_j }' \
        "$SCRATCH/load"
}

# table MEMORY < ROWS - with what the model says; a line of a row whose columns
# do not follow it begins with "off".  A machine with other things to do keeps
# the work waiting, at the floor: that part is told from the rest.
table() {
    awk -v memory="$1" -v floor=$FLOOR -v busy=$BUSY -v work=$WORK \
        -v highest=$HIGHEST '
        function far(a, b, by, least) {
            by *= b
            if (by < least) by = least
            return a > b + by || a < b - by
        }
        BEGIN { print "kHz mean_kHz CPU_s elapsed_s sacct_J true_J " \
            "working_J model_s model_J" }
        { r = $1 / highest; time = work * ((1 - memory) / r + memory)
          model = time * (floor + busy * r ^ 3)
          working = $5 - floor * ($4 - $3)
          bad = NF != 6 || $2 != $1 || far($3, time, 0.02) ||
              far($5, $6, 0.02, floor / 20) || far(working, model, 0.02, floor / 20) ||
              (NR > 1 && $3 >= before)
          before = $3
          printf "%s%s %s %s %s %s %s %.1f %.3f %.1f\n", bad ? "off " : "",
              $1, $2, $3, $4, $5, $6, working, time, model }'
}

follows_model() { # TABLE
    [ "$(wc -l < "$1")" = 6 ] && ! grep -q ^off "$1"
}

least() { # COLUMN TABLE - the frequency where it is least
    sed 's/^off //' "$2" | sort -g -k "$1,$1" |
        awk '$1 ~ /^[0-9]+$/ { print $1; exit }'
}

# sweep NAME MEMORY KHZ-OF-THE-MINIMUM
sweep() {
    local name=$1 memory=$2 wanted=$3 khz out=$SCRATCH/table
    for khz in $KHZ; do
        one_row "$memory" "$khz" || echo "$khz"
    done > "$SCRATCH/rows"
    table "$memory" < "$SCRATCH/rows" > "$out"
    note < "$out"
    check "$name: time falls, and both follow the model" follows_model "$out"
    check "$name: the model's minimum" test "$(least 9 "$out")" = "$wanted"
    check "$name: sacct's minimum" test "$(least 7 "$out")" = "$wanted"
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

up $FREQ --profile=acct_gather_profile/joule_hdf5 --sim "--load const:$FLOOR --busy 100 --freq-ref 2.4 --cgroup %c" \
    --cpufreq "--governor ondemand --load 30 --table ${KHZ// /,}" || exit 1
if [ ! -e "$(cluster dir $FREQ)/cgroups" ]; then
    skip "the sweep" "there are no v1 cgroups to measure CPU time"
    finish
fi
check "slurmd with the plugin" freq_options ""
FREQ_BOOT=$(freq_dump)
sweep "work of the CPU" 0 2000000
sweep "work that waits for memory" 0.9 1200000
achieved 1500000 1500000 1500000
achieved 2000000-2600000:Performance 2000000 2600000
cluster down $FREQ
CLUSTERS=()
finish
