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

# The simulated node uses 50 W whatever its two ranks do.
joules() {
    local job
    job=$(cluster run --timeout 10 waits squeue -a -h -t all -S -i -o %i | head -n 1)
    # The converter of the profile may still be at work.
    wait_for 20 ls "$(profile_dir waits)"/"$job"_0_node1.h5
    cluster user waits "$REPORT" waits --csv --by=pattern "$SCRATCH/$1" > "$SCRATCH/csv"
    awk -F, '
        NR > 1 && $1 !~ /completion/ { n++; s += $8; j += $13; off += $14; print }
        END { exit !(n == 7 && j > 24.8 * s && j < 25.2 * s && off < 0.02 * j) }' \
        "$SCRATCH/csv"
}

mpi() { # MPI PMI
    local mpi=$1 kind=$2
    if ! cluster user waits srun --mpi=list 2>&1 | grep -qw "$kind"; then
        skip "MPI programs of $mpi" "this Slurm has no mpi/$kind"
        return
    fi
    compile "$mpi" "mpicc.$mpi" "$LIB/waits.c" || return
    step waits "$mpi" -n2 --mpi="$kind" "$PROGRAMS/$mpi" $COUNT
    check "$mpi: the program runs" test $? = 0
    check "$mpi: srun makes an archive" test -s "$SCRATCH/$mpi/traces.otf2"
    check_not "$mpi: no log is left" ls "$SCRATCH/$mpi"/*.waits
    check "$mpi: all seven patterns, for the times they took" \
        compare_waits "$mpi" 5 20
    check "$mpi: each second costs a half of the node's 50 W" joules "$mpi"
    if compile "$mpi-fortran" "mpif90.$mpi" -cpp "$LIB/waits.f90" &&
        compile "$mpi-f08" "mpif90.$mpi" -cpp -DF08 "$LIB/waits.f90"; then
        for name in "$mpi-fortran" "$mpi-f08"; do
            step waits "$name" -n2 --mpi="$kind" "$PROGRAMS/$name"
            check "$name: a late sender of ANY_SOURCE, and a barrier" fortran "$name"
            check_not "$name: all requests are known" grep 'nothing is known' \
                "$SCRATCH/said"
        done
    fi
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
    timeout 120 "$LIB/cluster" user waits srun -n2 --mpi=pmi2 eztrace -t mpich \
        -o "$SCRATCH/eztrace" "$PROGRAMS/mpich" $COUNT < /dev/null > "$SCRATCH/out" \
        2> "$SCRATCH/said"
    check "a trace of EZTrace has these patterns, too" most_patterns
}

most_patterns() {
    waits eztrace/mpich_trace --csv --by=pattern > "$SCRATCH/csv" || return 1
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
    step waits python -n2 --mpi=pmix $python "$PROGRAMS/python.py"
    check "mpi4py: a late sender of ANY_SOURCE, and a barrier" fortran python
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
