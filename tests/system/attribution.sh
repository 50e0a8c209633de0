# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# attribution.sh - for the tests of what jobs on shared nodes are charged:
# source it after lib.sh.
#
# The nodes have SHARE_CPUS CPUs, a floor of SHARE_FLOOR watts, and SHARE_BUSY
# watts for each CPU that is busy, whoever keeps it so: the truth of a job is
# known from the CPU time of its cgroup (cluster jobtruth).  Nodes may have more
# CPUs than the machine: without task/affinity nobody minds.
SHARE_CPUS=8 SHARE_PACKAGES=1 SHARE_FLOOR=80 SHARE_BUSY=100
SHARE_TASK=task/none
LEDGERDUMP=$JOULE_BUILD/tests/system/ledgerdump

# share_up NAME LINES-OF-ACCT_GATHER.CONF [OPTION...]
share_up() {
    local name=$1 gather=$2
    shift 2
    up "$name" --cpus $SHARE_CPUS --cgroup --gather "$gather" \
        --conf "TaskPlugin=$SHARE_TASK" --sim "--no-dram \
        --packages $SHARE_PACKAGES --cpus $SHARE_CPUS --idle $SHARE_FLOOR --busy $SHARE_BUSY --jobs %c" "$@"
}

# cgroups_or_end NAME - without them a job cannot be told from another
cgroups_or_end() {
    [ -e /sys/fs/cgroup/cpuacct/cpuacct.usage_percpu ] || {
        skip "$1" "no cgroup v1 with cpuacct"
        finish
    }
}

# allocations CLUSTER NODE - "JOB CPU-LIST" of all jobs that have or had CPUs of
# the node, as far as the controller knows them still
allocations() {
    # "Nodes=node[1,3-4] CPU_IDs=0-3 Mem=0", a line for nodes that are alike
    cluster run --timeout 10 "$1" scontrol -d show job |
        awk -v node="${2#node}" '
            $1 ~ /^JobId=/ { job = substr($1, 7) }
            $1 ~ /^Nodes=node/ && $2 ~ /^CPU_IDs=/ {
                gsub(/Nodes=node|[][]/, "", $1)
                for (n = split($1, part, ","); n > 0; n--) {
                    if (split(part[n], ends, "-") == 1)
                        ends[2] = ends[1]
                    if (node + 0 >= ends[1] + 0 && node + 0 <= ends[2] + 0)
                        print job, substr($2, 9)
                } }'
}

# job_truth CLUSTER HOW NODE - lines of `cluster jobtruth`, of all jobs that were
# on the node
job_truth() {
    allocations "$1" "$3" |
        cluster jobtruth "$1" "$3" "$2" $SHARE_FLOOR $SHARE_CPUS
}

# of KEY - its value in lines KEY=VALUE KEY=VALUE ... on stdin, the first
of() {
    tr ' ' '\n' | sed -n "s/^$1=//p" | head -n 1
}

# joules UJ - in J, with three decimals
joules() {
    awk -v uj="$1" 'BEGIN {
        if (uj ~ /^-?[0-9]+$/) printf "%.3f\n", uj / 1e6; else print "unknown" }'
}

# ledger_of CLUSTER [NODE] - the node's ledger after a sample of this moment
ledger_of() {
    cluster run --timeout 20 "$1" "$LEDGERDUMP" --fresh "${2:-node1}"
}

# check_ledger NAME CLUSTER NODE [JOULES] - what is in the ledger adds up; it is
# what the wattmeter counted; and so are JOULES, all jobs of the node by sacct,
# together with the ledger's rest.
check_ledger() {
    local totals rest watt file=$SCRATCH/$2.$3.ledger
    ledger_of "$2" "$3" > "$file" 2>&1
    check "$1: the ledger adds up" grep -q ' identity=yes$' "$file"
    totals=$(sed -n 's/^totals //p' "$file")
    check "$1: no fault, no CPU time that is unknown or went back" \
        [ "$(of faults <<< "$totals") $(of unknown <<< "$totals")\
 $(of backwards <<< "$totals") $(of refused <<< "$totals")" = "0 0 0 0" ]
    watt=$(cluster energy "$2" "$(of begun_ns <<< "$totals")" \
        "$(of mono_ns <<< "$totals")" "$3")
    check "$1: the ledger is what the wattmeter counted" within \
        "$(joules "$(of charged_uj <<< "$totals")")" "$(joules "$watt")" 0.1
    [ $# -gt 3 ] || return 0
    rest=$(($(of unallocated_uj <<< "$totals") + $(of system_uj <<< "$totals")))
    note <<< "$1: jobs $4 J by sacct, unallocated\
 $(joules "$(of unallocated_uj <<< "$totals")") J, system\
 $(joules "$(of system_uj <<< "$totals")") J, wattmeter $(joules "$watt") J"
    check "$1: sacct's jobs and the ledger's rest are the wattmeter" within \
        "$(joules $(($4 * 1000000 + rest)))" "$(joules "$watt")" 0.1
}
