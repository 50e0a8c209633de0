#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_tradeoff.sh - energy against time by CPU frequency, as in figures 7 and 8 of
# Georgiou et al. (ICDCN 2014): a load of the CPU and one that waits for memory
# more than half of its time, each as a step at every frequency with
# srun --cpu-freq.
# Ours is spank_joule and joule_rapl; the peer, on a cluster of its own and
# in turns, is Slurm's own --cpu-freq and acct_gather_energy/rapl.
#
# Prints CSV as tests/bench/run; tradeoff.csv has the steps.  The truth is the
# wattmeter's over the time of the step's task; the model is that of
# tests/system/sweep.sh.  A machine with other things to do keeps a task waiting
# at the node's floor: the frequency of least energy is found without that part
# (working_j).
#
# The node is nodesim's usual one, a server whose DRAM counts in steps of 15.3 uJ;
# Slurm's plugin takes them for those of the packages, 61 uJ.
#
# The floor is so that work of the CPU takes least at 2/3 of the highest
# frequency; with its memory's part the other takes least at 8/15 of it.
#
# BENCH_KHZ is the list of frequencies (default 1200000 to 3000000, each 200000),
# BENCH_SECONDS the work at the highest one (default 4); BENCH_SMALL=1 is five
# frequencies and 1 s.
#
# shellcheck source-path=SCRIPTDIR/../system source=../system/lib.sh
. "$(dirname "$(readlink -f "$0")")/../system/lib.sh"
# shellcheck source=../system/cpufreq.sh
. "$LIB/cpufreq.sh"
# shellcheck source=../system/sweep.sh
. "$LIB/sweep.sh"
# shellcheck source=../bench/rows.sh
. "$TOP/tests/bench/rows.sh"
set -u

# shellcheck disable=SC2034  # for sweep.sh
FLOOR=100 BUSY=168.75
KHZ=${BENCH_KHZ:-$(echo 1{2,4,6,8}00000 2{0,2,4,6,8}00000 3000000)}
WORK=${BENCH_SECONDS:-4}
[ -z "${BENCH_SMALL:-}" ] || KHZ="1200000 1600000 2000000 2400000 3000000" WORK=1
HIGHEST=$(tr ' ' '\n' <<< "$KHZ" | sort -n | tail -n 1)
LOADS=(cpu memory)
MEMORY=(0 0.55) # the part of the time that each waits for memory

# node_up SOURCE - the cluster whose steps it measures
node_up() {
    case $1 in
    joule) sweep_up "$1" >&2 ;;
    slurm) sweep_up "$1" --energy acct_gather_energy/rapl >&2 ;;
    esac || fail "the cluster '$1' does not come up"
    sweep_possible "$1" || fail "needs v1 cgroups: the truth is by CPU time"
    [ "$1" = slurm ] ||
        FREQ=$1 freq_options '' >&2 || fail "slurmd does not start with the plugin"
}

# step SOURCE INDEX-OF-LOAD KHZ - a line of the table
step() {
    local values
    sweep_row "$1" "${MEMORY[$2]}" "$3" > "$SCRATCH/row" ||
        fail "${LOADS[$2]} at $3 kHz: the step of $1 failed"
    # kHz, mean kHz, CPU s, elapsed s, sacct J, true J, working J, model s, model J
    read -ra values < <(sweep_table "${MEMORY[$2]}" < "$SCRATCH/row" |
        sed '1d; s/^off //')
    [ ${#values[@]} = 9 ] && [[ ${values[4]} =~ ^[0-9]+$ ]] ||
        fail "${LOADS[$2]} at $3 kHz: sacct knows no energy of the step of $1"
    table_line "${LOADS[$2]},$3,${values[3]},${values[4]},${values[5]},${values[7]},\
${values[8]},$1,${values[2]},${values[6]},$(
        awk -v j="${values[4]}" -v real="${values[5]}" -v khz="$3" \
            -v mean="${values[1]}" 'BEGIN {
                printf "%.3f,%.3f\n", 100 * (j - real) / real, 100 * (mean - khz) / khz }')"
}

# least COLUMN LOAD SOURCE - GHz, where it is least
least() {
    table_select "khz,$1" load="$2" source="$3" | sort -t, -g -k 2,2 |
        awk -F, '{ printf "%g\n", $1 / 1e6; exit }'
}

table_open tradeoff "energy and time of a load by CPU frequency: of joule with \
spank_joule and joule_rapl, of slurm with its own --cpu-freq and \
acct_gather_energy/rapl" load,khz,elapsed_s,sacct_j,true_j,model_s,model_j,source,\
cpu_s,working_j,error_pct,frequency_error_pct
node_up joule
node_up slurm
for i in "${!LOADS[@]}"; do
    for khz in $KHZ; do
        for source in joule slurm; do
            step "$source" "$i" "$khz"
        done
    done
done

row_head
for name in "${LOADS[@]}"; do
    row "tradeoff_error_worst_$name" % \
        "$(table_worst error_pct load="$name" source=joule)" \
        "$(table_worst error_pct load="$name" source=slurm)" "<=1"
    row "tradeoff_frequency_error_worst_$name" % \
        "$(table_worst frequency_error_pct load="$name" source=joule)" \
        "$(table_worst frequency_error_pct load="$name" source=slurm)" "<=0.5"
    row "tradeoff_least_energy_at_$name; peer: the model" GHz \
        "$(least working_j "$name" joule)" "$(least model_j "$name" joule)" "=1x"
done
exit "$STATUS"
