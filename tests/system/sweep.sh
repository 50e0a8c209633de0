# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# sweep.sh - a load at every frequency that a simulated node has; source it after
# lib.sh.
#
# The node draws FLOOR watts, a busy CPU BUSY more at the highest frequency and
# by the cube of it below.  Work of which the fraction M waits for memory takes
# T = (1 - M) / r + M seconds, at r of the highest frequency, and FLOOR x T +
# BUSY x r^3 x T joules.  Work that is all CPU takes least at
# r = (FLOOR / 2 BUSY)^(1/3).
#
# The caller sets KHZ (a list), HIGHEST (of it), FLOOR, BUSY, and WORK: seconds at
# the highest frequency.
FREQLOAD=$JOULE_BUILD/tests/sim/freqload

# sweep_up CLUSTER [OPTION...] - a cluster of one such node
sweep_up() {
    local name=$1 busy
    shift
    # At the reference frequency of nodesim and its counters, 2.4 GHz.
    busy=$(awk -v busy="$BUSY" -v highest="$HIGHEST" \
        'BEGIN { printf "%.6f\n", busy * (2400000 / highest) ^ 3 }')
    up "$name" --sim "--load const:$FLOOR --busy $busy --freq-ref 2.4 --cgroup %c" \
        --cpufreq "--governor ondemand --load 30 --table ${KHZ// /,}" "$@"
}

# Whether the CPU time of a cluster's jobs can be measured.
sweep_possible() { # CLUSTER
    [ -e "$(cluster dir "$1")/cgroups" ]
}

# sweep_row CLUSTER MEMORY KHZ - kHz, mean kHz, CPU seconds, elapsed s, sacct J,
# true J
sweep_row() {
    measure_step "$1" run -n1 --cpu-freq="$3" -- sh -c \
        "'$FREQLOAD' --ref-khz $HIGHEST $WORK $2 > '$SCRATCH/load'" || return 1
    awk -v khz="$3" -v ns=$((STEP_END_NS - STEP_START_NS)) -v j="$STEP_J" \
        -v true_j="$STEP_TRUE_J" '
        { printf "%d %d %.3f %.3f %s %s\n", khz, $2, $1, ns / 1e9, j, true_j }' \
        "$SCRATCH/load"
}

# sweep_table MEMORY < ROWS - with what the model says; a line of a row whose
# columns do not follow it begins with "off".  A machine with other things to do
# keeps the work waiting, at the floor: that part is told from the rest.
sweep_table() {
    awk -v memory="$1" -v floor="$FLOOR" -v busy="$BUSY" -v work="$WORK" \
        -v highest="$HIGHEST" '
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

# sweep_least COLUMN TABLE - the frequency where it is least
sweep_least() {
    sed 's/^off //' "$2" | sort -g -k "$1,$1" |
        awk '$1 ~ /^[0-9]+$/ { print $1; exit }'
}
