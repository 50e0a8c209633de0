# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# attribution.sh - for the tests of what jobs on shared nodes are charged:
# source it after lib.sh.  (job_truth needs no more than cluster: tools/demo has it.)
#
# The nodes have SHARE_CPUS CPUs, a floor of SHARE_FLOOR watts, and SHARE_BUSY
# watts for each CPU that is busy, whoever keeps it so: the truth of a job is
# known from the CPU time of its cgroup (cluster jobtruth).  Nodes may have more
# CPUs than the machine: without task/affinity nobody minds.
SHARE_CPUS=8 SHARE_PACKAGES=1 SHARE_FLOOR=80 SHARE_BUSY=100
SHARE_TASK=task/none
SHARE_SIM='' # more of its options
LEDGERDUMP=$JOULE_BUILD/tests/system/ledgerdump

# share_up NAME LINES-OF-ACCT_GATHER.CONF [OPTION...]
share_up() {
    local name=$1 gather=$2
    shift 2
    up "$name" --cpus $SHARE_CPUS --cgroup --gather "$gather" \
        --conf "TaskPlugin=$SHARE_TASK" --sim "--no-dram \
        --packages $SHARE_PACKAGES --cpus $SHARE_CPUS --idle $SHARE_FLOOR \
        --busy $SHARE_BUSY --jobs %c${SHARE_SIM:+ $SHARE_SIM}" "$@"
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

JOBS=() # of the last call of run_jobs

# submit CLUSTER CPUS INTENSITY LOAD [OPTION...] - a job that is held; prints its
# number.  LOAD is an option of stamp with its value; when it ran is written in
# $SCRATCH/CLUSTER.JOB.times.
submit() {
    local name=$1 cpus=$2 intensity=$3 load=$4 job
    shift 4
    job=$(cluster user "$name" sbatch --hold --parsable -c "$cpus" \
        -o /dev/null "$@" --wrap \
        "exec $STAMP $load $SCRATCH/$name.\$SLURM_JOB_ID.times") || return 1
    cluster sim "$name" node1 "intensity $job $intensity" > /dev/null
    echo "$job"
}

# run_jobs CLUSTER "START CPUS INTENSITY LOAD-OPTION LOAD [OPTION]"... - in the
# order of their starts (seconds), until the last one is accounted for; 1 if one
# cannot be submitted or does not end
run_jobs() {
    local name=$1 spec start cpus intensity option load more at=0 i=0
    shift
    JOBS=()
    for spec; do
        read -r start cpus intensity option load more <<< "$spec"
        # shellcheck disable=SC2086
        JOBS+=("$(submit "$name" "$cpus" "$intensity" "$option $load" $more)") ||
            return 1
    done
    for spec; do
        read -r start _ <<< "$spec"
        sleep $((start - at))
        at=$start
        cluster run "$name" scontrol release "${JOBS[i]}"
        i=$((i + 1))
    done
    for i in "${JOBS[@]}"; do
        wait_for 90 step_ended "$name" "$i" || return 1
    done
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

# read_ledger CLUSTER NODE FILE - a sample of this moment into FILE.  Sets
#   LEDGER_TOTALS      its line of totals
#   LEDGER_CHARGED_UJ  what it has charged to anybody since it was begun
#   LEDGER_REST_UJ     what of that is nobody's: unallocated, or the system's
#   LEDGER_TRUE_UJ     what the wattmeter counted in that time
# shellcheck disable=SC2034  # for the tests
read_ledger() {
    ledger_of "$1" "$2" > "$3" 2>&1
    LEDGER_TOTALS=$(sed -n 's/^totals //p' "$3")
    [ -n "$LEDGER_TOTALS" ] || return 1
    LEDGER_CHARGED_UJ=$(of charged_uj <<< "$LEDGER_TOTALS")
    LEDGER_REST_UJ=$(($(of unallocated_uj <<< "$LEDGER_TOTALS") +
        $(of system_uj <<< "$LEDGER_TOTALS")))
    LEDGER_TRUE_UJ=$(cluster energy "$1" "$(of begun_ns <<< "$LEDGER_TOTALS")" \
        "$(of mono_ns <<< "$LEDGER_TOTALS")" "$2")
}

# check_ledger NAME CLUSTER NODE [JOULES] - what is in the ledger adds up; it is
# what the wattmeter counted; and so are JOULES, all jobs of the node by sacct,
# together with the ledger's rest.
check_ledger() {
    local file=$SCRATCH/$2.$3.ledger true
    # Not by check, which would keep what it sets.
    read_ledger "$2" "$3" "$file" || {
        not_ok "$1: there are a ledger and a wattmeter" "$(cat "$file")"
        return
    }
    check "$1: the ledger adds up" grep -q ' identity=yes$' "$file"
    check "$1: no fault, no CPU time that is unknown or went back" \
        [ "$(of faults <<< "$LEDGER_TOTALS") $(of unknown <<< "$LEDGER_TOTALS")\
 $(of backwards <<< "$LEDGER_TOTALS") $(of refused <<< "$LEDGER_TOTALS")" = "0 0 0 0" ]
    true=$(joules "$LEDGER_TRUE_UJ")
    check "$1: the ledger is what the wattmeter counted" within \
        "$(joules "$LEDGER_CHARGED_UJ")" "$true" 0.1
    [ $# -gt 3 ] || return 0
    note <<< "$1: jobs $4 J by sacct, unallocated\
 $(joules "$(of unallocated_uj <<< "$LEDGER_TOTALS")") J, system\
 $(joules "$(of system_uj <<< "$LEDGER_TOTALS")") J, wattmeter $true J"
    check "$1: sacct's jobs and the ledger's rest are the wattmeter" within \
        "$(joules $(($4 * 1000000 + LEDGER_REST_UJ)))" "$true" 0.1
}
