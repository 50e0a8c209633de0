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

sensor() { # NAME... - the sum of these
    ipmi-sensors -D OPENIPMI --sdr-cache-directory="$SCRATCH" -Q \
        --no-header-output --comma-separated-output |
        awk -F, -v names=" $* " '
            index(names, " " $2 " ") { sum += $4 }
            END { printf "%.2f\n", sum }'
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

# What the plugin would read, by the process that it would start.

PROBE_BMC=("$JOULE" probe --ipmi
    --set "JouleIPMIReader=$JOULE_BUILD/joule-ipmi-reader"
    --set 'EnergyIPMIPowerSensors=Node=DCMI;Board=Node;Sockets=CPU0,CPU1')

# probe_bmc [OPTION...] - the report is in $SCRATCH/bmc
probe_bmc() {
    "${PROBE_BMC[@]}" "$@" > "$SCRATCH/bmc" 2>&1
}

# label NAME COLUMN - of the report: last, mean, lowest, highest (W), readings
label() {
    awk -v label="$1" -v column="$2" '
        BEGIN { split("last mean lowest highest readings", names)
            for (i in names) if (names[i] == column) at = 2 * i }
        $1 == label && $3 == "W" { print at ? $at : ""; exit }' "$SCRATCH/bmc"
}

row() { # NAME
    sed -n "s/^  $1  *//p" "$SCRATCH/bmc" | head -n 1
}

# order SIGNAL - for the BMC, by the host
order() {
    echo "$1" > /t/order.new && mv /t/order.new /t/order
    wait_for 60 [ ! -e /t/order ]
}

started() {
    READER=$(pgrep -P "$PROBE" joule-ipmi-read)
}

check "joule probe --ipmi: OPENIPMI" probe_bmc --set EnergyIPMIDriverType=OPENIPMI \
    --seconds 1
note < "$SCRATCH/bmc"
check "it names the driver" [ "$(row 'asked through')" = 'in-band, OPENIPMI' ]
check "it may open the device" [ "$(row device)" = '/dev/ipmi0: can be opened' ]
check "the power that DCMI gives" within "$(label Node last)" 400 0
check "the power of a named sensor" within "$(label Board last)" 400 0
check "the sum of two sensors" within "$(label Sockets last)" \
    "$(sensor CPU0 CPU1)" 0
check "it says that there is no RAPL" grep -E \
    'note .*RAPL, which is not used: .*unit register 0x606 of .* reads 0' \
    "$SCRATCH/bmc"

# The driver that is found; a change; the reader killed; the BMC stopped, and
# running again.  In-band, a request to a BMC that does not answer takes 4 s.
"${PROBE_BMC[@]}" --seconds 12 > "$SCRATCH/bmc" 2>&1 &
PROBE=$! READER=none
wait_for 60 started
check "the reader runs" [ -n "$READER" ]
sleep 1
echo 300 > /t/watts
sleep 1
kill -KILL "$READER"
sleep 1.5
order STOP
sleep 5
order CONT
wait $PROBE
check "joule probe --ipmi over all that: the driver that is found" [ $? = 0 ]
note < "$SCRATCH/bmc"
check "a change is followed: before" within "$(label Node highest)" 400 0
check "and after" within "$(label Node lowest)" 300 0
check "the named sensor follows, too" within "$(label Board lowest)" 300 0
check "a reading has failed with the reader" \
    grep -E 'warning .*[12] of [0-9]+ readings failed: ' "$SCRATCH/bmc"
# The interface of the machine refuses, or, if the reading has taken too long by
# then, the reader gives up.
check "what the BMC did not answer is no measurement" grep -E \
    'warning .*(no measurement: [1-9][0-9]* refused|2 of [0-9]+ readings failed)' \
    "$SCRATCH/bmc"
check "and there are readings afterwards" within "$(label Node last)" 300 0

# Without the kernel's driver: by the machine's own interface, which answers
# FreeIPMI's programs and ours, or neither (as in Debian 12).
busybox rmmod ipmi_devintf
busybox rmmod ipmi_si
check "no IPMI device any more" [ ! -e /dev/ipmi0 ]
if bmc-info -D KCS > "$SCRATCH/bmc-info" 2>&1; then
    check "joule probe --ipmi: the driver that is found without a device" probe_bmc
    note < "$SCRATCH/bmc"
    check "the power that DCMI gives" within "$(label Node last)" 300 0
    check "joule probe --ipmi: KCS" probe_bmc --set EnergyIPMIDriverType=KCS \
        --seconds 1
    check "it names the driver" [ "$(row 'asked through')" = 'in-band, KCS' ]
    check "the power that DCMI gives by it" within "$(label Node last)" 300 0
else
    check_not "joule probe --ipmi: no device" probe_bmc
    check "it says which modules are missing" grep -F \
        'modprobe ipmi_si && modprobe ipmi_devintf' "$SCRATCH/bmc"
    check_not "joule probe --ipmi: KCS that does not work" probe_bmc \
        --set EnergyIPMIDriverType=KCS
    check "it says why, as FreeIPMI does" grep -F \
        "$(sed -n 's/^ipmi_cmd_get_device_id: //p' "$SCRATCH/bmc-info")" "$SCRATCH/bmc"
fi
note < "$SCRATCH/bmc-info"
note < "$SCRATCH/bmc"
check_not "and speaks of no device" grep modprobe "$SCRATCH/bmc"

check "there is an MSR device" [ -c /dev/cpu/0/msr ]
check "its power unit register reads 0" output_is 0 register 0x606
check "its energy register reads 0" output_is 0 register 0x611
"$JOULE" probe --no-conf > "$SCRATCH/probe" 2>&1
check "joule probe: RAPL would measure no job" [ $? = 1 ]
note < "$SCRATCH/probe"
check "joule probe finds no energy counters" grep -x 'Energy counters: none' \
    "$SCRATCH/probe"
check "and says why" grep -E 'unit register 0x606 of /dev/cpu/0/msr reads 0' \
    "$SCRATCH/probe"

echo "$GUEST_END"
finish
