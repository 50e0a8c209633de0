#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# How often Slurm asks: with JobAcctGatherFrequency=0 the energy of a step is
# right all the same, and a profile has an energy series where --acctg-freq or
# the job asks for one.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=profile.sh
. "$LIB/profile.sh"

# right NAME SRUN-OPTION... - a step of 5 s; sets STEP_JOB.  Without a poll it would
# be off by 500 J; how exact it is, is not the question here.
right() {
    local name=$1
    shift
    if ! measure_step often user "$@" -- --sleep 5; then
        not_ok "$name: a step runs"
        return
    fi
    check "$name: $STEP_J J, wattmeter $STEP_TRUE_J J" \
        near_truth
}

# A table's rows, or nothing.
count_rows() { # TABLE
    local file
    file=$(profile_dir often)/${STEP_JOB}_0_node1.h5
    h5dump -H -d "$1" "$file" > /dev/null 2>&1 || { echo none; return; }
    rows "$file" "$1" | wc -l
}

# rows_are NAME LEAST MOST
rows_are() {
    local n
    n=$(count_rows /node1/Energy)
    check "$1: $n rows of energy" [ "$n" -ge "$2" -a "$n" -le "$3" ]
}

period_is() { # NAME NS
    check "$1: the file says the period" [ "$(attribute \
        "$(profile_dir often)/${STEP_JOB}_0_node1.h5" /node1/Energy \
        'Joule Period ns')" = "$2" ]
}

no_series() {
    local n
    n=$(count_rows /node1/Energy)
    check "$1: no series of energy ($n)" [ "$n" = none -o "$n" = 0 ]
}

for frequency in 0 task=0,energy=0 task=30; do
    up often --sim '--load square:50:150:1' --profile="$PROFILE" \
        --gather 'JouleProfilePeriodMin=100ms' \
        --conf "JobAcctGatherFrequency=$frequency" || exit 1
    NAME="JobAcctGatherFrequency=$frequency"
    right "$NAME"
    right "$NAME, a profile" --profile=energy
    no_series "$NAME, a profile"
    right "$NAME, --acctg-freq=energy=2" --profile=energy --acctg-freq=energy=2
    rows_are "$NAME, --acctg-freq=energy=2" 2 4
    period_is "$NAME, --acctg-freq=energy=2" 2000000000
    right "$NAME, a wish of the job" --profile=energy \
        --export=ALL,JOULE_PROFILE_PERIOD=500ms
    rows_are "$NAME, a wish of the job" 9 12
    period_is "$NAME, a wish of the job" 500000000
    cluster down often
done

# Each energy interval of Slurm's own plugin is a call of ours.
up often --sim '--load const:100' --profile=acct_gather_profile/hdf5 \
    --conf 'JobAcctGatherFrequency=0' || exit 1
right "Slurm's profile plugin" --profile=energy
right "Slurm's profile plugin, --acctg-freq=energy=1" --profile=energy \
    --acctg-freq=energy=1
rows_are "Slurm's profile plugin, --acctg-freq=energy=1" 4 7
cluster down often
finish
