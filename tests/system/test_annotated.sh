#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# srun --energy-regions: programs that name their regions for MPI (two of them, in C
# and in Fortran), LIKWID, Kokkos and OpenMP, and those that use the library from
# C++, Fortran and Python, all of real packages, in steps of a real cluster.
#
# shellcheck disable=SC2317  # functions are called through check
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/profile.sh"
REPORT=$JOULE_BUILD/joule-report
HOOKS=$JOULE_BUILD/lib/libjoule_hooks.so
PROGRAMS=$SCRATCH/programs

# compile NAME COMPILER ARGUMENT... - or say that it is skipped
compile() {
    local name=$1 compiler=$2
    shift 2
    command -v "$compiler" > /dev/null || { skip "$name" "no $compiler"; return 1; }
    (cd "$PROGRAMS" && "$compiler" -g -O1 -o "$name" "$@") \
        > "$SCRATCH/compiler" 2>&1 && return
    not_ok "$name is built" "$(tail -n 5 "$SCRATCH/compiler")"
    return 1
}

# has_regions REGION=COUNT... - what the last step has, and nothing else
has_regions() {
    cluster user annot "$REPORT" regions --csv "$JOB" > "$SCRATCH/csv" || return 1
    awk -F, 'NR > 1 && $4 != "" { print $4 "=" $5 }' "$SCRATCH/csv" | sort |
        diff - <(printf '%s\n' "$@" | sort)
}

# in_region SECONDS REGION - so long was its window
in_region() {
    local s
    s=$(awk -F, -v name="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == "window_s") at = i; next }
        $4 == name { print $at }' "$SCRATCH/csv")
    within "$s" "$1" 0 0.15
}

# run NAME 'SRUN-OPTIONS' REGION=COUNT... - the program of that name in a step
run() {
    local name=$1 options
    read -r -a options <<< "$2"
    shift 2
    step annot "${options[@]}" "$PROGRAMS/$name" < /dev/null \
        > "$SCRATCH/out" 2> "$SCRATCH/said"
    check "$name runs" test $? = 0
    note < "$SCRATCH/said"
    check "$name: $*" has_regions "$@"
}

mpi() {
    local mpi=$1 kind=$2 options="--energy-regions=mpi -n2 --mpi=$2"
    if ! cluster user annot srun --mpi=list 2>&1 | grep -qw "$kind"; then
        skip "MPI programs of $mpi" "this Slurm has no mpi/$kind"
        return
    fi
    if compile "$mpi-c" "mpicc.$mpi" -DMPI "$LIB/annotated.c"; then
        run "$mpi-c" "$options" MPI=2 solve=2
        check "$mpi-c: both ranks are of one world" grep -q '1 of 2' "$SCRATCH/out"
        check "$mpi-c: 0.3 s" in_region 0.3 solve
    fi
    if compile "$mpi-fortran" "mpif90.$mpi" -cpp -DMPI "$TOP/lib/joule.f90" \
        "$LIB/annotated.f90" "$JOULE_BUILD/lib/libjoule.so.1"; then
        run "$mpi-fortran" "$options --export=ALL,LD_LIBRARY_PATH=$JOULE_BUILD/lib" \
            MPI=2 MPI_Pcontrol=2 "own region=2"
        check "$mpi-fortran: 0.3 s" in_region 0.3 MPI_Pcontrol
    fi
    if compile "$mpi-moneq" "mpicc.$mpi" -I"$TOP/lib" "$LIB/moneq.c" \
        "$JOULE_BUILD/lib/libjoule.so.1"; then
        run "$mpi-moneq" "--profile=energy -n2 --mpi=$kind \
--export=ALL,JOULE_PROFILE_PERIOD=100ms,LD_LIBRARY_PATH=$JOULE_BUILD/lib" \
            work=2 inner=2
        check "$mpi-moneq: an agent and another" grep -xq \
            'rank 1: agent 0, tag -1' <(grep -x 'rank 0: agent 1, tag 0' \
            -A 1 <(sort "$SCRATCH/out"))
        check "$mpi-moneq: memory has 15 % of the power, the simulator's share" awk '
            /^power/ { n++; ok = $2 > 0 && $6 > 0.149 * $2 && $6 < 0.151 * $2 &&
                            $4 + $6 > 0.999 * $2 && $4 + $6 < 1.001 * $2 }
            END { exit !(n == 1 && ok) }' "$SCRATCH/out"
        moneq_files "$mpi-moneq"
        traces "$mpi-moneq"
    fi
}

# What MonEQ wrote of the last step, what its reducer made of it, and plots.
moneq_files() { # NAME
    local dir=$SCRATCH/$1 file=$SCRATCH/$1/MonEQ-R0-C0-M0-N0.txt
    mkdir "$dir" && chmod 777 "$dir"
    check "$1: joule regions --format=moneq" cluster user annot "$REPORT" regions \
        --format=moneq --plot --output="$dir" "$JOB"
    check "$1: each sample has 15 fields" awk -F, '
        !/^---/ { n++; if (NF != 15 || $1 !~ /^20..-..-.. ..:..:..$/) { print; exit 1 } }
        END { exit !(n >= 20) }' "$file"
    check "$1: tags lie within each other" diff \
        <(grep -- --- "$file") - << 'END'
---MonEQ_START_POWER_TAG=work
---MonEQ_START_POWER_TAG=inner
---MonEQ_END_POWER_TAG=inner
---MonEQ_END_POWER_TAG=work
END
    check "$1: so many samples are in them" awk '
        /^---.*=work/ { work = /START/ } /^---.*=inner/ { inner = /START/ }
        !/^---/ { n += work; m += inner }
        END { print n, m; exit !(n >= 13 && n <= 17 && m >= 5 && m <= 7) }' "$file"
    check "$1: MonEQTags.txt" diff "$dir/MonEQTags.txt" <(printf 'work\ninner\n')
    check "$1: a mean of each tag, and of the rest" awk -F'\t' '
        FNR == 1 { files++; next } NF != 9 || $2 <= 0 { print FILENAME, $0; exit 1 }
        { n[FILENAME]++ }
        END { for (f in n) print f, n[f]; exit files != 4 }' \
        "$dir"/moneq_output/{original,untagged,work,inner}.dat
    check "$1: as many rows as samples" within \
        "$(wc -l < "$dir/moneq_output/original.dat")" "$(grep -vc -- --- "$file")" 0 2
    check "$1: plots" test "$(grep -l '</svg>' \
        "$dir"/moneq_output/{original,untagged,work,inner}.svg | wc -l)" = 4
}

# Power and regions of the last step as traces, read by others.
traces() { # NAME
    local dir=$SCRATCH/traces-$1 format
    mkdir "$dir" && chmod 777 "$dir"
    for format in chrome paraver otf2; do
        check "$1: joule trace --format=$format" cluster user annot "$REPORT" trace \
            --format=$format --output="$dir/$format" "$JOB"
    done
    check "$1: chrome: two ranks with two regions each, and power" \
        python3 "$LIB/readtrace.py" chrome "$dir/chrome" 4
    check "$1: paraver" python3 "$LIB/readtrace.py" paraver "$dir/paraver" 4
    if command -v otf2-print > /dev/null; then
        otf2-print "$dir/otf2/traces.otf2" > "$dir/print" 2>&1
        check "$1: otf2: four are entered and left" awk '
            /^ENTER/ { e++ } /^LEAVE/ { l++ } /^METRIC/ { m++ }
            END { print e, l, m; exit !(e == 4 && l == 4 && m >= 20) }' "$dir/print"
    else
        skip "$1: otf2" "no otf2-print (otf2-tools)"
    fi
}

mkdir -p "$PROGRAMS"
chmod 755 "$PROGRAMS"
up annot --cpus 2 --profile=$PROFILE --gather 'JouleProfilePeriodMin=10ms' || exit 1
echo "optional $JOULE_BUILD/plugins/spank_joule.so cpufreq=no hooks=$HOOKS" \
    > "$(cluster dir annot)/etc/plugstack.conf"

mpi openmpi pmix
mpi mpich pmi2
if compile likwid cc -DLIKWID_PERFMON "$LIB/annotated.c" -llikwid; then
    run likwid --energy-regions stencil=2
    check "likwid: 0.6 s" in_region 0.6 stencil
fi
if compile openmp clang -fopenmp=libomp "$LIB/annotated.c"; then
    run openmp --energy-regions=ompt omp_control_tool=2
    check "openmp: 0.6 s" in_region 0.6 omp_control_tool
fi
# Debian 12 and 13 have Trilinos' own, later ones give it its own name.
KOKKOS=(-I/usr/include/trilinos -ltrilinos_kokkoscore)
[ ! -e /usr/include/kokkos ] || KOKKOS=(-I/usr/include/kokkos -lkokkoscore)
if compile kokkos g++ -std=c++17 -DKOKKOS "${KOKKOS[0]}" -x c++ \
    "$LIB/annotated.c" "${KOKKOS[1]}"; then
    run kokkos --energy-regions=kokkos outer=1 inner=1
    check "kokkos: 0.6 s" in_region 0.6 outer
fi
if compile cplusplus g++ -I"$TOP" -x c++ "$LIB/phases.c" -x none \
    "$JOULE_BUILD/lib/libjoule.so.1"; then
    step annot --export="ALL,LD_LIBRARY_PATH=$JOULE_BUILD/lib" --profile=energy \
        "$PROGRAMS/cplusplus" "$SCRATCH/times.%n.%r" c 0.3 0.1 2 2> "$SCRATCH/said"
    check "C++: two regions" has_regions c0=1 c1=1
    check "C++: 0.3 s" in_region 0.3 c1
fi
if compile pmlib cc -I"$TOP/lib" "$LIB/pmlib.c" "$JOULE_BUILD/lib/libjoule.so.1"; then
    step annot --export="ALL,LD_LIBRARY_PATH=$JOULE_BUILD/lib" \
        "$JOULE_BUILD/joule-pmserver" pmserver -- \
        "$PROGRAMS/pmlib" > "$SCRATCH/out" 2> "$SCRATCH/said"
    check "pmlib runs in a step, with a server of its own" test $? = 0
    note < "$SCRATCH/said"
    # The simulated node uses 50 W.
    check "pmlib: two sets of 2 s and 100 J" awk '
        { print; bad += $1 < 1.9 || $1 > 2.3 || ($2 - 50) ^ 2 > 0.25 || ($3 - $1 * 50) ^ 2 > 1 }
        END { exit bad || NR != 2 }' "$SCRATCH/out"
fi
cat > "$PROGRAMS/python" <<END
#!/usr/bin/python3
import time
import sys
sys.path.insert(0, "$TOP/lib")
import joule
with joule.region("prepare"):
    time.sleep(0.3)
print(joule.status(), file=sys.stderr)
END
chmod 755 "$PROGRAMS/python"
run python "--energy-regions --export=ALL,LD_LIBRARY_PATH=$JOULE_BUILD/lib" prepare=1
check "python: 0.3 s" in_region 0.3 prepare

# The option, and what may be wrong with it.
check "help has the option" bash -c '"$@" srun --help | grep -q energy-regions' - \
    "$LIB/cluster" user annot
check "an unknown hook is refused before the step" bash -c '
    out=$("$@" srun --energy-regions=mpi,mqi true 2>&1) && exit 1
    grep -q "mpi,mqi is no list of" <<< "$out"' - "$LIB/cluster" user annot
step annot --energy-regions --profile=none true
check "--profile=none stays" bash -c '! ls "$1"/"$2"_* 2> /dev/null' - \
    "$(profile_dir annot)" "$JOB"
if [ -x "$PROGRAMS/likwid" ]; then
    # In a batch script, for all its steps.
    check "sbatch --energy-regions" cluster user annot sbatch -W -Q -o batch.out \
        -J batch --energy-regions --wrap "srun $PROGRAMS/likwid"
    check "... says nothing of the script itself" cluster user annot sh -c \
        '! grep "no regions" batch.out'
    JOB=$(cluster run --timeout 10 annot squeue -a -h -t all -n batch -o %A)
    check "... is the option of its steps" has_regions stencil=2
    step annot --export=NONE --energy-regions "$PROGRAMS/likwid" 2> "$SCRATCH/said"
    check "--export=NONE: the step runs" test $? = 0
    check "... and the user is told what to add" grep -q -- 'which --profile=energy' \
        "$SCRATCH/said"
    step annot --export=NONE --energy-regions --profile=energy "$PROGRAMS/likwid"
    check "... and with that it has regions" has_regions stencil=2
fi
finish
