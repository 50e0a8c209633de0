#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest, started by test_clock.sh: its clock is set in the middle of
# a step, and set right again before the end.
#
# The guest is an emulated machine, in which all takes about ten times as long:
# the bounds are those of faults.sh times ten, and the step's energy may have
# a second of power for the start and the end of its tasks.  To a controller
# whose clock goes an hour forward no node has answered for an hour.
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/ipmi.sh"
. "$LIB/faults.sh"
# shellcheck disable=SC2034  # for faults.sh
DELAY_MS=500 LAUNCH_MAX_MS=10000 NODE_S=10

# The wall clock of the guest, for all that runs there.
set_clock() { # SECONDS
    local before
    before=$(date +%s)
    date -s "@$((before + $1))" > /dev/null
    SET_S=$((SET_S + $(date +%s) - before))
}
forward() { set_clock 3600; }
backward() { set_clock -3600; }

# hour NAME FIRST SECOND - an hour off for 10 s
hour() {
    SET_S=0
    fault "clock an hour $1" 10 8 "$2" "$3"
    check "$1: the clock was set, and set right ($SET_S s)" \
        test ${SET_S#-} -lt 5
}

C=clock
up_bmc $C '' 'EnergyIPMIPowerSensors=Node=DCMI
JouleSamplePeriod=500ms' --sim '--load const:200' || exit 1
begin
hour forward forward backward
hour back backward forward
end
echo "$GUEST_END"
finish
