#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default
#
# The options of joule_ipmi in a real Slurm: what is wrong is one sentence in
# slurmd's log, the node stays up and its energy is unknown; a password is in
# no log, in no output and in nothing of the reader process that others see.
#
# shellcheck disable=SC2016  # expanded by other shells
. "$(dirname "$(readlink -f "$0")")/lib.sh"

READER=$JOULE_BUILD/joule-ipmi-reader
if [ ! -x "$READER" ] || ! command -v ipmi_sim > /dev/null; then
    skip "options of joule_ipmi" "needs FreeIPMI and OpenIPMI's ipmi_sim"
    finish
fi

# Directories on the way to it must be root's, as /var/tmp is.
KEEP=$(mktemp -d /var/tmp/joule-keep.XXXXXX) && chmod 755 "$KEEP"
trap 'lib_cleanup; rm -rf "$KEEP"' EXIT
CREDENTIALS=$KEEP/bmc
printf 'username mon\npassword monpw\n' > "$CREDENTIALS"
chmod 600 "$CREDENTIALS"
cp "$READER" "$KEEP/reader"

NETWORK="JouleIPMIHost=bmc-%n
EnergyIPMIWorkaroundFlags=opensesspriv
EnergyIPMIPowerSensors=Node=Node
JouleIPMIReader=$KEEP/reader"

# restart LINES... - slurmd with these lines and a new log
restart() {
    local dir
    dir=$(cluster dir ipmi)
    printf '%s\n' "$@" > "$dir/etc/acct_gather.conf"
    cluster slurmd ipmi node1 stop
    : > "$LOG"
    cluster slurmd ipmi node1 start
}

said() {
    grep -qE "$1" "$LOG"
}

watts() {
    [ "$(cluster run ipmi scontrol show node node1 |
        sed -n 's/.*CurrentWatts=\([^ ]*\).*/\1/p')" = "$1" ]
}

# wrong NAME SENTENCE LINES... - the sentence, no energy, and jobs all the same
wrong() {
    local name=$1 sentence=$2
    shift 2
    check "$name: slurmd goes on" restart "$NETWORK" "$@"
    check "$name: said" wait_for 60 said "joule_ipmi: .*$sentence"
    check "$name: once" test "$(grep -cE "$sentence" "$LOG")" -eq 1
    sleep 2 # the controller asks once a second
    check "$name: power is unknown" watts "$UNKNOWN_WATTS"
    check "$name: jobs run" cluster user ipmi srun true
}

up ipmi --energy acct_gather_energy/joule_ipmi --sim '--load const:120' \
    --bmc '' --conf 'AcctGatherNodeFreq=1' --gather "$NETWORK
JouleIPMICredentialsFile=$CREDENTIALS" || exit 1
LOG=$(cluster dir ipmi)/log/slurmd-node1.log
check "power is measured" wait_for 60 watts 120
check "what is read is said" wait_for 60 said \
    'joule_ipmi: reads sensor Node \(record [0-9]+, 0-510 W in steps of 2 W\)'

# Of the user of the package, or else of nobody, as in the namespace's own passwd.
READER_UID=$(cluster run ipmi awk -F: '$1 == "slurm-joule" { uid = $3 }
    END { print uid ? uid : 65534 }' /etc/passwd)
has_no_rights() {
    local line
    cluster run ipmi sh -c 'cat "/proc/$(pgrep -x reader)/status"' \
        > "$SCRATCH/status" || return 1
    for line in "Uid:($READER_UID){4}" 'Cap(Inh|Prm|Eff|Bnd|Amb):0{16}' \
        NoNewPrivs:1 Seccomp:2; do
        grep -qE "^$line\$" <(tr -d '[:blank:]' < "$SCRATCH/status") ||
            { grep -E '^(Uid|Cap|NoNew|Seccomp)' "$SCRATCH/status"; return 1; }
    done
}
check "the reader has no rights and a filter of system calls" has_no_rights
check "and the file is no longer open there" eval 'cluster run ipmi sh -c \
    "ls -l /proc/\$(pgrep -x reader)/fd" > "$SCRATCH/fds" &&
    grep -q socket: "$SCRATCH/fds" && ! grep "$CREDENTIALS" "$SCRATCH/fds"'

# A password in acct_gather.conf works, is warned of, and shown nowhere.
check "password in acct_gather.conf: slurmd starts" restart "$NETWORK" \
    EnergyIPMIUsername=admin EnergyIPMIPassword=secret
check "password in acct_gather.conf: said, with file and line" \
    wait_for 60 said 'error: .*acct_gather.conf:6: EnergyIPMIPassword .*JouleIPMICredentialsFile'
check "password in acct_gather.conf: power is measured" wait_for 60 watts 120
check_not "password in acct_gather.conf: not in the log" \
    grep -qE 'secret|admin' "$LOG"
restart "$NETWORK" EnergyIPMIUsername=admin \
    EnergyIPMIPassword=secret-secret-secret-secret
check "password too long: said" wait_for 60 said 'EnergyIPMIPassword=\*\*\* is not'
check_not "no log has a password" grep -rqE 'secret|monpw' "$(cluster dir ipmi)/log"
restart "$NETWORK" EnergyIPMIUsername=admin EnergyIPMIPassword=secret
cluster run ipmi scontrol reconfigure
cluster run ipmi scontrol show config > "$SCRATCH/config"
check "scontrol show config has it" grep -q '^JouleIPMIHost *= bmc-%n' \
    "$SCRATCH/config"
check_not "scontrol show config shows no secret" \
    grep -E '= *(secret|admin)$' "$SCRATCH/config"

check "keys without a meaning: slurmd starts" restart "$NETWORK" \
    "JouleIPMICredentialsFile=$CREDENTIALS" EnergyIPMIRereadSdrCache=yes \
    EnergyIPMIBridgeSensors=yes
check "keys without a meaning: said" wait_for 60 said \
    'EnergyIPMIRereadSdrCache has no meaning here: '
check "keys without a meaning: once" test \
    "$(grep -c 'EnergyIPMIBridgeSensors has no meaning here: ' "$LOG")" -eq 1

# The older LAN: other packets, other authentication, no work-around needed.
check "LAN 1.5: slurmd starts" restart \
    "${NETWORK/EnergyIPMIWorkaroundFlags=opensesspriv/EnergyIPMIDriverType=LAN}" \
    "JouleIPMICredentialsFile=$CREDENTIALS"
check "LAN 1.5: said" wait_for 60 said 'reads sensor .*bmc-node1, LAN$'
check "LAN 1.5: power is measured" wait_for 60 watts 120

wrong "no credentials file" 'JouleIPMICredentialsFile: cannot open .*No such' \
    JouleIPMICredentialsFile="$KEEP/none"
chmod 644 "$CREDENTIALS"
wrong "readable credentials" 'may be read by others' \
    JouleIPMICredentialsFile="$CREDENTIALS"
chmod 600 "$CREDENTIALS"
printf 'username mon\nmonpw\n' > "$CREDENTIALS"
wrong "a line of no meaning" "JouleIPMICredentialsFile: $CREDENTIALS: line 2: " \
    JouleIPMICredentialsFile="$CREDENTIALS"
printf 'username mon\npassword monpw\n' > "$CREDENTIALS"
wrong "LAN and KCS" 'JouleIPMIHost is set, but EnergyIPMIDriverType' \
    JouleIPMICredentialsFile="$CREDENTIALS" EnergyIPMIDriverType=KCS
NETWORK_RIGHT=$NETWORK NETWORK=${NETWORK/Node=Node/Nod=1}
wrong "sensors without a node" \
    'EnergyIPMIPowerSensors: there is no label "Node"' \
    JouleIPMICredentialsFile="$CREDENTIALS"
NETWORK=$NETWORK_RIGHT
chmod 777 "$KEEP/reader"
wrong "a reader that others may write" 'JouleIPMIReader: .* may be written' \
    JouleIPMICredentialsFile="$CREDENTIALS"
chmod 755 "$KEEP/reader"
printf 'username mon\npassword wrong-one\n' > "$CREDENTIALS"
wrong "wrong password" 'password' JouleIPMICredentialsFile="$CREDENTIALS"
check_not "and it is not in the log" grep -q 'wrong-one' "$LOG"
finish
