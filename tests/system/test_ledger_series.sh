#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The energy series of a profiled step: on a shared node its share and nothing of
# the node, by our profile plugin and by Slurm's; where the job has the node alone,
# the share beside the node's power.
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

# on_grid FILE - all rows but the last end at whole seconds of the node's clock, and
# the last has whole joules
on_grid() {
    local start
    start=$(h5dump -y -a "/node1/Joule Start Boot ns" "$1" |
        awk '/DATA \{/ { getline; print $1; exit }')
    check "rows end at seconds of the node's clock" awk -v start="$start" '
        before && (start % 1e9 + before) % 1e9 != 0 { print "row " NR; bad = 1 }
        { before = $1 }
        END { exit bad }' "$SCRATCH/ns"
    check "the last row has whole joules" awk '
        { uj = $1 } END { exit !(NR && uj % 1e6 == 0) }' "$SCRATCH/uj"
}

# series TYPE LESS - a step of 4 s on one of two CPUs; how many joules the last row
# may lack
series() {
    local type=$1 less=$2 file dir j last
    up series --contain --profile="acct_gather_profile/$type" \
        --sim "--packages 1 --idle $FLOOR_W --busy $BUSY_W --jobs %c" \
        --gather "JouleAttribution=cputime
JouleIdleWatts=$FLOOR_W" || { not_ok "$type: a cluster"; return; }
    cluster user series srun -n1 --profile=energy "$STAMP" --spin 4 "$SCRATCH/stamp"
    dir=$(cluster dir series)
    file=$(find "$dir/profile" -name '1_0_node1.h5')
    check "$type: the step's columns and nothing of the node" test \
        "$(h5dump -H -d /node1/Energy "$file" | grep -o '"[^"]*";' | tr -d '";' |
            grep -v '^E' | xargs)" = "Power step_uJ step_mW"
    rows "$file" step_uJ > "$SCRATCH/uj"
    note <<< "$type: step_uJ $(xargs < "$SCRATCH/uj")"
    note <<< "$type: step_mW $(rows "$file" step_mW | xargs)"
    check "$type: a row for each second" test "$(wc -l < "$SCRATCH/uj")" -ge 3
    check "$type: the share does not fall" sort -n -c "$SCRATCH/uj"
    last=$(tail -n 1 "$SCRATCH/uj")
    j=$(step_energy series 1.0)
    # Of Slurm's the last row is up to a second and a half older than the step's end.
    check "$type: it comes to what sacct has ($j J)" \
        awk -v uj="$last" -v j="$j" -v less="$less" \
        'BEGIN { exit !(uj / 1e6 <= j + 1 && uj / 1e6 >= j - 1 - less) }'
    # The last row is the step's end.  Slurm's own series says the time in whole
    # seconds: there a row is one second, but for the first that has a power.
    rows "$file" ElapsedTimeNs > "$SCRATCH/ns"
    [ -s "$SCRATCH/ns" ] || awk '{ print NR * 1e9 }' "$SCRATCH/uj" > "$SCRATCH/ns"
    paste "$SCRATCH/uj" <(rows "$file" step_mW) "$SCRATCH/ns" |
        awk 'NR > 1 && before && $2 + 0 > 0 { uj += $1 - before; by_power += $2 * ($3 - then) / 1e6 }
             { before = $1; then = $3 }
             END { print uj / 1e6, by_power / 1e6 }' > "$SCRATCH/power"
    check "$type: its energy is that of its power ($(cat "$SCRATCH/power"))" \
        within "$(cut -d' ' -f1 "$SCRATCH/power")" \
        "$(cut -d' ' -f2 "$SCRATCH/power")" 15
    if [ "$type" = joule_hdf5 ]; then
        on_grid "$file"
    fi
    cluster down series
}

# follows COUNT - the rows of the only step: so many, in which its share is three times
# as high in one half of a second as in the other, as the node's power, and not above
# that; and what sacct has is all in them.  How much of the node it is depends on who
# else has the CPUs.
follows() {
    local file low high
    file=$(find "$(cluster dir whole)/profile" -name '*_0_node1.h5')
    paste <(rows "$file" package_0_mW) <(rows "$file" dram_0_mW) \
        <(rows "$file" step_mW) | awk '{ print $1 + $2, $3 }' > "$SCRATCH/both"
    check "ten rows a second ($(wc -l < "$SCRATCH/both"))" within \
        "$(wc -l < "$SCRATCH/both")" "$1" 3
    read -r low high < <(awk '{ print $2 }' "$SCRATCH/both" | sort -n | awk '
        { w[NR] = $1 / 1000 }
        END { print w[int(NR / 5)], w[int(NR * 4 / 5)] }')
    check "the share is low and high as the node ($low, $high W)" \
        within "$high" "$(awk -v low="$low" 'BEGIN { print 3 * low }')" 25
    check "the node is shown in all rows" awk -v rows="$(wc -l < "$SCRATCH/both")" '
        $1 > 0 { n++ } END { exit !n || n < rows - 1 }' <(rows "$file" package_0_mW)
    # Where rows come late, those of a second may be by a few per cent
    # (doc/architecture.md).
    check "and is not above it" awk '$2 + 0 > 1.04 * $1 { above++ }
        { node += $1; step += $2 }
        END { exit above > NR / 50 || step > 1.005 * node }' "$SCRATCH/both"
    rows "$file" step_uJ > "$SCRATCH/uj"
    check "it does not fall" sort -n -c "$SCRATCH/uj"
    comes_to_sacct "$(tail -n 1 "$SCRATCH/uj")"
}

comes_to_sacct() { # UJ
    local j
    j=$(step_energy whole "$(last_job whole).0")
    check "its rows come to what sacct has ($j J)" within \
        "$(awk -v uj="$1" 'BEGIN { print uj / 1e6 }')" "$j" 1
}

# How often a thread of slurmstepd has given up its CPU.
switches() { # THREAD
    # shellcheck disable=SC2016  # the other shell's
    cluster run whole sh -c 'for task in /proc/[0-9]*/task/*; do
        [ "$(cat "$task/comm" 2> /dev/null)" != "$0" ] || cat "$task/status"
    done' "$1" | awk '/^voluntary_ctxt_switches:/ { n += $2; any = 1 }
        END { if (any) print n }'
}

is_over() {
    [ -z "$(switches joule-energy)" ]
}

tasks_run() {
    cluster run whole pgrep -x stamp > /dev/null
}

ends() {
    ! tasks_run
}

# A step with both CPUs whose power changes twice a second, ten times a second: its
# share does at once, also in the seconds in which nobody asks the ledger; and in those
# in which slurmd is away, also where those are its last.
whole_node() {
    local srun ours slurms
    up whole --profile=acct_gather_profile/joule_hdf5 \
        --sim "--packages 1 --load square:100:300:1" \
        --gather "JouleAttribution=cputime
JouleProfilePeriod=100ms" || { not_ok "a cluster"; return; }
    cluster user whole srun -n2 --profile=energy "$STAMP" --spin 12 "$SCRATCH/stamp2"
    note <<< "a step with the whole node"
    follows 122
    wait_for 60 is_over || { not_ok "the step before is over"; return; }
    rm -f "$(cluster dir whole)"/profile/*/*.h5
    cluster user whole srun -n2 --profile=energy "$STAMP" --spin 16 "$SCRATCH/stamp3" &
    srun=$!
    wait_for 60 tasks_run || { not_ok "the tasks run"; kill $srun; return; }
    ours=$(switches joule-energy) slurms=$(switches acctg_energy)
    sleep 3
    ours=$(($(switches joule-energy) - ours))
    check "the series is read ($ours wake-ups in 3 s)" test "$ours" -ge 27
    # Woken each second it would have been three times; one may be under way.
    slurms=$(($(switches acctg_energy) - ${slurms:--9}))
    check "Slurm's thread for it sleeps ($slurms wake-ups)" test "$slurms" -le 1
    cluster slurmd whole node1 kill
    sleep 6
    cluster slurmd whole node1 start
    wait $srun
    note <<< "slurmd was away for six seconds"
    follows 162
    rm -f "$(cluster dir whole)"/profile/*/*.h5
    cluster user whole srun -n2 --profile=energy "$STAMP" --spin 6 "$SCRATCH/stamp4" &
    srun=$!
    wait_for 60 tasks_run || { not_ok "the tasks run"; kill $srun; return; }
    sleep 2
    cluster slurmd whole node1 kill
    wait_for 60 ends || not_ok "the tasks end"
    sleep 1
    cluster slurmd whole node1 start
    wait $srun
    note <<< "the step ended while slurmd was away"
    comes_to_sacct "$(rows "$(find "$(cluster dir whole)/profile" -name '*_0_node1.h5')" \
        step_uJ | tail -n 1)"
    cluster down whole
}

series joule_hdf5 0
series hdf5 $((2 * (FLOOR_W / 2 + BUSY_W)))
whole_node
finish
