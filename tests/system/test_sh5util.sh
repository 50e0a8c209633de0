#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default
#
# sh5util on files that Slurm's own plugin wrote, against Slurm's sh5util; on
# damaged files; without room; on files that are a trap; and what it says of
# several jobs, and to whom.
#
# SH5UTIL_DAMAGED is how many files of each layout are damaged (default 30, with
# JOULE_TEST_LONG 500).
# shellcheck source=tests/system/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

SH5UTIL=$JOULE_BUILD/tools/sh5util/sh5util
MAKENODE=$JOULE_BUILD/tests/unit/makenode
DAMAGED=${SH5UTIL_DAMAGED:-$(if is_long; then echo 500; else echo 30; fi)}

# ours ARGUMENT... - our sh5util, quietly; its status
ours() {
    "$SH5UTIL" "$@" > "$SCRATCH/ours.out" 2> "$SCRATCH/ours.err"
}

# status WANTED COMMAND... - whether COMMAND ends with that status
status() {
    local want=$1 got
    shift
    "$@"
    got=$?
    [ "$got" -eq "$want" ] || {
        echo "status $got instead of $want: $*"
        cat "$SCRATCH/ours.err"
        return 1
    }
}

# same_rows A B - CSV with the same rows, in any order
same_rows() {
    diff <(sort "$1") <(sort "$2") > "$SCRATCH/diff" || {
        head -5 "$SCRATCH/diff"
        return 1
    }
}

# most_rows FILE - the node with the most rows of step 0, the first of several
most_rows() {
    awk -F, 'NR > 1 && $1 == 0 && rows[$2]++ == 0 { name[n++] = $2 }
        END { for (i = 0; i < n; i++) if (rows[name[i]] > rows[most]) most = name[i]
              print most }' "$1"
}

# item_column FILE NODE - the cells of a node in step 0 of an item of several nodes
item_column() {
    awk -F, -v node="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == node) at = i; next }
        at && $1 == 0 { print $at }' "$1"
}

# without_gpu FILE - where there is no GPU, Slurm's plugin of 24.11 leaves the
# columns of it as they happen to be, and its sh5util lets their sum overflow
without_gpu() {
    awk -F, -v OFS=, '
        NR == 1 { for (i = 1; i <= NF; i++) gpu[i] = $i ~ /GPU/ }
        { line = ""
          for (i = 1; i <= NF; i++) if (!gpu[i]) line = line OFS $i
          print line }' "$1"
}

# new_files DIR LAYOUT NODES ROWS - node-step files of job 9 of this user
new_files() {
    local i
    rm -rf "$1"
    mkdir -p "$1/root"
    for ((i = 1; i <= $3; i++)); do
        "$MAKENODE" write "$1/root/9_0_n$i.h5" "n$i" "$4" 10 "$2" 1 "$i" ||
            return 1
    done
}

# What Slurm's own plugin and sh5util make of a job.

up sh5 --nodes 4 --profile --contain || exit 1
cat > "$SCRATCH/job" <<'END'
#!/bin/sh
srun -N4 -n6 sleep 4
srun -N2 -n2 sleep 2
END
chmod 755 "$SCRATCH/job"
cluster user sh5 sbatch -W -N4 -n6 --profile=all \
    --acctg-freq=task=1,energy=1 "$SCRATCH/job" > /dev/null ||
    { not_ok "a job with a profile"; finish; }
PROFILE=$(cluster dir sh5)/profile
mkdir "$SCRATCH/work" && chmod 777 "$SCRATCH/work"
cat > "$SCRATCH/theirs" <<END
cd $SCRATCH/work
sh5util -j 1 -S -o theirs.h5 || exit 1
sh5util -j 1 -i theirs.h5 -E -s Energy -l Node:TimeSeries -o e.csv
sh5util -j 1 -i theirs.h5 -E -s Energy -o et.csv
sh5util -j 1 -i theirs.h5 -E -s Tasks -l Node:TimeSeries -o t.csv
sh5util -j 1 -i theirs.h5 -E -s Tasks -o tt.csv
sh5util -j 1 -i theirs.h5 -L -s Tasks > l.txt 2> /dev/null
END
check "Slurm's sh5util merges and extracts" \
    cluster user sh5 sh "$SCRATCH/theirs"
cd "$SCRATCH/work" || exit 1
# As root, for the user: no cluster, no slurm.conf.
chmod 755 "$SCRATCH"
as_alice() {
    setpriv --reuid 5001 --regid 5001 --clear-groups "$SH5UTIL" "$@" \
        > "$SCRATCH/ours.out" 2> "$SCRATCH/ours.err"
}
check "the user merges without Slurm's configuration" \
    status 0 as_alice -j 1 -S -p "$PROFILE" -u alice -o ours.h5
check "the merged files do not differ (h5diff)" \
    h5diff -q ours.h5 theirs.h5 /Steps/0/Nodes /Steps/0/Nodes
check "h5dump reads ours" h5dump -o /dev/null ours.h5
numbers_of_nodes() {
    local step
    for step in 0 1 batch; do
        h5dump -a "/Steps/$step/Number of Nodes" ours.h5 || return 1
    done
}
check "each step has its number of nodes" numbers_of_nodes
for file in ours theirs; do
    status 0 as_alice -j 1 -i $file.h5 -E -s Energy -l Node:TimeSeries -o oe.csv
    check "$file: energy series" same_rows oe.csv e.csv
    status 0 as_alice -j 1 -i $file.h5 -E -s Energy -o oet.csv
    check "$file: energy totals" same_rows oet.csv et.csv
    status 0 as_alice -j 1 -i $file.h5 -E -s Task -l Node:TimeSeries -o ot.csv
    check "$file: -s Task is all tasks" same_rows ot.csv t.csv
    status 0 as_alice -j 1 -i $file.h5 -E -s Tasks -o ott.csv
    check "$file: task totals" same_rows <(without_gpu ott.csv) <(without_gpu tt.csv)
    status 0 as_alice -j 1 -i $file.h5 -E -s Task_1 -l Node:TimeSeries -o o1.csv
    check "$file: -s Task_1 is one task" \
        same_rows o1.csv <(awk -F, 'NR == 1 || $3 == 1' t.csv)
    as_alice -j 1 -i $file.h5 -L -s Tasks
    check "$file: list" cmp "$SCRATCH/ours.out" l.txt
    check "$file: an item of several nodes" \
        status 0 as_alice -j 1 -i $file.h5 -I -s Energy -d package_0_mW -o i.csv
    # It gives the moments, the others may have been sampled less evenly.
    node=$(most_rows e.csv)
    check "$file: doubles of an item are those of the series" same_rows \
        <(item_column i.csv "$node") \
        <(awk -F, -v node="$node" '$1 == 0 && $2 == node { print $7 }' e.csv)
done
cluster user sh5 sh -c "cd $SCRATCH/work && sh5util -j 1 -i ours.h5 -E \
    -s Tasks -l Node:TimeSeries -o back.csv" > /dev/null 2>&1
check "Slurm's sh5util reads our merged file" same_rows back.csv t.csv
# Root in a user's directory: what stands there is the user's word.
refused_to_root() {
    local sentence=$1
    shift
    rm -f out.csv
    status 1 ours "$@" -E -s Energy -o out.csv && [ ! -e out.csv ] &&
        { grep -q "$sentence" "$SCRATCH/ours.err" || { cat "$SCRATCH/ours.err"; false; }; }
}
check "root does not read a user's file as root" \
    refused_to_root 'belongs to user 5001' -j 1 -i ours.h5
ln -sf "$SCRATCH/secret.h5" job_77.h5
cp ours.h5 "$SCRATCH/secret.h5" && chmod 600 "$SCRATCH/secret.h5"
check "nor by a link of a user's" refused_to_root 'is a link' -j 77
rm -f job_77.h5 "$SCRATCH/secret.h5"
as_private() {
    chmod 600 ours.h5 && status 0 cluster run sh5 "$SH5UTIL" -u alice -j 1 \
        -i "$PWD/ours.h5" -E -s Energy -o "$PWD/out.csv" > "$SCRATCH/ours.out" 2>&1 &&
        [ "$(stat -c '%u %a' out.csv)" = "5001 600" ]
}
check "as the user, and what is made of it is as private" as_private
one_step() {
    status 0 as_alice -j 1.1 -S -p "$PROFILE" -u alice -o one.h5 &&
        [ "$(h5ls one.h5/Steps | awk '{ print $1 }')" = 1 ]
}
check "-j J.S merges that step alone" one_step
if /usr/bin/python3 -c 'import h5py' 2> /dev/null; then
    check "h5py reads ours" /usr/bin/python3 - <<'END'
import h5py
f = h5py.File('ours.h5')
assert f.attrs['Number of Steps'][0] == len(f['Steps'])
rows = f['Steps/0/Nodes/node1/Energy'][:]
assert len(rows) > 2 and all(rows['EpochTime'][1:] > rows['EpochTime'][:-1])
END
else
    skip "h5py reads ours" "there is no python3-h5py"
fi
# Tasks of an array and components of a heterogeneous job have other numbers;
# only the task that starts last has the array's own.
ARRAY=$(cluster user sh5 sbatch --parsable -W -N1 -n1 --array=3-4 \
    --profile=energy --acctg-freq=energy=1 --wrap 'srun sleep 2')
array() {
    local raw
    raw=$(cluster user sh5 sacct -X -n -P -o jobidraw -j "${ARRAY}_3") || return 1
    [ -n "$raw" ] && [ "$raw" != "$ARRAY" ] ||
        { echo "task 3 of $ARRAY has the number \"$raw\""; return 1; }
    status 0 cluster user sh5 sh -c \
        "cd $SCRATCH/work && $SH5UTIL -j ${ARRAY}_3 -S -o array.h5 &&
            $SH5UTIL -j $raw -S -o raw.h5" && h5diff -q array.h5 raw.h5
}
check "-j JOB_TASK merges a task of an array" array
# others JOB WHAT - of the number alone, it is said that there are others
others() {
    status 0 cluster user sh5 sh -c "cd $SCRATCH/work && rm -f others.h5 &&
        $SH5UTIL -j $1 -S -o others.h5 2> others.err" &&
        { grep -q "Job $1 is $2: .*(${1}[_+]" others.err || { cat others.err; false; }; }
}
check "-j JOB says that the array has another task" others "$ARRAY" "an array"
cluster user sh5 srun --profile=energy --acctg-freq=energy=1 -N1 -n1 \
    sleep 2 : -N1 -n1 sleep 2 > /dev/null 2>&1
find_component() {
    cluster user sh5 sacct -a -X -n -P -o jobid | grep '+1'
}
component() {
    local name
    # The database is told of it a moment later.
    wait_for 60 find_component > /dev/null && name=$(find_component) || return 1
    status 0 cluster user sh5 sh -c \
        "cd $SCRATCH/work && $SH5UTIL -j $name -S -o het.h5" &&
        h5ls het.h5/Steps/0/Nodes > /dev/null
}
check "-j JOB+N merges a component of a heterogeneous job" component
leader() {
    local name
    name=$(find_component) && others "${name%+*}" "a heterogeneous job"
}
check "-j JOB says that there is another component" leader
check "root as the user removes what is merged" \
    cluster run sh5 "$SH5UTIL" -j 1 -u alice -o "$SCRATCH/work/all.h5"
check "what it made is the user's" test "$(stat -c %u all.h5)" = 5001
check "nothing is left of it" \
    test "$(find "$PROFILE/alice" -name '1_*' | wc -l)" = 0
cluster down sh5 > /dev/null 2>&1

# The same with our plugin, where it was built.
ours_and_theirs() {
    cd "$SCRATCH/work" || return 1
    rm -f theirs.h5 o.csv e.csv
    cluster user sh5b sbatch -W -N2 -n2 --profile=all \
        --acctg-freq=task=1,energy=1 --wrap 'srun sleep 4' > /dev/null &&
        cluster user sh5b sh -c "cd $SCRATCH/work && rm -f *.h5 &&
            sh5util -j 1 -S -o theirs.h5 && $SH5UTIL -j 1 -S -o ours.h5 &&
            sh5util -j 1 -E -s Energy -l Node:TimeSeries -i ours.h5 -o e.csv &&
            $SH5UTIL -j 1 -E -s Energy -l Node:TimeSeries -i theirs.h5 \
                -o o.csv" > /dev/null 2> ours.err || return 1
    h5diff -q ours.h5 theirs.h5 /Steps/0/Nodes /Steps/0/Nodes &&
        same_rows o.csv e.csv && head -1 o.csv | grep -q ElapsedTimeNs
}

# Its tables are compressed: their filters are copied with them.
copied_again() {
    rm -f again.h5
    h5copy -i ours.h5 -o again.h5 -s /Steps -d /Steps &&
        h5diff -q ours.h5 again.h5 /Steps /Steps &&
        h5dump -p -H again.h5 | grep -q FLETCHER32 &&
        h5dump -o /dev/null again.h5 > /dev/null
}
# However long ago its last flush was, by the clock of the file server.
running() {
    local step file
    file=$(cluster dir sh5b)/profile/alice/2_0_node1.log
    cluster user sh5b srun -N1 -n1 -w node1 --profile=energy sleep 300 > /dev/null 2>&1 &
    step=$!
    wait_for 30 test -s "$file" || return 1
    touch -d '1 hour ago' "$file"
    status 1 sh5b_merge && grep -q 'it is still being written' "$SCRATCH/ours.err" &&
        [ -s "$file" ] && status 2 sh5b_merge --unfinished && [ -s "$file" ] || return 1
    cluster user sh5b scancel 2
    wait "$step"
    status 0 sh5b_merge && [ ! -e "$file" ]
}
sh5b_merge() {
    cluster user sh5b sh -c "cd $SCRATCH/work && $SH5UTIL -j 2.0 -o running.h5 $*" \
        > "$SCRATCH/ours.out" 2> "$SCRATCH/ours.err"
}

if [ -e "$JOULE_BUILD/plugins/acct_gather_profile_joule_hdf5.so" ]; then
    up sh5b --nodes 2 --profile=acct_gather_profile/joule_hdf5 \
        --gather 'JouleProfileFlush=1s' || exit 1
    check "our plugin's files: both tools agree" ours_and_theirs
    check "libhdf5 copies from the merged file" copied_again
    check "a step that runs keeps its file" running
    cluster down sh5b > /dev/null 2>&1
else
    skip "our plugin's files: both tools agree" "the plugin was not built"
fi

# Damaged files.

cd "$SCRATCH" || exit 1
# Reads all of each file that it is told the name of.  h5dump takes ten times as long, to
# print it; but it knows types that numpy has not, which a damaged file may have.
cat > readall.py << 'END'
import sys

import h5py


def read(name, item):
    list(item.attrs.values())
    if isinstance(item, h5py.Dataset):
        item[()]


for name in sys.stdin:
    try:
        with h5py.File(name.rstrip("\n"), "r") as file:
            read("/", file)
            file.visititems(read)
        print("read", flush=True)
    except Exception:
        print("h5dump", flush=True)
END
READALL_PID=''
/usr/bin/python3 -c 'import h5py' 2> /dev/null &&
    coproc READALL { /usr/bin/python3 readall.py; }

# libhdf5_reads FILE I - all of it; every tenth with h5dump, which reads in its own way
libhdf5_reads() {
    local answer
    if [ -n "${READALL_PID:-}" ]; then
        echo "$1" >&"${READALL[1]}"
        read -r -t 60 -u "${READALL[0]}" answer || return 1
        [ "$answer-$(($2 % 10 == 0))" = read-0 ] && return 0
    fi
    h5dump -o /dev/null "$1" > /dev/null 2>&1
}

# damaged LAYOUT ROWS - each of DAMAGED files is merged within 5 s, or named.  A chunk
# that is damaged is copied as it is, and named when it is read: whatever extracts
# without a word can be read by libhdf5 as well.
damaged() {
    local i rc start ms worst=0 named=0 whole=0 later=0
    "$MAKENODE" write good.h5 n1 "$2" 10 "$1" 1 1 || return 1
    mkdir -p "d/root"
    for ((i = 1; i <= DAMAGED; i++)); do
        rm -f d/root/* bad.h5
        "$MAKENODE" damage good.h5 d/root/9_0_n1.h5 $i || return 1
        cp d/root/9_0_n1.h5 before
        start=${EPOCHREALTIME/./}
        ours -j 9 -p d -o bad.h5
        rc=$?
        ms=$(((${EPOCHREALTIME/./} - start) / 1000))
        [ $ms -le $worst ] || worst=$ms
        case $rc in
        0) whole=$((whole + 1)) ;;
        1 | 2)
            named=$((named + 1))
            if ! cmp -s before d/root/9_0_n1.h5 || [ ! -s ours.err ]; then
                echo "file $i: not kept or not named"
                return 1
            fi
            ;;
        *) echo "file $i: status $rc"; return 1 ;;
        esac
        [ $rc = 1 ] && continue
        ours -j 9 -i bad.h5 -E -o bad.csv
        case $? in
        0)
            libhdf5_reads bad.h5 $i ||
                { echo "file $i: the merged file cannot be read"; return 1; }
            ;;
        1 | 2)
            later=$((later + 1))
            grep -q 'damaged, [0-9]* rows are missing\|nothing could be read' ours.err ||
                { echo "file $i: extract: $(cat ours.err)"; return 1; }
            ;;
        *) echo "file $i: extract: status $?"; return 1 ;;
        esac
    done
    echo "# $1: $named named, $whole merged, of which $later are named when they are" \
        "read; the slowest took $worst ms" >&3
    [ $worst -lt 5000 ] && [ $((named + later)) -gt $((DAMAGED / 4)) ]
}
exec 3>&1
check "$DAMAGED damaged files of Slurm's layout" damaged slurm 300
check "$DAMAGED damaged files of our layout" damaged ours 20000
[ -z "${READALL_PID:-}" ] || {
    readall=$READALL_PID # gone when it has ended
    # shellcheck disable=SC2093,SC1083  # a redirection alone
    exec {READALL[1]}>&-
    wait "$readall"
}
# Each way of reading a merged file that is damaged comes to an end.
damaged_merged() {
    local i rc start ms worst=0 part=0 mode
    new_files m "$1" 3 300
    rm -f whole.h5
    ours -j 9 -S -p m -o whole.h5
    for ((i = 1; i <= DAMAGED / 5; i++)); do
        "$MAKENODE" damage whole.h5 broken.h5 $i || return 1
        for mode in "-E -l Node:TimeSeries -o -" "-E --format json -o -" -L \
            "-I -s Energy -d package_0_mW -o -"; do
            start=${EPOCHREALTIME/./}
            # shellcheck disable=SC2086  # options
            ours -j 9 -i broken.h5 $mode
            rc=$?
            ms=$(((${EPOCHREALTIME/./} - start) / 1000))
            [ $ms -le $worst ] || worst=$ms
            case $rc in
            0) ;;
            1 | 2)
                part=$((part + 1))
                [ -s ours.err ] || { echo "file $i: nothing said"; return 1; }
                ;;
            *) echo "file $i: status $rc"; return 1 ;;
            esac
        done
    done
    echo "# merged, $1: $part named, the slowest took $worst ms" >&3
    [ $worst -lt 5000 ] && [ $part -gt 0 ]
}
check "damaged merged files of Slurm's layout" damaged_merged slurm
check "damaged merged files of our layout" damaged_merged ours
half() {
    head -c $(($(stat -c %s good.h5) * 7 / 10)) good.h5 > d/root/9_0_n1.h5
    rm -f bad.h5 d/root/9_0_n2.h5
    "$MAKENODE" write d/root/9_0_n2.h5 n2 100 10 ours 0 1
    status 2 ours -j 9 -p d -o bad.h5 || return 1
    [ -e d/root/9_0_n1.h5 ] && [ ! -e d/root/9_0_n2.h5 ] || return 1
    status 0 ours -j 9 -i bad.h5 -E -s Energy -l Node:TimeSeries -N n1 \
        -o half.csv || return 1
    [ "$(wc -l < half.csv)" -gt 1000 ]
}
"$MAKENODE" write good.h5 n1 20000 10 slurm 1 1
check "of a file that was cut off, whole rows are kept, and the file" half

# A file system without room.

new_files k ours 40 20000
ours -j 9 -S -p k -o reference.h5
full() {
    local size step
    size=$(stat -c %s reference.h5)
    cp -r k/root k/copy
    mkdir -p room
    for ((step = 1; step <= 20; step++)); do
        mount -t tmpfs -o size=$((size * step / 21 / 1024 + 8))k full room ||
            return 1
        status 1 ours -j 9 -p k -o room/out.h5 || { umount room; return 1; }
        grep -q 'No space' ours.err ||
            { cat ours.err; umount room; return 1; }
        [ -z "$(ls -A room)" ] || { ls -lA room; umount room; return 1; }
        umount room
        diff -r k/root k/copy || return 1
    done
    status 0 ours -j 9 -p k -o after.h5 && cmp after.h5 reference.h5
}
export -f full new_files status ours
export SH5UTIL MAKENODE SCRATCH
check "no room at 20 points: the files are untouched, and the rerun is whole" \
    unshare --mount --propagation private bash -c full

# Traps.

mkdir -p trap/root other
"$MAKENODE" write other/secret.h5 n1 100 10 ours 0 1
trap_file() {
    rm -rf trap/root/* trapped.h5
    "$@" || return 1
    "$MAKENODE" write trap/root/9_0_n2.h5 n2 100 10 ours 0 1
    status 2 timeout 10 "$SH5UTIL" -j 9 -p trap -o trapped.h5 \
        > ours.out 2> ours.err || return 1
    [ "$(h5ls trapped.h5/Steps/0/Nodes | wc -l)" = 1 ] && grep -q 9_0_n1 ours.err
}
check "a link is not followed" \
    trap_file ln -s "$PWD/other/secret.h5" trap/root/9_0_n1.h5
check "a pipe does not hold it up" trap_file mkfifo trap/root/9_0_n1.h5
check "a device is not opened" trap_file mknod trap/root/9_0_n1.h5 c 1 5
check "a directory is no file" trap_file mkdir trap/root/9_0_n1.h5
# Names that would write messages of their own on root's terminal.
forged() {
    rm -rf trap/root/* trapped.h5
    touch trap/root/$'9_0_n1\nsh5util: all is well.h5' trap/root/$'9_0_\033[2Jn1.h5'
    "$MAKENODE" write trap/root/9_0_n2.h5 n2 100 10 ours 0 1
    status 0 ours -j 9 -p trap -o trapped.h5 && ! grep -q 'all is well' ours.err &&
        status 1 ours -j 9 -i $'no\nsh5util: all is well\033\xc2\x9b.h5' -E -o - &&
        ! grep -q '^sh5util: all is well' ours.err && ! grep -q $'\033\|\xc2\x9b' ours.err
}
check "names with escapes forge no message" forged
foreign() {
    cp other/secret.h5 trap/root/9_0_n1.h5 &&
        chown 5001 trap/root/9_0_n1.h5
}
check "a file of somebody else's is refused" trap_file foreign
rm -rf trap/root && ln -s "$PWD/other" trap/root
check "the user's directory may be no link" status 1 ours -j 9 -p trap -o no.h5
rm trap/root && mkdir trap/root && chown 5001 trap/root
check "nor somebody else's" status 1 ours -j 9 -p trap -o no.h5
check "a user's name is no path" status 1 ours -j 9 -p trap -u ../other -o no.h5
ln -sf "$PWD/other/secret.h5" .linked.h5.tmp
new_files k ours 1 10
check "a link in place of the temporary file is refused" \
    status 1 ours -j 9 -p k -o linked.h5
check "and what it names is untouched" h5ls other/secret.h5/n1

# Several jobs, steps that are nowhere, and who may ask.

# What is taken for an option of a merge must not lose files.
not_merged() {
    new_files k ours 3 10
    rm -f job_9.h5
    status 1 ours -j 9 -p k "$@" || return 1
    [ "$(ls k/root | wc -l)" = 3 ] && [ ! -e job_9.h5 ] &&
        grep -q "takes no $1" ours.err || { cat ours.err; return 1; }
}
for option in "-N n2" "-s Energy" "-d Power" "-l Node:TimeSeries"; do
    # shellcheck disable=SC2086  # an option and its value
    check "a merge with $option is refused, and nothing is removed" \
        not_merged $option
done
new_files k ours 1 10
ours -j 9 -p k
no_step() {
    status 1 ours -j 9.7 -p k && grep -q 'step 7' ours.err &&
        status 0 ours -j 9.0 -p k
}
check "a step that never was is not merged already" no_step
cp job_9.h5 job_8.h5
two_jobs() {
    status 0 ours -j 9,8 -L &&
        [ "$(grep '^Job' ours.out | paste -s)" = $'Job 9\tJob 8' ] &&
        status 0 ours -j 9,8 -L --format json && /usr/bin/python3 -c 'import json, sys
jobs = json.load(sys.stdin)
assert [job["job"] for job in jobs] == ["9", "8"], jobs
assert all(job["series"][0]["name"] == "Energy" for job in jobs), jobs' < ours.out
}
check "a list of two jobs says which is which, also as one JSON" two_jobs
one_job() {
    status 0 ours -j 9 -L --format json && /usr/bin/python3 -c 'import json, sys
assert json.load(sys.stdin)["job"] == "9"' < ours.out
}
check "a list of one job is no list of jobs" one_job
# fine_times LAYOUT - rows of a hundred a second, and when they were
fine_times() {
    rm -rf k && mkdir -p k/root && rm -f job_9.h5 &&
        "$MAKENODE" write k/root/9_0_n1.h5 n1 250 100 "$1" 0 1 &&
        status 0 ours -j 9 -p k && status 0 ours -j 9 -I -s Energy -d Power -o i.csv
}
fine_ours() {
    fine_times ours && awk -F, 'NR == 1 { bad = $NF != "ElapsedTimeNs"; next }
        $NF != (NR - 1) * 1e7 { print; bad = 1 }
        END { exit bad || NR != 251 }' i.csv
}
check "an item of 100 Hz has the time of each row" fine_ours
fine_slurm() {
    fine_times slurm && head -n 1 i.csv | grep -q ',NumNodes,n1$'
}
check "of Slurm's files, the columns are Slurm's" fine_slurm
nameless() {
    setpriv --reuid 54321 --regid 54321 --clear-groups "$SH5UTIL" -j 9 "$@" \
        > ours.out 2> ours.err
}
cannot_merge() {
    status 1 nameless -p k && grep -q 'has no name' ours.err
}
getent passwd 54321 > /dev/null && { not_ok "user 54321 has no name"; finish; }
chmod 666 ours.out ours.err
check "a user without a name lists" status 0 nameless -L
check "and extracts" status 0 nameless -E -o -
check "and an item" status 0 nameless -I -s Energy -d Power -o -
check "and is told why there is no merge" cannot_merge
finish
