#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default measures
#
# Profiles of real steps: what is in the files, whether Slurm's own sh5util
# takes them, and what is left, and what our sh5util makes of it, when things go
# wrong.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/profile.sh"
SH5UTIL=$JOULE_BUILD/tools/sh5util/sh5util

# ascending FILE NODE TABLE SECONDS - one row a second, the time never falling
ascending() {
    rows "$1" "/$2/$3" | awk -F, -v seconds="$4" '
        $NF < before { print "time falls in row " NR; bad = 1 }
        $2 - $1 != base && NR > 1 { print "no fixed start in row " NR; bad = 1 }
        NR == 2 && $NF - before < 5e8 { print "two rows at the beginning"; bad = 1 }
        { before = $NF; base = $2 - $1 }
        END {
            if (NR < seconds - 1 || NR > seconds + 3) {
                print NR " rows in " seconds " s"; bad = 1
            }
            exit bad
        }'
}

one_node() {
    local file seconds=15
    ! is_long || seconds=40
    sleeping_step prof $seconds -w node1 -n2 --profile=all --acctg-freq=$FREQ ||
        { not_ok "a step of $seconds s"; return; }
    file=$(profile_dir prof)/${JOB}_0_node1.h5
    check "one node: the file is there" test -s "$file"
    check_not "one node: its log is not" ls "${file%.h5}.log"
    check "one node: it is alice's alone" \
        test "$(stat -c '%U %a %h' "$file")" = "UNKNOWN 600 1" -o \
        "$(stat -c '%u %a %h' "$file")" = "5001 600 1"
    check "one node: one row a second, none twice" \
        ascending "$file" node1 Energy $seconds
    check "one node: the first task's rows" ascending "$file" node1 Tasks/0 $seconds
    check "one node: the second task's rows" ascending "$file" node1 Tasks/1 $seconds
    check "one node: two tasks" \
        test "$(attribute "$file" /node1 'Number of Tasks')" = 2
    check "one node: closed" test "$(attribute "$file" /node1 'Joule End ns')" -gt $((seconds - 1))000000000
    check "one node: nothing lost" \
        test "$(attribute "$file" /node1 'Joule Lost Rows')" = 0
    series_is_measured "one node" prof node1
    # With several tables, -I of 22.05 fails on Slurm's own files, too.
    check "Slurm's sh5util merges one node" sh5 prof -S -o "$SCRATCH/one.h5"
    check "Slurm's sh5util extracts an item" sh5 prof -I -s Energy -d Power \
        -i "$SCRATCH/one.h5" -o "$SCRATCH/item.csv"
}

# sh5 CLUSTER OPTION... - Slurm's sh5util as alice; the first .h5 wins
sh5() {
    local name=$1
    shift
    cluster user "$name" /usr/bin/sh5util -j "$JOB" "$@"
}

four_nodes() {
    local dir merged node
    sleeping_step prof 8 -N4 -n4 --profile=all --acctg-freq=$FREQ ||
        { not_ok "a step on four nodes"; return; }
    dir=$(profile_dir prof) || return
    check "four nodes: four files" \
        test "$(find "$dir" -name "${JOB}_0_*" | wc -l)" = 4
    series_is_measured "four nodes" prof "node1 node2 node3 node4"
    merged=$SCRATCH/merged.h5
    check "Slurm's sh5util merges them" sh5 prof -S -o "$merged"
    check "Slurm's sh5util extracts the energy series" sh5 prof -E \
        -s Energy -l Node:TimeSeries -i "$merged" -o "$SCRATCH/energy.csv"
    check "Slurm's sh5util extracts the tasks" sh5 prof -E \
        -s Tasks -l Node:TimeSeries -i "$merged" -o "$SCRATCH/tasks.csv"
    check "Slurm's sh5util extracts totals" sh5 prof -E -s Energy \
        -i "$merged" -o "$SCRATCH/totals.csv"
    check "Slurm's sh5util lists" sh5 prof -L -s Energy -i "$merged"
    for node in node1 node2 node3 node4; do
        check "$node: what Slurm's sh5util extracts is what h5dump shows" \
            same_rows "$dir/${JOB}_0_$node.h5" $node "$SCRATCH/energy.csv"
        check "$node: h5dump of the merged file agrees" cmp \
            <(rows "$dir/${JOB}_0_$node.h5" /$node/Energy) \
            <(rows "$merged" /Steps/0/Nodes/$node/Energy)
    done
    check "Slurm's sh5util removes what it has merged" sh5 prof -o "$SCRATCH/again.h5"
    check_not "nothing of the job is left" ls "$dir/${JOB}"_0_*
}

same_rows() {
    diff <(rows "$1" "/$2/Energy") \
        <(awk -F, -v node="$2" '$2 == node { sub(/^[^,]*,[^,]*,/, ""); print }' "$3")
}

# Both runs of a job that is put back: two files, and Slurm's sh5util takes
# both.
requeued() {
    local dir job
    dir=$(profile_dir prof) || return
    printf '#!/bin/sh\nsrun --profile=all sleep 3\nsleep 30\n' > "$SCRATCH/batch"
    job=$(cluster user prof sbatch --parsable -w node2 --requeue \
        --profile=all --acctg-freq=$FREQ -o /dev/null "$SCRATCH/batch")
    JOB=$job
    wait_for 60 test -e "$dir/${job}_0_node2.h5" ||
        { not_ok "requeue: the first run's file"; return; }
    sleep 4
    cluster run prof scontrol requeue "$job"
    # Slurm lets requeued jobs wait for two minutes, and says so once more when
    # the first run has been put away: ask again.  But a run that begins in the
    # second in which the first was killed fails: slurmd takes it for that one ("Job
    # already killed, do not launch batch job").
    for _ in {1..40}; do
        [ ! -e "$dir/${job}_0_node2.r1.h5" ] || break
        sleep 2
        ! is_pending "$job" || sleep 2
        ! is_pending "$job" ||
            cluster run prof scontrol update "jobid=$job" StartTime=now
    done
    [ -e "$dir/${job}_0_node2.r1.h5" ] ||
        { not_ok "requeue: the second run's file" "$(ls -la "$dir")"; return; }
    check "requeue: the first file is whole" \
        test "$(rows "$dir/${job}_0_node2.h5" /node2/Energy | wc -l)" -ge 2
    sleep 4
    cluster run prof scancel "$job"
    wait_for 60 step_ended prof "$job.batch"
    wait_for 60 test -s "$dir/${job}_batch_node2.r1.h5"
    check "requeue: the batch step has two files as well" \
        test -s "$dir/${job}_batch_node2.h5" -a -s "$dir/${job}_batch_node2.r1.h5"
    check "requeue: Slurm's sh5util merges both runs" sh5 prof -S -o "$SCRATCH/requeue.h5"
    check "requeue: both are in the merged file" h5dump -H \
        -g /Steps/0/Nodes/node2.r1 -g /Steps/0/Nodes/node2 "$SCRATCH/requeue.h5"
}

is_pending() {
    [ "$(cluster run prof squeue -h -j "$1" -o %T)" = PENDING ]
}

# our_sh5 CLUSTER OPTION... - our sh5util as alice
our_sh5() {
    local name=$1
    shift
    cluster user "$name" "$SH5UTIL" -j "$JOB" "$@"
}

# only_a_log NAME NODE ROWS [CUT] - a step of $JOB has left its log, which our
# sh5util merges; one that is cut off it keeps, and says so
only_a_log() {
    local dir
    dir=$(profile_dir prof) || return
    check "$1: the log is there" test -s "$dir/${JOB}_0_$2.log"
    check_not "$1: an HDF5 file is not" ls "$dir/${JOB}_0_$2.h5"
    check "$1: nor a piece of one" test -z "$(find "$dir" -name '.*')"
    our_sh5 prof -o "$SCRATCH/$JOB.h5" > "$SCRATCH/said" 2>&1
    check "$1: our sh5util merges it" \
        eval '[ $? -eq ${4:+1}+0 ] && grep -q "${4:-Merging}" "$SCRATCH/said"'
    check "$1: the rows are there" \
        test "$(rows "$SCRATCH/$JOB.h5" "/Steps/0/Nodes/$2/Energy" | wc -l)" -ge "$3"
}

killed() {
    local pid
    cluster user prof srun -J killed -w node3 --profile=all \
        --acctg-freq=$FREQ sleep 60 > /dev/null 2>&1 &
    wait_for 60 cluster run prof squeue -h -n killed -t R
    sleep 14
    JOB=$(cluster run prof squeue -h -n killed -o %A)
    pid=$(stepd_of prof "$JOB")
    [ -n "$pid" ] && kill -KILL "$pid"
    # All but the last ten seconds.
    only_a_log "kill -9" node3 8 "its writer was killed, or still writes it"
    check "kill -9: the file says that it was cut off" test "$(attribute \
        "$SCRATCH/$JOB.h5" /Steps/0/Nodes/node3 'Joule End ns')" = 0
    cluster run prof scancel "$JOB"
    wait
}

# A program that makes no HDF5 file: it fails, or does not end.
no_converter() {
    local program before
    program=$(cluster dir prof)/joule-profile-convert
    cp -p "$program" "$SCRATCH/converter"
    printf '#!/bin/sh\necho it is not my day\n' > "$program"
    step prof -w node4 --profile=all --acctg-freq=$FREQ sleep 3
    check "a converter that fails: said in slurmd's log" \
        test "$(cluster log prof node4 | grep -c "stays in ${JOB}_0_node4.log, \
which sh5util reads: it is not my day")" = 1
    only_a_log "a converter that fails" node4 3
    check "a converter that fails: to the end" test "$(attribute \
        "$SCRATCH/$JOB.h5" /Steps/0/Nodes/node4 'Joule End ns')" -gt 0
    check_not "a converter that fails: the log is removed" \
        ls "$(profile_dir prof)/${JOB}_0_node4.log"
    printf '#!/bin/sh\nexec sleep 61\n' > "$program"
    before=${EPOCHREALTIME/./}
    step prof -w node4 --profile=all --acctg-freq=$FREQ sleep 3
    before=$(((${EPOCHREALTIME/./} - before) / 1000000))
    check "a converter that hangs: the step ends after $before s" test $before -le 20
    check "a converter that hangs: it is gone" \
        test -z "$(process_of "$(cluster dir prof)" '^sleep 61')"
    only_a_log "a converter that hangs" node4 3
    install -m 777 "$SCRATCH/converter" "$program"
    step prof -w node4 --profile=all --acctg-freq=$FREQ sleep 3
    check "a converter that others may write: not used, and said" \
        test "$(cluster log prof node4 |
            grep -c "JouleProfileConverter is not used: $program")" = 1
    only_a_log "a converter that others may write" node4 3
    chmod 755 "$program"
}

# What the user may have put there.
attacks() {
    local dir
    dir=$(cluster dir prof) && [ -d "$dir/profile/alice" ] ||
        { not_ok "attacks" "there is no profile to replace"; return; }
    dir=$dir/profile
    mv "$dir/alice" "$dir/.alice"
    cluster run prof sh -c "mkdir -p $SCRATCH/victim && ln -s $SCRATCH/victim $dir/alice"
    check "a link in place of the directory: the step runs" \
        cluster user prof srun -w node4 --profile=all sleep 2
    check "a link in place of the directory: nothing is written there" \
        test -z "$(ls -A "$SCRATCH/victim")"
    check "a link in place of the directory: one line in the log" \
        test "$(cluster log prof node4 | grep -c 'profile cannot be written')" = 1
    rm "$dir/alice"
    mv "$dir/.alice" "$dir/alice"
}

up prof --nodes 4 --contain --profile="$PROFILE" --sim '--load square:60:100:3.1' || exit 1
mkdir -p "$SCRATCH" && chmod 1777 "$SCRATCH"
one_node
four_nodes
# Slurm lets it wait for long.
! is_long || requeued
killed
no_converter
attacks
cluster down prof
finish
