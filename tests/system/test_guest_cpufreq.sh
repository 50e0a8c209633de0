#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all alone
#
# Frequencies of steps on a real driver, acpi-cpufreq, in a guest with a cluster
# in it, and the states of its CPUs.  What is looked at is in guest-cpufreq.sh and
# guest-states.sh.
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

if ! reason=$("$LIB/guest" check 2>&1); then
    skip "steps on a real acpi-cpufreq driver" "$reason"
    finish
fi
if ! command -v iasl > /dev/null; then
    skip "steps on a real acpi-cpufreq driver" "iasl is not installed"
    finish
fi
check "the guest's kernel is there" "$LIB/guest" prepare
# The guest has no disk to keep an empty database: it finds this machine's.
check "an empty database is there" cluster prepare
guest_tests guest-cpufreq.sh --memory 1024 \
    --cpufreq 0,1,2,2
guest_tests guest-states.sh --memory 1024 --cpufreq 0,1,2,2
finish
