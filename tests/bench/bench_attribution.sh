#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_attribution.sh - what jobs are charged that share a node: one to eight of
# them at the same time, of unequal loads, by joule_rapl with
# JouleAttribution=cputime and by Slurm's acct_gather_energy/rapl, in turns.
#
# Prints CSV as tests/bench/run; attribution.csv has the jobs.  The truth of a
# job is what it has cost: the node's floor by its CPUs, and the power of busy
# CPUs by its CPU time.  All jobs and what is nobody's are compared with the
# wattmeter; Slurm does not say what is nobody's, so its jobs are compared with
# what the wattmeter counted while any of them was there.
#
# BENCH_JOBS="1 2 8" measures these numbers of jobs alone, BENCH_SECONDS=6 jobs
# of so many seconds (default 14); BENCH_SMALL=1 is both.
#
# shellcheck source-path=SCRIPTDIR/../system source=../system/lib.sh
. "$(dirname "$(readlink -f "$0")")/../system/lib.sh"
# shellcheck source=../system/attribution.sh
. "$LIB/attribution.sh"
# shellcheck source=../bench/rows.sh
. "$TOP/tests/bench/rows.sh"
set -u

COUNTS=${BENCH_JOBS:-1 2 3 4 5 6 7 8}
LENGTH=${BENCH_SECONDS:-14}
[ -z "${BENCH_SMALL:-}" ] || COUNTS="1 2 8" LENGTH=6
LOADS=(computing partly sleeping)
declare -A SUM_J=([joule]=0 [slurm]=0) # of all jobs, by sacct
THERE_UJ=0                             # the wattmeter, while jobs of Slurm's were there

# specs N - for run_jobs: so many jobs that have all CPUs of the node
specs() {
    local n=$1 i s load
    for ((i = 0; i < n; i++)); do
        s=$((LENGTH - i % 2 * LENGTH / 5))
        case ${LOADS[i % 3]} in
        computing) load="--spin $s" ;;
        partly) load="--spin $s:0.33" ;;
        sleeping) load="--sleep $s" ;;
        esac
        echo "0 $((SHARE_CPUS / n + (i < SHARE_CPUS % n))) 1 $load"
    done
}

# The extern step, whose energy it is, may be accounted for after the job.
energy_known() { # CLUSTER JOB
    [ -n "$(sacct_field "$1" "$2" ConsumedEnergyRaw)" ]
}

# job_row SOURCE I CPUS TRUTH - a line of the table
job_row() {
    local source=$1 i=$2 job=${JOBS[$2]} joule true
    [ "$(sacct_field "$source" "$job" State)" = COMPLETED ] ||
        fail "job $job of $source: $(sacct_field "$source" "$job" State)"
    wait_for 15 energy_known "$source" "$job"
    joule=$(sacct_field "$source" "$job" ConsumedEnergyRaw)
    [[ $joule =~ ^[0-9]+$ ]] ||
        fail "job $job of $source: sacct knows no energy of it"
    true=$(grep "^$job " "$4" | of physical_uj)
    [[ $true =~ ^[1-9][0-9]*$ ]] ||
        fail "job $job of $source: its truth is not known ($(cat "$4"))"
    SUM_J[$source]=$((SUM_J[$source] + joule))
    table_line "${#JOBS[@]},$((i + 1)),$source,$3,$(joules "$true"),$joule,$(
        awk -v uj="$true" -v j="$joule" \
            'BEGIN { printf "%.3f\n", 100 * (j * 1e6 - uj) / uj }'),${LOADS[i % 3]}"
}

# measure SOURCE N - so many jobs, until they are in the table
measure() {
    local source=$1 list=() i cpus truth=$SCRATCH/truth from to uj
    mapfile -t list < <(specs "$2")
    run_jobs "$source" "${list[@]}" || fail "$source: not all of $2 jobs came to an end"
    job_truth "$source" cputime node1 > "$truth" 2>&1
    for i in "${!JOBS[@]}"; do
        read -r _ cpus _ <<< "${list[i]}"
        job_row "$source" "$i" "$cpus" "$truth"
    done
    [ "$source" = slurm ] || return 0
    read -r from to < <(for i in "${JOBS[@]}"; do grep "^$i " "$truth"; done |
        sed -E 's/.* from_ns=([0-9]+) to_ns=([0-9]+).*/\1 \2/' |
        awk 'NR == 1 || $1 < from { from = $1 } NR == 1 || $2 > to { to = $2 }
             END { printf "%.0f %.0f\n", from, to }')
    uj=$(cluster energy slurm "$from" "$to" node1) ||
        fail "the wattmeter does not answer"
    THERE_UJ=$((THERE_UJ + uj))
}

# off_pct UJ TRUE-UJ - without its sign
off_pct() {
    awk -v uj="$1" -v real="$2" 'BEGIN {
        off = 100 * (uj - real) / real
        printf "%.6f\n", off < 0 ? -off : off }'
}

[ -e /sys/fs/cgroup/cpuacct/cpuacct.usage_percpu ] ||
    fail "needs cgroup v1 with cpuacct: the truth is by CPU time"
table_open attribution "what jobs that share a node are charged, and what they cost: \
joule is joule_rapl (cputime), slurm is acct_gather_energy/rapl" \
    jobs,job,source,cpus,true_j,measured_j,error_pct,load
share_up joule "JouleAttribution=cputime
JouleIdleWatts=$SHARE_FLOOR" --contain >&2 || fail "the cluster does not come up"
share_up slurm '' --energy acct_gather_energy/rapl --contain >&2 ||
    fail "the cluster with Slurm's own plugin does not come up"
turn=0
for n in $COUNTS; do
    # Who goes first changes.
    [ $((turn++ % 2)) = 0 ] && order="joule slurm" || order="slurm joule"
    for source in $order; do
        measure "$source" "$n"
    done
done
read_ledger joule node1 "$SCRATCH/ledger" ||
    fail "the ledger or the wattmeter cannot be read: $(cat "$SCRATCH/ledger")"

row_head
for n in $COUNTS; do
    row "attribution_error_worst_${n}_jobs" % \
        "$(table_worst error_pct jobs="$n" source=joule)" \
        "$(table_worst error_pct jobs="$n" source=slurm)" "<=2"
done
row attribution_sum_error % \
    "$(off_pct $((SUM_J[joule] * 1000000 + LEDGER_REST_UJ)) "$LEDGER_TRUE_UJ")" \
    "$(off_pct $((SUM_J[slurm] * 1000000)) "$THERE_UJ")" "<=0.1"
exit "$STATUS"
