# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# lib.sh - for the system tests: source it, start clusters with `up`, say what
# holds with `check`, end with `finish`.  Output is one line a test:
#
#     ok - NAME | not ok - NAME | skip - NAME # REASON
#
# Every cluster that was started is taken down when the script ends, however
# it ends.  JOULE_TEST_KEEP=1 leaves them.

LIB=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
TOP=$(readlink -f "$LIB/../..")
if [ -z "${JOULE_BUILD:-}" ]; then
    JOULE_BUILD=$TOP
    [ -e "$TOP/build/config.status" ] && JOULE_BUILD=$TOP/build
fi
export JOULE_BUILD
# shellcheck disable=SC2034  # for the tests
STAMP=${JOULE_STAMP:-$JOULE_BUILD/tests/system/stamp}
# What clusters are made of: 22.05, 24.11 or 26.05.
SLURM_RELEASE=$(slurmctld -V 2> /dev/null | sed -nE 's/^[^ ]+ ([0-9]+\.[0-9]+)\..*/\1/p')

TESTS_FAILED=0
CLUSTERS=()

# is_long - whether all is to be done that a script can do (tests/run --all), and not
# what a default run has the time for
is_long() {
    [ -n "${JOULE_TEST_LONG:-}" ]
}

lib_cleanup() {
    local name
    trap '' INT TERM HUP
    for name in "${CLUSTERS[@]}"; do
        [ -z "${JOULE_TEST_KEEP:-}" ] || {
            echo "# kept: $LIB/cluster shell $name"
            continue
        }
        "$LIB/cluster" down "$name" 2> /dev/null
    done
    # Nothing else of a test may outlive it.
    [ -z "${SCRATCH:-}" ] || rm -rf "$SCRATCH"
}
trap lib_cleanup EXIT
# The shell ends by these without running the trap of EXIT.
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# A directory of the test's own, gone with it; jobs of any user may write.
SCRATCH=$(mktemp -d /var/tmp/joule-test.XXXXXX) && chmod 1777 "$SCRATCH"

cluster() {
    "$LIB/cluster" "$@"
}

# up NAME [OPTION...] - cluster up, noted for the end; 1 if it fails.  Not while a step is
# measured, here or in another script: on two cores slurmstepd would be late to see its
# task's end.
up() {
    # Somebody else's is not to be taken down at the end.
    if "$LIB/cluster" list 2> /dev/null | grep -q "^$1\( \|\$\)"; then
        note <<< "there is a cluster '$1' already"
        return 1
    fi
    CLUSTERS+=("$1")
    flock -o "$JOULE_BUILD" "$LIB/cluster" up "$@" > "$SCRATCH/up.out" 2>&1 || {
        note < "$SCRATCH/up.out"
        return 1
    }
    note < "$SCRATCH/up.out"
}

# release_is RELEASE... - whether SLURM_RELEASE is one of these
release_is() {
    local release
    for release; do
        [ "$release" != "$SLURM_RELEASE" ] || return 0
    done
    return 1
}

# What scontrol shows for watts that are not known.
# shellcheck disable=SC2034  # for the tests
if release_is 22.05; then UNKNOWN_WATTS=n/s; else UNKNOWN_WATTS=n/a; fi

# Lines of stdin as remarks.
note() {
    sed 's/^/# /'
}

ok() {
    echo "ok - $*"
}

# not_ok NAME [REMARK]
not_ok() {
    TESTS_FAILED=$((TESTS_FAILED + 1))
    echo "not ok - $1"
    shift
    [ $# -eq 0 ] || printf '%s\n' "$*" | note
}

# A command that there is not, wherever it is called: bash calls this in a process of
# its own.
command_not_found_handle() {
    echo "not ok - $1: there is no such command (line ${BASH_LINENO[0]})" >&2
    return 127
}

# skip NAME REASON
skip() {
    echo "skip - $1 # $2"
}

# check NAME COMMAND... - one test; what COMMAND says is shown if it fails
check() {
    local name=$1 out
    shift
    if out=$("$@" 2>&1); then
        ok "$name"
    else
        not_ok "$name" "failed: $*${out:+
$out}"
    fi
}

# check_not NAME COMMAND... - one test: COMMAND must fail
check_not() {
    local name=$1 out
    shift
    if out=$("$@" 2>&1); then
        not_ok "$name" "did not fail: $*${out:+
$out}"
    else
        ok "$name"
    fi
}

# guest_tests SCRIPT [OPTION...] - the tests of SCRIPT, run in a guest with these
# options of guest's run; its last line but `finish` prints GUEST_END
GUEST_END="# end of the guest's tests"
guest_tests() {
    local script=$1 status line failed=0 begin=${EPOCHREALTIME/./}
    shift
    "$LIB/guest" run --timeout 3000 "$@" "$LIB/$script" > "$SCRATCH/guest.out" 2>&1
    status=$?
    note <<< "the guest took $(((${EPOCHREALTIME/./} - begin) / 1000)) ms"
    while IFS= read -r line; do
        echo "$line"
        case $line in "not ok - "*) failed=$((failed + 1)) ;; esac
    done < "$SCRATCH/guest.out"
    TESTS_FAILED=$((TESTS_FAILED + failed))
    check "$script came to its end" grep -qxF "$GUEST_END" "$SCRATCH/guest.out"
    check "the exit status is the script's" [ $status = $((failed > 0)) ]
}

# The last line of a test script.
finish() {
    [ "$TESTS_FAILED" -eq 0 ] || exit 1
    exit 0
}

# within ACTUAL EXPECTED PERCENT [AT_LEAST] - whether ACTUAL is a number that
# is off by no more than PERCENT of EXPECTED, or by AT_LEAST where that is more
within() {
    awk -v actual="$1" -v expected="$2" -v percent="$3" -v least="${4:-0}" '
        function number(s) { return s ~ /^[-+]?[0-9]+(\.[0-9]*)?$/ }
        BEGIN {
            if (!number(actual) || !number(expected)) {
                printf "not a number: \"%s\" or \"%s\"\n", actual, expected
                exit 1
            }
            allowed = (expected < 0 ? -expected : expected) * percent / 100
            if (allowed < least) allowed = least
            off = actual - expected
            printf "%s instead of %s: off by %.3f, allowed %.3f\n", actual,
                   expected, off, allowed
            exit (off < 0 ? -off : off) > allowed
        }'
}

# wait_for SECONDS COMMAND... - until COMMAND succeeds, polled 20 times a second at
# first, in the end thrice: it may take as long as a script has of the machine; 1 if it
# never did
wait_for() {
    local end=$((${EPOCHREALTIME/./} + $1 * 1000000)) ms=50
    shift
    until "$@" > /dev/null 2>&1; do
        [ "${EPOCHREALTIME/./}" -lt "$end" ] || return 1
        sleep "0.$(printf %03d $ms)"
        ms=$((ms < 250 ? ms * 5 / 4 : 300))
    done
}

# CLOCK_BOOTTIME in ns, to about 10 ms (for more, see stamp).
now_ns() {
    awk '{ printf "%.0f\n", $1 * 1e9 }' /proc/uptime
}

# sacct_field CLUSTER STEP FIELD - of a job ("3") or step ("3.0", "3.batch"); names, not
# numbers: 3 and 3.0 are the same one
sacct_field() {
    "$LIB/cluster" run --timeout 10 "$1" \
        sacct -a -n -P -j "$2" -o "JobID,$3" 2> /dev/null |
        awk -F'|' -v step="$2" '$1 "" == step "" { print $2 }'
}

step_ended() {
    case $(sacct_field "$1" "$2" State) in
    COMPLETED | FAILED | CANCELLED* | TIMEOUT | OUT_OF_MEMORY | NODE_FAIL) ;;
    *) return 1 ;;
    esac
}

# step_energy CLUSTER STEP [SECONDS] - prints ConsumedEnergyRaw (J; may be
# empty: unknown) as soon as the accounting has the end of the step
step_energy() {
    if ! wait_for "${3:-60}" step_ended "$1" "$2"; then
        echo "step $2 is not over: $(sacct_field "$1" "$2" State)" >&2
        return 1
    fi
    sacct_field "$1" "$2" ConsumedEnergyRaw
}

# The number of the newest job that the controller knows.
last_job() {
    "$LIB/cluster" run --timeout 10 "$1" squeue -a -h -t all -o %A |
        sort -n | tail -n 1
}

# last_job_energy CLUSTER [SUFFIX] - of the newest job, or its step (".0")
last_job_energy() {
    local job
    job=$(last_job "$1")
    [ -n "$job" ] || { echo "no job yet" >&2; return 1; }
    step_energy "$1" "$job${2:-}"
}

# micro N - N / 10^6, with three decimals
micro() {
    awk -v n="$1" 'BEGIN { printf "%.3f\n", n / 1e6 }'
}

# Nothing is known of a step.
no_step() {
    # shellcheck disable=SC2034
    STEP_JOB='' STEP_START_NS='' STEP_END_NS='' STEP_TRUE_UJ='' STEP_TRUE_J='?' STEP_MOST_J='?' STEP_J='?'
}

# measure_step CLUSTER USER [SRUN-OPTION...] -- TASK...
#
# Run a step and its truth beside it.  TASK is `--spin S`, `--sleep S` or a
# command.  USER is run (root) or user (alice).  Sets
#   STEP_JOB          the job's number
#   STEP_START_NS, STEP_END_NS  first start to last end of its tasks
#   STEP_TRUE_UJ      what the wattmeters of the step's nodes counted, each
#                     from the first start to the last end of its own tasks
#   STEP_TRUE_J       the same in J, with three decimals
#   STEP_MOST_J       the same with STEP_EDGE_NS more on either side: in that time
#                     slurmstepd starts a task, and reaps it
#   STEP_J            what sacct says of step 0; empty: unknown
# Returns 1 with a remark if the step fails (unless STEP_MAY_FAIL is set); STEP_J and
# STEP_TRUE_J are "?" then, which is neither a number nor unknown.
STEP_EDGE_NS=30000000
measure_step() {
    local name=$1 user=$2 file job_name options=() task node from to uj most_uj=0
    shift 2
    no_step
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    file=$(mktemp "$SCRATCH/stamp.XXXXXX") && chmod 666 "$file"
    # mktemp's letters make the job's name one of its own, too.
    job_name=${file##*/}
    # One file a node: each node's energy is counted over its own tasks.
    case $1 in
    --spin | --sleep) task=("$STAMP" "$1" "$2" "$file.%n") ;;
    *) task=("$STAMP" "$file.%n" -- "$@") ;;
    esac
    flock -s -o "$JOULE_BUILD" \
        "$LIB/cluster" "$user" "$name" srun -J "$job_name" "${options[@]}" "${task[@]}" ||
        [ -n "${STEP_MAY_FAIL:-}" ] || { echo "the step failed"; return 1; } >&2
    STEP_TRUE_UJ=0 STEP_START_NS='' STEP_END_NS=''
    for node in "$file".*; do
        read -r from to < <(awk '
            NR == 1 || $1 < from { from = $1 }
            NR == 1 || $2 > to { to = $2 }
            END { printf "%.0f %.0f\n", from, to }' "$node")
        uj=$("$LIB/cluster" energy "$name" "$from" "$to" "${node##*.}") ||
            return 1
        STEP_TRUE_UJ=$((STEP_TRUE_UJ + uj))
        uj=$("$LIB/cluster" energy "$name" $((from - STEP_EDGE_NS)) \
            $((to + STEP_EDGE_NS)) "${node##*.}") || return 1
        most_uj=$((most_uj + uj))
        [ -n "$STEP_START_NS" ] && [ "$STEP_START_NS" -le "$from" ] ||
            STEP_START_NS=$from
        [ -n "$STEP_END_NS" ] && [ "$STEP_END_NS" -ge "$to" ] ||
            STEP_END_NS=$to
    done
    # shellcheck disable=SC2034
    STEP_TRUE_J=$(micro "$STEP_TRUE_UJ")
    # shellcheck disable=SC2034
    STEP_MOST_J=$(micro $most_uj)
    STEP_JOB=$("$LIB/cluster" run --timeout 10 "$name" \
        squeue -a -h -t all -n "$job_name" -o %A)
    # shellcheck disable=SC2034
    STEP_J=$(step_energy "$name" "$STEP_JOB.0") || { STEP_J='?'; return 1; }
}

# begin_step CLUSTER USER [SRUN-OPTION...] -- TASK...
#
# The same in the background, one at a time; returns when Slurm has the job as running,
# and nothing else runs.  Its tasks begin at once after that, or within a second on a
# slow machine.
begin_step() {
    no_step
    STEP_FILE=$(mktemp "$SCRATCH/step.XXXXXX")
    (measure_step "$@" && echo "$STEP_JOB $STEP_START_NS $STEP_END_NS $STEP_TRUE_UJ" \
        "$STEP_TRUE_J $STEP_MOST_J $STEP_J") > "$STEP_FILE" 2>&1 &
    STEP_PID=$!
    # shellcheck disable=SC2016  # the other shell's
    wait_for 60 bash -c '"$0" run "$1" squeue -h -t R -o %A | grep -q .' \
        "$LIB/cluster" "$1" || echo "# the step has not begun"
}

# end_step - waits for it, and sets what measure_step does; 1 with its remarks if it
# failed
end_step() {
    if ! wait "$STEP_PID"; then
        note < "$STEP_FILE"
        return 1
    fi
    # shellcheck disable=SC2034
    read -r STEP_JOB STEP_START_NS STEP_END_NS STEP_TRUE_UJ STEP_TRUE_J STEP_MOST_J \
        STEP_J < <(tail -n 1 "$STEP_FILE")
}

# step_lasts FROM_NS TO_NS - whether tasks of the step last measured ran all that time
step_lasts() {
    echo "from ${STEP_START_NS:-?} to ${STEP_END_NS:-?}, wanted from $1 to $2"
    [ -n "$STEP_START_NS" ] && [ "$STEP_START_NS" -lt "$1" ] && [ "$2" -lt "$STEP_END_NS" ]
}

# step_within PERCENT LEAST - whether the step last measured was charged what the
# wattmeters counted from somewhere in the STEP_EDGE_NS before its first task to
# somewhere in those after its last, see within
step_within() {
    local allowed
    allowed=$(within 0 "$STEP_TRUE_J" "$1" "$2" | sed 's/.* //')
    echo "$STEP_J instead of $STEP_TRUE_J to $STEP_MOST_J, allowed $allowed more or less"
    awk -v j="$STEP_J" -v from="$STEP_TRUE_J" -v to="$STEP_MOST_J" -v allowed="$allowed" \
        'BEGIN { exit !(j "" ~ /^[0-9]/ && j >= from - allowed && j <= to + allowed) }'
}

# near_truth [PART] - whether the step last measured was charged PART of what the
# wattmeters counted (default 1), for scripts that run beside busy ones: there a
# step may last up to a second longer than its tasks.
near_truth() {
    within "$STEP_J" $(awk -v j="$STEP_TRUE_J" -v part="${1:-1}" \
        -v from="$STEP_START_NS" -v to="$STEP_END_NS" 'BEGIN {
            printf "%.3f 1 %.3f\n", j * part,
                   j * part / ((to - from) / 1e9)
        }')
}
