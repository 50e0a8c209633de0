# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# ledger.sh - clusters whose node divides its energy among jobs by CPU time, and
# what a job is to be charged; source it after lib.sh.  $C is the cluster.
#
# The node's power is IDLE_W and BUSY_W for each CPU that is busy, in the cluster
# and out of it.  So a job is to be charged
#
#     IDLE_W x its CPUs / the node's CPUs x its time + BUSY_W x its CPU time
#
# if the ledger has the same CPU time for the node's.  The cluster is in a cgroup
# namespace and reads it in /proc/stat, where most kernels have what ran at each
# tick: beside other programs that is some percent too much or too little.  So the
# simulator makes this file, of the machine's counter.

IDLE_W=40 BUSY_W=20
BURN=$JOULE_BUILD/tests/system/burn
# shellcheck disable=SC2034  # for the tests
STEPS=$JOULE_BUILD/tests/system/steps
CPUS=$(nproc --all)
MACHINE=$SCRATCH/machine # where the machine's CPU time is, seen by a cluster

# Where this machine's cgroups of v1 count CPU time, or nothing.
machine_cpuacct() {
    awk '$4 == "/" && / - cgroup / && ("," $NF ",") ~ /,cpuacct,/ {
        print $5; exit }' /proc/self/mountinfo
}

# A cluster sees a part of the hierarchies only; its simulator is given this
# one counter of the machine.
machine_counter() {
    local file=$MACHINE/cpuacct.usage
    [ ! -e "$MACHINE" ] || return 0
    mkdir "$MACHINE" && : > "$file" &&
        mount -n --bind "$(machine_cpuacct)/cpuacct.usage" "$file" || return 1
    trap ledger_cleanup EXIT
}

ledger_cleanup() {
    umount -n "$MACHINE/cpuacct.usage"
    lib_cleanup
}

LEDGER_CONF="JouleAttribution=cputime
JouleIdleWatts=$IDLE_W"

# The options of the cluster, in LEDGER_OPTIONS.
ledger_options() {
    machine_counter || return 1
    LEDGER_OPTIONS=(--contain --cpus "$CPUS" --sim "--packages 1 --no-dram \
--idle $IDLE_W --busy $BUSY_W --cgroup $MACHINE --stat")
}

# ledger_up NAME [CLUSTER-OPTION...] - sets C
ledger_up() {
    C=$1
    shift
    ledger_options && up "$C" --gather "$LEDGER_CONF" "${LEDGER_OPTIONS[@]}" "$@"
}

# ledger FILE [published] - a sample of this moment, or else what was published
# last, into $SCRATCH/FILE; where no file is named below, it is "ledger"
ledger() {
    local fresh=(--fresh)
    [ -z "${2:-}" ] || fresh=()
    cluster run --timeout 20 "$C" "$JOULE_BUILD/tests/system/ledgerdump" \
        "${fresh[@]}" node1 > "$SCRATCH/$1"
}

# ledger_value KEY [FILE] - of the totals
ledger_value() {
    sed -nE "s/^totals (.* )?$1=([^ ]*).*/\2/p" "$SCRATCH/${2:-ledger}"
}

# row_value JOB STEP-KIND KEY [FILE]
row_value() {
    sed -nE "/ job=$1 .* kind=$2 /s/^row (.* )?$3=([^ ]*).*/\2/p" "$SCRATCH/${4:-ledger}"
}

ledger_adds_up() {
    [ "$(ledger_value identity) $(ledger_value faults)" = "yes 0" ] ||
        { cat "$SCRATCH/ledger"; return 1; }
}

# ledger_since FILE KEY - what KEY has grown by
ledger_since() {
    echo $(($(ledger_value "$2") - $(ledger_value "$2" "$1")))
}

# What the wattmeter has counted between the samples FILE and ledger, in uJ.
true_uj_since() {
    cluster energy "$C" "$(ledger_value mono_ns "$1")" "$(ledger_value mono_ns)"
}

# Neither rows nor registrations.
ledger_is_empty() {
    ledger ledger || return 1
    ! grep -E '^(row|claim) ' "$SCRATCH/ledger"
}

# A job of one CPU that burns, in the background; its number is wanted later.
start_job() { # NAME BURN-OPTION... SECONDS
    local name=$1
    shift
    rm -f "$SCRATCH/$name.burn"
    cluster user "$C" srun -Q -n1 -J "$name" "$BURN" "$@" "$SCRATCH/$name.burn" \
        > "$SCRATCH/$name.out" 2>&1 &
}

# The same as a batch script without srun.
start_batch() { # NAME BURN-OPTION... SECONDS
    local name=$1
    shift
    rm -f "$SCRATCH/$name.burn"
    cluster user "$C" sbatch -Q --no-requeue -n1 -J "$name" -o /dev/null \
        --wrap "exec $BURN $* $SCRATCH/$name.burn" > "$SCRATCH/$name.out" 2>&1
}

job_number() { # NAME: the last one of that name
    cluster run --timeout 10 "$C" squeue -a -h -t all -n "$1" -o %A | sort -n |
        tail -n 1
}

job_runs() {
    [ -n "$(cluster run --timeout 10 "$C" squeue -h -t R -n "$1" -o %A)" ]
}

job_is_over() {
    [ -z "$(cluster run --timeout 10 "$C" squeue -h -n "$1" -o %A)" ]
}

# burnt NAME - prints the seconds from the first begin to the last end, and the
# CPU seconds, of what burnt in a job
burnt() {
    awk 'NR == 1 || $1 < from { from = $1 }
        NR == 1 || $2 > to { to = $2 }
        { cpu += $3 }
        END { printf "%.3f %.3f\n", (to - from) / 1e9, cpu / 1e9 }' \
        "$SCRATCH/$1.burn"
}

# A job is there while its extern step is.  How long slurmstepd takes to begin and
# to end depends on the machine's load: slurmd's log says what it is at least and
# at most.

# line_wall_ns ADDRESS PATTERN - the wall clock, in ns, at the first (1) or last ($)
# line of it with PATTERN behind the time
line_wall_ns() {
    local stamp
    stamp=$(cluster log "$C" node1 | grep -aE "^\[[^]]*\] $2" |
        sed -n "$1s/^\[\([^]]*\)\].*/\1/p")
    [ -n "$stamp" ] && date -d "$stamp" +%s%N
}

extern_over_wall_ns() { # JOB
    line_wall_ns '$' "\[$1.extern\] done with"
}

# The same as CLOCK_BOOTTIME, to about 10 ms.
extern_over_ns() { # JOB
    local wall_ns
    wall_ns=$(extern_over_wall_ns "$1") &&
        echo $(($(now_ns) - $(date +%s%N) + wall_ns))
}

# job_seconds JOB - prints both: from another step's first line to the signal, and
# from its first line to its last; waits for that, which the controller of 24.11
# does not wait for
job_seconds() {
    wait_for 60 extern_over_wall_ns "$1" &&
        awk -v from="$(line_wall_ns 1 "\[$1.extern\]")" -v to="$(extern_over_wall_ns "$1")" \
            -v other="$(line_wall_ns 1 "\[$1.([0-9]|batch)")" \
            -v signal="$(line_wall_ns '$' "\[$1.extern\] Sent signal")" 'BEGIN {
            if (!(from <= other && other < signal && signal <= to)) {
                print "lines of job'"$1"':", from, other, signal, to > "/dev/stderr"
                exit 1
            }
            printf "%.3f %.3f\n", (signal - other) / 1e9, (to - from) / 1e9 }'
}

# truth_j SECONDS CPU-SECONDS - what a job of one CPU is to be charged
truth_j() {
    awk -v s="$1" -v cpu="$2" -v idle=$IDLE_W -v busy=$BUSY_W -v n="$CPUS" \
        'BEGIN { printf "%.3f\n", idle / n * s + busy * cpu }'
}

# The dir of a step's group in this machine's cpuacct hierarchy.
step_group() { # JOB STEP
    local top
    top=$(grep -m 1 cpuacct "$(cluster dir "$C")/cgroups") || return 1
    find "$top/node1" -type d -path "*/job_$1/step_$2" | grep .
}

# How long a step of the allocation $JOB takes, in ms: the median of seven.
steps_ms() {
    local i a
    for ((i = 0; i < 7; i++)); do
        a=${EPOCHREALTIME/./}
        cluster run "$C" srun -Q --overlap -n1 --jobid "$JOB" true
        echo $(((${EPOCHREALTIME/./} - a) / 1000))
    done | sort -n | sed -n 4p
}

# Histories: two jobs, and what happens while they compute.

SECONDS_EACH=10  # of a job
FAULT_AT=3       # seconds after both run
ALLOWED=0.25     # intervals that a job may be off where nothing should be lost
NODE_PERCENT=0.1 # that the node's energy may be off, or half a joule

both_run() {
    job_runs a && job_runs b
}

# The CPU time, in s, that is a job's where it is not all that it burnt.
declare -A TRUE_CPU
REMARK=''

# What holds after each history.
sums() { # NAME
    local charged true
    check "$1: a fresh sample" ledger ledger
    check "$1: jobs and rest are what the node used" ledger_adds_up
    charged=$(ledger_since before charged_uj)
    true=$(true_uj_since before)
    check "$1: the node's energy is the wattmeter's" \
        within "$charged" "$true" $NODE_PERCENT 500000
    INTERVAL_J=$(awk -v uj="$true" -v from="$(ledger_value mono_ns before)" \
        -v to="$(ledger_value mono_ns)" \
        'BEGIN { printf "%.3f\n", uj / 1e6 / ((to - from) / 1e9) }')
}

job_is_right() { # HISTORY NAME
    local job j cpu least_s most_s least most nearest
    job=$(job_number "$2")
    j=$(step_energy "$C" "$job")
    cpu=${TRUE_CPU[$2]:-}
    [ -n "$cpu" ] || read -r _ cpu < <(burnt "$2")
    read -r least_s most_s < <(job_seconds "$job")
    least=$(truth_j "$least_s" "$cpu") most=$(truth_j "$most_s" "$cpu")
    nearest=$(awk -v j="$j" -v least="$least" -v most="$most" \
        'BEGIN { print (j < least ? least : j > most ? most : j) }')
    check "$1: job $2 is charged $j J of $least to $most J, $INTERVAL_J J an interval" \
        within "$j" "$nearest" 0 "$(awk -v j="$INTERVAL_J" -v n="$ALLOWED" \
            'BEGIN { print j * n }')"
}

# history NAME 'FAULT' ['JOB A'] ['JOB B'] - FAULT is called while both compute.
# A job may be off by $ALLOWED intervals.  Sets JOB_A and JOB_B.
# shellcheck disable=SC2034
history() {
    local name=$1 fault=$2 job
    TRUE_CPU=() REMARK=''
    ledger before
    ${3:-start_job a $SECONDS_EACH}
    ${4:-start_job b --duty 33 $SECONDS_EACH}
    check "$name: two jobs" wait_for 60 both_run
    sleep $FAULT_AT
    JOB_A=$(job_number a) JOB_B=$(job_number b)
    # Not in a subshell, as check has it: it sets TRUE_CPU.
    if $fault > "$SCRATCH/fault.out" 2>&1; then
        ok "$name: it happens${REMARK:+; $REMARK}"
    else
        not_ok "$name: it happens" "$(cat "$SCRATCH/fault.out")"
    fi
    for job in a b; do
        check "$name: job $job ends" wait_for 60 job_is_over $job
    done
    wait
    sums "$name"
    job_is_right "$name" a
    job_is_right "$name" b
    check "$name: nothing stays in the ledger" wait_for 60 ledger_is_empty
}

# What may happen.

restart() {
    cluster slurmd "$C" node1 stop && cluster slurmd "$C" node1 start
}

kill_slurmd() {
    cluster slurmd "$C" node1 kill && cluster slurmd "$C" node1 start
}

away() {
    cluster slurmd "$C" node1 kill && sleep 4 && cluster slurmd "$C" node1 start
}

reconfigure() {
    cluster run --timeout 20 "$C" scontrol reconfigure
}

nothing() { :; }

no_fault_in_the_log() {
    ! cluster log "$C" node1 | grep 'does not add up'
}
