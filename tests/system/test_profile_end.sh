#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# Steps that end in the middle of a sample of their energy, or right after one:
# slurmstepd waits for its energy thread then, which must not wait for anything of
# slurmstepd's, nor for a signal that has been given.  Both are made to meet by
# slowseries.c.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

SHIM=$JOULE_BUILD/tests/system/slowseries.so
[ -e "$SHIM" ] || { not_ok "there is a $SHIM (make tests/system/slowseries.so)"; finish; }
export JOULE_SLOW_LOG=$SCRATCH/slow

# up_slow ENERGY
up_slow() {
    local -x LD_PRELOAD=$SHIM
    up late --energy "acct_gather_energy/$1" \
        --profile=acct_gather_profile/joule_hdf5 --sim "--load const:100" \
        --conf "UnkillableStepTimeout=10"
}

# Ends, and not because somebody lost patience; sets JOB.
step_ends() { # SECONDS
    JOB=$(cluster user --timeout 40 late srun -n1 --profile=energy \
        --acctg-freq=energy=1 sh -c "echo \$SLURM_JOB_ID; sleep $1") || return 1
    wait_for 60 nothing_is_left "$JOB"
}

nothing_is_left() { # JOB
    # shellcheck disable=SC2016  # the other shell's
    cluster run late sh -c '! pgrep -f "^slurmstepd: \[$0\." > /dev/null' "$1"
}

has_rows() { # JOB
    local file
    file=$(cluster dir late)/profile/alice/$1_0_node1.h5
    h5dump -d "/node1/Energy" "$file" 2> /dev/null | grep -q '(0): {'
}

is_idle() {
    cluster run late sinfo -h -N -t idle -o %N | grep -qx node1
}

# Samples that were slow, ends of a profile, and waits that began late.
slow() { # sample | end | wait
    grep -c "^$1$" "$JOULE_SLOW_LOG"
}

all_ends() { # LABEL
    local seconds
    : > "$JOULE_SLOW_LOG"
    chmod 666 "$JOULE_SLOW_LOG"
    for seconds in 0.1 0.4 0.7 1.3; do
        JOB=none
        step_ends "$seconds"
        check "$1: a step of $seconds s ends" [ $? = 0 ]
        check "$1: and has its series" has_rows "$JOB"
    done
    check "$1: the node is idle" wait_for 60 is_idle
}

# The rows of Slurm's own plugins are made by Slurm's thread.
up_slow rapl || { not_ok "a cluster"; finish; }
all_ends "Slurm's energy thread"
check "four ends were late" [ "$(slow end)" = 4 ]
note <<< "$(slow sample) samples were slow"
check "it was in the middle of a sample" [ "$(slow sample)" -ge 4 ]
cluster down late
up_slow joule_rapl || { not_ok "a cluster"; finish; }
all_ends "a thread of joule_hdf5"
check "four ends were late" [ "$(slow end)" = 4 ]
cluster down late
export JOULE_SLOW_WAIT=1
up_slow joule_rapl || { not_ok "a cluster"; finish; }
all_ends "before the energy thread waits"
check "it waited late in each step" [ "$(slow wait)" -ge 4 ]
finish
