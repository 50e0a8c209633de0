#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# slurmd of 22.05 starts, and two of its threads need acct_gather.conf at the same
# time (confrace.c): one registers the node, and asks for its energy, before the other
# one has read the settings.  From then on steps are launched, each with what has been
# read: slurmd died of those that came before that.  So nothing is opened with the
# defaults, and reading the settings waits for no counters.
#
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

SHIM=$JOULE_BUILD/tests/system/confrace.so
[ -e "$SHIM" ] || { not_ok "there is a $SHIM (make tests/system/confrace.so)"; finish; }
export JOULE_CONF_RACE=$SCRATCH/race

up race --preload "$SHIM" --cpus 4 --sim '--load const:90' || exit 1
cluster user race salloc -Q -n1 --no-shell -J hold > "$SCRATCH/salloc" 2>&1
JOB=$(cluster run race squeue -h -n hold -o %A)
check "a job has the node" [ -n "$JOB" ]

happened() { # first | asked | read | opens | open
    grep -qx "$1" "$JOULE_CONF_RACE"
}

not_yet() {
    ! happened "$1"
}

# The pid in the cluster's namespace.
slurmd_pid() {
    cat "$(cluster dir race)/run/slurmd-node1.pid"
}

step() {
    cluster user --timeout 60 race srun -Q --jobid "$JOB" --overlap -n1 true
}

: > "$JOULE_CONF_RACE"
cluster slurmd race node1 kill
cluster slurmd race node1 start
PID=$(slurmd_pid)
check "the settings are read beside a question for energy" wait_for 60 happened asked
for try in 1 2 3; do
    check "step $try is launched" step
    [ $try != 1 ] || check "before any counter is open" not_yet open
done
check "the settings are read" happened read
check "then the counters are opened" wait_for 60 happened open
check "slurmd is still the same" [ "$(slurmd_pid)" = "$PID" ]
check "and alive" cluster run race kill -0 "$PID"
rm "$JOULE_CONF_RACE"
# The others took as long if they had been begun.
samples_again() {
    [ "$(cluster log race node1 | grep -c 'joule_rapl: samples the energy')" = 2 ]
}
check "and sampled" wait_for 30 samples_again

cluster run race scancel "$JOB"
if measure_step race user -n1 -- --sleep 3; then
    check "a step is measured then: $STEP_J J, wattmeter $STEP_TRUE_J J" \
        within "$STEP_J" "$STEP_TRUE_J" 4 25
else
    not_ok "a step is measured then"
fi
finish
