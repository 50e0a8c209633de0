#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The RPM packages: built of the tarball with Debian's rpm, looked at by
# rpmlint, installed below a directory and removed again.  Whether they install
# on a distribution of RPMs is not tested here.
#
# shellcheck disable=SC2317  # functions are called through check
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=package.sh
. "$LIB/package.sh"

RPMS=$SCRATCH/rpm
ROOT=$SCRATCH/root
# Where rpm and rpmlint put files of their own.
export HOME=$SCRATCH/home XDG_CONFIG_HOME=$SCRATCH/home/.config
mkdir -p "$XDG_CONFIG_HOME" || exit 1

of_package() { # NAME QUERY-OPTION...
    rpm --dbpath "$RPMS/db" -qp "${@:2}" "$RPMS"/RPMS/*/slurm-joule-"$1"-[0-9]*.rpm
}

below_root() {
    rpm --root "$ROOT" --dbpath /db "$@"
}

rpmlint_is_quiet() {
    local out
    out=$(rpmlint --config "$TOP/rpm/rpmlint.toml" "$@" 2>&1)
    echo "$out"
    grep -q ' 0 errors, 0 warnings' <<< "$out"
}

files_of_root() {
    find "$ROOT" -mindepth 1 ! -path "$ROOT/db*" -printf '%P\n' | sort
}

need rpmbuild rpm rpmlint
mkdir "$RPMS" "$ROOT"
tarball=$(make_dist "$SCRATCH") || { not_ok "make dist"; finish; }
check "rpmlint has nothing to say of the spec file" \
    rpmlint_is_quiet "$TOP/rpm/slurm-joule.spec"
if ! build_rpm "$tarball" "$RPMS"; then
    not_ok "the packages are built"
    finish
fi
ok "the packages are built"
release=$(configured slurm_release)
check "the plugins want Slurm $release and no other" \
    grep -qE "^slurm(\(.*\))? = ${release//./\\.}\$" \
    <(of_package plugins --requires)
check "and say so in their version" \
    grep -q "\.slurm${release//./\\.}" <(of_package plugins --qf '%{RELEASE}\n')
check "the plugins" diff - <(of_package plugins -l | sed -n 's|.*/\([^/]*\.so\)$|\1|p') << 'END'
acct_gather_energy_joule.so
acct_gather_energy_joule_fused.so
acct_gather_energy_joule_ipmi.so
acct_gather_energy_joule_rapl.so
acct_gather_profile_joule_hdf5.so
spank_joule.so
spank_joule_cpufreq.so
END
check "nothing of Slurm's name" [ -z "$(of_package tools -l |
    grep -x -e /usr/bin/sh5util -e '.*/man1/sh5util\..*')" ]
check "rpmlint has nothing to say of the packages" \
    rpmlint_is_quiet "$RPMS"/RPMS/*/*.rpm "$RPMS"/SRPMS/*.rpm
makes_a_user() {
    local user
    user=$("$LIB/overlay" sh -c "($1) && ($1) && getent passwd slurm-joule")
    echo "$user"
    [[ $user =~ ^slurm-joule:x:[0-9]{3}:[0-9]{3}:[^:]*:/:/sbin/nologin$ ]]
}
check "the plugins' user is made, once, with no shell" \
    makes_a_user "$(of_package plugins --qf '%{PREIN}')"
# Without scripts: no shell is there.
check "they are installed" below_root -i --nodeps --noscripts --ignorearch \
    --ignoreos "$RPMS"/RPMS/*/*.rpm
check "as they were packed" below_root -V --nodeps slurm-joule-plugins \
    slurm-joule-tools slurm-joule-doc libjoule libjoule-devel
check "the program runs" "$ROOT/usr/bin/joule" --version
check "they are removed" below_root -e --nodeps slurm-joule-plugins slurm-joule-tools \
    slurm-joule-doc libjoule libjoule-devel
check "and nothing is left but directories of the system" [ -z "$(files_of_root |
    grep joule)" ]
finish
