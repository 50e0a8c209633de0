#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The same as test_ledger_faults.sh on a node that is measured by its BMC, once a
# second and with what that gets wrong; and a BMC that hangs delays no step.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=ipmi.sh
. "$LIB/ipmi.sh"
# shellcheck source-path=SCRIPTDIR source=ledger.sh
. "$LIB/ledger.sh"
DELAY_MAX_MS=100 # of a step while the BMC hangs
# Its power is that of a moment, and tasks begin and end in between.
# shellcheck disable=SC2034  # for ledger.sh
ALLOWED=1 NODE_PERCENT=5

# The BMC hangs for a while, shorter than that power is unknown.
hang() {
    cluster bmc "$C" node1 stop && sleep 2.5 && cluster bmc "$C" node1 cont
}

no_answer() {
    local normal stuck
    cluster run "$C" salloc -Q -n1 --no-shell
    JOB=$(last_job "$C")
    normal=$(steps_ms)
    cluster bmc "$C" node1 stop
    stuck=$(steps_ms)
    cluster bmc "$C" node1 cont
    check "a step takes $stuck ms while the BMC hangs, else $normal ms" \
        [ $((stuck - normal)) -lt $DELAY_MAX_MS ]
    cluster run "$C" scancel "$JOB"
    check "jobs and rest are what the node used" ledger_ends_well
}

ledger_ends_well() {
    wait_for 60 ledger_is_empty && ledger_adds_up
}

if [ -z "$(machine_cpuacct)" ]; then
    skip "a ledger beside a BMC" "the CPU time of this machine is not in a cgroup v1"
    finish
fi
C=ledger-bmc
ledger_options || exit 1
up_bmc "$C" '' "EnergyIPMIPowerSensors=Node=DCMI
$LEDGER_CONF" "${LEDGER_OPTIONS[@]}" || exit 1
# Both compute all the time: of bursts the BMC would see one or none, by chance.
both() { # NAME FAULT
    history "$1" "$2" '' "start_job b $SECONDS_EACH"
}
both "nothing" nothing
both "slurmd restarted" restart
both "slurmd killed, away for 4 s" away
both "the BMC hangs" hang
no_answer
check "no word of a ledger that does not add up" no_fault_in_the_log
finish
