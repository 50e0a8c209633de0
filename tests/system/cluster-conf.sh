# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# cluster-conf.sh - write a test cluster's configuration files.
#
# Sourced by `cluster`.  Reads WORK (the cluster's directory) and the OPT_*
# variables that `cluster up` parsed; writes into $WORK/etc only.
#
# shellcheck disable=SC2154  # OPT_*: the reason above

# The account that stands for an ordinary user: neither root nor nobody.
readonly TEST_USER=alice TEST_UID=5001

# The stock plugins' directory, wherever this Debian architecture has it.
slurm_plugin_dir() {
    local dir
    for dir in /usr/lib/*/slurm-wlm; do
        [ -d "$dir" ] && { echo "$dir"; return 0; }
    done
    return 1
}

# Print stdin without the lines whose key is also set in $1, so that --conf
# replaces a default instead of making Slurm complain of a second value.
without_keys_of() {
    EXTRA=$1 awk -F= '
        BEGIN {
            n = split(ENVIRON["EXTRA"], line, "\n")
            for (i = 1; i <= n; i++) {
                key = tolower(line[i]); sub(/[ \t]*=.*/, "", key)
                sub(/^[ \t]*/, "", key); if (key != "") mine[key] = 1
            }
        }
        { key = tolower($1); sub(/[ \t]*$/, "", key) }
        !(key in mine)'
}

write_slurm_conf() {
    local plugins cpus
    plugins=$(slurm_plugin_dir) || die "Slurm's plugins are not installed"
    [ -n "$OPT_plugindir" ] && plugins=$OPT_plugindir:$plugins
    # Two CPUs whatever the machine has: tests count on it.
    cpus=$(nproc --all); [ "$cpus" -gt 2 ] && cpus=2
    cpus=${OPT_cpus:-$cpus}

    {
        without_keys_of "$OPT_conf" <<END
ClusterName=joule
SlurmctldHost=node0(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$WORK/run/munge.sock
SlurmUser=root
PluginDir=$plugins
StateSaveLocation=$WORK/state
SlurmdSpoolDir=$WORK/spool/%n
SlurmctldPidFile=$WORK/run/slurmctld.pid
SlurmdPidFile=$WORK/run/slurmd-%n.pid
SlurmctldLogFile=$WORK/log/slurmctld.log
SlurmdLogFile=$WORK/log/slurmd-%n.log
SlurmctldDebug=verbose
SlurmdDebug=debug
LogTimeFormat=iso8601_ms
PlugStackConfig=$WORK/etc/plugstack.conf
MpiDefault=none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePass=$WORK/run/munge.sock
JobAcctGatherFrequency=task=1,energy=1
AcctGatherNodeFreq=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/basic
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1
ReturnToService=2
CompleteWait=0
KillWait=2
MessageTimeout=10
SlurmdTimeout=60
SlurmdParameters=config_overrides
END
        if [ "$OPT_cgroup" != no ]; then
            without_keys_of "$OPT_conf" <<END
ProctrackType=proctrack/cgroup
TaskPlugin=task/affinity,task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
END
        else
            without_keys_of "$OPT_conf" <<END
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/linux
END
        fi
        {
            [ "$OPT_energy" = none ] || echo "AcctGatherEnergyType=$OPT_energy"
            [ -z "$OPT_profile" ] || echo "AcctGatherProfileType=$OPT_profile"
            [ -z "$OPT_contain" ] || echo "PrologFlags=Contain"
        } | without_keys_of "$OPT_conf"
        [ -z "$OPT_conf" ] || printf '%s\n' "$OPT_conf"
        # One port a node: they are all on 127.0.0.1.
        echo "NodeName=node[1-$OPT_nodes] NodeHostname=node0 NodeAddr=127.0.0.1" \
            "Port=[7001-$((7000 + OPT_nodes))] CPUs=$cpus Sockets=1" \
            "CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=1000"
        echo "PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE" \
            "OverSubscribe=YES State=UP"
    } > "$WORK/etc/slurm.conf"

    {
        [ -z "$OPT_profile" ] || echo "ProfileHDF5Dir=$WORK/profile"
        # Most tests measure the node itself, with loads that are nobody's.
        case $OPT_energy in
        */joule_*) echo "JouleAttribution=node" | without_keys_of "$OPT_gather" ;;
        esac
        # Started as root: from a directory that is nobody else's.
        case $OPT_profile in
        */joule_hdf5)
            install -m 755 "$OPT_build/joule-profile-convert" "$WORK/" &&
                echo "JouleProfileConverter=$WORK/joule-profile-convert" |
                without_keys_of "$OPT_gather" ;;
        esac
        [ -z "$OPT_gather" ] || printf '%s\n' "$OPT_gather"
    } > "$WORK/etc/acct_gather.conf"

    # 22.05 loads a cgroup plugin even when nothing uses it; naming v1 keeps it
    # from looking for systemd's hierarchy, which is not in the namespace.
    {
        case $OPT_cgroup in
        v2) echo "CgroupPlugin=cgroup/v2
IgnoreSystemd=yes" ;;
        *) echo "CgroupPlugin=cgroup/v1" ;;
        esac
        [ "$OPT_cgroup" != no ] && echo "ConstrainCores=yes
ConstrainRAMSpace=yes"
        true
    } > "$WORK/etc/cgroup.conf"
    : > "$WORK/etc/plugstack.conf"
}

write_slurmdbd_conf() {
    # slurmdbd refuses a file that others may read.
    (umask 077; cat > "$WORK/etc/slurmdbd.conf") <<END
AuthType=auth/munge
AuthInfo=socket=$WORK/run/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct
PidFile=$WORK/run/slurmdbd.pid
LogFile=$WORK/log/slurmdbd.log
DebugLevel=verbose
END
}

# Private copies of the files through which names are resolved.
write_names() {
    local i
    {
        echo "127.0.0.1 localhost node0 node1 node2 node3 node4"
        for ((i = 1; i <= 4; i++)); do
            echo "127.0.1.$i bmc-node$i"
        done
    } > "$WORK/etc/hosts"
    { grep -v "^$TEST_USER:" /etc/passwd
      echo "$TEST_USER:x:$TEST_UID:$TEST_UID::$WORK/home/$TEST_USER:/bin/bash"
    } > "$WORK/etc/passwd"
    { grep -v "^$TEST_USER:" /etc/group
      echo "$TEST_USER:x:$TEST_UID:"
    } > "$WORK/etc/group"
}

write_configuration() {
    write_slurm_conf
    write_slurmdbd_conf
    write_names
    (umask 077; head -c 1024 /dev/urandom > "$WORK/etc/munge.key")
}
