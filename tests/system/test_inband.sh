#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The devices that only a machine of its own has: /dev/ipmi0 with a BMC behind
# it, and real MSR devices, in a guest.  What is looked at there is in
# guest-inband.sh; its lines are printed here.
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
BMCSIM=$TOP/tests/sim/bmcsim/bmcsim

if ! reason=$("$LIB/guest" check 2>&1); then
    skip "in-band IPMI and MSR devices in a guest" "$reason"
    finish
fi
for program in ipmi_sim ipmi-sensors ipmi-dcmi; do
    command -v $program > /dev/null && continue
    skip "in-band IPMI and MSR devices in a guest" "$program is not installed"
    finish
done

check "the guest's kernel is there" "$LIB/guest" prepare

# A share that both can write: the guest changes the watts of its BMC by it.
mkdir "$SCRATCH/share" "$SCRATCH/bmc"
echo 236 > "$SCRATCH/share/watts"
trap '"$BMCSIM" stop "$SCRATCH/bmc" 2> /dev/null; lib_cleanup' EXIT
check "a BMC for the guest" "$BMCSIM" start --watts "$SCRATCH/share/watts" \
    --vm-port 0 "$SCRATCH/bmc"

# The guest's orders for its BMC: a signal in /t/order.
orders() {
    local order=$SCRATCH/share/order
    while sleep 0.05; do
        [ -e "$order" ] || continue
        "$BMCSIM" signal "$(cat "$order")" "$SCRATCH/bmc"
        rm -f "$order"
    done
}
orders &
ORDERS=$!
trap 'kill $ORDERS 2> /dev/null
    "$BMCSIM" stop "$SCRATCH/bmc" 2> /dev/null; lib_cleanup' EXIT

begin=${EPOCHREALTIME/./}
"$LIB/guest" run --timeout 120 --share "$SCRATCH/share" \
    --ipmi "$(cat "$SCRATCH/bmc/vm-port")" "$LIB/guest-inband.sh" \
    > "$SCRATCH/guest.out" 2>&1
status=$?
took_ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
note <<< "the guest took $took_ms ms"
check "the guest took less than a minute" [ "$took_ms" -lt 60000 ]

while IFS= read -r line; do
    echo "$line"
    case $line in "not ok - "*) TESTS_FAILED=$((TESTS_FAILED + 1)) ;; esac
done < "$SCRATCH/guest.out"
check "the guest's script came to its end" grep -qx "# end of the guest's tests" \
    "$SCRATCH/guest.out"
check "the exit status is the script's" [ $status = $((TESTS_FAILED > 0)) ]
"$BMCSIM" ask "$SCRATCH/bmc" count > "$SCRATCH/count" 2>&1
note < "$SCRATCH/count"
check "the BMC counts what it is asked in-band" grep -q ' 04:2d=[1-9]' \
    "$SCRATCH/count"
finish
