#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The energy of regions of programs (joule.h) on real clusters, against the
# wattmeter: regions of a second, of 0.1 s and of 5 ms, of one rank and of four, and
# of a program that is killed; with JOULE_TEST_LONG more of them, four nodes, a
# shared node, and a step that is killed.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/profile.sh"
REPORT=$JOULE_BUILD/joule-report
PHASES=$JOULE_BUILD/tests/system/phases

# phases CLUSTER PERIOD SRUN-OPTIONS -- ARGUMENTS - run it as a profiled step; sets JOB,
# and what it says is in $SCRATCH/said.  Its times are in $SCRATCH/times.NODE.RANK.
phases() {
    local name=$1 period=$2 options=()
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    rm -f "$SCRATCH"/times.*
    step "$name" --export="ALL,JOULE_PROFILE_PERIOD=$period" --profile=energy \
        "${options[@]}" "$PHASES" "$SCRATCH/times.%n.%r" "$@" 2> "$SCRATCH/said"
}

# regions CLUSTER OPTION... - as alice, of the last step
regions() {
    local name=$1
    shift
    cluster user "$name" "$REPORT" regions "$@" "$JOB"
}

# cell FILE COLUMN REGION [RANK] - of a CSV file; what is in no region has no name
cell() {
    awk -F, -v name="$2" -v region="$3" -v rank="${4:-}" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
        $4 == region && $3 == rank { print $at }' "$1"
}

# Each region's window against the wattmeter at that time, of node1.
# windows_are_right CLUSTER CSV PERCENT
windows_are_right() {
    local region from to true_uj worst=0
    [ -s "$SCRATCH/times.node1.0" ] || return 1
    while read -r region from to; do
        true_uj=$(cluster energy "$1" "$from" "$to" node1) || return 1
        worst=$(awk -v j="$(cell "$2" window_J "$region")" -v uj="$true_uj" \
            -v worst="$worst" 'BEGIN {
                off = (j / (uj / 1e6) - 1) * 100
                if (j == "") off = 100
                if (off < 0) off = -off
                printf "%.3f\n", off > worst ? off : worst }')
    done < <(cat "$SCRATCH"/times.node1.0)
    echo "$(wc -l < "$SCRATCH/times.node1.0") regions, at most $worst % off"
    awk -v worst="$worst" -v most="$3" 'BEGIN { exit !(worst < most) }'
}

# sum_is_right CLUSTER CSV REGION PERCENT - of all its regions on all nodes, rank 0 of each
sum_is_right() {
    local file node from to sum=0
    for file in "$SCRATCH"/times.*; do
        node=${file#"$SCRATCH"/times.}
        node=${node%.*}
        # One look for each thousand: they lie close together.
        read -r from to < <(awk 'NR == 1 { from = $2 } { to = $3 }
            END { print from, to }' "$file")
        sum=$(awk -v sum="$sum" -v uj="$(cluster energy "$1" "$from" "$to" "$node")" \
            -v part="$(awk '{ t += $3 - $2 } NR == 1 { from = $2 } { to = $3 }
                END { print t / (to - from) }' "$file")" \
            'BEGIN { printf "%.3f\n", sum + uj / 1e6 * part }')
    done
    within "$(cell "$2" window_J "$3")" "$sum" "$4" 0.5
}

# shares_are_all CLUSTER CSV - all shares and the rest are what sacct says
shares_are_all() {
    local sum
    sum=$(awk -F, 'NR > 1 { sum += $10 } END { printf "%.6f\n", sum }' "$2")
    within "$sum" "$(step_energy "$1" "$JOB.0")" 0 1
}

one_node() {
    local csv=$SCRATCH/one.csv count=4
    ! is_long || count=20
    phases reg 100ms -n1 -- s 1 0.3 $count || { not_ok "a program with regions"; return; }
    check "the program's regions are recorded" grep -q '^recording' "$SCRATCH/said"
    regions reg --csv > "$csv"
    check "joule regions" test $? = 0
    check "regions of 1 s at 10 Hz, each within 1 %" windows_are_right reg "$csv" 1
    count=10
    ! is_long || count=50
    phases reg 10ms -n1 -- t 0.1 0.07 $count || { not_ok "short regions"; return; }
    regions reg --csv > "$csv"
    check "regions of 0.1 s at 100 Hz, each within 5 %" \
        windows_are_right reg "$csv" 5
    count=300
    ! is_long || count=10000
    phases reg 10ms -n1 -- u= 0.005 0.005 $count || { not_ok "5 ms"; return; }
    regions reg --csv > "$csv"
    check "$count regions of 5 ms, in sum within 2 %" sum_is_right reg "$csv" u 2
    check "all of them are counted" test "$(cell "$csv" count u)" = $count
    check "they are below the resolution" \
        test "$(cell "$csv" below_resolution u)" = 1
}

# Rank 0 works while the others sleep, and so on.
ranks() {
    local csv=$SCRATCH/ranks.csv rank
    phases reg 100ms -n4 --overcommit -- w= 1 0.2 2 || { not_ok "four ranks"; return; }
    regions reg --csv --by=rank > "$csv"
    for rank in 0 1 2 3; do
        check "rank $rank has its regions" test "$(cell "$csv" count w $rank)" = 2
    done
    regions reg --csv > "$csv"
    check "four ranks at once: their window is that of one" \
        within "$(cell "$csv" window_s w)" 2 5
}

four_nodes() {
    local csv=$SCRATCH/four.csv merged=$SCRATCH/four.h5
    phases reg 100ms -N4 -n4 -- v= 1 0.3 5 || { not_ok "four nodes"; return; }
    regions reg --csv > "$csv"
    check "four nodes: joule regions" test $? = 0
    check "four nodes: the window of all" sum_is_right reg "$csv" v 1
    check "four nodes: 20 regions" test "$(cell "$csv" count v)" = 20
    regions reg > "$SCRATCH/four.txt"
    check "sh5util merges the files" cluster user reg \
        "$JOULE_BUILD/tools/sh5util/sh5util" -j "$JOB" -o "$merged"
    check "the merged file says the same" cmp "$SCRATCH/four.txt" \
        <(cluster user reg "$REPORT" regions -i "$merged")
    check "the text has a line for each region and two sums" \
        test "$(wc -l < "$SCRATCH/four.txt")" = 5
}

# What two ranks of a job have on a node that is not theirs alone.
shared() {
    local csv=$SCRATCH/shared.csv
    phases shared 100ms -n2 -- a 0.5 0.5 4 spin || { not_ok "a shared node"; return; }
    regions shared --csv --by=rank > "$csv"
    check "a shared node: shares and the rest are the step's" \
        shares_are_all shared "$csv"
    check "a shared node: both ranks have a share" test \
        "$(awk -F, '$4 ~ /^a[0-3]$/ && $10 > 1' "$csv" | wc -l)" = 8
    check "alone on it: half a second is five rows" test \
        "$(cell "$csv" below_resolution a0 0)" = 0
    cluster user shared sbatch -Q -n1 -J neighbour --wrap "sleep 60" > /dev/null
    wait_for 20 bash -c '"$@" | grep -q neighbour' - "$LIB/cluster" run shared \
        squeue -h -t R -o %j
    phases shared 100ms -n2 -- b 0.5 0.5 2 spin || { not_ok "a neighbour"; return; }
    regions shared --csv --by=rank > "$csv"
    cluster run shared scancel -n neighbour
    check "beside another job: it is below slurmd's resolution" test \
        "$(cell "$csv" below_resolution b0 0)" = 1
}

killed_program() {
    local csv=$SCRATCH/killed.csv
    cluster user reg env JOULE_PROFILE_PERIOD=100ms srun --profile=energy -J killed -n1 \
        timeout -s KILL 2 "$PHASES" "$SCRATCH/times.%n.%r" k 60 0 1 \
        > /dev/null 2>&1
    JOB=$(cluster run --timeout 10 reg squeue -a -h -t all -n killed -o %A)
    regions reg --csv > "$csv"
    check "a program that is killed: its region" test $? = 0
    check "it is told as not ended" test "$(cell "$csv" not_ended k0)" = 1
    check "it has two seconds" within "$(cell "$csv" window_s k0)" 2 25
}

killed_step() {
    cluster user reg env JOULE_PROFILE_PERIOD=100ms srun --profile=energy -J stepd -n1 \
        "$PHASES" "$SCRATCH/times.%n.%r" m 1 0.1 30 > /dev/null 2>&1 &
    wait_for 30 bash -c '"$0" run reg squeue -h -n stepd -t R -o %A | grep -q .' \
        "$LIB/cluster"
    JOB=$(cluster run --timeout 10 reg squeue -a -h -t all -n stepd -o %A)
    sleep 4
    cluster run reg pkill -KILL -f "slurmstepd: \[$JOB\.0\]"
    cluster run reg scancel "$JOB"
    wait
    check "a step whose slurmstepd is killed: sh5util first, is said" bash -c \
        '"$@" 2>&1 | grep -q sh5util' - "$LIB/cluster" user reg "$REPORT" regions "$JOB"
    # 2: not all of the step.
    cluster user reg "$JOULE_BUILD/tools/sh5util/sh5util" -j "$JOB" \
        -o "$SCRATCH/stepd.h5" > /dev/null 2>&1
    check "sh5util merges its log" test $? = 2
    check "its regions until then" bash -c '"$@" | grep -q "^0,.*,m0,1,"' - \
        "$LIB/cluster" user reg "$REPORT" regions --csv -i "$SCRATCH/stepd.h5"
    phases reg 100ms -n1 -- n 0.1 0 1
    check "the next step removes its socket" bash -c '! "$@" | grep .' - \
        "$LIB/cluster" run reg find /run/slurm-joule -path "*/regions/*.*"
}

# Where nothing is recorded a program runs as ever.
elsewhere() {
    step reg -n1 "$PHASES" "$SCRATCH/times.%n.%r" x 0.1 0 1 2> "$SCRATCH/said"
    check "without a profile the program runs" test $? = 0
    check "... and is told why" grep -q -- --profile "$SCRATCH/said"
    env -u SLURM_JOB_ID "$PHASES" "$SCRATCH/elsewhere" x 0.01 0 1 2> "$SCRATCH/said"
    check "outside of Slurm the program runs" test $? = 0
    check "... and is told why" grep -q 'no step' "$SCRATCH/said"
}

NODES=1
if is_long; then
    NODES=4
    up shared --cpus 4 --profile=$PROFILE --gather 'JouleAttribution=cputime
JouleProfilePeriodMin=10ms' || exit 1
fi
up reg --nodes $NODES --cpus 4 --sim '--load square:100:200:1.7' --profile=$PROFILE \
    --gather 'JouleProfilePeriodMin=10ms
JouleProfileFlush=1s' || exit 1
one_node
ranks
killed_program
elsewhere
if is_long; then
    four_nodes
    shared
    killed_step
fi
finish
