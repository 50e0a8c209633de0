#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# The tarball and the Debian packages made of it: built (with JOULE_TEST_LONG set
# twice, to the same bytes), looked at by lintian, installed with apt in an
# overlay of this machine; energy, BMC, profile and frequencies of a cluster that
# has nothing but the packages; their upgrade and removal, and what apt says of
# another Slurm.
#
# shellcheck disable=SC2317  # functions are called through check
# shellcheck disable=SC2016  # and expanded there
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=package.sh
. "$LIB/package.sh"
PACKAGES=(slurm-joule-plugins slurm-joule-tools slurm-joule-doc libjoule1 libjoule-dev)

# Sources that a clone has and the tarball lacks.
not_packed() {
    local name
    name=$(basename "$1" .tar.xz)
    comm -23 <(cd "$TOP" && find .ci .clang-format .editorconfig .gitignore \
        COPYING Makefile.am NEWS.md README.md bootstrap common configure.ac \
        debian doc etc lib m4 plugins rpm tests tools -type f \
        ! -path 'm4/l*.m4' ! -path 'debian/build/*' ! -name '*.o' | sort) \
        <(tar -tf "$1" | sed "s|^$name/||" | sort)
}

same_packages() { # DIR DIR
    local deb count=0
    for deb in "$1"/*.deb; do
        cmp "$deb" "$2/${deb##*/}" || return 1
        count=$((count + 1))
    done
    echo "$count packages"
    [ $count -ge ${#PACKAGES[@]} ]
}

lintian_is_quiet() {
    local out
    out=$(lintian --allow-root --tag-display-limit 0 \
        --fail-on error,warning "$1"/*.changes 2>&1) || { echo "$out"; return 1; }
    ! grep '^[EW]: ' <<< "$out"
}

versions_agree() { # VERSION
    grep -q "^slurm-joule ($1) " <(head -n 1 "$TOP/debian/changelog") ||
        { echo "debian/changelog"; return 1; }
    grep -qxE "Version: +$1" "$TOP/rpm/slurm-joule.spec" ||
        { echo "rpm/slurm-joule.spec"; return 1; }
}

build() {
    need dpkg-buildpackage dpkg-scanpackages dh lintian
    TARBALL=$(make_dist "$SCRATCH") || { not_ok "make dist"; finish; }
    ok "make dist"
    check "the tarball has all sources" [ -z "$(not_packed "$TARBALL")" ]
    not_packed "$TARBALL" | note
    check "debian/changelog and the spec file have its version" \
        versions_agree "$(configured VERSION)"
    build_deb "$TARBALL" "$SCRATCH/debs" ||
        { not_ok "the packages are built"; finish; }
    ok "the packages are built"
    check "lintian finds no error and warns of nothing" \
        lintian_is_quiet "$SCRATCH/debs"
    [ -z "${JOULE_TEST_LONG:-}" ] || build_once_more
}

# Elsewhere, in another zone and language, by somebody with other habits.
build_once_more() {
    (umask 027 && export TZ=Pacific/Auckland LC_ALL=C.UTF-8 HOME=/nonexistent &&
        build_deb "$TARBALL" "$SCRATCH/other/place" -b) ||
        { not_ok "they are built once more"; finish; }
    check "the same bytes once more" same_packages "$SCRATCH/debs" \
        "$SCRATCH/other/place"
}

# From here on in the overlay.

# Each file with mode, owner and size, without what apt and dpkg note down, and
# without those of users: the plugins' own stays.
machine_files() {
    find /etc /opt /usr /var /root \( -path /etc/apt -o -path /var/cache \
        -o -path '/etc/passwd*' -o -path '/etc/group*' -o -path '/etc/shadow*' \
        -o -path '/etc/gshadow*' -o -path /etc/ld.so.cache \
        -o -path /var/log -o -path /var/lib/apt -o -path /var/tmp \
        -o -path '/var/lib/dpkg/*' ! -path '/var/lib/dpkg/info*' \) -prune \
        -o -type d -printf '%p %M %U:%G\n' \
        -o -printf '%p %M %U:%G %s %l\n' | sort
}

field() { # PACKAGE FIELD
    dpkg-query -W -f "\${$2}\n" "$1"
}

next_micro() {
    awk -F. '{ print $1 "." $2 "." $3 + 1 }' <<< "$1"
}

fits_slurm() {
    local release=$1 depends
    depends=$(field slurm-joule-plugins Depends)
    echo "$depends"
    [[ ", $depends, " == *", slurm-wlm-basic-plugins (>= $release), "* &&
        ", $depends, " == \
            *", slurm-wlm-basic-plugins (<< $(next_micro "$release")~), "* &&
        $(field slurm-joule-plugins Version) == *"+slurm$release" ]]
}

test_install() {
    check "apt installs the packages" apt_install "${PACKAGES[@]}"
    check "the plugins want Slurm $RELEASE and no other" fits_slurm "$RELEASE"
    check "the plugins have a user, who cannot log in" grep -qxE \
        'slurm-joule:x:[0-9]{3}:[0-9]{3}:[^:]*:/nonexistent:/usr/sbin/nologin' \
        /etc/passwd
    check "Slurm's sh5util is Slurm's" eval '
        dpkg -S /usr/bin/sh5util | grep -q "^slurm-wlm-hdf5-plugin:" &&
            ! dpkg -V slurm-wlm-hdf5-plugin | grep sh5util'
    check "ours has a name of its own" \
        grep -q 'slurm-joule' <(joule-sh5util -V 2>&1)
    check "and Slurm's in a directory of its own" \
        cmp /usr/bin/joule-sh5util /usr/libexec/slurm-joule/bin/sh5util
    check "all that a user may run and read" eval '! find $(dpkg -L \
        "${PACKAGES[@]}") -maxdepth 0 ! -type l ! -perm -o=r | grep .'
}

in_cluster() {
    cluster run --timeout 60 pkgdeb "$@"
}

# Slurm finds everything in its own directory; none of it is named anywhere.
test_cluster() {
    local dir frequencies
    up pkgdeb --contain --sim '--load const:60' --cpufreq '' \
        --profile=acct_gather_profile/joule_hdf5 ||
        { not_ok "a cluster with the installed plugins"; return; }
    dir=$(cluster dir pkgdeb)
    frequencies=$(cluster cpufreq pkgdeb node1 dump)
    sed -i '/^PluginDir=/d' "$dir/etc/slurm.conf"
    echo 'optional spank_joule.so batch=yes' > "$dir/etc/plugstack.conf"
    cluster slurmd pkgdeb node1 stop && cluster slurmd pkgdeb node1 start
    check "slurmd starts without a PluginDir" \
        wait_for 60 eval '[ "$(in_cluster sinfo -h -t idle -o %D)" = 1 ]'
    measure_step pkgdeb user --profile=energy --cpu-freq=low -- --sleep 3
    echo "# sacct $STEP_J J, wattmeter $STEP_TRUE_J J"
    check "energy of a step" near_truth
    # The job is there a little longer than its step.
    check "energy of its job" eval 'job=$(step_energy pkgdeb "$STEP_JOB.extern")
        echo "job: $job J"
        [ "$job" -ge "$STEP_J" ] && [ "$job" -lt $((STEP_J + 60)) ]'
    check "its profile is merged by joule-sh5util" cluster user pkgdeb \
        joule-sh5util -j "$STEP_JOB" -o merged.h5
    check "its frequency was set" grep -qiE \
        "joule_cpufreq: step $STEP_JOB\\.0: --cpu-freq=Low: set .* kHz" \
        <(cluster log pkgdeb node1)
    check "and put back" [ "$(cluster cpufreq pkgdeb node1 dump)" = \
        "$frequencies" ]
    check "the keeper is the installed one" eval 'in_cluster sh -c "
        readlink /proc/[0-9]*/exe" | grep -qx \
        /usr/libexec/slurm-joule/joule-cpufreq-keeper'
    check "joule probe has nothing to say against the set-up" eval '
        cluster at pkgdeb node1 joule probe --json |
            grep -q "\"job_would_be_measured\": *true"'
    cluster down pkgdeb
}

test_bmc() {
    # shellcheck source-path=SCRIPTDIR source=ipmi.sh
    . "$LIB/ipmi.sh"
    # The installed reader, as the plugin knows it.
    BMC_CONF=${BMC_CONF%JouleIPMIReader=*}
    up_bmc pkgbmc '' JouleSamplePeriod=100ms --sim '--load const:80' ||
        { not_ok "a cluster with BMCs"; return; }
    check "its reader is the plugins' user" [ "$(cluster run pkgbmc sh -c \
        'sed -n "s/^Uid:\t\([0-9]*\).*/\1/p" \
        "/proc/$(pgrep -x -o joule-ipmi-read)/status"')" = "$(id -u slurm-joule)" ]
    measure_step pkgbmc user -- --sleep 4
    echo "# sacct $STEP_J J, wattmeter $STEP_TRUE_J J"
    check "energy of a step by the BMC" near_truth
    cluster down pkgbmc
}

says() { # PATTERN COMMAND...
    local pattern=$1 out
    shift
    out=$("$@" 2>&1)
    echo "$out"
    grep -qE "$pattern" <<< "$out"
}

# What apt would do.
simulate() {
    apt-get -s -q -o APT::Get::Show-User-Simulation-Note=no "$@"
}

# The control files of Slurm's installed packages, one micro release later.
other_slurm() { # DIR
    local package old new tree=$SCRATCH/slurm
    old=$(field slurmd Version)
    new=$(next_micro "$RELEASE")-1
    for package in $(dpkg-query -W -f \
        '${source:Package} ${source:Version} ${Package}\n' |
        awk -v version="$old" '$1 ~ /^slurm/ && $2 == version { print $3 }'); do
        rm -rf "$tree"
        mkdir -p "$tree/DEBIAN"
        dpkg-query -s "$package" | sed "/^Status:/d; /^Conffiles:/,/^[^ ]/{
            /^Conffiles:/d; /^ /d}; s/${old//./\\.}/$new/g" \
            > "$tree/DEBIAN/control"
        dpkg-deb --root-owner-group -b "$tree" "$1" > /dev/null || return 1
    done
}

test_other_slurm() {
    local repo=$SCRATCH/repo next plugins
    next=$(next_micro "$RELEASE")
    mkdir -p "$repo/slurm"
    cp "$DEBS"/*.deb "$repo" && other_slurm "$repo/slurm" &&
        use_repository "$repo" ||
        { not_ok "a repository with another Slurm"; return; }
    check "a Slurm that the plugins do not fit is kept back" eval '
        says "kept back" simulate upgrade &&
            ! says "^(Inst slurmd|Remv slurm-joule)" simulate upgrade'
    check "it is to be had at the price of the plugins only" \
        says "remove is disabled" simulate --no-remove install "slurmd=$next-1"
    plugins=$(edit_deb "$DEBS"/slurm-joule-plugins_*.deb "$repo" "
        s/^(Version:.*\+slurm).*/\1$next/
        /^Depends:/s/<< ${next//./\\.}~/<< $(next_micro "$next")~/
        /^Depends:/s/>= ${RELEASE//./\\.}\)/>= $next)/")
    check "plugins for it" [ -s "$plugins" ]
    use_repository "$repo"
    check "both are upgraded together" eval '
        says "^Inst slurmd " simulate dist-upgrade &&
            says "^Inst slurm-joule-plugins " simulate dist-upgrade &&
            ! says "^Remv " simulate dist-upgrade'
    rm -rf "$repo/slurm"
    use_repository "$repo"
    plugins=slurm-joule-plugins=$(dpkg-deb -f "$plugins" Version)
    check_not "plugins for another Slurm are refused" \
        simulate install "$plugins"
    check "which is said" says "slurm-wlm-basic-plugins .*$next" \
        simulate install "$plugins"
}

upgrade() {
    local repo=$SCRATCH/later deb
    mkdir "$repo"
    for deb in "$DEBS"/*.deb; do
        edit_deb "$deb" "$repo" 's/^(Version: [0-9.]+)/\1.99/
            /^Depends:/s/(libjoule1 \(= [0-9.]+)/\1.99/' || return 1
    done
    use_repository "$repo" && apt_install "${PACKAGES[@]}" &&
        says '\.99[+]slurm' field slurm-joule-plugins Version &&
        says '\.99$' field slurm-joule-tools Version
}

test_upgrade_and_purge() { # LIST-OF-FILES
    local installed
    installed=$(machine_files)
    check "they are upgraded" upgrade
    # The lists of their files are those of another version.
    check "an upgrade changes no file" diff \
        <(grep -v /var/lib/dpkg/info <<< "$installed") \
        <(machine_files | grep -v /var/lib/dpkg/info)
    check "they are purged" apt-get -q -q -y purge "${PACKAGES[@]}"
    check "and nothing is left" diff "$1" <(machine_files)
}

inside() {
    in_overlay || { not_ok "there is an overlay"; return; }
    DEBS=$1
    RELEASE=$(configured slurm_release)
    use_repository "$DEBS" || { not_ok "apt takes the repository"; return; }
    machine_files > "$SCRATCH/before"
    test_install
    make_facade || { not_ok "the packages stand for a build"; return; }
    JOULE_BUILD=$FACADE test_cluster
    JOULE_BUILD=$FACADE test_bmc
    test_other_slurm
    rm -rf "${FACADE:?}"
    test_upgrade_and_purge "$SCRATCH/before"
}

if [ "${1-}" = inside ]; then
    inside "$2"
    finish
fi
build
"$LIB/overlay" --bind "$SCRATCH/debs" "$0" inside "$SCRATCH/debs" ||
    TESTS_FAILED=$((TESTS_FAILED + 1))
finish
