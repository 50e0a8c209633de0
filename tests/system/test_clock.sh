#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all alone
#
# The clock of a machine set an hour forward and back in the middle of a step
# measured by the BMC.  The machine is a guest, with a cluster in it: its clock
# is nobody else's.  What is looked at is in guest-clock.sh.
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

if ! reason=$("$LIB/guest" check 2>&1); then
    skip "the clock set in the middle of a step" "$reason"
    finish
fi
check "the guest's kernel is there" "$LIB/guest" prepare
# The guest has no disk to keep an empty database: it finds this machine's.
check "an empty database is there" cluster prepare
guest_tests guest-clock.sh --memory 1024
finish
