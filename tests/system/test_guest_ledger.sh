#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all alone
#
# A node divided among jobs by CPU time with cgroup v2, in a guest with a cluster
# in it.  What is looked at is in guest-ledger.sh.
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

if ! reason=$("$LIB/guest" check 2>&1); then
    skip "a ledger with cgroup v2" "$reason"
    finish
fi
check "the guest's kernel is there" "$LIB/guest" prepare
# The guest has no disk to keep an empty database: it finds this machine's.
check "an empty database is there" cluster prepare
guest_tests guest-ledger.sh --memory 1024
finish
