#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The scripts of a default run once more, with what the Debian packages install in
# the place of the build; but for those about a build.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

check "packages are made" "$LIB/debs" "$SCRATCH/debs"
for script in $(grep -lx '# run: default' "$LIB"/test_*.sh); do
    "$LIB/installed" "$SCRATCH/debs" "$script" > "$SCRATCH/log" 2>&1
    status=$?
    sed -E "s|^((not )?ok\|skip) - |&${script##*/}: |" "$SCRATCH/log"
    check "${script##*/} on packages" [ $status = 0 ]
done
finish
