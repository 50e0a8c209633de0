#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# How often Slurm's own code puts everything back after a step with a CPU
# frequency: the score to beat, by the same list (freqscore.sh).
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/freqscore.sh"

# scored LABEL CLUSTER [SCENARIO...] - a test: all of them ran; the score is
# SCORE
scored() {
    local label=$1 cluster=$2
    shift 2
    if score "$cluster" "$label" "$@" > "$SCRATCH/score"; then
        ok "$label: every scenario ran as it should"
    else
        not_ok "$label: a scenario did not run as it should"
    fi
    grep '^#' "$SCRATCH/score"
    SCORE=$(grep -v '^#' "$SCRATCH/score")
    note <<< "$SCORE"
}

left_behind() { # SCENARIO
    grep -q ": $1: left behind: " "$SCRATCH/score"
}

up score --energy none --no-sim --cpufreq '--governor ondemand --load 30' ||
    exit 1
scored "Slurm's own code" score
# The list would be of no use if it could not tell.
for name in stepd_killed both_killed two_first_ends_first; do
    check "$name is seen to leave something behind" left_behind $name
done
check "what a step alone has changed is put back" \
    grep -q ': one_frequency: restored' "$SCRATCH/score"
cluster down score
CLUSTERS=()

up shared --energy none --no-sim \
    --cpufreq '--governor ondemand --load 30 --per-policy 2' || exit 1
scored "Slurm's own code, both CPUs in one policy" shared one_frequency \
    two_jobs_one_policy
finish
