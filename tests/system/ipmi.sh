# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# ipmi.sh - clusters whose nodes are measured by their BMC; source it after
# lib.sh.

# The password is in a file that only root reads, as the manual asks for.
BMC_CREDENTIALS=$SCRATCH/bmc.credentials
(umask 077 && printf 'username admin\npassword secret\n' > "$BMC_CREDENTIALS")

# slurmd starts no reader that another user could have put there: the directory of a
# checkout may be somebody else's, or the group's to write.
BMC_READER=$SCRATCH/joule-ipmi-reader
[ ! -x "$JOULE_BUILD/joule-ipmi-reader" ] ||
    install -m 755 "$JOULE_BUILD/joule-ipmi-reader" "$BMC_READER"

# ipmi_sim wants the workaround: it repeats the privilege that it was asked for.
BMC_CONF="EnergyIPMIDriverType=LAN_2_0
JouleIPMIHost=bmc-%n
JouleIPMICredentialsFile=$BMC_CREDENTIALS
EnergyIPMIWorkaroundFlags=opensesspriv
JouleIPMIReader=$BMC_READER"

# up_bmc NAME BMC-OPTIONS 'ACCT-GATHER-LINES' [CLUSTER-OPTION...]
up_bmc() {
    local name=$1 bmc=$2 lines=$3
    shift 3
    up "$name" --energy acct_gather_energy/joule_ipmi --bmc "$bmc" \
        --gather "$BMC_CONF${lines:+
$lines}" "$@" || return 1
    wait_for 60 is_measured "$name" node1 || not_measured "$name" node1
}

node_field() { # CLUSTER NODE FIELD
    cluster run --timeout 10 "$1" scontrol show node "$2" |
        sed -n "s/.*\b$3=\([^ ]*\).*/\1/p"
}

# Whether the power of a node is known.
is_measured() {
    [[ $(node_field "$1" "$2" CurrentWatts) =~ ^[1-9][0-9]*$ ]]
}

# not_measured CLUSTER NODE - says so, and what its slurmd says; fails
not_measured() {
    note <<< "$2 of '$1' is not measured:"
    cluster log "$1" "$2" | grep joule_ | tail -n 5 | note
    return 1
}

# The lines of slurmd about the BMC.
bmc_log() { # CLUSTER [NODE]
    cluster log "$1" "${2:-node1}" | grep joule_ipmi
}

# has_watched CLUSTER PART LAG NODE... - with joule_fused: as if their slurmd had
# watched jobs for a quarter of an hour, of which RAPL sees PART and the BMC shows
# all with a lag of LAG seconds; SENSORS are those of the cluster
has_watched() {
    local name=$1 part=$2 lag=$3 node
    shift 3
    for node; do
        cluster slurmd "$name" "$node" stop || return 1
        cluster at "$name" "$node" \
            "$JOULE_BUILD/tests/system/fusedledger" "$node" "$part" "$lag" \
            "${SENSORS:-Node=3}" | note
        cluster slurmd "$name" "$node" start || return 1
        wait_for 60 is_measured "$name" "$node" || { not_measured "$name" "$node"; return 1; }
    done
}
