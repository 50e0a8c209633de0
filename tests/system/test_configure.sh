#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# configure: which Slurm it takes, what it says of others and of options that
# make no sense, and a build for a release that is not known.
#
# shellcheck disable=SC2317  # functions are called through check
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
FAKE=$SCRATCH/slurm
DIR=$SCRATCH/build

# slurm_is NUMBER - installed headers of this release, else as they are here
slurm_is() {
    rm -rf "$FAKE"
    mkdir -p "$FAKE/include" && cp -rL /usr/include/slurm "$FAKE/include/" &&
        sed -i -E "s/(define[ \t]+SLURM_VERSION_NUMBER[ \t]+)0x[0-9a-f]+/\1$1/" \
            "$FAKE"/include/slurm/slurm_version.h
}

# What a check of the compiler has found holds for all of them.
configure() {
    mkdir -p "$DIR" && cd "$DIR" || return 1
    [ ! -e config.cache ] || sed -i '/slurm/d' config.cache
    "$TOP/configure" -q -C "$@"
}

# refused TEXT OPTION... - with one sentence that has the text
refused() {
    local text=$1 out
    shift
    out=$(configure "$@" 2>&1) && { echo "not refused: $out"; return 1; }
    echo "$out"
    grep -qF -- "$text" <<< "$out" &&
        [ "$(grep -c '^configure: error: ' <<< "$out")" = 1 ] &&
        [ "$(wc -l <<< "$out")" = 1 ]
}

built_for() { # NUMBER
    make -C "$DIR" -s -j2 plugins/acct_gather_energy_joule_rapl.so > "$SCRATCH/make.out" \
        2>&1 || { tail -n 20 "$SCRATCH/make.out"; return 1; }
    plugin_version "$DIR/plugins/acct_gather_energy_joule_rapl.so" |
        tee /dev/stderr | grep -qx "$1"
}

# What Slurm compares with its own release: a word among the constants.
plugin_version() {
    local at
    at=0x$(nm -D "$1" | sed -n 's/ . plugin_version$//p')
    objdump -s --start-address="$at" --stop-address=$((at + 4)) "$1" |
        sed -nE 's/^ [0-9a-f]+ (..)(..)(..)(..) .*/0x\3\2\1/p'
}

plugins() {
    # shellcheck disable=SC2016  # make's
    make -C "$DIR" -s --eval='print: ; @echo $(plugins_PROGRAMS)' print
}

programs() {
    # shellcheck disable=SC2016
    make -C "$DIR" -s --eval='print: ; @echo $(bin_PROGRAMS)' print
}

[ -e "$TOP/configure" ] || { not_ok "there is no configure (bootstrap)"; finish; }
number=$(sed -nE 's/.*define[ \t]+SLURM_VERSION_NUMBER[ \t]+(0x[0-9a-f]+).*/\1/p' \
    /usr/include/slurm/slurm_version.h)
# Its headers, with the number of a release to come.
later=$(printf '0x%06x' $((number + 0x100)))
for number in 0x170200 0x170b0a 0x190500 "$later"; do
    slurm_is "$number"
    release=$(printf '%d.%02d.%d' $((number >> 16)) $((number >> 8 & 255)) \
        $((number & 255)))
    check "Slurm $release is refused" refused "Slurm $release is not one of" \
        --with-slurm="$FAKE"
done
check "the refusal tells the way round it" refused --enable-untested-slurm \
    --with-slurm="$FAKE"
check "which is taken" configure --with-slurm="$FAKE" --enable-untested-slurm
check "the plugin is then one for that release" built_for "$later"

check "no headers where they should be" refused \
    "there is no $SCRATCH/nowhere/include/slurm/slurm.h" \
    --with-slurm="$SCRATCH/nowhere"
echo '#define SLURM 1' > "$FAKE/include/slurm/slurm_version.h"
check "headers without a number" refused "SLURM_VERSION_NUMBER" \
    --with-slurm="$FAKE"
check "a plugin directory that is no path" refused "an absolute path" \
    --with-plugindir=plugins
check "FreeIPMI, perhaps" refused "yes, no or auto" --with-freeipmi=perhaps
check "HDF5, perhaps" refused "yes, no or auto" --with-hdf5=perhaps
rm "$DIR/config.cache" # it is for other flags
check "code that can be loaded nowhere" refused "must not take -fPIC back" \
    CFLAGS='-O2 -fPIE'
rm "$DIR/config.cache"
check "programs with a prefix" refused "cannot have another name" --program-prefix=my-
check "with a suffix" refused "cannot have another name" --program-suffix=-2
check "those that users start may have another name" configure \
    --program-transform-name='s/^sh5util/joule-sh5util/'
check "without HDF5" configure --with-hdf5=no
check "profiles are written all the same" grep -q joule_hdf5 <<< "$(plugins)"
check "and there is no sh5util" [ -z "$(programs | grep sh5util)" ]
check "without Slurm there are no plugins" configure --without-slurm
check "none is built" [ -z "$(plugins)" ]
finish
