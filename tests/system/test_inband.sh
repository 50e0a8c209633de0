#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all alone
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

guest_tests guest-inband.sh --share "$SCRATCH/share" \
    --ipmi "$(cat "$SCRATCH/bmc/vm-port")"
"$BMCSIM" ask "$SCRATCH/bmc" count > "$SCRATCH/count" 2>&1
note < "$SCRATCH/count"
check "the BMC counts what it is asked in-band" grep -q ' 04:2d=[1-9]' \
    "$SCRATCH/count"
finish
