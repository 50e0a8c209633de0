#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The IPMI reader with 40 s between readings, where the BMC drops sessions
# after 30 s: the session is kept, and a reading still is one message.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

NAME="readings 40 s apart in one session"
TEST=tests/unit/test_ipmi

if [ ! -x /usr/bin/ipmi_sim ]; then
    skip "$NAME" "no ipmi_sim (Debian: openipmi)"
elif ! make -s -C "$JOULE_BUILD" $TEST > "$SCRATCH/make.out" 2>&1; then
    note < "$SCRATCH/make.out"
    not_ok "$NAME: $TEST builds"
else
    cd "$JOULE_BUILD" || exit 1
    check "$NAME" env JOULE_TEST_SLOW=1 ./$TEST
fi
finish
