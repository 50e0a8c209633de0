#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# srun --energy-waits: programs of Open MPI and MPICH whose ranks wait for times that
# are known, in C, Fortran and Python, on one node and on four, whose clocks differ; and
# what may go wrong.
#
# shellcheck disable=SC2317  # functions are called through check
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/profile.sh"
REPORT=$JOULE_BUILD/joule-report
WAITS=$JOULE_BUILD/lib/libjoule_waits.so
PROGRAMS=$SCRATCH/programs
COUNT=20

# compile NAME COMPILER ARGUMENT... - or say that it is skipped
compile() {
    local name=$1 compiler=$2
    shift 2
    command -v "$compiler" > /dev/null || { skip "$name" "no $compiler"; return 1; }
    (cd "$PROGRAMS" && "$compiler" -g -O1 -w -o "$name" "$@") \
        > "$SCRATCH/compiler" 2>&1 && return
    not_ok "$name is built" "$(tail -n 5 "$SCRATCH/compiler")"
    return 1
}

# step CLUSTER DIRECTORY SRUN-OPTIONS - its stdout is in $SCRATCH/out
step() {
    local name=$1 dir=$SCRATCH/$2
    shift 2
    rm -rf "$dir"
    timeout 120 "$LIB/cluster" user "$name" srun --energy-waits="$dir" "$@" \
        < /dev/null > "$SCRATCH/out" 2> "$SCRATCH/said"
}

# waits DIRECTORY OPTION...
waits() {
    local dir=$SCRATCH/$1
    shift
    "$REPORT" waits "$@" "$dir"
}

# What the analysis found of each pattern and rank, in order, beside what the program
# knows: median and ninth decile of how far they are off, in us.  Waits that come from
# the scheduler of the machine, below 0.3 ms, are not compared.  A rank that loses its CPU
# between its look at the clock and the call waits less than it knows: of a pattern and
# rank one may be missing, and then these are not compared, but they are few.
compare_waits() { # DIRECTORY MEDIAN-US P90-US
    waits "$1" --each > "$SCRATCH/each" || return 1
    awk -F, 'NR > 1 && $1 !~ /completion/ && $5 >= 300000 { print $1, $2, $4, $5 }' \
        "$SCRATCH/each" | sort -k1,1 -k2,2n -k3,3n | cut -d ' ' -f 1,2,4 \
        > "$SCRATCH/found"
    grep -E '^[a-z_]+ [0-9]+ [0-9]+$' "$SCRATCH/out" | awk '$3 >= 300000' |
        sort -k1,1 -k2,2n -s > "$SCRATCH/known"
    awk '
        FNR == NR { known[$1 " " $2, ++knowns[$1 " " $2]] = $3; n++; next }
        { found[$1 " " $2, ++founds[$1 " " $2]] = $3; knowns[$1 " " $2] += 0 }
        END {
            for (key in knowns) {
                off = knowns[key] - founds[key]
                if (off != 0) {
                    print "#", key, knowns[key], "known,", founds[key] + 0, "found"
                    bad += off > 1 || off < -1
                    continue
                }
                for (i = 1; i <= knowns[key]; i++) {
                    d = (known[key, i] - found[key, i]) / 1000
                    print d < 0 ? -d : d
                    compared++
                }
            }
            print "#", n, "waits,", compared, "compared"
            if (bad || compared < 0.75 * n || compared < 70) print "# too few"
        }' "$SCRATCH/known" "$SCRATCH/found" > "$SCRATCH/compared"
    grep '^#' "$SCRATCH/compared"
    ! grep -q 'too few' "$SCRATCH/compared" || return 1
    grep -v '^#' "$SCRATCH/compared" | sort -n | awk -v median="$2" -v p90="$3" '
        { v[NR] = $1 }
        END {
            m = v[int((NR + 1) / 2)]; p = v[int(NR * 0.9 + 0.5)]
            printf "median %.2f us, p90 %.2f us, at most %.1f us off\n", m, p, v[NR]
            exit !(m <= median && p <= p90) }'
}

last_job() {
    cluster run --timeout 10 waits squeue -a -h -t all -S -i -o %i | head -n 1
}

# The simulated node uses 50 W whatever its two ranks do.
joules() {
    local job
    job=$(last_job)
    # The converter of the profile may still be at work.
    wait_for 20 ls "$(profile_dir waits)"/"$job"_0_node1.h5
    cluster user waits "$REPORT" waits --csv --by=pattern "$SCRATCH/$1" > "$SCRATCH/csv"
    awk -F, '
        NR > 1 && $1 !~ /completion/ { n++; s += $8; j += $13; off += $14; print }
        END { exit !(n == 7 && j > 24.8 * s && j < 25.2 * s && off < 0.02 * j) }' \
        "$SCRATCH/csv"
}

# The profile for CubeGUI has the numbers of the JSON, joules that were used, too.
cubex() {
    cluster user waits "$REPORT" waits --json "$SCRATCH/$1" > "$SCRATCH/$1.json" &&
        grep -m 1 used_j "$SCRATCH/$1.json" &&
        cluster user waits "$REPORT" waits --cubex="$SCRATCH/$1.cubex" "$SCRATCH/$1" &&
        /usr/bin/python3 "$LIB/../unit/checkcubex.py" "$SCRATCH/$1.cubex" \
            "$SCRATCH/$1.json"
}

# In the merged profile of that job, which Slurm's sh5util goes on to read.
tables() {
    local file=$SCRATCH/$1-job.h5 job
    job=$(last_job)
    cluster user waits /usr/bin/sh5util -j "$job" -S -o "$file" &&
        cluster user waits /usr/bin/sh5util -j "$job" -E -s Energy -i "$file" \
            -o "$SCRATCH/$1-before.csv" &&
        cluster user waits "$REPORT" waits --hdf5="$file" "$SCRATCH/$1" &&
        cluster user waits /usr/bin/python3 "$LIB/readwaits.py" "$file" 0 "$REPORT" \
            "$SCRATCH/$1" -i "$file" &&
        cluster user waits /usr/bin/sh5util -j "$job" -E -s Energy -i "$file" \
            -o "$SCRATCH/$1-after.csv" &&
        cmp "$SCRATCH/$1-before.csv" "$SCRATCH/$1-after.csv" &&
        cluster user waits /usr/bin/sh5util -j "$job" -L -s Energy -i "$file"
}

# The same waits as in the document, for Paraver; and in a copy with the waits marked,
# where they are regions, too.
paraver() {
    waits "$1" --json > "$SCRATCH/json" && waits "$1" --paraver="$SCRATCH/paraver" &&
        /usr/bin/python3 "$LIB/readtrace.py" waits "$SCRATCH/paraver" "$SCRATCH/json"
}

marked() {
    rm -rf "$SCRATCH/marked"
    waits "$1" --otf2="$SCRATCH/marked" &&
        diff <(waits "$1" --csv) <(waits marked --csv) || return
    command -v otf2-print > /dev/null || return 0
    otf2-print "$SCRATCH/marked/traces.otf2" > "$SCRATCH/printed" &&
        [ "$(grep -c 'ENTER.*"WAIT: ' "$SCRATCH/printed")" = \
            "$(waits "$1" --each | tail -n +2 | grep -vc completion)" ]
}

# has_pmi PMI WHAT - or WHAT is skipped
has_pmi() {
    cluster user waits srun --mpi=list 2>&1 | grep -qw "$1" && return
    skip "$2" "this Slurm has no mpi/$1"
    return 1
}

mpi() { # MPI PMI
    local mpi=$1 kind=$2
    has_pmi "$kind" "MPI programs of $mpi" || return
    compile "$mpi" "mpicc.$mpi" "$LIB/waits.c" || return
    step waits "$mpi" -n2 --mpi="$kind" "$PROGRAMS/$mpi" $COUNT
    check "$mpi: the program runs" test $? = 0
    check "$mpi: srun makes an archive" test -s "$SCRATCH/$mpi/traces.otf2"
    check_not "$mpi: no log is left" ls "$SCRATCH/$mpi"/*.waits
    check "$mpi: all seven patterns, for the times they took" \
        compare_waits "$mpi" 5 20
    check "$mpi: each second costs a half of the node's 50 W" joules "$mpi"
    if compile "$mpi-slack" "mpicc.$mpi" "$LIB/slack.c"; then
        step waits "$mpi-slack" -n2 --mpi="$kind" "$PROGRAMS/$mpi-slack" 50
        check "$mpi: rank 1 has a slack of 50 times 15 ms, and rank 0 none" \
            slack "$mpi-slack"
    fi
    check "$mpi: a profile for CubeGUI has all of it" cubex "$mpi"
    if /usr/bin/python3 -c 'import h5py' 2> /dev/null; then
        check "$mpi: its profile has the tables, and Slurm's sh5util reads it" tables "$mpi"
    else
        skip "$mpi: tables in the job's profile" "there is no h5py"
    fi
    check "$mpi: Paraver has the same waits" paraver "$mpi"
    check "$mpi: a copy has them as regions" marked "$mpi"
    if compile "$mpi-fortran" "mpif90.$mpi" -cpp "$LIB/waits.f90" &&
        compile "$mpi-f08" "mpif90.$mpi" -cpp -DF08 "$LIB/waits.f90"; then
        for name in "$mpi-fortran" "$mpi-f08"; do
            step waits "$name" -n2 --mpi="$kind" "$PROGRAMS/$name"
            check "$name: a late sender of ANY_SOURCE, and a barrier" fortran "$name"
            check_not "$name: all requests are known" grep 'nothing is known' \
                "$SCRATCH/said"
        done
    fi
    newer "$mpi" "$kind"
    # Another process manager: each process is alone.
    if [ "$mpi" = mpich ]; then
        step waits alone -n2 --mpi=none "$PROGRAMS/$mpi" $COUNT
        check "$mpi, --mpi=none: its user is told" grep -q 'not one MPI program' \
            "$SCRATCH/said"
    fi
    # A program that is killed has left what it did until then.
    step waits "$mpi-killed" -n2 --mpi="$kind" timeout -s KILL 6 "$PROGRAMS/$mpi" 100000
    check "$mpi, killed: what it did is there, and its user is told" killed "$mpi-killed"
}

# On a busy machine both compute longer.
slack() {
    waits "$1" --slack --csv --by=process > "$SCRATCH/csv" || return 1
    cat "$SCRATCH/csv"
    awk -F, '$4 == 1 { s = $7 } $4 == 0 { r = $7 }
        END { exit !(s > 0.55 && s < 0.8 && r < 0.1 * s) }' "$SCRATCH/csv"
}

# What MPI 4 has, as far as the library has it; the waits are those of waits.f90.
newer() { # MPI PMI
    local mpi=$1 kind=$2
    cat > "$PROGRAMS/newer.c" << END
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#if OMPI_MAJOR_VERSION >= 5
#define MPIX_Barrier_init MPI_Barrier_init
#endif
#endif
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Request request[3], pair[2], barrier;
    int from[3] = {0}, to[3], rank, other, size;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    if (rank == 0)
        usleep(300000);
    MPI_Send_init(from, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &request[0]);
#if MPI_VERSION >= 4
    MPI_Isendrecv(from, 1, MPI_INT, other, 3, to, 1, MPI_INT, other, 3, MPI_COMM_WORLD,
                  &request[1]);
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm, &request[2]);
    MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
    MPI_Bcast_c(to, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Psend_init(from, 3, 1, MPI_INT, other, 3, comm, MPI_INFO_NULL, &pair[0]);
    MPI_Precv_init(to, 3, 1, MPI_INT, other, 3, comm, MPI_INFO_NULL, &pair[1]);
    MPI_Startall(2, pair);
    MPI_Pready_range(0, 2, pair[0]);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &barrier);
#else
    MPI_Irecv(to, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &request[1]);
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request[2]);
    MPI_Send(from, 1, MPI_INT, other, 3, MPI_COMM_WORLD);
    MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
    MPIX_Barrier_init(comm, MPI_INFO_NULL, &barrier);
#endif
    MPI_Start(&barrier);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    MPI_Request_free(&barrier);
    MPI_Request_free(&request[0]);
    if (rank == 1)
        usleep(200000);
    MPI_Barrier(comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Irecv(to, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request[0]);
    MPI_Irecv(to, 3, MPI_INT, 0, 2, MPI_COMM_SELF, &request[1]);
    MPI_Send(from, 3, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Send(from, 3, MPI_INT, 0, 2, MPI_COMM_SELF);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    MPI_Finalize();
}
END
    compile "$mpi-newer" "mpicc.$mpi" "$PROGRAMS/newer.c" || return
    step waits "$mpi-newer" -n2 --mpi="$kind" "$PROGRAMS/$mpi-newer"
    check "$mpi: the program with calls of MPI 4 runs" test $? = 0
    check "$mpi: its late sender and its barrier are found" fortran "$mpi-newer"
    check_not "$mpi: all of its requests are known" grep 'nothing is known' "$SCRATCH/said"
}

# Rank 1 waits 0.3 s for rank 0, less what it comes later, and at the barrier rank 0 0.2 s
# for rank 1.
fortran() {
    waits "$1" --each > "$SCRATCH/each" || return 1
    grep -E '^(late_sender,1|wait_at_barrier,0),' "$SCRATCH/each"
    awk -F, '$1 == "late_sender" && $2 == 1 && $5 > 2e8 && $5 < 4e8 { s++ }
        $1 == "wait_at_barrier" && $2 == 0 && $5 > 1.5e8 && $5 < 3e8 { b++ }
        END { exit !(s == 1 && b == 1) }' "$SCRATCH/each"
}

killed() {
    waits "$1" --each > "$SCRATCH/each"
    wc -l < "$SCRATCH/each"
    [ "$(wc -l < "$SCRATCH/each")" -gt 100 ] &&
        grep -q '2 ranks did not come to MPI_Finalize' "$SCRATCH/said"
}

# Another recorder.  Of Open MPI's messages it does not tell the communicator, of no scan
# the bytes, and the clocks of its processes differ by a millisecond at times.
eztrace_too() {
    [ -x "$PROGRAMS/mpich" ] || return
    command -v eztrace > /dev/null || { skip "a trace of EZTrace" "no eztrace"; return; }
    eztrace_avail > /dev/null 2>&1 || { skip "a trace of EZTrace" "it crashes here"; return; }
    timeout 120 "$LIB/cluster" user waits srun -n2 --mpi=pmi2 eztrace -t mpich \
        -o "$SCRATCH/eztrace" "$PROGRAMS/mpich" $COUNT < /dev/null > "$SCRATCH/out" \
        2> "$SCRATCH/said"
    check "a trace of EZTrace has these patterns, too" most_patterns
}

# Later releases have it in the directory itself.
most_patterns() {
    local trace=eztrace/mpich_trace
    [ -d "$SCRATCH/$trace" ] || trace=eztrace
    waits $trace --csv --by=pattern > "$SCRATCH/csv" || return 1
    cat "$SCRATCH/csv"
    awk -F, 'NR > 1 && $1 !~ /completion/ && $7 >= 5 && $8 > 0.005 { n++ }
        END { exit !(n >= 5) }' "$SCRATCH/csv"
}

# It may write 20 kB from MPI_Init on (before it, MPI could not begin).
limited() {
    cat > "$PROGRAMS/limited.c" << END
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
int main(int argc, char **argv)
{
    struct rlimit limit = {20000, 20000};
    MPI_Init(&argc, &argv);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 100000; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    puts("at the end");
}
END
    compile limited mpicc.mpich "$PROGRAMS/limited.c" || return
    step waits limited -n1 --mpi=pmi2 "$PROGRAMS/limited"
    check "a program that may not write so much comes to its end" \
        grep 'at the end' "$SCRATCH/out"
    check "... and its user is told" grep 'not be written: File too large' "$SCRATCH/said"
}

python() {
    local python=/usr/bin/python3
    if ! $python -c 'import mpi4py' 2> /dev/null; then
        skip "mpi4py" "there is no mpi4py"
        return
    fi
    cat > "$PROGRAMS/python.py" << END
from mpi4py import MPI
import time
c = MPI.COMM_WORLD
buf = bytearray(1)
if c.Get_rank() == 0:
    time.sleep(0.3)
    c.Send(buf, dest=1, tag=3)
else:
    c.Recv(buf, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
    time.sleep(0.2)
c.Barrier()
END
    has_pmi pmix "mpi4py" || return
    step waits python -n2 --mpi=pmix $python "$PROGRAMS/python.py"
    check "mpi4py: a late sender of ANY_SOURCE, and a barrier" fortran python
}

waits_json() {
    waits "$1" --json > "$SCRATCH/json"
}

# A program of some size, of Debian: all of it is recorded, and the page has the same
# numbers as the document.
lammps() {
    local name=lammps
    command -v lmp > /dev/null || { skip "LAMMPS" "no lmp"; return; }
    has_pmi pmix "LAMMPS" || return
    cat > "$PROGRAMS/melt" << 'END'
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 20 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 50
run 500
END
    step waits $name -n2 --mpi=pmix lmp -in "$PROGRAMS/melt" -log none
    check "LAMMPS: it runs" grep -q 'Total wall time' "$SCRATCH/out"

    check "LAMMPS: joule waits" waits_json $name
    check "LAMMPS: no call is without its other half" /usr/bin/python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
bad = {k: v for k, v in d["remarks"].items() if v and not k.startswith("clock")}
print(d["messages"], d["collectives"], bad, d["not_analysed"])
sys.exit(not (d["is_whole"] and d["messages"] > 2000 and d["collectives"] > 50
              and not bad))' "$SCRATCH/json"
    waits $name --html="$SCRATCH/page.html"
    check "LAMMPS: the page has the numbers of --json" \
        "$LIB/pagevalues.py" "$SCRATCH/json" "$SCRATCH/page.html"
}

# Each node in a time namespace of its own, thousands of seconds from the others: root
# may make one.  Four ranks share two CPUs: how many have waited for the last one is
# right, for how long is the scheduler's.
four_nodes() { # MPI PMI
    local mpi=$1 kind=$2 dir=$SCRATCH/$1-four
    [ -x "$PROGRAMS/$mpi" ] || return
    timeout 120 "$LIB/cluster" run four env OMPI_MCA_btl_tcp_if_include=lo \
        OMPI_MCA_mpi_yield_when_idle=1 srun --energy-waits="$dir" -N4 -n4 \
        --mpi="$kind" "$PROGRAMS/elsewhen" "$PROGRAMS/$mpi" 5 \
        < /dev/null > "$SCRATCH/out" 2> "$SCRATCH/said"
    check "$mpi, four nodes whose clocks differ: the program runs" test $? = 0
    note < "$SCRATCH/said"
    check "$mpi, four nodes: three of four wait at each barrier" [ "$(waits \
        "$mpi-four" --each | grep -c '^wait_at_barrier,')" = 15 ]
    check "$mpi, four nodes: no wait ends sooner than clocks may differ" in_order "$mpi-four"
}

# Of two nodes each may differ by that from the first.
in_order() {
    local us
    us=$(sed -n 's/.*may differ by \([0-9.]*\) us$/\1/p' "$SCRATCH/said")
    waits "$1" --json | awk -v us="${us:-1}" '
        sub(/.*"clock_violation_ns": /, "") { ns = $0 + 0; n++ }
        END { print ns, "ns of", us, "us"; exit !(n == 1 && ns <= 2000 * us) }'
}

# One rank cannot write: the others do not wait for it where clocks are compared.
one_lacks() { # MPI PMI
    local mpi=$1 kind=$2 dir=$SCRATCH/$1-lacks
    [ -x "$PROGRAMS/$mpi" ] || return
    timeout 60 "$LIB/cluster" run four env OMPI_MCA_btl_tcp_if_include=lo \
        OMPI_MCA_mpi_yield_when_idle=1 srun --energy-waits="$dir" -N4 -n4 \
        --mpi="$kind" "$PROGRAMS/lacking" "$PROGRAMS/$mpi" 1 \
        < /dev/null > "$SCRATCH/out" 2> "$SCRATCH/said"
    check "$mpi, four nodes, one without the directory: the program ends" test $? = 0
    check "... and its user is told" grep '1 ranks have left no log' "$SCRATCH/said"
}

mkdir -p "$PROGRAMS"
chmod 755 "$PROGRAMS"
chmod 777 "$SCRATCH"
cat > "$PROGRAMS/elsewhen" << 'END'
#!/bin/sh
s=$((${SLURMD_NODENAME#node} * 1000))
exec unshare --time --fork --monotonic $s --boottime $s "$@"
END
cat > "$PROGRAMS/lacking" << 'END'
#!/bin/sh
[ "$SLURMD_NODENAME" != node3 ] || JOULE_WAITS_DIR=/no/such/directory
exec "${0%/*}/elsewhen" "$@"
END
chmod 755 "$PROGRAMS/elsewhen" "$PROGRAMS/lacking"
up waits --cpus 2 --profile=$PROFILE --gather 'JouleProfilePeriodMin=10ms' || exit 1
echo "optional $JOULE_BUILD/plugins/spank_joule.so cpufreq=no waits=$WAITS report=$REPORT" \
    > "$(cluster dir waits)/etc/plugstack.conf"
mpi openmpi pmix
mpi mpich pmi2
eztrace_too
limited
python
check "help has the option" bash -c '"$@" srun --help | grep -q energy-waits' - \
    "$LIB/cluster" user waits
step waits none hostname
check "a program without MPI runs as ever" test $? = 0
check_not "... and leaves nothing" test -e "$SCRATCH/none"
if [ -x "$PROGRAMS/mpich" ]; then
    check "sbatch --energy-waits" cluster user waits sbatch -W -Q -n2 -o batch.out \
        --energy-waits --wrap "srun --mpi=pmi2 $PROGRAMS/mpich 2 < /dev/null"
    check "... is the option of its steps, in a directory of their own" \
        cluster user waits sh -c 'ls joule-waits-*.0/traces.otf2'
    step waits off --energy-waits=none -n2 --mpi=pmi2 "$PROGRAMS/mpich" 1
    check "--energy-waits=none leaves nothing, and says nothing" \
        bash -c '! [ -e "$1" ] && ! grep energy-waits "$2"' - "$SCRATCH/off" "$SCRATCH/said"
    step waits no/such/directory -n2 --mpi=pmi2 "$PROGRAMS/mpich" 1
    check "a directory that cannot be made: the program runs" test $? = 0
    check "... and its user is told" grep -q 'not recorded: No such file' "$SCRATCH/said"
fi
if is_long; then
    lammps
    # Nodes of one machine share /tmp, where Slurm makes a directory for each.
    mkdir -p "$SCRATCH"/tmp/node{1,2,3,4}
    chmod 1777 "$SCRATCH"/tmp/*
    up four --nodes 4 --conf "TmpFS=$SCRATCH/tmp/%n
TaskPlugin=task/none" || exit 1
    cp "$(cluster dir waits)/etc/plugstack.conf" "$(cluster dir four)/etc/"
    four_nodes openmpi pmix
    four_nodes mpich pmi2
    one_lacks openmpi pmix
    one_lacks mpich pmi2
fi
finish
