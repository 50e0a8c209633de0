#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bmcsim-selftest.sh - the simulated BMC as FreeIPMI sees it.
#
# Run from the build directory.  Needs ipmi_sim and FreeIPMI's tools (else
# exit 77).  COST_MAX_PERCENT: what the BMC may use of one CPU at 10 readings
# a second (default 2; 0 only reports, for sanitizers).

set -u

here=$(dirname "$(readlink -f "$0")")
bmcsim=$here/bmcsim/bmcsim
export JOULE_BUILD=$PWD
cost_max=${COST_MAX_PERCENT:-2}

skip() {
    echo "SKIP: $1"
    exit 77
}

for program in ipmi_sim sdrcomp ipmi-sensors ipmi-dcmi; do
    command -v $program >/dev/null || skip "$program is not installed"
done
module=tests/sim/bmcsim/powerbmc.so
[ -e $module ] || skip "the module is not built"
! ldd $module | grep -qE 'lib[at]san' || cost_max=0

tmp=$(mktemp -d) || exit 1
failed=0
checks=0

cleanup() {
    local dir
    for dir in "$tmp"/*/; do
        [ ! -e "$dir/options" ] || "$bmcsim" stop "$dir"
    done
    rm -rf "$tmp"
} 2>/dev/null
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

is() { # NAME GOT WANTED
    checks=$((checks + 1))
    if [ "$2" = "$3" ]; then
        echo "ok: $1"
    else
        echo "FAILED: $1: got \"$2\", wanted \"$3\""
        failed=$((failed + 1))
    fi
}

between() { # NAME GOT LOW HIGH
    local yes=no

    { [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; } 2>/dev/null && yes=yes
    is "$1 ($2 in $3..$4)" $yes yes
}

has() { # NAME TEXT PATTERN
    local yes=no

    [[ $2 == *$3* ]] && yes=yes
    is "$1 (\"$3\" in \"${2//$'\n'/ }\")" $yes yes
}

ms() {
    echo $((${EPOCHREALTIME/./} / 1000))
}

# What COMMAND takes here without a fault, in ms; what takes so much longer with one
# is given four times that.
usual() { # COMMAND...
    local begin
    begin=$(ms)
    "$@" >/dev/null
    echo $((4 * ($(ms) - begin)))
}

# Set by `up`: the BMC's directory and how to reach it.
up() { # NAME OPTION...
    local said

    bmc=$tmp/$1
    shift
    said=$("$bmcsim" start "$@" "$bmc") || {
        echo "FAILED: bmcsim start $*"
        exit 1
    }
    mkdir -p "$bmc/cache"
    reach=(-h "${said#ready }" -u admin -p secret -D LAN_2_0 -W opensesspriv)
}

ask() {
    "$bmcsim" ask "$bmc" "$1"
}

counted() { # NETFN:CMD
    ask count | tr ' ' '\n' | sed -n "s/^$1=//p"
}

# Record, name, reading of the sensors.
sensors() {
    ipmi-sensors "${reach[@]}" --sdr-cache-directory="$bmc/cache" -Q \
        --no-header-output --comma-separated-output "$@" 2>&1 |
        sed -nE 's/^([0-9]+),([^,]+),[^,]+,([^,]+),.*/\1 \2 \3/p'
}

sensor() { # NAME
    sensors | awk -v name="$1" '$2 == name { print $3 }'
}

dcmi() { # the current power, or the error
    local out

    out=$(ipmi-dcmi "${reach[@]}" "$@" --get-system-power-statistics 2>&1)
    if [[ $out == *"Current Power"* ]]; then
        sed -n 's/^Current Power *: \([0-9]*\) Watts/\1/p' <<<"$out"
    else
        echo "$out"
    fi
}

# In the background, with what is said in FILE; it is there when the BMC is asked.
begin_dcmi() { # FILE OPTION...
    ipmi-dcmi "${reach[@]}" --debug "${@:2}" --get-system-power-statistics \
        >"$1" 2>&1 &
    for _ in $(seq 500); do
        grep -q "Get Power Reading Request" "$1" && return
        sleep 0.02
    done
    is "the BMC is asked" no yes
}

# Wrong calls.

for wrong in "" "frob" "start" "start --watts x --packages 9 $tmp/x" \
    "start --watts x --sdr odd $tmp/x" "start $tmp/x" "start --watts"; do
    # shellcheck disable=SC2086  # words
    "$bmcsim" $wrong >/dev/null 2>&1
    is "bmcsim $wrong is refused" $? 2
done
"$bmcsim" start --watts x --settle 9h "$tmp/bad" >/dev/null 2>&1
is "a bad value is refused" $? 1
"$bmcsim" ask "$tmp/none" count >/dev/null 2>&1
is "no BMC there" $? 1

# Values.

echo 236 >"$tmp/watts"
begin=$(ms)
up plain --watts "$tmp/watts"
between "ready in ms" $(($(ms) - begin)) 0 5000
is "sensors" "$(sensors)" "2 Ambient 22.00
3 Node 236.00
4 CPU0 100.50
5 CPU1 100.50
6 DRAM 35.50
7 PSU1 236.00
8 PSU2 0.00"
echo 401 >"$tmp/watts"
is "the value is that of the moment" "$(dcmi)" 401
is "in steps of 2 W" "$(sensor Node)" 402.00
echo 9999 >"$tmp/watts"
is "a sensor ends at 510 W" "$(sensor Node)" 510.00
is "DCMI does not" "$(dcmi)" 9999
echo 300 >"$tmp/watts"
has "enhanced statistics" "$(ipmi-dcmi "${reach[@]}" \
    --get-enhanced-system-power-statistics 2>&1)" "Time Period 5 Seconds"
has "capabilities" "$(ipmi-dcmi "${reach[@]}" --get-dcmi-capability-info 2>&1)" \
    "Power Management / Monitoring Support              : Available"
is "a user may" "$(dcmi -u mon -p monpw -l USER)" 300

# Messages.

ask count-reset >/dev/null
sensors -r 3 >/dev/null
is "one message for a reading" "$(counted 04:2d)" 1
dcmi >/dev/null
is "and for DCMI" "$(counted 2c:02)" 1
has "no session is left open" "$(ask count)" "sessions=0"
has "a wrong password opens none" "$(dcmi -p wrong)" "password invalid"
"$bmcsim" start --watts "$tmp/watts" "$bmc" >/dev/null 2>&1
is "a second one in the same place is refused" $? 1

# Faults of readings.

fault() { # FAULTS
    is "faults $1" "$(ask "faults $1")" ok
}

for wrong in "sens_cc=300" "frob=1" "drop_pct=-1"; do
    ask "faults $wrong" >/dev/null 2>&1
    is "faults $wrong is refused" $? 1
done
fault "sens_cc=0xC0"
is "a busy BMC" "$(sensor Node)" N/A
fault "sens_num=1 sens_unavail=1"
is "unavailable" "$(sensor Node)" N/A
is "another sensor is not" "$(sensor PSU1)" 300.00
fault "sens_noscan=1"
is "not scanned" "$(sensor Node)" N/A
fault "sens_raw=0"
is "0 W" "$(sensor Node)" 0.00
fault "sens_raw=255"
is "all bits set" "$(sensor Node)" 510.00
fault "sens_short=1"
has "short answer" "$(ipmi-sensors "${reach[@]}" -Q -r 3 \
    --sdr-cache-directory="$bmc/cache" 2>&1)" "ipmi_sensor_read: "
fault "sens_stuck=1 dcmi_stuck=1"
is "stuck" "$(sensor Node) $(dcmi)" "300.00 300"
echo 100 >"$tmp/watts"
is "still stuck" "$(sensor Node) $(dcmi)" "300.00 300"
fault ""
is "not any more" "$(sensor Node) $(dcmi)" "100.00 100"
fault "dcmi_cc=0xC1"
has "no DCMI" "$(dcmi)" "invalid"
fault "dcmi_active=0"
has "not active" "$(ipmi-dcmi "${reach[@]}" --get-system-power-statistics)" \
    "Not Available"
fault "dcmi_w=0"
is "DCMI says 0 W" "$(dcmi)" 0
fault "dcmi_w=65535"
is "DCMI says 65535 W" "$(dcmi)" 65535
fault "dcmi_short=1"
is "short DCMI answer" "$(dcmi | grep -c '^[0-9]*$')" 0
rm "$tmp/watts"
fault ""
is "no feed: unavailable" "$(sensor Node)" N/A
is "no feed: no DCMI" "$(dcmi | grep -c '^[0-9]*$')" 0
echo 100 >"$tmp/watts"
is "the feed is back" "$(sensor Node)" 100.00

# Faults of messages.

usual_ms=$(usual dcmi)
fault "netfn=0x2c cmd=2 delay_ms=300"
begin=$(ms)
is "late answer" "$(dcmi)" 100
between "by 300 ms" $(($(ms) - begin)) 300 $((400 + usual_ms))
fault "netfn=0x2c cmd=2 delay_ms=3000"
begin_dcmi "$tmp/late" --retransmission-timeout=10000 --session-timeout=15000
is "others do not wait" "$(sensor Node)" 100.00
is "for the late answer" "$(grep -c "^Current Power" "$tmp/late")" 0
wait $!
is "which comes" "$(grep -c "^Current Power .* 100 Watts" "$tmp/late")" 1
usual_ms=$(usual sensor Node)
fault "netfn=0x2c cmd=2 block_ms=700" # less than after which it is asked again
begin=$(ms)
begin_dcmi "$tmp/busy"
is "a busy BMC serves nobody" "$(sensor Node)" 100.00
between "for 700 ms" $(($(ms) - begin)) 700 $((900 + usual_ms))
wait $!
fault "netfn=0x2c cmd=2 drop_n=1"
ask count-reset >/dev/null
is "a lost answer is asked for again" \
    "$(dcmi --retransmission-timeout=200 --session-timeout=3000)" 100
is "so there are two messages" "$(counted 2c:02)" 2
fault "drop_pct=100"
begin=$(ms)
has "no answer at all" \
    "$(dcmi --retransmission-timeout=100 --session-timeout=500)" "timeout"
between "ms" $(($(ms) - begin)) 400 $((3000 + usual_ms))
fault ""

"$bmcsim" signal STOP "$bmc"
has "a BMC that hangs" \
    "$(dcmi --retransmission-timeout=100 --session-timeout=500)" "timeout"
"$bmcsim" signal CONT "$bmc"
is "goes on" "$(dcmi)" 100

# Sensor records.

address=$(cat "$bmc/address")
is "restart has the same address" "$("$bmcsim" restart "$bmc")" "ready $address"
is "with the same records" "$(sensor Node)" 100.00
"$bmcsim" restart --sdr rescaled "$bmc" >/dev/null
is "a rescaled sensor behind an old cache" "$(sensors -r 3)" "3 Node 50.00"
rm -rf "$bmc/cache" && mkdir "$bmc/cache"
is "and behind a new one" "$(sensors -r 3)" "3 Node 100.00"
"$bmcsim" restart --sdr plain "$bmc" >/dev/null
rm -rf "$bmc/cache" && mkdir "$bmc/cache"
is "as it was" "$(sensors -r 3)" "3 Node 100.00"
"$bmcsim" restart --sdr reordered "$bmc" >/dev/null
has "reordered records behind an old cache" "$(sensors)" "3 Node 100.00"
"$bmcsim" restart --sdr reordered,new "$bmc" >/dev/null
has "with a new timestamp the cache is refused" \
    "$(ipmi-sensors "${reach[@]}" --sdr-cache-directory="$bmc/cache" -Q 2>&1)" \
    "out of date"
rm -rf "$bmc/cache" && mkdir "$bmc/cache"
is "the order is another" "$(sensors | cut -d' ' -f1,2 | tr '\n' ' ')" \
    "2 PSU2 3 PSU1 4 DRAM 5 CPU1 6 CPU0 7 Node 8 Ambient "
"$bmcsim" signal KILL "$bmc"
has "dead" "$(dcmi --retransmission-timeout=100 --session-timeout=500)" "timeout"
"$bmcsim" restart "$bmc" >/dev/null
is "alive" "$(dcmi)" 100
"$bmcsim" stop "$bmc"
is "stopped: nothing is left of it" \
    "$(cd "$bmc" && echo ready* control* pid*)" "ready* control* pid*"

# Several beside each other, behind a relay.

echo 50 >"$tmp/low"
up one --watts "$tmp/low" --relay --psu shared --packages 1 \
    --scale 1:4:1:0
one=("${reach[@]}")
up two --watts "$tmp/watts"
is "the second" "$(sensor Node)" 100.00
reach=("${one[@]}") bmc=$tmp/one
is "the first, with other sensors" "$(sensors | cut -d' ' -f2,3 | tr '\n' ' ')" \
    "Ambient 22.00 Node 50.00 CPU0 21.00 DRAM 7.50 PSU1 24.00 PSU2 24.00 "

relay() {
    "$bmcsim" relay "$bmc" "$1"
}

relay_set() {
    is "relay $1" "$(relay "set $1")" ok
}

for wrong in "set delay_ms=-1" "set x=1" "frob"; do
    relay "$wrong" >/dev/null 2>&1
    is "relay $wrong is refused" $? 1
done
relay count-reset >/dev/null
is "through the relay" "$(dcmi)" 50
has "it counts" "$(relay count)" "lost=0 held=0 doubled=0 spoilt=0"
usual_ms=$(usual dcmi)
relay_set "delay_ms=40"
begin=$(ms)
is "slow" "$(dcmi)" 50
between "7 x 40 ms" $(($(ms) - begin)) 280 $((1300 + usual_ms))
relay_set "req_delay_ms=20 jitter_ms=20"
is "both ways" "$(dcmi)" 50
relay_set "dup=1 setup=0"
is "answers twice, in a session" "$(dcmi)" 50
relay_set "dup=1"
is "also in the set-up: no session" "$(dcmi | grep -c '^[0-9]*$')" 0
relay_set "corrupt=1 setup=0 max=1"
is "one corrupt answer" \
    "$(dcmi --retransmission-timeout=200 --session-timeout=3000)" 50
relay_set "drop_pct=30 req_drop_pct=10 setup=0"
for _ in 1 2 3 4 5; do
    dcmi --retransmission-timeout=50 --session-timeout=3000
done >"$tmp/lossy"
between "5 readings over a lossy line" "$(grep -c '^50$' "$tmp/lossy")" 4 5
between "packets were lost" "$(relay count | sed 's/.*lost=\([0-9]*\).*/\1/')" 1 1000
# Not one to RAKP messages: ipmi_sim of OpenIPMI 2.0.37 answers the first one of a
# session once only, and the session cannot be had.
relay_set "drop_pct=100 from_nth=2 max=1"
is "the second answer is lost" \
    "$(dcmi --retransmission-timeout=100 --session-timeout=3000)" 50
relay_set ""
is "well again" "$(dcmi)" 50
"$bmcsim" stop "$tmp/one"
"$bmcsim" stop "$tmp/two"

# What a BMC makes of power.

echo 100 >"$tmp/watts"
up slow --watts "$tmp/watts" --settle 2s
shown() {
    ask power | cut -d' ' -f2
}
# Of a step from 100 W to 200 W 2 % are left after 2 s: by how long ago it may be.
on_its_way() { # NAME
    local asked value
    asked=$(ms)
    value=$(shown)
    # shellcheck disable=SC2046  # two numbers
    between "$1" "$value" $(awk -v least=$((asked - after)) -v most=$(($(ms) - before)) '
        function left(ms) { return 100000 * exp(-log(50) * ms / 2000) }
        BEGIN { printf "%d %d\n", 200000 - left(least - 100), 200001 - left(most) }')
}
before=$(ms)
between "settled" "$(shown)" 100000 100000
echo 200 >"$tmp/watts"
after=$(ms)
sleep 0.7
on_its_way "on its way after 0.7 s"
sleep 1.3
on_its_way "after the settling time, 2 %"
"$bmcsim" stop "$bmc"

up lazy --watts "$tmp/watts" --update 3s
echo 300 >"$tmp/watts"
is "it has not looked yet" "$(shown)" 200000
sleep 3.05
echo 100 >"$tmp/watts"
is "now it has" "$(shown)" 300000
"$bmcsim" stop "$bmc"

up noisy --watts "$tmp/watts" --noise 5000 --seed 3
values=$(for _ in 1 2 3 4 5 6 7 8; do shown; done)
between "values differ" "$(sort -u <<<"$values" | wc -l)" 5 8
for value in $values; do
    between "but not by much" "$value" 75000 125000
done
"$bmcsim" stop "$bmc"

# Fed by a nodesim; what it costs.

nodesim=tests/sim/nodesim
if [ "$(id -u)" = 0 ] && [ -x $nodesim ] && [ -c /dev/fuse ]; then
    mkdir "$tmp/node"
    $nodesim --load const:150 "$tmp/node" &
    node=$!
    for _ in $(seq 100); do
        [ -e "$tmp/node/ready" ] && break
        sleep 0.05
    done
    up fed --nodesim "$tmp/node" --packages 2
    is "watts of nodesim" "$(dcmi)" 150
    $nodesim --ask "$tmp/node" "load const:350" >/dev/null
    is "without lag" "$(dcmi)" 350
    is "in all sensors" "$(sensors | cut -d' ' -f3 | tr '\n' ' ')" \
        "22.00 350.00 148.50 148.50 52.50 352.00 0.00 "
    read -r pid _ <"$bmc/pid"
    read -r before _ <"/proc/$pid/schedstat"
    for _ in $(seq 30); do
        ask power >/dev/null
        sleep 0.1
    done
    read -r after _ <"/proc/$pid/schedstat"
    cost=$(((after - before) / 30000)) # in 3 s, hundredths of a percent
    cost=$((cost / 10))
    printf 'note: the BMC at 10 Hz: %d.%02d %% of one CPU, %s resident\n' \
        $((cost / 100)) $((cost % 100)) \
        "$(sed -n 's/^VmRSS:[ \t]*//p' "/proc/$pid/status")"
    [ "$cost_max" -eq 0 ] || between "cost in 0.01 %" $cost 0 $((cost_max * 100))
    kill $node
    wait $node
    is "no nodesim: unavailable" "$(sensor Node)" N/A
    "$bmcsim" stop "$bmc"
else
    echo "note: no nodesim here"
fi

echo "$checks checks, $failed failed"
[ $failed -eq 0 ]
