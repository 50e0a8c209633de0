#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# More of sh5util: its progress on a terminal; an item of nodes that differ in
# rate and start; merges that are killed in the middle; files that are a trap, or
# not whole.  Then jobs of the plugin: arrays, heterogeneous jobs,
# extern steps, and what users may put where the plugin writes.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

SH5UTIL=$JOULE_BUILD/tools/sh5util/sh5util
MAKENODE=$JOULE_BUILD/tests/unit/makenode
PYTHON=/usr/bin/python3
chmod 755 "$SCRATCH"
cd "$SCRATCH" || exit 1

# status WANTED OPTION... - whether sh5util ends with it; it says it in $SAID
SAID=$SCRATCH/said
status() {
    local want=$1 got
    shift
    "$SH5UTIL" "$@" > "$SAID" 2>&1
    got=$?
    [ "$got" -eq "$want" ] || {
        echo "status $got instead of $want: sh5util $*"
        cat "$SAID"
        return 1
    }
}

# refused SENTENCE OPTION... - it does nothing, and says that
refused() {
    local sentence=$1
    shift
    status 1 "$@" && { grep -q "$sentence" "$SAID" || { cat "$SAID"; false; }; }
}

node() {
    "$MAKENODE" write "$@"
}

# ---- progress ----

# make_many TIMES - files for 512 x TIMES steps, each a copy of one.h5
make_many() {
    local i
    rm -rf many && mkdir -p many/root && cp one.h5 copies || return 1
    for ((i = 0; i < 9; i++)); do
        cat copies copies > twice && mv twice copies
    done
    for ((i = 0; i < $1; i++)); do
        split -d -a 3 -b "$(stat -c %s one.h5)" --additional-suffix=_n1.h5 \
            copies "many/root/9_$((i + 1))"
    done
}

# A merge of about 3 s on this machine.
node one.h5 n1 100 10 ours 0 1
make_many 1
begin=${EPOCHREALTIME/./}
check "a merge of many steps" status 0 -S -j 9 -p many -o many.h5
TIMES=$((3500000 / (${EPOCHREALTIME/./} - begin) + 1))
# What kept the machine busy may be over by now: more steps, until it takes 2 s.
long_merge() {
    local begin
    while make_many $TIMES && rm -f many.h5; do
        begin=${EPOCHREALTIME/./}
        script -qec "$SH5UTIL -S -j 9 -p many -o many.h5" typescript \
            > /dev/null < /dev/null || { cat typescript; return 1; }
        [ $((${EPOCHREALTIME/./} - begin)) -lt 2000000 ] && [ $TIMES -lt 100 ] ||
            return 0
        TIMES=$((TIMES * 2))
    done
}
on_terminal() {
    long_merge || return 1
    # Each is a carriage return and the bar; at last, the line is cleared.
    tr '\r' '\n' < typescript | sed -n 's/^\[\(#* *\)\] *\([0-9]*\) %.*/\1|\2/p' \
        > bars
    [ "$(wc -l < bars)" -ge 3 ] || { echo "no bar"; cat typescript; return 1; }
    awk -F'|' '
        length($1) != 40 { print "a bar of " length($1); bad = 1 }
        $2 < before || $2 > 100 { print before " % and then " $2 " %"; bad = 1 }
        { n = gsub(/#/, "", $1); before = $2 }
        n != int($2 * 40 / 100) && n != int(($2 + 1) * 40 / 100) {
            print n " signs at " $2 " %"; bad = 1
        }
        END { exit bad }' bars || return 1
    tail -c 40 typescript > end
    grep -q $'\r\033\[K' typescript || { echo "it stays there"; return 1; }
    ! sed 's/.*\x1b\[K//' end | grep -q '%'
}
check "a terminal shows how far a merge is, and is cleared" on_terminal
rm -f many.h5
no_terminal() {
    status 0 -S -j 9 -p many -o many.h5 && ! grep -q $'\r\|\033\|%' "$SAID" &&
        [ "$(wc -l < "$SAID")" = 1 ]
}
check "nothing of that where there is no terminal" no_terminal
short() {
    rm -rf few few.h5 && mkdir -p few/root && cp one.h5 few/root/9_0_n1.h5 &&
        script -qec "$SH5UTIL -S -j 9 -p few -o few.h5" typescript \
            > /dev/null < /dev/null && ! grep -q '%' typescript
}
check "nor for a merge of a moment" short
rm -rf many many.h5

# ---- nodes that differ in rate and start ----

# 100 Hz from the first moment on, 1 Hz 2.5 s later, 10 Hz 0.37 s later; and
# Slurm's layout, which has whole seconds alone.
mkdir -p rates/root
node rates/root/9_0_n1.h5 n1 3000 100 ours 0 1
node rates/root/9_0_n2.h5 n2 20 1 ours 0 2 2500
node rates/root/9_0_n3.h5 n3 150 10 ours 0 3 370
node rates/root/9_0_n4.h5 n4 25 1 slurm 0 4 1000
check "a merge of unequal rates" status 0 -S -j 9 -p rates -o rates.h5
check "an item of them" status 0 -j 9 -i rates.h5 -I -s Energy -d Power -o item.csv
cat > nearest.py <<'END'
"""The item of each node that is nearest in time to each row of the first one,
reckoned anew from the file, and not further away than half an interval."""
import csv, h5py
nodes = {}
for name, node in h5py.File('rates.h5')['Steps/0/Nodes'].items():
    rows = node['Energy'][:]
    if 'ElapsedTimeNs' in rows.dtype.names:
        start = int(node.attrs['Joule Start Wall ns'][0])
        times = [start + int(t) for t in rows['ElapsedTimeNs']]
    else:
        times = [int(t) * 10**9 for t in rows['EpochTime']]
    nodes[name] = (times, rows['Power'], times[1] - times[0])
driver = nodes['n1']
csv_rows = list(csv.DictReader(open('item.csv')))
assert len(csv_rows) == len(driver[0]), (len(csv_rows), len(driver[0]))
seen = dict.fromkeys(nodes, 0)
for at, value, row in zip(driver[0], driver[1], csv_rows):
    total = count = 0
    for name, (times, values, interval) in nodes.items():
        off, _, i = min((abs(t - at), -i, i) for i, t in enumerate(times))
        near = off <= max(interval, driver[2]) // 2
        cell = str(values[i]) if near else ''
        assert row[name] == cell, (at, name, row[name], cell)
        seen[name] += near
        total += int(values[i]) if near else 0
        count += near
    assert int(row['Sum']) == total and int(row['NumNodes']) == count, row
# No node is there all the time but the first, and each is there.
assert seen['n1'] == 3000 and all(0 < seen[n] < 3000 for n in ('n2', 'n3', 'n4')), seen
print(seen)
END
if $PYTHON -c 'import h5py' 2> /dev/null; then
    check "its values are those nearest in time" $PYTHON nearest.py
else
    skip "its values are those nearest in time" "there is no python3-h5py"
fi
kept() {
    status 0 -j 9 -i rates.h5 -E -s Energy -l Node:TimeSeries -o all.csv &&
        [ "$(awk -F, 'NR > 1 { n[$2]++ }
            END { print n["n1"], n["n2"], n["n3"], n["n4"] }' all.csv)" = \
            "3000 20 150 25" ]
}
check "the series are kept as they are" kept

# ---- killed in the middle ----

# How many of the kills came in time is counted: a merge that is over has
# nothing to lose.
mkdir -p source/root
for ((i = 1; i <= 120; i++)); do
    node "source/root/9_0_n$i.h5" "n$i" 20000 10 ours 0 "$i"
done
killed() {
    local i n ms pid state moment early=0 after=0 begin
    cp -r source k && begin=${EPOCHREALTIME/./} &&
        status 0 -j 9 -p k -o reference.h5 || return 1
    ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
    rm -r k && cp -r source k && rm -f killed.h5 .killed.h5.tmp
    for ((i = 0; i < 50; i++)); do
        "$SH5UTIL" -j 9 -p k -o killed.h5 2> /dev/null &
        pid=$!
        if ((i % 2)); then
            moment=$((RANDOM % ms))
            sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
        else
            # Now the order of removing and renaming counts.
            until [ -e killed.h5 ] || [ ! -e k/root/9_0_n1.h5 ] ||
                [ ! -d "/proc/$pid" ]; do :; done
        fi
        kill -9 "$pid" 2> /dev/null
        wait "$pid" 2> /dev/null
        state=$?
        [ "$state" = 137 ] && early=$((early + 1))
        [ ! -e killed.h5 ] || after=$((after + 1))
        # Each node is where it was, as it was, or in the merged file.
        for ((n = 1; n <= 120; n++)); do
            cmp -s "source/root/9_0_n$n.h5" "k/root/9_0_n$n.h5" ||
                { [ ! -e "k/root/9_0_n$n.h5" ] && [ -e killed.h5 ]; } ||
                { echo "kill $i: n$n is lost"; return 1; }
        done
        [ ! -e killed.h5 ] || {
            status 0 -j 9 -p k -o killed.h5 && [ "$(h5ls \
                killed.h5/Steps/0/Nodes | wc -l)" = 120 ] || return 1
            [ $((after % 8)) -ne 1 ] ||
                h5diff -q killed.h5 reference.h5 || return 1
            rm -r k killed.h5 && cp -r source k
        }
    done 2> /dev/null
    echo "# a merge of $ms ms: $early of 50 killed; after $after the file was there" >&3
    status 0 -j 9 -p k -o killed.h5 && h5diff -q killed.h5 reference.h5 &&
        [ -z "$(ls k/root)" ] && [ ! -e .killed.h5.tmp ] && [ "$early" -ge 25 ]
}
exec 3>&1
check "killed 50 times in the middle: no node is lost, and the rerun is whole" killed
rm -rf source k killed.h5 reference.h5

# ---- traps ----

mkdir -p traps/root other && cp rates.h5 other/secret.h5
new_trap() {
    rm -rf traps/root/* ./out.h5 && node traps/root/9_0_n1.h5 n1 10 10 ours 0 1
}
output_is() {
    new_trap && "$@" out.h5 || return 1
    refused 'out.h5' -S -j 9 -p traps -o out.h5
}
check "a merged file that is a link is not added to" \
    output_is ln -s "$PWD/other/secret.h5"
check "a pipe in place of a merged file does not hold it up" output_is mkfifo
device() {
    mknod "$1" c 1 5
}
check "nor does a device" output_is device
check "what the link named is untouched" cmp rates.h5 other/secret.h5
rm -f pipe && mkfifo pipe && mknod device c 1 5
check "a pipe is no merged file to read" refused 'no regular file' -j 9 -i pipe -E
check "a device is none either" refused 'no regular file' -j 9 -i device -L
csv_is_link() {
    rm -f text.csv victim && echo precious > victim && ln -s victim text.csv &&
        status 0 -j 9 -i rates.h5 -E -o text.csv && [ ! -L text.csv ] &&
        [ "$(cat victim)" = precious ]
}
check "a link in place of the text is replaced, what it names is not" csv_is_link
fifo_dir() {
    rm -rf traps/root && mkfifo traps/root &&
        refused 'traps/root' -S -j 9 -p traps -o no.h5 && rm traps/root
}
check "a pipe in place of the user's directory" fifo_dir

# ---- what is no whole file ----

mkdir -p cut/root && node cut/root/9_0_n1.h5 n1 60000 10 ours 0 1 &&
    node cut/root/9_0_n2.h5 n2 1000 10 slurm 0 2
truncate -s -100 cut/root/9_0_n1.h5
check "a file that is cut off is merged as far as it goes" status 2 -S -j 9 -p cut -o cut.h5
check "of which some rows are kept" eval '
    grep -q "9_0_n1.h5: .* ([1-9][0-9]* rows taken; the file is kept)" "$SAID" &&
        [ "$(h5ls cut.h5/Steps/0/Nodes | wc -l)" = 2 ]'
echo 'no profile' > garbage.h5
check "what is no HDF5 file at all is named" \
    refused 'garbage.h5: it is no HDF5 file' -j 9 -i garbage.h5 -L
check "also where it is extracted" \
    refused 'garbage.h5: it is no HDF5 file' -j 9 -i garbage.h5 -E
rm -rf cut cut.h5 garbage.h5

# ---- jobs ----

PROFILE=acct_gather_profile/joule_hdf5
[ -e "$JOULE_BUILD/plugins/acct_gather_profile_joule_hdf5.so" ] || {
    not_ok "the profile plugin" "it was not built"
    finish
}
up more --nodes 2 --contain --profile=$PROFILE --gather 'ProfileHDF5Default=Energy
JouleProfileExtern=yes' || exit 1
DIR=$(cluster dir more) && [ -d "$DIR" ] || exit 1
mkdir work && chmod 777 work

# user OPTION... - sh5util as alice, in work
user() {
    cluster user more sh -c "cd $SCRATCH/work && exec $SH5UTIL \"\$@\"" sh "$@" \
        > "$SAID" 2>&1 || { cat "$SAID"; return 1; }
}

# raw NAME - the number of the job that sacct calls that
raw() {
    cluster user more sacct -a -X -n -P -o JobIDRaw -j "$1" | head -n 1
}

# steps FILE - names of the steps in it
steps() {
    h5ls "$1/Steps" | awk '{ print $1 }' | sort | paste -s -d ' '
}

# Task 3 has two steps, task 5 one.
# shellcheck disable=SC2016  # the job's
printf '#!/bin/sh\n[ $SLURM_ARRAY_TASK_ID = 5 ] || srun -n1 sleep 1\nsrun -n1 sleep 2\n' \
    > batch.sh
JOB=$(cluster user more sbatch --parsable -W -N1 -n1 --array=3,5 -o /dev/null \
    --acctg-freq=energy=1 "$SCRATCH/batch.sh") || not_ok "an array job"
array() {
    local three five
    three=$(raw "${JOB}_3") five=$(raw "${JOB}_5")
    [ -n "$three" ] && [ -n "$five" ] && [ "$three" != "$five" ] &&
        user -S -j "${JOB}_3" && user -S -j "${JOB}_5" || return 1
    [ "$(steps "work/job_${JOB}_3.h5")" = "-4 0 1 batch" ] &&
        [ "$(steps "work/job_${JOB}_5.h5")" = "-4 0 batch" ] ||
        { steps "work/job_${JOB}_3.h5"; steps "work/job_${JOB}_5.h5"; return 1; }
    # Both by their own numbers: the same.
    user -S -j "$three" -o raw.h5 &&
        h5diff -q work/raw.h5 "work/job_${JOB}_3.h5"
}
check "-j JOB_TASK merges that task, its steps and no other's" array
check "one step of a task" user -S -j "${JOB}_3.1" -o step.h5
check "it is that step alone" test "$(steps work/step.h5)" = 1
check "-j JOB_TASK extracts" user -j "${JOB}_3" -E -s Energy
check "into a file of its name" test -s "work/extract_${JOB}_3.csv"
within_job() {
    # No daemon is asked.
    cluster user more env SLURM_ARRAY_JOB_ID="$JOB" SLURM_ARRAY_TASK_ID=5 \
        SLURM_JOB_ID="$(raw "${JOB}_5")" PATH=/nowhere /bin/sh -c \
        "cd $SCRATCH/work && $SH5UTIL -S -j ${JOB}_5 -o within.h5" > "$SAID" 2>&1 &&
        [ "$(steps work/within.h5)" = "-4 0 batch" ] || { cat "$SAID"; false; }
}
check "within the job, by its environment" within_job
no_task() {
    ! user -S -j "${JOB}_4" -o none.h5 && [ ! -e work/none.h5 ] &&
        grep -q 'is not known' "$SAID"
}
check "a task that is none" no_task
check "the extern step is profiled by JouleProfileExtern" \
    user -S -j "${JOB}_3.extern" -o extern.h5
check "it is called -4" test "$(steps work/extern.h5)" = -4

cluster user more srun --acctg-freq=energy=1 -N1 -n1 sleep 1 : -N1 -n1 \
    sleep 2 > /dev/null 2>&1
# The database is told of it a moment later.
find_het() {
    HET=$(cluster user more sacct -a -X -n -P -o JobID | sed -n 's/+1$//p' | tail -n 1)
    [ -n "$HET" ]
}
wait_for 60 find_het
heterogeneous() {
    local zero one
    zero=$(raw "$HET+0") one=$(raw "$HET+1")
    [ -n "$HET" ] && [ -n "$zero" ] && [ -n "$one" ] && [ "$zero" != "$one" ] &&
        user -S -j "$HET+0" && user -S -j "$HET+1" || return 1
    user -S -j "$one" -o het.h5 && h5diff -q work/het.h5 "work/job_$HET+1.h5" &&
        user -j "$HET+1" -I -s Energy -d Power -o het.csv || return 1
    h5diff -q work/het.h5 "work/job_$HET+0.h5"
    [ $? = 1 ] || { echo "both components are the same"; return 1; }
}
check "-j JOB+N merges that component" heterogeneous

# ---- what users may put where the plugin writes ----

# step_runs NAME - one of alice's on node1, job JOB: it ends well whatever is
# there
step_runs() {
    JOB=$(($(last_job more) + 1))
    check "$1: the step runs" step
    # Its extern step is profiled as well, and ends after it.
    wait_for 60 step_ended more "$JOB.extern"
    # slurmctld of 24.11 is told before slurmstepd has come to its end.
    wait_for 60 no_slurmstepd
}

no_slurmstepd() {
    ! cluster run more pgrep -f "^slurmstepd: \\[$JOB\\."
}

step() {
    timeout 60 "$LIB/cluster" user more srun -w node1 --profile=energy \
        --acctg-freq=energy=1 sleep 2
}

# said SENTENCE - whether the log of node1 has it of that step
said() {
    cluster log more node1 | grep -F "[$JOB.0] error: joule_hdf5:" | grep -q "$1" ||
        { cluster log more node1 | grep "\[$JOB.0\]"; return 1; }
}

echo precious > "$DIR/victim" && chown 5001 "$DIR/victim"
NEXT=$DIR/profile/alice/$(($(last_job more) + 1))_0_node1
ln -s "$DIR/victim" "$NEXT.h5"
mkfifo "$NEXT.r1.h5"
mknod "$NEXT.r2.h5" c 1 5
ln "$DIR/victim" "$NEXT.r3.h5"
mkdir "$NEXT.r4.h5"
chown -h 5001 "$NEXT".*
step_runs "a link, a pipe, a device and more with the names of the file"
check "its profile has the next name" h5ls "$NEXT.r5.h5/node1.r5/Energy"
check "what the links name is untouched" test "$(cat "$DIR/victim")" = precious
merge_among_traps() {
    cluster run more "$SH5UTIL" -S -j "$JOB.0" -u alice \
        -o "$SCRATCH/work/traps.h5" > "$SAID" 2>&1
    [ $? = 2 ] && [ "$(h5ls work/traps.h5/Steps/0/Nodes | awk '{ print $1 }')" = \
        node1.r5 ] && [ "$(grep -c 'the file is kept' "$SAID")" = 5 ] ||
        { cat "$SAID"; h5ls -r work/traps.h5; return 1; }
}
check "and a merge takes it alone, and names the rest" merge_among_traps

mv "$DIR/profile/alice" "$DIR/profile/.alice"
install -d -o 5002 -m 0777 "$DIR/profile/alice"
step_runs "a directory of somebody else's with the user's name"
check "nothing is written there" test -z "$(ls -A "$DIR/profile/alice")"
check "and the log says whose it is" said 'belongs to user 5002'
rmdir "$DIR/profile/alice"
install -d -o 5001 -m 0777 "$DIR/profile/alice"
step_runs "the user's directory, but all may write to it"
check "nothing is written there either" test -z "$(ls -A "$DIR/profile/alice")"
check "and the log says so" said 'can be written by others'
rmdir "$DIR/profile/alice"
mkfifo -m 666 "$DIR/profile/alice"
step_runs "a pipe in its place"
rm "$DIR/profile/alice"
mv "$DIR/profile/.alice" "$DIR/profile/alice"

chmod 777 "$DIR/profile"
step_runs "all may write to ProfileHDF5Dir"
check "the log says so" said 'can be written by others'
check_not "and no file is there" ls "$DIR/profile/alice/${JOB}_0_node1.h5"
chmod 755 "$DIR/profile"
mv "$DIR/profile" "$DIR/real" && install -d -o 5001 "$DIR/evil" &&
    ln -s "$DIR/evil" "$DIR/profile"
step_runs "a link to a user's directory in place of ProfileHDF5Dir"
check "the log says whose it is" said 'belongs to user 5001'
check "nothing is written there, too" test -z "$(ls -A "$DIR/evil")"
rm "$DIR/profile" && mv "$DIR/real" "$DIR/profile"
step_runs "all is well again"
check "and has a profile" test -s "$DIR/profile/alice/${JOB}_0_node1.h5"
finish
