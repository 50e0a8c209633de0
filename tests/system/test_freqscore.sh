#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# How often everything is as before after a step with a CPU frequency: by one
# list (freqscore.sh) for the plugin, for the plugin with Slurm's own code
# beside it (core=on), and for Slurm's own code alone, which is the score to
# beat.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=cpufreq.sh
. "$LIB/cpufreq.sh"
# shellcheck source-path=SCRIPTDIR source=freqscore.sh
. "$LIB/freqscore.sh"

# Who writes in the middle of somebody else's step.
CORE=(
    one_frequency range_and_governor two_first_ends_first two_first_ends_last
    three_213 three_321 cancelled no_program stepd_killed_then_a_step
    stepd_killed_under_another slurmd_killed both_killed
)

# run_score CLUSTER LABEL 'PLUGIN-OPTIONS' 'SIMULATOR-OPTIONS' SCENARIO... - its
# lines are in $SCRATCH/CLUSTER.score; in the background, side by side
run_score() {
    local plugin=$3
    FREQ=$1
    freq_options "$plugin" || return 1
    cluster run "$FREQ" scontrol update PartitionName=test OverSubscribe=FORCE:4
    FREQ_BOOT=$(freq_dump)
    [ "$plugin" = none ] || SCORE_SERVED=yes
    set -- "$2" "${@:4}"
    score "$@"
}

# begin CLUSTER 'SIMULATOR-OPTIONS' LABEL 'PLUGIN-OPTIONS' SCENARIO...
begin() {
    local name=$1 simulator=$2
    shift 2
    up "$name" --no-sim --energy none --cpufreq "--governor ondemand $simulator" ||
        { not_ok "a cluster with policies"; finish; }
    run_score "$name" "$@" > "$SCRATCH/$name.score" 2>&1 &
}

line_of() { # CLUSTER SCENARIO WORDS
    grep -q "^$2: $3" "$SCRATCH/$1.score"
}

# A test for each scenario: for a plugin that all is as before, for Slurm alone
# that it ran.
verdicts() { # CLUSTER LABEL WORDS SCENARIO...
    local name=$1 label=$2 words=$3 scenario
    shift 3
    note < "$SCRATCH/$name.score"
    for scenario; do
        check "$label: $scenario" line_of "$name" "$scenario" "$words"
    done
    cluster down "$name"
}

begin q-score "" "the plugin" batch=yes "${SCENARIOS[@]}"
begin q-scoreslurm "" "Slurm alone" none "${SCENARIOS[@]}"
wait
verdicts q-score "the plugin" restored "${SCENARIOS[@]}"
verdicts q-scoreslurm "Slurm alone ran" "restored\|left behind" "${SCENARIOS[@]}"
# The list would be of no use if it could not tell.
for name in stepd_killed both_killed two_first_ends_first; do
    check "Slurm alone is seen to leave something behind: $name" \
        line_of q-scoreslurm $name "left behind"
done
SCORES=$(grep -h ' restored$' "$SCRATCH"/q-score{,slurm}.score | grep ' of ')

begin q-score "" "core=on" "batch=yes core=on" "${CORE[@]}"
begin q-scoreslurm "--per-policy 2" "one policy, Slurm alone" none two_jobs
wait
verdicts q-score "core=on" restored "${CORE[@]}"
verdicts q-scoreslurm "one policy, Slurm alone ran" "restored\|left behind" two_jobs
CLUSTERS=()
{
    echo "as before within 5 s:"
    echo "$SCORES"
    grep -h ' of [0-9]* restored$' "$SCRATCH"/q-score{,slurm}.score
} | note
finish
