# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# selftest.sh - for the self tests of simulators that serve a directory:
# source it with `simulator` and `mounted` set.  Exit 77 where they cannot run.
#
#   simulator  the program
#   mounted    where it mounts, below its directory $root
#
# shellcheck disable=SC2154  # simulator, mounted: see above

skip() {
    echo "SKIP: $1"
    exit 77
}

[ "$(id -u)" -eq 0 ] || skip "root is needed to mount"
[ -c /dev/fuse ] || skip "there is no /dev/fuse"

tmp=$(mktemp -d) || exit 1
root=$tmp/root
pid=
failed=0
checks=0

cleanup() {
    [ -z "$pid" ] || { kill "$pid" && wait "$pid"; }
    ! mountpoint -q "$root/$mounted" || umount -l "$root/$mounted"
    rm -rf "$tmp"
} 2>/dev/null
trap cleanup EXIT

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

start() { # OPTION... ; waits until it serves
    rm -f "$root/ready" # of one that was killed
    "$simulator" "$@" "$root" &
    pid=$!
    for _ in $(seq 100); do
        [ -e "$root/ready" ] && return
        kill -0 $pid 2>/dev/null || break
        sleep 0.05
    done
    echo "FAILED: $simulator $* does not serve"
    exit 1
}

stop() {
    kill "$pid"
    wait "$pid"
    is "exit after SIGTERM" $? 0
    pid=
    is "unmounted" "$(grep -c " $root/$mounted " /proc/self/mounts)" 0
    is "ready and control are gone" "$(cd "$root" && echo ready* control*)" \
        "ready* control*"
}

ask() {
    "$simulator" --ask "$root" "$1"
}

usage_error() { # OPTION... ; one sentence, exit 2, nothing mounted
    local text

    text=$(timeout 10 "$simulator" "$@" "$root" 2>&1)
    is "$* exits" $? 2
    is "$* says one sentence" "$(grep -c "^${simulator##*/}: ." <<<"$text")" 1
}

finish() {
    echo "$checks checks, $failed failed"
    [ $failed -eq 0 ]
}
