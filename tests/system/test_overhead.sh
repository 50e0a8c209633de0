#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: batch
#
# What bench_overhead.sh and bench_instructions.sh make of what was seen of a step,
# from snapshots that are made up: with a machine that counts instructions and with one
# that does not, and for a step of which not everything is known.  Which modes they
# measure, and what they compare them with on a machine that slows down meanwhile.
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
    local arguments="run=1 since=2500000000 mode=JOBACCT plugins=none kind=compute"
    arguments+=" cpus=2"
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
check "when that was: from 10 s to 20 s, by a clock that began at 2.5 s" \
    is 12.5 of_overhead at_s node
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

HEAD=run,at_s,mode,plugins,load,process,thread,cpu_us_per_s,cpu_44min_s,stolen_pct
HEAD+=,waking_us,rss_kib,hwm_kib,load_instructions_per_s

# loads NO_JOBACCT OURS SLURM NO_JOBACCT - instructions of the load per second
loads() {
    {
        echo "$HEAD"
        printf '1,%s,compute,node,,1,1,1,,,,%s\n' 0,NO_JOBACCT,none "$1" \
            10,JOBACCT,none "$1" 20,JOBACCT_RAPL,ours "$2" 30,JOBACCT_RAPL,slurm "$3" \
            40,NO_JOBACCT,none "$4"
        printf '1,%s,compute,slurmstepd,,1,,,,1,1,\n' 0,NO_JOBACCT,none \
            20,JOBACCT_RAPL,ours 30,JOBACCT_RAPL,slurm
    } > loads.csv
    awk -F, -f "$BENCH/overhead_rows.awk" loads.csv > rows
}

SLOWER="load JOBACCT_RAPL (compute): fewer instructions per second than NO_JOBACCT"
LOAD="load NO_JOBACCT (compute): instructions per second"
loads 1000 900 950 1000
check "what CPU time without accounting varies by" \
    grep -qxF "CPU NO_JOBACCT (compute): 44 min from lowest to highest,s,0,,,," rows
check "of what was measured once that is not known" \
    is 0 grep -c "^CPU JOBACCT (" rows
check "nor how far one is from its neighbours, where none has two" \
    is 0 grep -c "off the line" rows
check "what a load varies by" \
    grep -qxF "$LOAD from lowest to highest,%,0,,,," rows
check "how much slower it is with ours and with Slurm's" \
    grep -qxF "$SLOWER,%,10,5,2.000,," rows
loads 1100 950 945 900
check "what does not stand out of that says so, and has no ratio" \
    grep -qxF "$SLOWER; within what that varies by,%,5,0.52632,,," rows

# measured RUN LATER CPU_44MIN_S PER_S - lines of overhead.csv from "AT_S MODE PLUGINS
# CPU_44MIN_S" on stdin: so much later, with so much more each second and in all
measured() {
    awk -v run="$1" -v later="$2" -v more="$3" -v per_s="$4" '
        NF {
            cpu = $4 + more + per_s * $1
            id = run "," $1 + later "," $2 "," $3 ",compute,"
            printf "%snode,,%.6f,%.6f,1,%s,,,1000\n", id, cpu * 1000, cpu,
                $2 ~ /_100HZ/ ? 10 : ""
            printf "%sslurmstepd,,1,,,,%.6f,7000,\n", id, 6000 + cpu * 64
        }'
}

# compared STATUS < LINES - rows of these lines; those of differences also by themselves
compared() {
    local rc
    { echo "$HEAD"; cat; } > measured.csv
    awk -F, -f "$BENCH/overhead_rows.awk" measured.csv > rows 2> said
    rc=$?
    grep " beyond " rows > differences
    cat said
    [ "$rc" = "$1" ]
}

# Controls are not as far from each other in time as they are in number.
cat > modes << 'END'
0 NO_JOBACCT none 0.25
40 JOBACCT none 1.5
110 JOBACCT_0_RAPL ours 0.5
170 JOBACCT_0_RAPL slurm 1.25
240 JOBACCT none 1.5
300 JOBACCT_RAPL ours 2.5
390 JOBACCT_RAPL slurm 3
450 JOBACCT none 1.5
500 NO_JOBACCT none 0.25
510 JOBACCT_RAPL_PROFILE_100HZ ours 4.5
650 JOBACCT none 1.5
700 NO_JOBACCT none 0.25
END
cat > wanted << 'END'
CPU JOBACCT_0_RAPL (compute): 44 min beyond NO_JOBACCT,s,0.25,1,0.250,<=0.5x,pass
CPU JOBACCT_RAPL (compute): 44 min beyond NO_JOBACCT,s,2.25,2.75,0.818,<=0.5x,miss
CPU JOBACCT_RAPL (compute): 44 min beyond JOBACCT,s,1,1.5,0.667,<=0.5x,miss
CPU JOBACCT_RAPL_PROFILE_100HZ (compute): beyond NO_JOBACCT; peer: waking up and nothing else,% of a core,0.425,0.1,4.250,<0.2,miss
CPU JOBACCT_RAPL_PROFILE_100HZ (compute): beyond JOBACCT; peer: waking up and nothing else,% of a core,0.3,0.1,3.000,<0.2,miss
memory JOBACCT_0_RAPL: slurmstepd beyond NO_JOBACCT,KiB,16,64,0.250,<=2048,pass
memory JOBACCT_RAPL: slurmstepd beyond NO_JOBACCT,KiB,144,176,0.818,<=2048,pass
memory JOBACCT_RAPL_PROFILE_100HZ: slurmstepd beyond NO_JOBACCT,KiB,272,,,<=2048,pass
END

# same_differences - rows of differences are the wanted ones
same_differences() {
    diff wanted differences
}

# on_a_line - whether all controls are: median and worst of CPU (two) and load
on_a_line() {
    awk -F, '
        / off the line / { lines++; if ($3 > 1e-6) { print; bad = 1 } }
        END { exit bad || lines != 6 }' rows
}

steady() {
    measured 1 0 0 0 < modes
}

slowing() {
    measured 1 0 0 0.0078125 < modes
}

check "a machine that does not change" compared 1 < <(steady)
check "its differences" same_differences
check "one that takes 5.5 s more at the end than at the beginning" \
    compared 1 < <(slowing)
check "differs by that much" grep -qxF \
    "CPU NO_JOBACCT (compute): 44 min from lowest to highest,s,5.4688,,,," rows
check "its differences are the same" same_differences
check "all of its controls are on a line" on_a_line
check "they are not, if time goes by otherwise than the machine slows down" \
    compared 1 < <(slowing | sed 's/^1,510,/1,600,/')
check_not "which is seen" same_differences
check "lines in another order" compared 1 < <(slowing | sort -t, -k3,3 -k2,2rn)
check "are the same differences" diff <(sort wanted) <(sort differences)

# The second run is from 800 s on: all takes 6.25 s more, ours another 2 s.
twice() {
    measured 1 0 0 0.0078125 < modes
    sed '/_RAPL ours/s/2.5$/4.5/' modes | measured 2 800 6.25 0.0078125
}

check "two runs" compared 1 < <(twice)
BEYOND="CPU JOBACCT_RAPL (compute): 44 min beyond JOBACCT"
check "the median of their differences counts" \
    grep -qxF "$BEYOND,s,2,1.5,1.333,<=0.5x,miss" differences
check "what did not change is the same" \
    diff <(grep -v "JOBACCT_RAPL[ :]" wanted) <(grep -v "JOBACCT_RAPL[ :]" differences)

# Nearer to the last controls of the first run than to its own first ones.
check "a mode before its run's first control" compared 1 < <(
    steady
    sed 's/^300 /-90 /; s/^390 /-80 /' modes | measured 2 800 6.25 0)
check "is compared with that" same_differences
check "controls on one side only" compared 1 < <(measured 1 0 0 0 << 'END'
0 JOBACCT_RAPL ours 3
10 NO_JOBACCT none 0.25
20 JOBACCT none 1
30 NO_JOBACCT none 0.5
40 JOBACCT none 2
50 JOBACCT_RAPL slurm 5
END
)
check "the nearest one counts" diff - <(grep CPU differences) << 'END'
CPU JOBACCT_RAPL (compute): 44 min beyond NO_JOBACCT,s,2.75,4.5,0.611,<=0.5x,miss
CPU JOBACCT_RAPL (compute): 44 min beyond JOBACCT; goal within what that varies by,s,2,3,0.667,<=0.5x,miss
END

# uneven OURS - 0.5 and 1 s off the line between its neighbours, JOBACCT takes 1.25 s
# at the times of the modes, of which Slurm's is 3 s beyond
uneven() {
    measured 1 0 0 0 << END
0 NO_JOBACCT none 0
0 JOBACCT none 1
50 JOBACCT_RAPL ours $1
100 JOBACCT none 1.5
150 JOBACCT_RAPL slurm 4.25
200 JOBACCT none 1
300 JOBACCT none 2.5
300 NO_JOBACCT none 0
END
}

check "controls that are not on a line" compared 1 < <(uneven 3.25)
check "how far they are from it" diff - <(grep "^CPU JOBACCT (" rows) << 'END'
CPU JOBACCT (compute): 44 min off the line between its neighbours; median,s,0.75,,,,
CPU JOBACCT (compute): 44 min off the line between its neighbours; worst,s,1,,,,
CPU JOBACCT (compute): 44 min from lowest to highest,s,1.5,,,,
END
cp rows in_order
check "from the last line to the first" compared 1 < <(uneven 3.25 | tac)
check "they are the same rows" diff in_order rows
check "a goal that is nearer is missed, and the row says so" grep -qxF \
    "$BEYOND; goal within what that varies by,s,2,3,0.667,<=0.5x,miss" differences
check "uneven: less than the goal" compared 1 < <(uneven 2.25)
check "it is met, and the row says so" grep -qxF \
    "$BEYOND; goal within what that varies by,s,1,3,0.333,<=0.5x,pass" differences
check "uneven: much more than the goal" compared 1 < <(uneven 5.25)
check "is missed" grep -qxF "$BEYOND,s,4,3,1.333,<=0.5x,miss" differences
check "uneven: much less than the goal" compared 1 < <(uneven 1.5)
check "is met" grep -qxF "$BEYOND,s,0.25,3,0.083,<=0.5x,pass" differences
check "a load with 900 instructions where its neighbours give 1,000" compared 1 < <(
    steady | sed '/^1,500,NO_.*node/s/1000$/900/')
check "is off by as much" grep -qxF \
    "$LOAD off the line between its neighbours; worst,%,10,,,," rows
check "a mode with 1,000 between 1,000 and 900 does not stand out of that" grep -qxF \
    "$SLOWER; within what that varies by,%,-6.383,-8.4599,,," rows

check "no run has a JOBACCT" compared 2 < <(grep -v "JOBACCT none 1.5" modes |
    measured 1 0 0 0)
check "it is told" grep -qx "bench_overhead: run 1 has no JOBACCT (compute)" said
check "the first run has one" compared 2 < <(steady
    grep -v "JOBACCT none 1.5" modes | measured 2 800 0 0)
check "the second has not" grep -qx "bench_overhead: run 2 has no JOBACCT (compute)" said
check "without modes" compared 2 < <(grep none modes | measured 1 0 0 0)
check "there is nothing to compare" grep -q "nothing to compare" said
cut -d, -f1,3- < <(echo "$HEAD"; steady) > measured.csv
check "a table that does not say when" fails 2 \
    awk -F, -f "$BENCH/overhead_rows.awk" measured.csv

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

# ---- overhead_modes.sh ----

# modes_of COMMAND [MODES [SCRIPT]] - what COMMAND of it prints; SCRIPT: of which benchmark
modes_of() (
    # shellcheck disable=SC2034  # for what is sourced
    NAME=none HERE=$BENCH BENCH_MODES=${2:-}
    # shellcheck source-path=SCRIPTDIR source=../bench/overhead_modes.sh
    . "$BENCH/overhead_modes.sh"
    [ -z "${3:-}" ] || eval "$(sed -n '/^wanted() /,/^}/p' "$BENCH/$3")"
    show() { echo "$1 $6"; }
    case $1 in
    plan) plan ;;
    *) "$1" show ;;
    esac
)

# in_turns - whether a plan on stdin has each cluster's steps while it is up and after it
# has settled, two of each mode, ours as early as Slurm's in the mean, and a control of
# each kind before the first, after the last and at least after each four
in_turns() {
    awk '
        function wrong(why) { if (!bad) bad = NR ": " why }
        $1 == "up" { if ($2 in up) wrong("is up"); up[$2] = $3 " " $NF; fresh[$2] }
        $1 == "settle" { split("", fresh) }
        $1 == "down" { if (!($2 in up)) wrong("is not up"); delete up[$2] }
        $1 == "step" {
            n++
            if (up[$2] != $3 " " $NF) wrong("another cluster")
            if ($2 in fresh) wrong("not settled")
            if ($NF == "none") {
                since[$3] = 0
                there[$3]
                next
            }
            if (!("JOBACCT" in there && "NO_JOBACCT" in there)) wrong("no control first")
            if (++since["JOBACCT"] > 4 || ++since["NO_JOBACCT"] > 4)
                wrong("too few controls")
            steps[$3 " " $NF]++
            at[$3 " " $NF] += n
        }
        END {
            if (since["JOBACCT"] || since["NO_JOBACCT"]) wrong("no control last")
            for (mode in steps) {
                if (steps[mode] != 2) wrong(mode ": " steps[mode] " steps")
                peer = mode
                if (sub(/ ours$/, " slurm", peer)) {
                    gsub(/_100?HZ/, "", peer)
                    if (at[mode] != at[peer]) wrong(mode " is not when Slurm'"'"'s is")
                }
            }
            for (key in up) if (up[key] !~ / none$/) wrong(up[key] " stays up")
            print bad
            exit bad != ""
        }'
}

if command -v h5dump > /dev/null; then
    modes_of plan > all
    check "steps in turn, between controls" in_turns < all
    check "all modes" diff <(modes_of each_mode | sort) \
        <(awk '$1 == "step" && $NF != "none" { print $3, $NF }' all | sort -u)
    check_not "without a control, that is seen" in_turns < <(sed '0,/^step/{/^step/d}' all)
    check_not "without the last" in_turns < <(tac all | sed '0,/^step/{/^step/d}' | tac)
    check_not "without those at half-time" \
        in_turns < <(awk '/^step 4/ { four = 1 } four && /^step [01]/ { next } 1' all)
    check_not "two by two, not there and back" in_turns < <(
        awk '/^step 3/ && ++n == 2 { line = $0; next }
            1
            line { print line; line = "" }' all)
    some="JOBACCT_0_RAPL JOBACCT_RAPL_PROFILE_10HZ JOBACCT_RAPL_PROFILE_100HZ"
    some+=" JOBACCT_RAPL_PROFILE_100HZ_FILES JOBACCT_RAPL_PROFILE"
    check "some modes, and the controls beside them" diff - <(modes_of plan "$some" |
        awk '{ print $1, $2, $3, $1 == "step" || $1 == "up" ? $NF : "" }' |
        sed 's/ *$//') << 'END'
up 0 NO_JOBACCT none
up 1 JOBACCT none
settle
step 0 NO_JOBACCT none
step 1 JOBACCT none
up 2 JOBACCT_0_RAPL ours
up 3 JOBACCT_0_RAPL slurm
settle
step 2 JOBACCT_0_RAPL ours
step 3 JOBACCT_0_RAPL slurm
step 3 JOBACCT_0_RAPL slurm
step 2 JOBACCT_0_RAPL ours
step 0 NO_JOBACCT none
step 1 JOBACCT none
down 2
down 3
up 2 JOBACCT_RAPL_PROFILE ours
up 3 JOBACCT_RAPL_PROFILE slurm
up 4 JOBACCT_RAPL_PROFILE_10HZ ours
up 5 JOBACCT_RAPL_PROFILE_100HZ ours
settle
step 2 JOBACCT_RAPL_PROFILE ours
step 3 JOBACCT_RAPL_PROFILE slurm
step 4 JOBACCT_RAPL_PROFILE_10HZ ours
step 5 JOBACCT_RAPL_PROFILE_100HZ ours
step 0 NO_JOBACCT none
step 1 JOBACCT none
step 5 JOBACCT_RAPL_PROFILE_100HZ ours
step 4 JOBACCT_RAPL_PROFILE_10HZ ours
step 3 JOBACCT_RAPL_PROFILE slurm
step 2 JOBACCT_RAPL_PROFILE ours
step 0 NO_JOBACCT none
step 1 JOBACCT none
down 2
down 3
down 4
down 5
up 2 JOBACCT_RAPL_PROFILE_100HZ_FILES ours
settle
step 2 JOBACCT_RAPL_PROFILE_100HZ_FILES ours
step 2 JOBACCT_RAPL_PROFILE_100HZ_FILES ours
step 0 NO_JOBACCT none
step 1 JOBACCT none
down 2
END
    check "what a cluster needs is in its line" grep -qx \
        "up 4 JOBACCT_RAPL_PROFILE_10HZ rapl task=1,energy=1 energy,task 10 ours" all
    check "instructions: controls, which come by themselves" diff - \
        <(modes_of each_control "" bench_instructions.sh) << 'END'
NO_JOBACCT none
JOBACCT none
END
    check "instructions: modes without those of plain files" diff - \
        <(modes_of each_mode "" bench_instructions.sh) << 'END'
JOBACCT_0_RAPL ours
JOBACCT_0_RAPL slurm
JOBACCT_RAPL ours
JOBACCT_RAPL slurm
JOBACCT_RAPL_PROFILE ours
JOBACCT_RAPL_PROFILE slurm
JOBACCT_RAPL_PROFILE_10HZ ours
JOBACCT_RAPL_PROFILE_100HZ ours
JOBACCT_0_IPMI ours
JOBACCT_0_IPMI slurm
JOBACCT_IPMI ours
JOBACCT_IPMI slurm
JOBACCT_IPMI_PROFILE ours
JOBACCT_IPMI_PROFILE slurm
END
    check "instructions: one of the modes" diff - \
        <(modes_of each_mode JOBACCT_RAPL_PROFILE_FILES bench_instructions.sh) << 'END'
JOBACCT_RAPL_PROFILE_FILES ours
JOBACCT_RAPL_PROFILE_FILES slurm
END
else
    skip "what is measured" "no h5dump (hdf5-tools)"
fi
finish
