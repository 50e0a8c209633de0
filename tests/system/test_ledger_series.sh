#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: quiet
#
# The energy series of a profiled step on a shared node: the step's share beside
# the node's power, by our profile plugin and by Slurm's.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

readonly FLOOR_W=60 BUSY_W=20

# rows FILE COLUMN - that column of all rows of the energy series
rows() {
    h5dump -d /node1/Energy "$1" | awk -v column="$2" '
        /H5T_COMPOUND/ && !n { type = 1; next }
        type && /^ *}/ { type = 0 }
        type { n++; gsub(/[";]/, ""); name[n] = $2 }
        /^ *\([0-9]+\): {/ { at = 0; next }
        /^ *[-0-9.a-z]+,?$/ { at++; gsub(/[ ,]/, ""); if (name[at] == column) print }'
}

# series TYPE - a step of 4 s on one of two CPUs
series() {
    local type=$1 file dir j last
    up series --contain --profile="acct_gather_profile/$type" \
        --sim "--packages 1 --idle $FLOOR_W --busy $BUSY_W --jobs %c" \
        --gather "JouleAttribution=cputime
JouleIdleWatts=$FLOOR_W" || { not_ok "$type: a cluster"; return; }
    cluster user series srun -n1 --profile=energy "$STAMP" --spin 4 "$SCRATCH/stamp"
    dir=$(cluster dir series)
    file=$(find "$dir/profile" -name '1_0_node1.h5')
    check "$type: the columns of the share come last" test \
        "$(h5dump -H -d /node1/Energy "$file" | grep -c '"step_uJ"\|"step_mW"')" = 2
    rows "$file" step_uJ > "$SCRATCH/uj"
    note <<< "$type: step_uJ $(xargs < "$SCRATCH/uj")"
    note <<< "$type: step_mW $(rows "$file" step_mW | xargs)"
    check "$type: a row for each second" test "$(wc -l < "$SCRATCH/uj")" -ge 3
    check "$type: the share does not fall" sort -n -c "$SCRATCH/uj"
    last=$(tail -n 1 "$SCRATCH/uj")
    j=$(step_energy series 1.0)
    # The last row is up to a second and a half older than the step's end.
    check "$type: it comes to what sacct has ($j J), but for the last rows" \
        awk -v uj="$last" -v j="$j" -v w=$((FLOOR_W / 2 + BUSY_W)) \
        'BEGIN { exit !(uj / 1e6 <= j + 1 && uj / 1e6 >= j - 2 * w) }'
    # The last row is the step's end.  Slurm's own series says the time in whole
    # seconds: there a row is one second.
    rows "$file" ElapsedTimeNs > "$SCRATCH/ns"
    [ -s "$SCRATCH/ns" ] || awk '{ print NR * 1e9 }' "$SCRATCH/uj" > "$SCRATCH/ns"
    paste "$SCRATCH/uj" <(rows "$file" step_mW) "$SCRATCH/ns" |
        awk 'NR > 1 && $2 > 0 { uj += $1 - before; by_power += $2 * ($3 - then) / 1e6 }
             { before = $1; then = $3 }
             END { print uj / 1e6, by_power / 1e6 }' > "$SCRATCH/power"
    check "$type: its energy is that of its power ($(cat "$SCRATCH/power"))" \
        within "$(cut -d' ' -f1 "$SCRATCH/power")" \
        "$(cut -d' ' -f2 "$SCRATCH/power")" 15
    check "$type: less than the node's" awk -v uj="$last" \
        -v node="$(rows "$file" node_uJ | tail -n 1)" 'BEGIN { exit !(uj < node) }'
    cluster down series
}

series joule_hdf5
series hdf5
finish
