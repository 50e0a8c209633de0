#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest, started by test_inband.sh; /t/watts is what the BMC shows.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
JOULE=$JOULE_BUILD/tools/joule/joule

output_is() { # TEXT COMMAND...
    local text=$1 out
    shift
    out=$("$@" 2>&1)
    echo "$out"
    [ "$out" = "$text" ]
}

sensor() { # NAME
    ipmi-sensors -D OPENIPMI --sdr-cache-directory="$SCRATCH" -Q \
        --no-header-output --comma-separated-output |
        awk -F, -v name="$1" '$2 == name { print $4 }'
}

dcmi() {
    ipmi-dcmi -D OPENIPMI --get-system-power-statistics |
        sed -n 's/^Current Power *: //p'
}

register() { # NUMBER
    dd if=/dev/cpu/0/msr bs=8 count=1 iflag=skip_bytes skip=$(($1)) \
        status=none | od -An -tu8 | tr -d ' '
}

check "there is an IPMI device" [ -c /dev/ipmi0 ]
check "sensors are read in-band" output_is 236.00 sensor Node
echo 400 > /t/watts
check "they follow at once" output_is 400.00 sensor Node
check "DCMI is read in-band" output_is "400 Watts" dcmi

check "there is an MSR device" [ -c /dev/cpu/0/msr ]
check "its power unit register reads 0" output_is 0 register 0x606
check "its energy register reads 0" output_is 0 register 0x611
"$JOULE" probe > "$SCRATCH/probe" 2>&1
note < "$SCRATCH/probe"
check "joule probe finds no energy counters" grep -x 'Energy counters: none' \
    "$SCRATCH/probe"
check "and says why" grep -E 'unit register 0x606 of /dev/cpu/0/msr reads 0' \
    "$SCRATCH/probe"

echo "# end of the guest's tests"
finish
