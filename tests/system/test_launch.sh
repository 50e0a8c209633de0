#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# However a job is launched, on one node and on four: with PrologFlags=Contain
# the job's figure in sacct is what the job is to be charged, within 1 %.
# Without it, what Slurm lets.
#
# shellcheck disable=SC2317  # functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=attribution.sh
. "$LIB/attribution.sh"

PERCENT=1
# So many CPUs that several styles can run beside one another.
# shellcheck disable=SC2034  # for share_up
SHARE_CPUS=16 SHARE_FLOOR=320 SHARE_BUSY=500
# Tasks compute a part of the time, so that all of them together leave the
# machine's CPUs to slurmd: counters that it reads some ms after one another are
# not those of one moment.
DUTY=0.1
SPIN="$STAMP --spin" REST="$STAMP --sleep" # for scripts of jobs

# The numbers of jobs of a name, in their order: of an array's tasks and a
# heterogeneous job's components their own ones.
jobs_named() {
    cluster run --timeout 10 "$1" squeue -a -h -r -t all -n "$2" -o %A | sort -n
}

# account CLUSTER JOB [SUFFIX] - "STATE JOULES" of the line of a job, or of its step
account() {
    cluster run --timeout 10 "$1" \
        sacct -a -n -P -S now-1days -o JobIDRaw,State,ConsumedEnergyRaw 2> /dev/null |
        awk -F'|' -v id="$2${3:-}" '$1 == id { print $2, $3 }'
}

accounted() {
    [[ $(account "$@") =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT) ]]
}

# joules_of CLUSTER JOB [SUFFIX] - may be empty: unknown
joules_of() {
    local joule
    wait_for 60 accounted "$@" || { echo "job $2 is not over" >&2; return 1; }
    read -r _ joule < <(account "$@")
    echo "$joule"
}

# The sum of a job's numbered steps, and how many of them are blank.
numbered_of() {
    cluster run --timeout 10 "$1" \
        sacct -a -n -P -S now-1days -o JobIDRaw,ConsumedEnergyRaw | awk -F'|' -v id="$2" '
            index($1, id ".") == 1 && $1 ~ /\.[0-9]+$/ {
                n++; sum += $2; blank += $2 == "" }
            END { print n + 0, sum + 0, blank + 0 }'
}

# truth_of_all CLUSTER NODES - what jobs are to be charged on all nodes that they
# had, "JOB UJ"; in $SCRATCH/CLUSTER.seen node by node what the simulator saw
truth_of_all() {
    local node
    for ((node = 1; node <= $2; node++)); do
        job_truth "$1" cputime "node$node"
    done | tee "$SCRATCH/$1.seen" | awk '/^[0-9]+ / { sub("policy_uj=", "", $2); uj[$1] += $2; next }
                { print > "/dev/stderr" }
                END { for (job in uj) printf "%s %.0f\n", job, uj[job] }'
}

# -- styles: each starts jobs of its name ------------------------------------

style_srun() { # CLUSTER NODES
    cluster user "$1" srun -J srun -N "$2" -n "$2" -c 2 \
        "$STAMP" --spin 14:"$DUTY" /dev/null
}

# Only the first node computes; the others are there.
style_batch() {
    cluster user "$1" sbatch -J batch -N "$2" -n "$2" -c 2 -o /dev/null \
        --wrap "$SPIN 14:$DUTY /dev/null"
}

style_steps() {
    cluster user "$1" sbatch -J steps -N "$2" -n "$2" -c 2 -o /dev/null \
        --wrap "srun $SPIN 6:$DUTY /dev/null; $SPIN 2:$DUTY /dev/null
                srun $SPIN 5:$DUTY /dev/null"
}

style_parallel() {
    cluster user "$1" sbatch -J parallel -N "$2" -n $((2 * $2)) -c 1 \
        -o /dev/null --wrap "
            srun --exact -N $2 -n $2 -c 1 $SPIN 13:$DUTY /dev/null &
            srun --exact -N $2 -n $2 -c 1 $REST 11 /dev/null &
            wait"
}

style_salloc() {
    cluster user "$1" salloc -J salloc -N "$2" -n "$2" -c 2 sh -c "
        srun $SPIN 5:$DUTY /dev/null; sleep 2; srun $SPIN 6:$DUTY /dev/null"
}

style_array() {
    cluster user "$1" sbatch -J array -a 1-3 -N "$2" -n "$2" -c 2 \
        -o /dev/null --wrap "srun $SPIN \$((9 + 2 * SLURM_ARRAY_TASK_ID)):$DUTY /dev/null"
}

# Components never share a node (the backfill scheduler of 22.05 gives each one
# nodes of its own): of half of the nodes each, and of one node each.
het() { # CLUSTER NAME NODES-EACH
    cluster user "$1" sbatch -J "$2" -o /dev/null -N "$3" -n "$3" -c 2 : \
        -N "$3" -n "$3" -c 3 --wrap "srun --het-group=0,1 $SPIN 14:$DUTY /dev/null"
}

style_het() {
    het "$1" het $(($2 / 2))
}

style_small() {
    het "$1" small 1
}

no_jobs() {
    local jobs
    jobs=$(cluster run --timeout 10 "$1" squeue -h) && [ -z "$jobs" ]
}

# run_styles CLUSTER NODES STYLE... - beside one another, to their ends
run_styles() {
    local name=$1 nodes=$2 style
    shift 2
    for style; do
        "style_$style" "$name" "$nodes" > "$SCRATCH/$name.$style" 2>&1 ||
            echo "$style ended with $?" >> "$SCRATCH/$name.failed" &
    done
    wait
    wait_for 60 no_jobs "$name"
    if [ -e "$SCRATCH/$name.failed" ]; then
        not_ok "all styles run on $nodes nodes" "$(cat "$SCRATCH/$name.failed" \
            "$SCRATCH/$name".*)"
    fi
}

# explain CLUSTER JOB - what there is to know of a job whose energy is not right:
# the steps, as the accounting has them; where it was, by the simulator; when that
# was by the clock.
explain() {
    cluster run --timeout 10 "$1" sacct -a -n -P -S now-1days -j "$2" \
        -o JobIDRaw,State,Start,End,ConsumedEnergyRaw
    grep "^$2 " "$SCRATCH/$1.seen"
    echo "at $(now_ns) ns: $(date +%FT%T.%N)"
}

# check_style CLUSTER NODES STYLE JOBS - the lines of the jobs of a style
check_style() {
    local name=$1 nodes=$2 style=$3 job joule true n=0
    for job in $(jobs_named "$name" "$style"); do
        n=$((n + 1))
        joule=$(joules_of "$name" "$job")
        true=$(joules "$(sed -n "s/^$job //p" "$SCRATCH/$name.truth")")
        if within "$joule" "$true" $PERCENT 1 > "$SCRATCH/out"; then
            ok "$style on $nodes: job $job: $joule J, true $true J"
        else
            not_ok "$style on $nodes: job $job: $joule J, true $true J" \
                "$(cat "$SCRATCH/out"; explain "$name" "$job")"
        fi
    done
    check "$style on $nodes: $4 job(s)" [ "$n" = "$4" ]
}

# test_contained NODES "STYLE:JOBS..."... - groups of styles, those of a group
# beside one another
test_contained() {
    local nodes=$1 name=share-launch$1 style group
    shift
    share_up "$name" "JouleAttribution=cputime
JouleIdleWatts=$SHARE_FLOOR" --contain --nodes "$nodes" ||
        { not_ok "$nodes node(s) come up"; return; }
    for group; do
        read -ra group <<< "$group"
        run_styles "$name" "$nodes" "${group[@]%:*}"
    done
    truth_of_all "$name" "$nodes" > "$SCRATCH/$name.truth"
    read -ra group <<< "$*"
    for style in "${group[@]}"; do
        check_style "$name" "$nodes" "${style%:*}" "${style#*:}"
    done
    cluster down "$name"
}

# Slurm adds up the numbered steps, and that is all.
test_bare() {
    local name=share-bare style job n sum blank batch
    share_up $name "JouleAttribution=cputime
JouleIdleWatts=$SHARE_FLOOR" || { not_ok "a node comes up"; return; }
    run_styles $name 1 srun batch steps parallel salloc
    truth_of_all $name 1 > "$SCRATCH/$name.truth"
    check_style $name "1, without Contain" srun 1
    for style in srun steps parallel salloc; do
        job=$(jobs_named $name $style)
        joules_of $name "$job" > "$SCRATCH/$name.j"
        read -r n sum blank < <(numbered_of $name "$job")
        check "$style without Contain: the job is its $n numbered steps" \
            [ "$(cat "$SCRATCH/$name.j") $blank" = "$sum 0" ]
    done
    job=$(jobs_named $name batch)
    check "batch without Contain: the job is blank" \
        [ -z "$(joules_of $name "$job")" ]
    for style in batch steps; do
        job=$(jobs_named $name $style)
        batch=$(joules_of $name "$job" .batch)
        read -r n sum blank < <(numbered_of $name "$job")
        check "$style without Contain: batch step ($batch J) and $n numbered\
 steps ($sum J) are the job" within $((batch + sum)) \
            "$(joules "$(sed -n "s/^$job //p" "$SCRATCH/$name.truth")")" $PERCENT 2
    done
    cluster down $name
}

cgroups_or_end "styles of launching"
DUTY=0.3
test_contained 1 "srun:1 batch:1 steps:1" "parallel:1 salloc:1 array:3"
test_bare
DUTY=0.15
test_contained 4 "srun:1 batch:1 small:2" "steps:1 het:2" "parallel:1 salloc:1" \
    "array:3"
finish
