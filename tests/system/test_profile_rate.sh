#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all alone
#
# Energy series that are faster than Slurm's timer: at 100 Hz from counters,
# with tasks on all CPUs, and at 10 Hz from a BMC.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/ipmi.sh"
. "$LIB/profile.sh"

# thread_of PID NAME - the number of a thread
thread_of() {
    local task comm
    for task in /proc/"$1"/task/*; do
        read -r comm < "$task/comm" && [ "$comm" = "$2" ] &&
            echo "${task##*/}" && return
    done
}

threads_cpu_ns() {
    local name task ns=0
    for name in joule-energy joule-profile; do
        task=$(thread_of "$1" $name) || continue
        ns=$((ns + $(cut -d' ' -f1 < "/proc/$1/task/$task/schedstat")))
    done
    echo "$ns"
}

# periods FILE NODE PERIOD_NS - whether each period has its row, or is one of
# those that common/step/energy_series.h does not make up for and the file counts; how
# late the rows are.  1 in 100 may be missing: machines are shared.
periods() {
    rows "$1" "/$2/Energy" | awk -F, -v period="$3" \
        -v told="$(attribute "$1" "/$2" 'Joule Missed Periods')" '
        {
            ns = $NF
            due = ++ended * period
            behind = int(ns / period) - ended
            if (behind > 4) {
                missed += behind; ended += behind; due += behind * period
            }
            if (ns >= due) { late[++n] = ns - due; later += ns - due > period }
        }
        END {
            over = int(ns / period)
            if (over > ended) missed += over - ended
            sort(late, n)
            printf "%d periods, %d rows, %d missed; ", over, NR, missed
            printf "late: p50 %.0f us, p99 %.0f us, most %.0f us, %d by more than a period\n",
                late[int((n + 1) * 0.5)] / 1e3, late[int((n + 1) * 0.99)] / 1e3,
                late[n] / 1e3, later
            print "the file says that \"" told "\" are missed"
            # Where the thread was away for about as long as it makes up for, it knows
            # better which it was.
            if (told == "" || (NR + told != over && NR + told != over + 1)) bad = 1
            exit bad || over == 0 || told > over / 100
        }
        function sort(a, n,    i, j, t, gap) {
            for (gap = int(n / 2); gap > 0; gap = int(gap / 2))
                for (i = gap + 1; i <= n; i++) {
                    t = a[i]
                    for (j = i; j > gap && a[j - gap] > t; j -= gap)
                        a[j] = a[j - gap]
                    a[j] = t
                }
        }'
}

# Sets JOB.
fast_runs() {
    JOB=$(cluster run fast squeue -h -n fast -t R -o %A)
    [ -n "$JOB" ]
}

# A step of 60 s whose tasks use all CPUs.
fast() {
    local file pid from to task
    real_time fast || note <<< "the node has no share of real time"
    # The simulator stands for hardware, which does not wait for a CPU.
    chrt -a -f -p 2 "$(process_of "$(cluster dir fast)" 'nodesim .*/sim/node1$')" ||
        note <<< "the simulator cannot be hurried"
    cluster user fast env JOULE_PROFILE_PERIOD=10ms srun -J fast -n2 \
        --profile=energy "$STAMP" --spin 60 "$SCRATCH/fast.stamp" &
    wait_for 60 fast_runs
    sleep 3
    pid=$(stepd_of fast "$JOB")
    from=$(threads_cpu_ns "$pid")
    chrt -p "$(thread_of "$pid" joule-energy)" | note
    check "100 Hz: the thread has real-time priority" \
        has_policy "$(thread_of "$pid" joule-energy)" SCHED_FIFO
    check "100 Hz: slurmstepd itself has not" has_policy "$pid" SCHED_OTHER
    for task in $(pgrep -f "^$STAMP --spin 60 $SCRATCH/fast.stamp"); do
        check "100 Hz: nor have its tasks" has_policy "$task" SCHED_OTHER
        check "100 Hz: nor are they nice" \
            test "$(cut -d' ' -f19 < "/proc/$task/stat")" = "$(nice)"
    done
    sleep 50
    to=$(threads_cpu_ns "$pid")
    wait
    file=$(profile_dir fast)/${JOB}_0_node1.h5
    # Most of it is FUSE's way to the simulated registers; tests/bench/run
    # profile measures without it.
    echo "# 100 Hz: $(((to - from) / 50000)) us of CPU a second, with reading"
    periods "$file" node1 10000000 | note
    check "100 Hz: each period has a row" periods "$file" node1 10000000
    series_is_right "100 Hz" fast node1
    check "100 Hz: the file says the period" \
        test "$(attribute "$file" /node1/Energy 'Joule Period ns')" = 10000000
}

has_policy() {
    chrt -p "$1" | grep -q "policy: $2"
}

up fast --profile="$PROFILE" --gather 'JouleProfilePeriodMin=10ms' || exit 1
fast
step fast --profile=energy sleep 2
check "without a wish, it is --acctg-freq" test "$(attribute \
    "$(profile_dir fast)/${JOB}_0_node1.h5" /node1/Energy 'Joule Period ns')" = 1000000000
cluster down fast

# columns FILE TABLE - their names
columns() {
    h5dump -H -y -d "$2" "$1" | sed -n 's/.*H5T_.* "\([A-Za-z0-9_]*\)";$/\1/p'
}

# Both sockets together are what the node's memory leaves of it, 85 %.
labels_are_right() {
    rows "$1" /node1/Energy | awk -F, '
        {
            s = ($NF - before) / 1e9; before = $NF
            node += $7 * s / 1e3; sockets += ($8 + $9) * s / 1e3
        }
        END {
            printf "node %.1f J, sockets %.1f J\n", node, sockets
            off = node > 0 ? sockets / node - 0.85 : 1
            exit off < -0.01 || off > 0.01
        }'
}

# From a BMC: what is known of its power each 100 ms.
slow_source() {
    local file
    real_time bmc || note <<< "the node has no share of real time"
    step bmc -w node1 --profile=energy sleep 40 ||
        { not_ok "a step measured by a BMC"; return; }
    file=$(profile_dir bmc)/${JOB}_0_node1.h5
    periods "$file" node1 100000000 | note
    check "10 Hz by the BMC: each period has a row" periods "$file" node1 100000000
    series_is_right "10 Hz by the BMC" bmc node1
    check "10 Hz by the BMC: the labels are columns" test "$(columns "$file" \
        /node1/Energy | xargs)" = "ElapsedTime EpochTime NodePower Socket0Power \
Socket1Power node_uJ Node_mW Socket0_mW Socket1_mW ElapsedTimeNs"
    check "10 Hz by the BMC: the power of the labels" labels_are_right "$file"
    check "10 Hz by the BMC: the file says the period" \
        test "$(attribute "$file" /node1/Energy 'Joule Period ns')" = 100000000
}

up_bmc bmc '' "EnergyIPMIPowerSensors=\"Node=Node;Socket0=CPU0;Socket1=CPU1\"
JouleSamplePeriod=500ms
JouleProfilePeriod=100ms" --profile="$PROFILE" --sim '--load square:100:300:8' || exit 1
slow_source
finish
