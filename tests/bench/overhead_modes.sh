# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# overhead_modes.sh - the ways of monitoring that bench_overhead.sh and
# bench_instructions.sh measure, and a cluster for each; sourced after lib.sh.  NAME
# is the cluster's, HERE this directory.
#
# shellcheck disable=SC2154  # NAME and HERE are the benchmark's
# shellcheck source-path=SCRIPTDIR source=../system/ipmi.sh
. "$LIB/ipmi.sh"
# shellcheck source-path=SCRIPTDIR source=rows.sh
. "$HERE/rows.sh"
command -v h5dump > /dev/null || fail "there is no h5dump (hdf5-tools)"
# shellcheck source-path=SCRIPTDIR source=../system/profile.sh
. "$LIB/profile.sh"
# shellcheck disable=SC2034  # the benchmark's tasks
RANKS=$JOULE_BUILD/tests/bench/ranks
# Makes plain files of counters.
COUNTERS=$JOULE_BUILD/tests/bench/counters
SHIM=$JOULE_BUILD/tests/bench/shim_bmc.so
WATTS=200

# Controls, which the modes are compared with: no accounting, and (not of the paper) what
# Slurm's gathering costs without energy.  Mode, energy plugin, JobAcctGatherFrequency,
# profile, its Hz.
CONTROLS="
NO_JOBACCT none task=0 - -
JOBACCT none task=1 - -"

# The same of the modes; who takes part.  FILES: the counters are plain files; a
# processor's take longer, those of FUSE more so.
TABLE="
JOBACCT_0_RAPL rapl task=0 - - ours,slurm
JOBACCT_RAPL rapl task=1 - - ours,slurm
JOBACCT_RAPL_PROFILE rapl task=1,energy=1 energy,task 1 ours,slurm
JOBACCT_RAPL_PROFILE_10HZ rapl task=1,energy=1 energy,task 10 ours
JOBACCT_RAPL_PROFILE_100HZ rapl task=1,energy=1 energy,task 100 ours
JOBACCT_RAPL_PROFILE_FILES rapl task=1,energy=1 energy,task 1 ours,slurm
JOBACCT_RAPL_PROFILE_10HZ_FILES rapl task=1,energy=1 energy,task 10 ours
JOBACCT_RAPL_PROFILE_100HZ_FILES rapl task=1,energy=1 energy,task 100 ours
JOBACCT_0_IPMI ipmi task=0 - - ours,slurm
JOBACCT_IPMI ipmi task=1 - - ours,slurm
JOBACCT_IPMI_PROFILE ipmi task=1,energy=1 energy,task 1 ours,slurm"

# each_control COMMAND... - with each control: MODE ENERGY FREQUENCY PROFILE HZ WHOSE
each_control() {
    local mode rest
    while read -r mode rest; do
        # shellcheck disable=SC2086  # words
        [ -z "$mode" ] || "$@" "$mode" $rest none < /dev/null
    done <<< "$CONTROLS"
}

# each_mode COMMAND... - the same with each mode that is wanted, once for each who
# takes part
each_mode() {
    local mode rest energy frequency profile hz who whose
    while read -r mode rest; do
        read -r energy frequency profile hz who <<< "$rest"
        if [ -z "$mode" ] || ! wanted "$mode"; then continue; fi
        for whose in ${who//,/ }; do
            "$@" "$mode" "$energy" "$frequency" "$profile" "$hz" "$whose" < /dev/null
        done
    done <<< "$TABLE"
}

wanted() { # MODE
    [ -z "${BENCH_MODES:-}" ] || [[ " $BENCH_MODES " == *" $1 "* ]]
}

# plan - in which order bench_overhead.sh measures the modes, a line for each thing to do:
#
#     up KEY MODE ENERGY FREQUENCY PROFILE HZ WHOSE   a cluster
#     settle                                          before its first step
#     step KEY MODE ENERGY FREQUENCY PROFILE HZ WHOSE
#     down KEY
#
# The clusters of a mode, ours and Slurm's and those of ours at other rates, are up
# together and run a step each in turn, there and back: on a machine that becomes slower
# meanwhile all have the same part of it.  Before and after them come the controls, whose
# clusters are up all the time; and at half-time, where there are many.
plan() {
    local line mode last='' group=() controls=()
    mapfile -t controls < <(each_control echo)
    plan_lines up 0 "${controls[@]}"
    echo settle
    plan_lines step 0 "${controls[@]}"
    while read -r line; do
        mode=${line%% *}
        mode=${mode/_100HZ/}
        mode=${mode/_10HZ/}
        if [ "$mode" != "$last" ]; then
            plan_group "${group[@]}"
            group=()
            last=$mode
        fi
        group+=("$line")
    done < <(each_mode echo)
    plan_group "${group[@]}"
}

# plan_lines WHAT KEY LINE...
plan_lines() {
    local what=$1 key=$2 line
    for line in "${@:3}"; do
        echo "$what $key $line"
        key=$((key + 1))
    done
}

# plan_group [LINE...] - of clusters that are up together; the controls are those of plan
plan_group() {
    local first=${#controls[@]}
    [ $# != 0 ] || return 0
    plan_lines up "$first" "$@"
    echo settle
    plan_lines step "$first" "$@"
    [ $# -le 2 ] || plan_lines step 0 "${controls[@]}"
    plan_lines step "$first" "$@" | tac
    plan_lines step 0 "${controls[@]}"
    plan_lines down "$first" "$@" | cut -d ' ' -f 1,2
}

# gather_lines ENERGY WHOSE HZ - for acct_gather.conf
gather_lines() {
    case $2-$1 in
    # The rule that is the default outside of tests.
    ours-*) echo "JouleAttribution=cputime" ;;&
    ours-ipmi) printf '%s\n' "$BMC_CONF" ;;&
    slurm-ipmi) cat <<END_OF_LINES ;;&
EnergyIPMIUsername=admin
EnergyIPMIPassword=secret
EnergyIPMIProtocolVersion=1
EnergyIPMICipherSuiteId=3
EnergyIPMIWorkaroundFlags=16
END_OF_LINES
    *-ipmi) printf '%s\n' EnergyIPMIFrequency=1 EnergyIPMIPowerSensors=Node=3 ;;
    esac
    case $3 in
    10) echo "JouleProfilePeriod=100ms" ;;
    100) echo "JouleProfilePeriod=10ms" ;;
    esac
}

# Plain files in place of the simulator's devices, for the next slurmd.
counters_as_files() {
    local dir
    dir=$(cluster dir "$NAME")
    mkdir "$dir/cpu" || fail "no directory"
    cluster run --timeout 0 "$NAME" "$COUNTERS" "$dir/sim/node1/dev/cpu" "$dir/cpu" \
        > "$SCRATCH/counters.$NAME" 2>&1 &
    wait_for 10 test -e "$dir/cpu/ready" || fail "$(cat "$SCRATCH/counters.$NAME")"
    cluster run "$NAME" mount -n --bind "$dir/cpu" "$dir/sim/node1/dev/cpu" ||
        fail "the files cannot be mounted"
}

# start MODE ENERGY FREQUENCY PROFILE HZ WHOSE [OPTION...] - a cluster of one node
start() {
    local energy=$2 profile=$4 hz=$5 whose=$6 ours='' options=("${@:7}")
    local conf="SlurmdDebug=info
SlurmdTimeout=0
AcctGatherNodeFreq=0
JobAcctGatherFrequency=$3"
    [ "$whose" != ours ] || ours=joule_
    [ "$1" != NO_JOBACCT ] || conf+="
JobAcctGatherType=jobacct_gather/none"
    [ "$energy" = none ] || energy=acct_gather_energy/$ours$energy
    [ "$profile" = - ] || options+=("--profile=acct_gather_profile/${ours}hdf5")
    [[ $energy != *ipmi ]] || options+=(--bmc '')
    up "$NAME" --cgroup --energy "$energy" --sim "--load const:$WATTS --log-ms 100" \
        --conf "$conf" --gather "$(gather_lines "$2" "$whose" "$hz")" \
        "${options[@]}" >&2 || fail "no cluster"
    # There is not enough of it for clusters that do not ask the simulator.
    if [ "$2" != none ]; then
        real_time "$NAME" || warn "the node has no share of real time"
        # The simulator stands for hardware, which does not wait for a CPU.
        chrt -a -f -p 2 \
            "$(process_of "$(cluster dir "$NAME")" 'nodesim .*/sim/node1$')" ||
            warn "the simulator cannot be hurried"
    fi
    if [[ $1 = *_FILES ]]; then
        cluster slurmd "$NAME" node1 stop || fail "slurmd does not end"
        counters_as_files
        cluster slurmd "$NAME" node1 start || fail "slurmd does not start"
    elif [ "$whose-$2" = slurm-ipmi ]; then
        # Under callgrind it did not end within 30 s once (slurm-wlm 22.05.8, no BMC);
        # nothing was measured of it yet.
        cluster slurmd "$NAME" node1 stop || cluster slurmd "$NAME" node1 kill ||
            fail "slurmd does not end"
        LD_PRELOAD=$SHIM JOULE_SHIM_BMC=bmc-node1 JOULE_SHIM_CACHE=$SCRATCH \
            cluster slurmd "$NAME" node1 start || fail "slurmd does not start"
    fi
}

# rows_of JOB - of the profile of its step 0
rows_of() {
    rows "$(profile_dir "$NAME")/${1}_0_node1.h5" /node1/Energy | wc -l
}

warn() {
    echo "${0##*/}: $*" >&2
}
