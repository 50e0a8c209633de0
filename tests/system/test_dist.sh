#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# make distcheck: the tarball builds in a directory of its own from sources that
# cannot be written, is installed and uninstalled again without a trace, with
# DESTDIR and without, and cleans up after itself.  Of its unit tests those are
# run that read files of the source.
#
# shellcheck disable=SC2317  # functions are called through check
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
SOME="tests/unit/test_manual tests/unit/test_probe"

# In a build directory of its own: others make tarballs in that of all meanwhile.
distcheck() {
    local status
    mkdir "$SCRATCH/build" && cd "$SCRATCH/build" || return 1
    "$TOP/configure" -q > "$SCRATCH/distcheck.out" 2>&1 &&
        nice make -s -j2 distcheck TESTS="$SOME" check_PROGRAMS="$SOME" \
            DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O0 >> "$SCRATCH/distcheck.out" 2>&1
    status=$?
    [ $status = 0 ] || grep -E -B 5 -A 3 '\*\*\*|rror:' "$SCRATCH/distcheck.out" |
        tail -n 40
    return $status
}

installs() {
    make -s -C "$JOULE_BUILD" install DESTDIR="$1" > "$SCRATCH/out" 2>&1 ||
        { tail -n 20 "$SCRATCH/out"; return 1; }
    diff - <(find "$1" -name '*joule*.so' -printf '%f\n' | sort) << 'END'
acct_gather_energy_joule.so
acct_gather_energy_joule_fused.so
acct_gather_energy_joule_ipmi.so
acct_gather_energy_joule_rapl.so
acct_gather_profile_joule_hdf5.so
libjoule.so
libjoule_hooks.so
libjoule_waits.so
spank_joule.so
spank_joule_cpufreq.so
END
}

find_files() {
    find "$1" ! -type d | grep .
}

check "make distcheck" distcheck
check "its unit tests were run" grep -qE '^# PASS: +2$' \
    "$SCRATCH/distcheck.out"
mkdir "$SCRATCH/root"
check "make install of this build" installs "$SCRATCH/root"
check "all that is installed may be read" [ -z "$(find "$SCRATCH/root" \
    ! -type l ! -perm -o=r)" ]
check "make uninstall" make -s -C "$JOULE_BUILD" uninstall \
    DESTDIR="$SCRATCH/root"
check_not "leaves nothing but directories" find_files "$SCRATCH/root"
finish
