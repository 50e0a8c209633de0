#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# Jobs that share a node, two to eight of them, equal and unequal, coming and
# going: each is charged what the rule of JouleAttribution says, within 2 % (of a
# whole node, while its task ran and had a cgroup), and all of them and the rest
# are what the wattmeter counted, within 0.1 %.  The same jobs with Slurm's own
# plugin beside it.
#
# shellcheck disable=SC2030,SC2031,SC2317  # functions are called by name, some
# in a shell of their own
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=attribution.sh
. "$LIB/attribution.sh"

PERCENT=2
declare -A SUM=() # J of all jobs of a cluster, by sacct

# check_jobs NAME CLUSTER HOW [WHAT...] - the jobs of run_jobs against the truth;
# WHAT of it: policy (default), physical
check_jobs() {
    local title=$1 name=$2 how=$3 job line joule true what
    local file=$SCRATCH/$name.truth
    shift 3
    [ $# -gt 0 ] || set -- policy
    job_truth "$name" "$how" node1 > "$file" 2>&1
    for job in "${JOBS[@]}"; do
        line=$(grep "^$job " "$file") || {
            not_ok "$title: the truth of job $job" "$(cat "$file")"
            continue
        }
        joule=$(step_energy "$name" "$job")
        SUM[$name]=$((${SUM[$name]:-0} + ${joule:-0}))
        for what; do
            true=$(joules "$(of "${what}_uj" <<< "$line")")
            check "$title: job $job, $what: $joule J, true $true J" \
                within "$joule" "$true" $PERCENT 1
        done
    done
}

# between ACTUAL LEAST MOST - LEAST but for the joule that sacct rounds by; MOST and
# PERCENT of it
between() {
    awk -v actual="$1" -v least="$2" -v most="$3" -v percent="$PERCENT" 'BEGIN {
        number = "^[0-9]+([.][0-9]+)?$"
        exit !(actual ~ number && least ~ number && most ~ number &&
               actual >= least - 1 && actual <= most * (1 + percent / 100) + 1) }'
}

# The same jobs, for each rule: CPUs 1, 2 and 4, one that computes, one that does
# so a third of the time, and one that sleeps.
STAGGERED=("0 1 1 --spin 16" "2 2 1 --spin 15:0.33" "4 4 1 --sleep 14")

test_cputime() {
    local name=share-cputime
    share_up $name "JouleAttribution=cputime
JouleIdleWatts=$SHARE_FLOOR" --contain || { not_ok "cputime comes up"; return; }
    run_jobs $name "0 4 1 --spin 8" "0 4 1 --spin 8"
    check_jobs "two equal jobs" $name cputime policy physical
    run_jobs $name "${STAGGERED[@]}"
    check_jobs "three unequal jobs" $name cputime policy physical
    run_jobs $name "0 1 1 --spin 15" "0 1 1 --spin 15" "0 1 1 --spin 15" \
        "0 1 1 --spin 15" "2 1 1 --spin 12:0.5" "4 1 1 --spin 10" \
        "4 1 1 --sleep 10" "6 1 1 --spin 9"
    check_jobs "eight jobs on the CPUs of two" $name cputime policy physical
    run_jobs $name "0 4 1 --spin 12 --oversubscribe" \
        "0 4 1 --spin 12 --oversubscribe" "4 8 1 --sleep 9 --oversubscribe"
    check_jobs "three jobs on the same CPUs" $name cputime policy physical
    # By CPU time alone, on one package, nobody knows that one of them needs four
    # times as much.
    run_jobs $name "0 4 0.5 --spin 10" "0 4 2 --spin 10"
    check_jobs "two jobs of unequal intensity" $name cputime policy
    check_ledger cputime $name node1 "${SUM[$name]}"
}

# Each on a package of its own: their counters tell who needs how much.
# shellcheck disable=SC2034  # for share_up
test_packages() {
    local name=share-packages SHARE_CPUS=2 SHARE_PACKAGES=2 SHARE_TASK=task/affinity
    if [ "$(nproc --all)" -lt 2 ]; then
        skip "two jobs of unequal intensity on two packages" "one CPU"
        return
    fi
    share_up $name "JouleAttribution=cputime
JouleIdleWatts=$SHARE_FLOOR" --contain || { not_ok "two packages come up"; return; }
    run_jobs $name "0 1 0.5 --spin 15:0.8" "0 1 2 --spin 15:0.8"
    check_jobs "two jobs of unequal intensity on two packages" $name cputime \
        physical
    check_ledger packages $name node1 "${SUM[$name]}"
    cluster down $name
}

# By the rule of the name, and Slurm's plugin: beside one another, as only CPU
# time and what was really used count.
test_others() {
    local name
    for name in learned young alloc node stock; do
        {
            TESTS_FAILED=0
            "test_$name"
            echo "failed $TESTS_FAILED"
        } > "$SCRATCH/$name.out" 2>&1 &
    done
    wait
    for name in learned young alloc node stock; do
        grep -v '^failed ' "$SCRATCH/$name.out"
        TESTS_FAILED=$((TESTS_FAILED + $(sed -n 's/^failed //p' "$SCRATCH/$name.out")))
    done
}

# floor_known CLUSTER
floor_known() {
    [ "$(ledger_of "$1" | sed -n 's/^part //p' | of minutes)" -gt 0 ]
}

test_learned() {
    wait_for 90 floor_known share-learned
    check "an idle node's floor is known after a minute" floor_known share-learned
    note <<< "floor: $(ledger_of share-learned | sed -n 's/^part //p' | of idle_power_uw) uW"
    run_jobs share-learned "${STAGGERED[@]}"
    check_jobs "with a learned floor" share-learned cputime policy physical
    check_ledger learned share-learned node1 "${SUM[share-learned]}"
}

# A node that has just booted: what it used in the moment before its first job stands
# in for the floor.
test_young() {
    share_up share-young JouleAttribution=cputime --contain ||
        { not_ok "young comes up"; return; }
    sleep 3 # a second without slurmd's start
    run_jobs share-young "0 1 1 --spin 8" "0 2 1 --sleep 8"
    if floor_known share-young; then
        skip "jobs in a node's first minute" "they took longer than that"
    else
        check_jobs "in a node's first minute" share-young cputime
        check_ledger young share-young node1 "${SUM[share-young]}"
    fi
    cluster down share-young
}

test_alloc() {
    run_jobs share-alloc "${STAGGERED[@]}"
    check_jobs "alloc" share-alloc alloc
    check_ledger alloc share-alloc node1 "${SUM[share-alloc]}"
}

# Of the whole node a job is charged what was used while Slurm measured its step:
# while its task ran, and not before it had a cgroup nor after.
test_node() {
    local file=$SCRATCH/share-node.truth job joule from to least most
    run_jobs share-node "${STAGGERED[@]}"
    job_truth share-node node node1 > "$file" 2>&1
    for job in "${JOBS[@]}"; do
        joule=$(step_energy share-node "$job")
        read -r from to < "$SCRATCH/share-node.$job.times"
        least=$(joules "$(cluster energy share-node "$from" "$to" node1)")
        most=$(joules "$(grep "^$job " "$file" | of policy_uj)")
        check "node: job $job: $joule J, its task $least J, its cgroup $most J" \
            between "$joule" "$least" "$most"
    done
    check_ledger node share-node node1
}

# For comparison: what Slurm 22.05 itself says of these jobs.
test_stock() {
    local job joule true
    run_jobs share-stock "${STAGGERED[@]}"
    job_truth share-stock cputime node1 > "$SCRATCH/truth.stock"
    for job in "${JOBS[@]}"; do
        joule=$(step_energy share-stock "$job")
        true=$(joules "$(grep "^$job " "$SCRATCH/truth.stock" | of physical_uj)")
        note <<< "Slurm's acct_gather_energy/rapl: job $job: ${joule:-blank} J,\
 true $true J, off by $(awk -v j="${joule:-0}" -v t="$true" \
            'BEGIN { printf "%+.0f %%", 100 * (j - t) / t }')"
    done
}

cgroups_or_end "attribution"
# It must be idle for a minute first.
share_up share-learned JouleAttribution=cputime --contain ||
    not_ok "learned comes up"
test_cputime
test_packages
share_up share-alloc JouleAttribution=alloc --contain || not_ok "alloc comes up"
share_up share-node JouleAttribution=node --contain || not_ok "node comes up"
share_up share-stock '' --energy acct_gather_energy/rapl --contain ||
    not_ok "Slurm's own comes up"
test_others
finish
