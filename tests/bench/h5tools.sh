# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# h5tools.sh - sh5util, Slurm's sh5util and cp, to be measured on the same
# node-step files: source it before rows.sh, then call h5tools_begin.
#
# Slurm's sh5util wants a configuration and a user: it runs in a cluster of
# tests/system/cluster.
TOP=$(readlink -f "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..")
export JOULE_BUILD=${JOULE_BUILD:-$TOP/build}
CLUSTER=$TOP/tests/system/cluster
SH5UTIL=$JOULE_BUILD/tools/sh5util/sh5util
MAKENODE=$JOULE_BUILD/tests/unit/makenode
NOSYNC=$JOULE_BUILD/tests/bench/shim_nosync.so
PEAK=$JOULE_BUILD/tests/bench/peak
UNDER='' # what a sh5util is run by
DIR=
NAME=
declare -A BEST # microseconds

# shellcheck disable=SC2317  # called by a trap
h5tools_cleanup() {
    "$CLUSTER" down "$NAME" > /dev/null 2>&1
    [ -z "$DIR" ] || rm -rf "$DIR"
}

# h5tools_begin NAME - a directory DIR and a cluster of that name, gone with the
# script
h5tools_begin() {
    local file
    NAME=$1
    [ "$(id -u)" = 0 ] || fail "needs root"
    for file in "$SH5UTIL" "$MAKENODE" "$NOSYNC" "$PEAK"; do
        [ -x "$file" ] || fail "there is no $file"
    done
    trap h5tools_cleanup EXIT
    trap 'exit 130' INT TERM
    DIR=$(mktemp -d /var/tmp/joule-bench.XXXXXX) || fail "no directory"
    chmod 755 "$DIR"
    mkdir -m 777 "$DIR/alice"
    "$CLUSTER" up "$NAME" --energy none --no-sim --profile > "$DIR/log" 2>&1 ||
        { cat "$DIR/log" >&2; fail "no cluster"; }
}

# timed KEY COMMAND... - run it, and keep the least elapsed time of all runs
timed() {
    local key=$1 start us
    shift
    sync -f "$DIR"
    start=${EPOCHREALTIME/./}
    "$@" > "$DIR/log" 2>&1 || { cat "$DIR/log" >&2; fail "$key failed"; }
    us=$((${EPOCHREALTIME/./} - start))
    [ "${BEST[$key]:-$us}" -lt "$us" ] || BEST[$key]=$us
}

# elapsed_us KEY - the best time; Slurm's without that of getting there
elapsed_us() {
    local us=${BEST[$1]}
    [ "${1%%-*}" != slurm ] || us=$((us - BEST[nothing]))
    echo "$us"
}

# Slurm's sh5util as the user, where the cluster is.
theirs() {
    "$CLUSTER" user --timeout 0 "$NAME" sh -c "cd $DIR/alice && $UNDER sh5util $*"
}
nothing() {
    "$CLUSTER" user --timeout 0 "$NAME" sh -c "cd $DIR/alice && true"
}

# Slurm's sh5util looks below the user's name and wants to own the files.
# show_user DIRECTORY - of profiles, that has them below root
show_user() {
    ln -s root "$1/alice"
    chmod -R a+rX "$DIR"
}

copy() {
    rm -rf "$DIR/copied"
    cp -r "$1" "$DIR/copied"
}

ours() {
    # shellcheck disable=SC2086  # some words, or none
    $UNDER "$SH5UTIL" -j 7 "$@"
}

fresh() {
    rm -f "$DIR/merged.h5"
    ours -S -p "$1" -o "$DIR/merged.h5"
}

unsynced() {
    rm -f "$DIR/merged.h5"
    LD_PRELOAD=$NOSYNC "$SH5UTIL" -j 7 -S -p "$1" -o "$DIR/merged.h5"
}

# peak_kib COMMAND... - the most memory that the sh5util in it has, with all its
# processes
peak_kib() {
    local UNDER="$PEAK $DIR/peak"
    : > "$DIR/peak" && chmod 666 "$DIR/peak" &&
        "$@" > /dev/null 2>&1 || fail "sh5util failed"
    cat "$DIR/peak"
}
