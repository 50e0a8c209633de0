#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# Profiles on a share on which root is nobody, and on a file system that does not
# answer: jobs start and end all the same.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/profile.sh"
STUCKFS=$JOULE_BUILD/tests/system/stuckfs

# mount_stuckfs BACKING [OPTION] - for slurmd, which has a mount namespace of its
# own; sets SLURMD, and STUCK to the process that serves it
mount_stuckfs() {
    local dir
    dir=$(cluster dir stuck) && [ -d "$dir" ] || return
    SLURMD=$(process_of "$dir" '^slurmd -N node1')
    # shellcheck disable=SC2086
    nsenter -t "$SLURMD" -m "$STUCKFS" ${2:-} "$1" "$dir/profile" 2> /dev/null &
    wait_for 60 grep -q " $dir/profile .* fuse" "/proc/$SLURMD/mountinfo" || return
    STUCK=$(pgrep -f "^$STUCKFS .*$1 ")
}

# A share on which root is nobody: users may make their own directories.
squashed() {
    local dir backing
    dir=$(cluster dir stuck) backing=$dir/share
    mkdir "$backing" && chmod 1777 "$backing"
    mount_stuckfs "$backing" --squash ||
        { not_ok "a share where root is nobody"; return; }
    nsenter -t "$SLURMD" -m sh -c ': > "$0"' "$dir/profile/probe"
    check "a share where root is nobody" \
        test "$(stat -c %u "$backing/probe")" = 65534
    step stuck --profile=all sleep 3
    check "root is nobody: the file is whole" \
        test "$(attribute "$backing/alice/${JOB}_0_node1.h5" /node1 'Joule End ns')" -gt 0
    check "root is nobody: all is the user's, and nobody else's" \
        test "$(stat -c '%U %a' "$backing/alice" "$backing/alice/${JOB}_0_node1.h5" |
            sort -u | xargs)" = "$(stat -c %U "$dir/home/alice") 600 $(stat -c %U "$dir/home/alice") 700"
    # What another user took first is not used.
    rm -rf "$backing/alice"
    install -d -o nobody -m 777 "$backing/alice"
    step stuck --profile=all sleep 1
    check "root is nobody: a directory of somebody else is not used" \
        test -z "$(ls "$backing/alice")"
    rm -rf "$backing"
    kill "$STUCK"
    wait
}

# The profiles' file system stops to answer.
hung() {
    local dir pid before backing
    dir=$(cluster dir stuck) && [ -d "$dir" ] ||
        { not_ok "the stuck file system" "no cluster"; return; }
    backing=$dir/backing
    mkdir -p "$backing"
    mount_stuckfs "$backing" || { not_ok "the stuck file system"; return; }
    pid=$STUCK
    step stuck --profile=all sleep 7
    check "a file system of FUSE: the file is there" \
        test "$(rows "$backing/alice/${JOB}_0_node1.h5" /node1/Energy | wc -l)" -ge 7

    cluster user stuck srun -J hung --profile=all sleep 12 &
    wait_for 60 cluster run stuck squeue -h -n hung -t R -o %A
    sleep 8
    kill -STOP "$pid"
    before=${EPOCHREALTIME/./}
    wait $!
    before=$(((${EPOCHREALTIME/./} - before) / 1000000))
    echo "# stuck in the middle: the step ended after $before s (4 left, and 10 to wait)"
    check "stuck in the middle: the step ends" test $before -le 20
    check "stuck in the middle: said in the log" \
        test "$(cluster log stuck node1 | grep -c 'file system does not answer')" = 1
    before=${EPOCHREALTIME/./}
    check "stuck from the beginning: the step runs" \
        cluster user stuck srun -J hung --profile=all sleep 7
    before=$(((${EPOCHREALTIME/./} - before) / 1000000))
    echo "# stuck from the beginning: a step of 7 s took $before s"
    check "stuck from the beginning: the step ends" test $before -le 23
    check "stuck from the beginning: a step shorter than a flush runs" \
        cluster user stuck srun -J hung --profile=all sleep 1
    kill -CONT "$pid"
    step stuck --profile=all sleep 1
    check "it answers again: the file is there" \
        test "$(attribute "$backing/alice/${JOB}_0_node1.h5" /node1 'Joule End ns')" -gt 0
    check "no slurmstepd is left" wait_for 60 no_stepd
    kill "$pid"
    wait
}

no_stepd() {
    ! cluster run stuck pgrep -f "^slurmstepd: \[$JOB"
}

# It stops between two flushes.
up stuck --profile="$PROFILE" --gather 'JouleProfileFlush=5s' || exit 1
if [ -x "$STUCKFS" ]; then
    squashed
    hung
else
    skip "a file system that hangs" "$STUCKFS is not built"
fi
finish
