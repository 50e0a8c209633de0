#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all alone
#
# A soak (tests/bench/bench_soak.sh) of two minutes: jobs on four nodes, of which
# something is killed all the time; nothing is lost, nothing grows and nothing is left
# behind.  JOULE_SOAK_S and JOULE_SOAK_SEED are for longer ones, and others.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# One row: it is met, or the row is the remark.
goal_is_met() {
    [[ $1 == *,pass ]] || { echo "$1"; return 1; }
}

if [ ! -e /sys/fs/cgroup/cpuacct/cpuacct.usage_percpu ]; then
    skip "a soak" "no cgroup v1 with cpuacct"
    finish
fi
JOULE_SOAK_S=${JOULE_SOAK_S:-120} JOULE_SOAK_SEED=${JOULE_SOAK_SEED:-1} \
    JOULE_BENCH_OUT=$SCRATCH \
    "$TOP/tests/bench/bench_soak.sh" > "$SCRATCH/rows" 2> "$SCRATCH/said"
STATUS=$?
note < "$SCRATCH/said"
check "it comes to its end" [ $STATUS -le 1 ]
while IFS= read -r row; do
    name=${row%%,*}
    [ "$name" != name ] || continue
    check "$name, $(cut -d, -f2,3,6 <<< "$row" | tr , ' ')" goal_is_met "$row"
done < "$SCRATCH/rows"
check "there are rows" [ "$(wc -l < "$SCRATCH/rows")" -gt 20 ]
finish
