# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# packages.sh - what the build, the tests and the demo need on Debian, and its
# installation; sourced by tests/run and tools/demo.

# What a default run of tests/run needs that a bare Debian 12 lacks.
PACKAGES="
    autoconf automake gcc libc6-dev make pkg-config procps
    check libcgroup-dev libfuse3-dev libslurm-dev libhdf5-dev libotf2-trace-dev
    hdf5-tools python3-h5py
    fuse3 iproute2 mariadb-server munge
    slurm-client slurm-wlm-basic-plugins slurm-wlm-hdf5-plugin
    slurm-wlm-mysql-plugin slurm-wlm-ipmi-plugins slurmctld slurmd slurmdbd
    openipmi libopenipmi-dev
    freeipmi-tools libfreeipmi-dev libipmimonitoring-dev"

# What tests/run --all needs besides (util-linux-extra: pivot_root, which sid has
# there).
# shellcheck disable=SC2034  # for tests/run
PACKAGES_ALL="
    valgrind clang libclang-rt-dev
    qemu-system-x86 busybox-static acpica-tools
    gnuplot-nox
    gfortran libomp-dev libopenmpi-dev libmpich-dev likwid libtrilinos-kokkos-dev
    otf2-tools python3-mpi4py eztrace lammps
    chromium chromium-driver python3-selenium fonts-dejavu-core
    build-essential debhelper lintian rpm rpmlint util-linux-extra"

# Keeps daemons from being started as their packages are installed; removed by
# whoever made it, see packages_policy_remove.
PACKAGES_POLICY=/usr/sbin/policy-rc.d
PACKAGES_POLICY_MADE=

# Print those of the list that are not installed.
packages_missing() {
    local package
    # shellcheck disable=SC2086  # a list
    for package in $PACKAGES; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2> /dev/null |
            grep -qx installed || echo "$package"
    done
}

# packages_install RUNNER PACKAGE... - install them without their daemons
# being started; RUNNER runs a command (so that it can be interrupted).  One at a
# time: what else may be installing (tests/release beside tests/run) has its own
# lists to fetch, for which apt-get does not wait, and its own file below.
packages_install() {
    local runner=$1 status
    shift
    exec 8< /var/lib/dpkg
    "$runner" flock 8
    if [ ! -e $PACKAGES_POLICY ]; then
        PACKAGES_POLICY_MADE=yes
        printf '#!/bin/sh\nexit 101\n' > $PACKAGES_POLICY &&
            chmod 755 $PACKAGES_POLICY
    fi
    # Another apt-get may be at work: wait for its lock.
    # shellcheck disable=SC2016  # sh's
    "$runner" env DEBIAN_FRONTEND=noninteractive sh -c '
        apt-get -q -q update &&
            exec apt-get -q -q -y -o DPkg::Lock::Timeout=300 install \
                --no-install-recommends "$@"' sh "$@" > /dev/null
    status=$?
    packages_policy_remove
    exec 8<&-
    return "$status"
}

# Also for the traps of who was interrupted within packages_install.
packages_policy_remove() {
    [ -z "$PACKAGES_POLICY_MADE" ] || rm -f $PACKAGES_POLICY
    PACKAGES_POLICY_MADE=
}
