#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: idle
#
# What bench_overhead.sh and bench_instructions.sh make of what was seen of a step,
# from snapshots that are made up: with a machine that counts instructions and with one
# that does not, and for a step of which not everything is known.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
BENCH=$TOP/tests/bench
SUMS=$BENCH/overhead_sums.awk
cd "$SCRATCH" || exit

# field COLUMN PROCESS [THREAD] - of the lines on stdin, by the name in their head
field() {
    awk -F, -v column="$1" -v process="$2" -v thread="${3:-}" '
        /^#/ { next }
        !at["mode"] { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["process"] == process && $at["thread"] == thread { print $at[column] }'
}

# is VALUE COMMAND... - whether COMMAND prints that and nothing else
is() {
    local out
    out=$("${@:2}")
    echo "'$out' instead of '$1'"
    [ "$out" = "$1" ]
}

# fails STATUS COMMAND...
fails() {
    "${@:2}"
    [ $? = "$1" ]
}

# ---- overhead.awk: 10 s of a step of 20 s, in which two tasks do 1,000 rounds each ----

tasks() { # INSTRUCTIONS of each task
    printf '%s\n' "5000000000 25000000000 1000 1000 $1" \
        "5000000000 25000000000 1000 1000 $1"
}

usage() { # AT_S CPU_NS OF THE STEPD
    echo "at ${1}000000000"
    echo "group $2"
    [ -z "${3:-}" ] || echo "process 7 $2 5000 5000 - slurmstepd"
}

usage 1 0 > idle
usage 2 0 > idled
usage 4 0 > before
usage 10 3000000 stepd > begun
usage 20 13000000 stepd > seen
usage 30 30000000 > after

overhead() {
    local arguments="run=1 mode=JOBACCT plugins=none kind=compute cpus=2"
    # shellcheck disable=SC2046,SC2086  # words
    { awk -v header=1 -f "$SUMS" -f "$BENCH/overhead.awk" < /dev/null &&
        awk $(printf -- '-v %s ' $arguments "$@") -f "$SUMS" -f "$BENCH/overhead.awk" \
            ended idle idled before begun seen after; } > overhead.csv
}

of_overhead() {
    field "$@" < overhead.csv
}

tasks 4000000 > ended
cat > perf << 'END'
# started on a day

123000000,,instructions,40000000,100.00,,
END
check "overhead: a machine that counts" overhead
check "the daemons' instructions are those that perf counted" \
    is 12300000 of_overhead instructions_per_s node
check "the load's are those that its tasks counted" \
    is 400000 of_overhead load_instructions_per_s node
check "these, and not those of a round" overhead per_round=7
check "they are the same" is 400000 of_overhead load_instructions_per_s node

tasks - > ended
echo "<not supported>,,instructions,0,100.00,," > perf
check "a machine that does not count" overhead
check "the daemons' are not known" is "" of_overhead instructions_per_s node
check "nor are the load's" is "" of_overhead load_instructions_per_s node
rm perf
check "without perf, but with those of a round" overhead per_round=450000
check "the daemons' are not known here, either" \
    is "" of_overhead instructions_per_s node
check "the load's are its rounds'" \
    is 45000000 of_overhead load_instructions_per_s node

# ---- overhead_rows.awk ----

# loads NO_JOBACCT OURS SLURM NO_JOBACCT - instructions of the load per second
loads() {
    {
        echo mode,plugins,load,process,thread,cpu_us_per_s,cpu_44min_s,stolen_pct,waking_us,rss_kib,hwm_kib,load_instructions_per_s
        printf '%s,compute,node,,1,1,1,,,,%s\n' NO_JOBACCT,none "$1" \
            JOBACCT,none "$1" JOBACCT_RAPL,ours "$2" JOBACCT_RAPL,slurm "$3" \
            NO_JOBACCT,none "$4"
        printf '%s,compute,slurmstepd,,1,,,,1,1,\n' NO_JOBACCT,none \
            JOBACCT_RAPL,ours JOBACCT_RAPL,slurm
    } > loads.csv
    awk -F, -f "$BENCH/overhead_rows.awk" loads.csv > rows
}

SLOWER="load JOBACCT_RAPL (compute): fewer instructions per second than NO_JOBACCT"
loads 1000 900 950 1000
check "what CPU time without accounting varies by" \
    grep -qxF "CPU NO_JOBACCT (compute): 44 min vary by,s,0,,,," rows
check "of what was measured once that is not known" \
    is 0 grep -c "^CPU JOBACCT (" rows
check "what a load varies by" \
    grep -qxF "load NO_JOBACCT (compute): instructions per second vary by,%,0,,,," rows
check "how much slower it is with ours and with Slurm's" \
    grep -qxF "$SLOWER,%,10,5,2.000,," rows
loads 1100 950 945 900
check "what does not stand out of that says so, and has no ratio" \
    grep -qxF "$SLOWER; within what that varies by,%,5,5.5,,," rows

# ---- instructions.awk: slurmd is there before and after, and has a thread ----

counts() { # AT_S SLURMD [STEPD [ACCTG]]
    echo "at ${1}000000000"
    echo "process 3 $2 slurmd"
    echo "thread 3 1 $2 main"
    [ -z "${3:-}" ] || echo "process 7 $3 slurmstepd"
    [ -z "${4:-}" ] || echo "thread 7 2 $4 acctg"
}

tasks - > ended
echo 5000000000 > began
echo "7 90000" > collected
counts 4 1000 > before
counts 10 2000 20000 10000 > begun
counts 15 2500 25000 15000 > half
counts 20 3000 31000 21000 > seen
counts 30 5000 > after
counts 40 6000 > idle
counts 50 6500 > idled

instructions() {
    { awk -v header=1 -f "$SUMS" -f "$BENCH/instructions.awk" < /dev/null &&
        awk -v mode=JOBACCT -v plugins=none -f "$SUMS" -f "$BENCH/instructions.awk" \
            began ended collected before begun half seen after idle idled; } > instructions.csv
}

of_instructions() {
    field "$@" < instructions.csv
}

check "instructions: a step" instructions
check "what goes on" is 1100 of_instructions per_s slurmstepd
check "of a thread" is 1100 of_instructions per_s slurmstepd acctg
check "of all" is 1200 of_instructions per_s node
check "by how much its halves differ" is 18.18 of_instructions spread_pct slurmstepd
check "the whole has what it did until its end" \
    is 90000 of_instructions whole slurmstepd
check "its start" is 14500 of_instructions start slurmstepd
check "its end" is 53500 of_instructions end slurmstepd
check "44 minutes" is 2972000 of_instructions in_44min slurmstepd
check "what slurmd does without a step is not the step's" \
    is 265700 of_instructions in_44min slurmd
: > collected
check "nothing is known of its end" fails 2 instructions
echo "7 90000" > collected
sed -i /slurmstepd/d seen
check "no slurmstepd was seen" fails 2 instructions
: > after
check "a snapshot is missing" fails 2 instructions

# ---- instructions_rows.awk ----

cat > instructions.csv << 'END'
# made up for a test
mode,plugins,process,thread,idle_per_s,per_s,spread_pct,start,end,whole,in_44min,rows,rows_due
NO_JOBACCT,none,node,,0,1000,0.1,0,0,0,1000000,,
JOBACCT,none,node,,0,2000,0.2,0,0,0,2000000,,
JOBACCT_RAPL,ours,node,,0,2000,0.1,0,0,0,4000000,,
JOBACCT_RAPL,slurm,node,,0,2000,5,0,0,0,7000000,,
JOBACCT_RAPL,slurm,slurmd,,0,2000,50,0,0,0,3000000,,
JOBACCT_RAPL_PROFILE,ours,node,,,,,,,,,3,20
JOBACCT_RAPL_PROFILE,slurm,node,,0,2000,0.1,0,0,0,9000000,20,20
JOBACCT_RAPL_PROFILE_100HZ,ours,node,,0,9000,0.1,0,0,0,5000000,2000,2000
NO_JOBACCT,none,node,,0,1000,0.1,0,0,0,1500000,,
NO_JOBACCT,none,node,,0,1000,0.1,0,0,0,1250000,,
END
check "rows: a goal was missed" fails 1 awk -F, -f "$BENCH/instructions_rows.awk" \
    instructions.csv
awk -F, -f "$BENCH/instructions_rows.awk" instructions.csv > rows
cat > wanted << 'END'
name,unit,ours,peer,ratio,goal,verdict
instructions JOBACCT_RAPL: 44 min beyond NO_JOBACCT,M,2.75,5.75,0.478,<=0.5x,pass
instructions JOBACCT_RAPL: 44 min beyond JOBACCT,M,2,5,0.400,<=0.5x,pass
instructions JOBACCT_RAPL_PROFILE: 44 min beyond NO_JOBACCT: not measured (the machine was too busy),M,,,,<=0.5x,miss
instructions JOBACCT_RAPL_PROFILE: 44 min beyond JOBACCT: not measured (the machine was too busy),M,,,,<=0.5x,miss
instructions JOBACCT_RAPL_PROFILE_100HZ: a second beyond NO_JOBACCT,k,8,,,,
instructions JOBACCT_RAPL_PROFILE_100HZ: a second beyond JOBACCT,k,7,,,,
instructions NO_JOBACCT: 44 min vary by,M,0.5,,,,
instructions: the halves of a step differ most in JOBACCT_RAPL of Slurm's,%,5,,,,
END
check "the rows" diff wanted rows
finish
