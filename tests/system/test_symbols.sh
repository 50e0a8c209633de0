#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default
#
# What the plugins use of Slurm, and what the installed Slurm has: each symbol
# is there, whether it is bound or looked up.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

PLUGINS=$JOULE_BUILD/plugins
FULL=$(find /usr/lib/*/slurm-wlm -name libslurmfull.so | head -n 1)

defined_in() { # FILE...
    nm -D --defined-only -A "$@" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u
}

# What a plugin cannot do without, but the C library's own.
strong_of() { # PLUGIN
    nm -D --undefined-only "$1" | awk '$1 == "U" && $2 !~ /@GLIBC/ {
        sub(/@.*/, "", $2); print $2 }' | sort -u
}

libraries_of() { # PLUGIN - by which it is loaded, and Slurm's
    ldd "$1" | sed -n 's/.* => \(\/[^ ]*\).*/\1/p'
    echo "$FULL"
}

all_there() { # PLUGIN
    local missing strong
    strong=$(strong_of "$1")
    grep -q '^slurm_' <<< "$strong" || { echo "it uses nothing of Slurm"; return 1; }
    # shellcheck disable=SC2046  # paths without blanks
    missing=$(comm -23 <(echo "$strong") <(defined_in $(libraries_of "$1")))
    [ -z "$missing" ] || { echo "not in this Slurm: $missing"; return 1; }
}

# Nothing of Slurm's own names but those of its public interfaces: slurm.h's
# and spank.h's.
only_public_names() { # PLUGIN
    local other
    other=$(strong_of "$1" | grep -vE \
        '^(slurm_|spank_(get_item|getenv|setenv|option_register|context)$)')
    # shellcheck disable=SC2046  # paths without blanks
    other=$(comm -12 <(echo "$other") <(defined_in "$FULL") |
        comm -23 - <(defined_in $(libraries_of "$1" | grep -v slurmfull)))
    [ -z "$other" ] || { echo "$other"; return 1; }
}

# Looked up at run time: cpu_freq_recv_info and the rest in libslurmfull, and
# one of two ways to know the daemon.
looked_up() {
    local name missing='' names
    names=$(defined_in "$FULL")
    for name in acct_gather_profile_timer cpu_freq_recv_info \
        slurm_conf_get_aliased_nodename acct_gather_profile_g_create_dataset \
        acct_gather_profile_g_add_sample_data acct_gather_profile_g_is_active \
        slurm_conf; do
        grep -qx "$name" <<< "$names" || missing+=" $name"
    done
    [ -z "$missing" ] || { echo "not in libslurmfull:$missing"; return 1; }
    for name in slurm_running_in_slurmstepd slurm_running_in_slurmd \
        slurm_running_in_slurmctld; do
        grep -qx "$name" <<< "$names" || grep -qx slurm_daemon <<< "$names" ||
            { echo "neither $name nor slurm_daemon"; return 1; }
    done
}

symbols() {
    local plugin
    for plugin in "$PLUGINS"/acct_gather_*_joule_*.so "$PLUGINS"/spank_joule.so; do
        check "${plugin##*/}: what it uses is in this Slurm" all_there "$plugin"
        check "${plugin##*/}: only public names of Slurm" \
            only_public_names "$plugin"
    done
    check "what is looked up at run time is in this Slurm" looked_up
}

if [ -z "$FULL" ]; then
    skip "symbols" "libslurmfull.so is not installed"
else
    symbols
fi
finish
