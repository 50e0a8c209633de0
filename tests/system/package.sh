# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# package.sh - the tarball, and packages made of it; source it after lib.sh.

# need PROGRAM... - the end without them
need() {
    local program missing=''
    for program; do
        command -v "$program" > /dev/null || missing+=" $program"
    done
    [ -z "$missing" ] || {
        not_ok "not installed:$missing (tests/run installs them)"
        finish
    }
}

# configured NAME - as configure has found it; fails outside of a build
configured() {
    [ -x "$JOULE_BUILD/config.status" ] ||
        { echo "$JOULE_BUILD is no build directory" >&2; return 1; }
    echo "@$1@" | (cd "$JOULE_BUILD" && ./config.status -q --file=-)
}

# make_dist DIR - make dist, into DIR; prints the tarball
make_dist() {
    local name
    name=slurm-joule-$(configured VERSION) || return 1
    (
        # Two scripts may want it at the same time.
        flock 9
        make -s -C "$JOULE_BUILD" dist > "$SCRATCH/dist.out" 2>&1 &&
            mv "$JOULE_BUILD/$name.tar.xz" "$1/" || {
            tail -n 20 "$SCRATCH/dist.out" >&2
            exit 1
        }
    ) 9> "$JOULE_BUILD/dist.lock" || return 1
    echo "$1/$name.tar.xz"
}

# build_deb TARBALL DIR [OPTION...] - the source and binary packages, in DIR;
# OPTION of dpkg-buildpackage
build_deb() {
    local dir=$2 name
    name=$(basename "$1" .tar.xz)
    mkdir -p "$dir" && tar -C "$dir" -xf "$1" || return 1
    shift 2
    # Its unit tests are run elsewhere, with sanitizers.
    (cd "$dir/$name" && DEB_BUILD_OPTIONS="nocheck parallel=2" \
        nice dpkg-buildpackage --no-sign "$@" > "$dir/build.out" 2>&1) || {
        grep -E -A 3 'error|Error|\*\*\*' "$dir/build.out" | tail -n 30 >&2
        tail -n 10 "$dir/build.out" >&2
        return 1
    }
}

# build_rpm TARBALL DIR - the source and binary packages, below DIR
build_rpm() {
    # Debian's libraries are no RPM packages, and it has no debuginfo script.
    nice rpmbuild -ta --nodeps --nocheck --define "_topdir $2" \
        --define "_dbpath $2/db" --define 'debug_package %{nil}' \
        --define '_smp_mflags -j2' "$1" > "$2/build.out" 2>&1 || {
        tail -n 20 "$2/build.out" >&2
        return 1
    }
}

# edit_deb DEB DIR SED-SCRIPT - a copy of a binary package in DIR whose control
# file is edited; prints its name
edit_deb() {
    local tree status
    tree=$(mktemp -d "$SCRATCH/deb.XXXXXX") && chmod 755 "$tree" || return 1
    dpkg-deb -R "$1" "$tree" && sed -i -E "$3" "$tree/DEBIAN/control" &&
        dpkg-deb --root-owner-group -b "$tree" "$2" |
        sed -n "s/.* in '\(.*\)'\.$/\1/p"
    status=$?
    rm -rf "$tree"
    return $status
}

# Whether what is changed now is not the machine itself.
in_overlay() {
    [ -e /.slurm-joule-overlay ] ||
        { echo "this is the machine itself, not an overlay" >&2; return 1; }
}

# Repository DIR of packages, the only one that apt knows from then on.
use_repository() {
    in_overlay || return 1
    (cd "$1" && dpkg-scanpackages -m . > Packages 2> Packages.err) ||
        { cat "$1/Packages.err" >&2; return 1; }
    rm -f /etc/apt/sources.list.d/*
    echo "deb [trusted=yes] file:$1 ./" > /etc/apt/sources.list
    apt-get -q -q update -o APT::Sandbox::User=root
}

# apt_install PACKAGE... - without apt's own user, who may not read everywhere
apt_install() {
    apt-get -q -q -y --no-install-recommends -o APT::Sandbox::User=root \
        -o DPkg::Lock::Timeout=60 install "$@" > "$SCRATCH/apt.out" 2>&1 ||
        { cat "$SCRATCH/apt.out" >&2; return 1; }
}

# A directory that is to the tests what a build is, with the plugins and
# programs that are installed.
FACADE=/opt/slurm-joule-installed
make_facade() {
    in_overlay && mkdir -p $FACADE/tools/joule $FACADE/tools/sh5util &&
        ln -s "$JOULE_BUILD/tests" $FACADE/ &&
        ln -s /usr/lib/*/slurm-wlm $FACADE/plugins &&
        cp -p /usr/libexec/slurm-joule/joule-* $FACADE/ &&
        ln -s /usr/bin/joule $FACADE/tools/joule/ &&
        ln -s /usr/bin/joule-sh5util $FACADE/tools/sh5util/sh5util
}
