# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# profile.sh - steps that are profiled, and what is in their files; source it
# after lib.sh.
# shellcheck disable=SC2034  # for the tests
PROFILE=acct_gather_profile/joule_hdf5
# shellcheck disable=SC2034  # likewise
FREQ=task=1,energy=1,network=1,filesystem=1

command -v h5dump > /dev/null || { skip profile "no h5dump (hdf5-tools)"; finish; }

# rows FILE TABLE - its rows as lines of numbers, separated by commas
rows() {
    h5dump -y -w 0 -m %.6f -d "$2" "$1" | awk '
        /^ *DATA \{/ { data = 1; next }
        !data { next }
        /^ *\{ *$/ { row = ""; next }
        /^ *\},? *$/ { if (row != "") print row; row = ""; next }
        /^ *ATTRIBUTE/ { exit }
        { gsub(/[ ,]/, ""); row = row == "" ? $0 : row "," $0 }'
}

# attribute FILE OBJECT NAME
attribute() {
    h5dump -y -a "$2/$3" "$1" |
        awk '/DATA \{/ { getline; gsub(/[ "]/, ""); print; exit }'
}

# Fails where there is no such cluster (any more): no path is built from that.
profile_dir() {
    local dir
    dir=$(cluster dir "$1") && [ -n "$dir" ] || exit 1
    echo "$dir/profile/alice"
}

# step CLUSTER SRUN-OPTION... - run a step as alice; sets JOB
step() {
    local name=$1 job_name
    shift
    job_name=p$RANDOM$RANDOM
    cluster user "$name" srun -J "$job_name" "$@" || return 1
    JOB=$(cluster run --timeout 10 "$name" squeue -a -h -t all -n "$job_name" -o %A)
}

# joules FILE NODE - sum over the energy series of power times time
joules() {
    rows "$1" "/$2/Energy" | awk -F, '
        { sum += $3 * ($NF - before) / 1e9; before = $NF }
        END { printf "%.3f\n", sum }'
}

# series_is_right NAME CLUSTER NODES [JOULES] - the series against what sacct says of
# the step, both over all nodes; half a percent or so many joules apart at most
series_is_right() {
    local name=$1 cluster=$2 nodes=$3 sum=0 node file
    for node in $nodes; do
        file=$(profile_dir "$cluster")/${JOB}_0_$node.h5
        sum=$(awk -v a="$sum" -v b="$(joules "$file" "$node")" \
            'BEGIN { printf "%.3f\n", a + b }')
    done
    echo "# $name: series $sum J, sacct $(step_energy "$cluster" "$JOB.0") J"
    check "$name: the series sums up to what sacct says" \
        within "$sum" "$(step_energy "$cluster" "$JOB.0")" 0.5 "${4:-0}"
}

# sleeping_step CLUSTER SECONDS SRUN-OPTION... - a step whose tasks note when they
# ran; sets JOB
sleeping_step() {
    local cluster=$1 seconds=$2 notes=$SCRATCH/tasks.$RANDOM$RANDOM file
    shift 2
    step "$cluster" "$@" "$STAMP" --sleep "$seconds" "$notes.%n" || return 1
    for file in "$notes".*; do
        mv "$file" "$SCRATCH/tasks-$cluster-$JOB.${file##*.}"
    done
}

# The series of a sleeping_step against the wattmeters, over its own time; and
# sacct, which has the step from its first task to its last, and no more than the
# series, which begins before and ends after them.
series_is_measured() {
    local name=$1 cluster=$2 nodes=$3 node file start end
    for node in $nodes; do
        file=$(profile_dir "$cluster")/${JOB}_0_$node.h5
        start=$(attribute "$file" "/$node" 'Joule Start Boot ns')
        end=$((start + $(rows "$file" "/$node/Energy" | tail -n 1 | sed 's/.*,//')))
        joules "$file" "$node"
        cluster energy "$cluster" "$start" "$end" "$node"
        awk 'NR == 1 || $1 < from { from = $1 } NR == 1 || $2 > to { to = $2 }
            END { printf "%.0f %.0f\n", from, to }' \
            "$SCRATCH/tasks-$cluster-$JOB.$node" | {
            read -r start end
            cluster energy "$cluster" "$start" "$end" "$node"
        }
    done | awk '{ sum[NR % 3] += $1 }
        END { printf "%.3f %.3f %.3f\n", sum[1], sum[2] / 1e6, sum[0] / 1e6 }' \
        > "$SCRATCH/series"
    read -r SERIES_J METER_J TASKS_J < "$SCRATCH/series"
    STEP_J=$(step_energy "$cluster" "$JOB.0")
    check "$name: the series ($SERIES_J J) is what the wattmeter has ($METER_J J)" \
        within "$SERIES_J" "$METER_J" 0.5
    check "$name: sacct ($STEP_J J) has its tasks ($TASKS_J J)" \
        at_least "$STEP_J" "$TASKS_J" 0.5
    check "$name: and no more than the series" at_least "$SERIES_J" "$STEP_J" 0.5
}

# at_least J LEAST PERCENT - J, or up to PERCENT or one joule less
at_least() {
    awk -v j="$1" -v least="$2" -v percent="$3" 'BEGIN {
        less = least * percent / 100
        if (less < 1) less = 1
        exit !(j > 0 && least > 0 && j >= least - less)
    }'
}

# stepd_of CLUSTER JOB - of step 0; other clusters may have jobs of that number
stepd_of() {
    process_of "$(cluster dir "$1")" "^slurmstepd: \\[$2\\.0\\]"
}

# process_of DIR PATTERN - one that lives in the cluster in DIR
process_of() {
    local pid
    for pid in $(pgrep -f "$2"); do
        grep -q " $1/" "/proc/$pid/mountinfo" && { echo "$pid"; return; }
    done
}

# real_time CLUSTER - kernels with CONFIG_RT_GROUP_SCHED have none for processes
# in cgroups that were not given a share; gone with the cluster
real_time() {
    local slurmd dir
    slurmd=$(process_of "$(cluster dir "$1")" '(^|/)slurmd (-D )?-N node1')
    dir=/sys/fs/cgroup/cpu$(sed -n 's/^[0-9]*:cpu:\(\/.*\)/\1/p' "/proc/$slurmd/cgroup")
    [ -e "$dir/cpu.rt_runtime_us" ] || return 0
    echo 200000 > "${dir%/*}/cpu.rt_runtime_us" &&
        echo 150000 > "$dir/cpu.rt_runtime_us"
}
