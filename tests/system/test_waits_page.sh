#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The page of `joule waits` in a browser: its numbers, by mouse and by keyboard; names
# that would break out; how long it takes with 4,096 ranks.  Needs neither root nor a
# cluster; pictures are left beside the logs.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

PYTHON=/usr/bin/python3
PICTURES=$JOULE_BUILD/tests-logs
ENDED="# end of the browser's tests"

for needed in /usr/bin/chromium /usr/bin/chromedriver; do
    [ -x $needed ] || {
        skip "the page in a browser" "there is no $needed"
        finish
    }
done
$PYTHON -c 'import selenium' 2> /dev/null || {
    skip "the page in a browser" "there is no python3-selenium"
    finish
}

mkdir -p "$PICTURES" "$SCRATCH/pages"
for name in small hostile empty calm one large; do
    "$JOULE_BUILD/tests/unit/makepage" $name > "$SCRATCH/pages/$name.html" ||
        not_ok "$name: the page is made"
done
HOME=$SCRATCH $PYTHON "$LIB/waits_page.py" "$SCRATCH/pages" "$PICTURES" "$SCRATCH/profile" \
    > "$SCRATCH/out" 2>&1
while IFS= read -r line; do
    echo "$line"
    case $line in "not ok - "*) TESTS_FAILED=$((TESTS_FAILED + 1)) ;; esac
done < "$SCRATCH/out"
check "the browser's tests came to their end" grep -qxF -- "$ENDED" "$SCRATCH/out"
finish
