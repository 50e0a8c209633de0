#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# joule probe reads slurm.conf, acct_gather.conf and included files as Slurm does:
# it finds an error in each variant with which Slurm's own parser ends a program, and
# none in the others.  Slurm's sh5util reads all these files and needs no cluster;
# slurmd must end with each text that it refuses.
#
# run: all
#
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

CONF=$SCRATCH/etc
SLURM_PLUGINS=$(dirname "$(find /usr/lib -name acct_gather_profile_hdf5.so | head -n 1)")
JOULE=$JOULE_BUILD/tools/joule/joule
mkdir -p "$CONF" "$SCRATCH/spool" "$SCRATCH/profiles"

# slurmd of 24.11 makes a credential before it reads acct_gather.conf: without munge,
# with a key of its own.
AUTH=auth/munge
if [ -e "$SLURM_PLUGINS/auth_slurm.so" ]; then
    AUTH=auth/slurm
    (umask 077 && head -c 1024 /dev/urandom > "$CONF/slurm.key")
fi

cat > "$CONF/slurm.good" << END
ClusterName=parse
SlurmctldHost=localhost
AuthType=$AUTH
CredType=${AUTH/auth\//cred/}
SlurmUser=root
PluginDir=$JOULE_BUILD/plugins:$SLURM_PLUGINS
SlurmdSpoolDir=$SCRATCH/spool
StateSaveLocation=$SCRATCH/spool
SlurmdPidFile=$SCRATCH/slurmd.pid
ProctrackType=proctrack/linuxproc
JobAcctGatherType=jobacct_gather/linux
AcctGatherEnergyType=acct_gather_energy/joule_rapl
AcctGatherProfileType=acct_gather_profile/joule_hdf5
NodeName=node1 NodeAddr=127.0.0.1 CPUs=1
PartitionName=test Nodes=ALL
END
cat > "$CONF/gather.good" << END
ProfileHDF5Dir=$SCRATCH/profiles
END
printf 'JouleIdleWatts=7\n' > "$CONF/other.conf"
printf 'MinJobAge=300\n' > "$CONF/slurm-other.conf"
printf 'hello\n' > "$CONF/bad.conf"
export SLURM_CONF=$CONF/slurm.conf

# What Slurm says to the files as they are now, if they end it.
slurm_refuses() {
    timeout 20 sh5util -j 999 2>&1 | grep -a fatal
}

slurmd_refuses() {
    timeout 20 slurmd -D -N node1 -f "$SLURM_CONF" 2>&1 | grep -a fatal
}

# The places of errors that joule probe finds in the text of the files.
probe_refuses() {
    "$JOULE" probe --json --conf "$SLURM_CONF" | python3 -c '
import json, sys
errors = [f for f in json.load(sys.stdin)["findings"] if f["level"] == "error" and
          f["id"] in ("stray-text", "unknown-option", "include", "acct-gather-conf")]
for f in errors:
    print(f["file"], f["line"], f["text"])
sys.exit(not errors)'
}

# compare NAME - the files as they are now
compare() {
    local slurm ours
    slurm=$(slurm_refuses)
    if ours=$(probe_refuses); then
        if [ -z "$slurm" ]; then
            not_ok "$1: Slurm takes it" "$ours"
        else
            check "$1: refused by both, and by slurmd" slurmd_refuses
        fi
    elif [ -n "$slurm" ]; then
        not_ok "$1: Slurm refuses it" "$slurm"
    else
        ok "$1: taken by both"
    fi
}

# gather TEXT... - each is an acct_gather.conf, in the words of printf
gather() {
    local text
    cp "$CONF/slurm.good" "$CONF/slurm.conf"
    for text; do
        # shellcheck disable=SC2059  # a format
        { printf "$text"; cat "$CONF/gather.good"; } > "$CONF/acct_gather.conf"
        compare "acct_gather.conf: ${text:0:60}"
    done
}

# at_end TEXT... - the same, at the end of a file without a last newline
at_end() {
    local text
    for text; do
        # shellcheck disable=SC2059
        { cat "$CONF/gather.good"; printf "$text"; } > "$CONF/acct_gather.conf"
        compare "acct_gather.conf ends with $text"
    done
}

slurm() {
    local text
    cp "$CONF/gather.good" "$CONF/acct_gather.conf"
    for text; do
        # shellcheck disable=SC2059
        { cat "$CONF/slurm.good"; printf "$text"; } > "$CONF/slurm.conf"
        compare "slurm.conf: ${text:0:60}"
    done
}

# Not here: Include without a name.  Slurm takes it or refuses it, the same release
# one time this and one time that; ours refuses it.
KEY=JouleSamplePeriod
gather '' '# nothing\n' "$KEY=1s\n" "joulesampleperiod=1s\n" "\t$KEY\t=\t1s\t\n" \
    "$KEY = 1s\n" "$KEY=1s\r\nJouleIdleWatts=5\r\n" "\f\n$KEY=1s\v\n" \
    "$KEY 1s\n" "$KEY: 1s\n" "$KEY\n" "$KEY=\n" "$KEY= \r\n" "$KEY=\"\"\n" \
    "$KEY= JouleIdleWatts=5\n" "=1s\n" "=\n" "$KEY==1s\n" \
    "$KEY=1s JouleIdleWatts=5\n" "JouleIdleWatts=5 $KEY=1s\n" "$KEY=1s JouleNoSuch=5\n" \
    "$KEY=1 s\n" 'JouleIdleWatts=5 W\n' 'JouleIdleWatts=5W\n' 'JouleIdleWatts=5;\n' \
    "\\357\\273\\277$KEY=1s\n" '\357\273\277# comment\n' '\377\376J\000o\000\n\000' \
    'hello\n' "$KEY=1s hello\n" "hello $KEY=1s\n" "export $KEY=1s\n" '[energy]\n' \
    '; comment\n' '// comment\n' "Joule-SamplePeriod=1s\n" "gr\\374n=1\n" \
    "$KEY=1s # gr\\374n\n" "$KEY=1s\\302\\240\n" \
    "$KEY+=1s\n" "$KEY -= 1s\n" "$KEY + = 1s\n" "$KEY?=1s\n" \
    "$KEY=\"1s\"\n" "$KEY=\"1s\"x\n" "$KEY=\"1s\n" "$KEY=\"1 s\n" "$KEY='1 s'\n" \
    "$KEY='1s'\n" "$KEY=1s#comment\n" "$KEY=\"1s #x\"\n" "$KEY=1\\\\\\\\s\n" \
    "$KEY=1s \\\\\n JouleIdleWatts=5\n" "JouleSample\\\\\nPeriod=1s\n" \
    "$KEY=1s # x \\\\\nJouleIdleWatts=5\n" "$KEY=1s\n$KEY=2s\n" "JouleNoSuch=1\n" \
    'Include other.conf\n' 'include other.conf\n' 'Include   other.conf  \n' \
    'Include other.conf x\n' 'Include=other.conf\n' '  Include other.conf\n' \
    'Include bad.conf\n'
at_end "$KEY=1s" "$KEY=1s \\\\\n" "$KEY=1s \\\\" "$KEY" "$KEY="
slurm 'MaxJobCount=1000\n' 'MaxJobCount=1000 MinJobAge=300\n' 'MaxJobCount 1000\n' \
    'MaxJobCount: 1000\n' 'MaxJobCount=\n' 'hello\n' 'MinJobAge=300 s\n' \
    '\357\273\277# x\n' 'NodeName=n9 CPUs=2 hello\n' 'NodeName=n9 CPUs=2 Feature=\n' \
    'NodeName=n9 Feature= CPUs=2\n' 'nodename=n9 \\\\\n CPUs=2\n' \
    'PartitionName=p9 Nodes=node1 x\n' 'DownNodes=node1 State=DOWN Reason="a b"\n' \
    'DownNodes=node1 State=DOWN Reason="a b" x\n' 'NodeSet=ns Nodes=node1 y\n' \
    'MinJobAge=300\nMinJobAge=301\n' 'Include slurm-other.conf\n' 'Include bad.conf\n'
finish
