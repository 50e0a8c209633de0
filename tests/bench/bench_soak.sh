#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_soak.sh - half an hour of short jobs on a real cluster, of which something
# is killed all the time; see --help.
#
# shellcheck disable=SC2034  # for attribution.sh
# shellcheck disable=SC2317  # functions are called through wait_for
# shellcheck source-path=SCRIPTDIR/../system source=lib.sh
. "$(dirname "$(readlink -f "$0")")/../system/lib.sh"
# shellcheck source=attribution.sh
. "$LIB/attribution.sh"
# shellcheck source=ipmi.sh
. "$LIB/ipmi.sh"
HERE=$TOP/tests/bench
# shellcheck source-path=SCRIPTDIR source=rows.sh
. "$HERE/rows.sh"
# shellcheck source-path=SCRIPTDIR source=soak_faults.sh
. "$HERE/soak_faults.sh"
# shellcheck source-path=SCRIPTDIR source=soak_evidence.sh
. "$HERE/soak_evidence.sh"
# shellcheck source-path=SCRIPTDIR source=soak_admin.sh
. "$HERE/soak_admin.sh"
# shellcheck source-path=SCRIPTDIR source=soak_growth.sh
. "$HERE/soak_growth.sh"

C=soak NODES=4
SOAK_S=${JOULE_SOAK_S:-1800}
SEED=${JOULE_SOAK_SEED:-$SRANDOM}
FAULTS=${JOULE_SOAK_FAULTS:-1}

usage() {
    cat <<'END'
usage: bench_soak.sh [--help]

A cluster of four nodes, measured by BMC and RAPL together (joule_fused), divides
their energy among 2,000 jobs with 5,000 steps in half an hour; meanwhile slurmd
and slurmstepd are killed, and the BMCs are killed, hang and come back.  Rows of CSV
say what was lost, what grew and what was left behind, each beside its goal; the
exit status is 1 if one was missed, 2 if there is nothing to be said.  Where jobs are
left, a node is drained or a ledger does not answer, soak-left in JOULE_BENCH_OUT has the
logs and stacks.

Environment: JOULE_SOAK_S, seconds of it (1800), jobs and steps in proportion;
JOULE_SOAK_SEED, for the same jobs and faults once more (default: any; it is
printed); JOULE_SOAK_FAULTS=0: nothing is killed; JOULE_BUILD; JOULE_BENCH_OUT,
where the tables are written: soak.csv, the daemons in the course of time,
soak-jobs.csv, each job, soak-nodes.csv and soak-faults.csv.
END
}

say() {
    echo "soak: $(date +%T) $*" >&2
}

# plan NAME SECONDS FAULTS - jobs a second as in 1800 s of 2,000 with 5,000 steps;
# a few more, because of jobs that are killed some do not come to their end
plan() {
    awk -v name="$1" -v seed="$SEED" -v seconds="$2" -v nodes=$NODES \
        -v jobs="$(($2 * 2000 * 102 / 180000 + 1))" \
        -v steps="$(($2 * 5000 * 106 / 180000 + 1))" -v faults="$3" \
        -f "$HERE/soak_plan.awk" | sort -n
}

# The load of a plan as the user; what it is writes in $SCRATCH/DIR.
start_load() { # NAME SECONDS
    grep ' job ' "$SCRATCH/plan-$1" > "$SCRATCH/load-$1"
    cluster user --timeout 0 "$C" env SOAK_STAMP="$STAMP" "$HERE/soak-load" \
        "$SCRATCH/load-$1" "$SCRATCH/$1" "$2" < /dev/null >&2 &
    LOAD=$!
}

# A directory that the user may write to, with all files that are read later.
make_dir() {
    mkdir -m 777 "$1" && touch "$1"/{accepted,refused,jobs,steps,said} &&
        chmod 666 "$1"/*
}

# 1 if the controller does not say so.
jobs_left() {
    local jobs
    jobs=$(cluster run --timeout 20 "$C" squeue -a -h -r -o %A) || return 1
    awk NF <<< "$jobs" | wc -l
}

no_job_is_left() {
    [ "$(jobs_left)" = 0 ]
}

# Until no job is left, or for 90 s no one has ended: slow is not lost.  Sets LEFT.
drain() {
    local least=1000000 idle=0 left
    LEFT=unknown UNBEGUN=''
    while [ "$LEFT" != 0 ] && [ $idle -lt 90 ]; do
        sleep 1
        idle=$((idle + 1))
        [ $idle != 45 ] || cancel_unbegun
        left=$(jobs_left) || continue
        LEFT=$left
        [ "$left" -ge "$least" ] || least=$left idle=0
    done
    [ "$LEFT" != unknown ] || fail "the controller does not answer"
}

ledgers_are_empty() {
    local i
    for ((i = 1; i <= NODES; i++)); do
        ledger_of "$C" "node$i" > "$SCRATCH/ledger-node$i" || return 1
        ! grep -qE '^(row|claim) ' "$SCRATCH/ledger-node$i" || return 1
    done
}

# A sample of each node's ledger into $SCRATCH/NAME.NODE
read_ledgers() {
    local i
    for ((i = 1; i <= NODES; i++)); do
        ledger_of "$C" "node$i" > "$SCRATCH/$1.node$i" 2>&1 ||
            [ $? = 3 ] || {
                evidence "no ledger of node$i"
                fail "no ledger of node$i: $(cat "$SCRATCH/$1.node$i")"
            }
    done
}

# The daemons at rest: sets REST to the times from and to.
rest() {
    local from
    from=$(since_begin)
    sleep $((3 * PERIOD + 1))
    REST="$from $(since_begin)"
}

since_begin() {
    echo $(((${EPOCHREALTIME/./} - BEGIN_US) / 1000000))
}

# What runs beside this, and what it has started.
HELPERS=()
end_helpers() {
    local pid
    for pid in "${HELPERS[@]}"; do
        pkill -P "$pid"
        kill "$pid" && wait "$pid"
    done 2> /dev/null
    HELPERS=()
}

soak_cleanup() {
    end_helpers
    lib_cleanup
}
trap soak_cleanup EXIT

start_cluster() {
    ulimit -c unlimited
    stuck_program "$SCRATCH/soak/stuck" > "$SCRATCH/stuck" && chmod 755 "$SCRATCH/stuck" ||
        fail "cannot write to $SCRATCH"
    SHARE_SIM="--dram-share 0.3"
    share_up $C "$BMC_CONF
EnergyIPMIPowerSensors=Node=3
JouleAttribution=cputime
JouleIdleWatts=$SHARE_FLOOR" --nodes $NODES --contain \
        --energy acct_gather_energy/joule_fused --bmc "--settle 8s --noise 500" \
        --profile=acct_gather_profile/joule_hdf5 --conf "TaskPlugin=task/none
MinJobAge=10
UnkillableStepProgram=$SCRATCH/stuck
SlurmdDebug=info
SlurmctldDebug=info" >&2 || fail "the cluster does not come up"
    # Each slurmd is one that was started again, as those at the end are.
    has_watched $C 0.7 2 node1 node2 node3 node4 >&2 ||
        fail "the nodes are not measured"
}

start_watch() {
    BEGIN_US=${EPOCHREALTIME/./}
    PERIOD=$((SOAK_S < 600 ? 2 : 5))
    cluster run --timeout 0 $C "$HERE/soak-watch" daemons "$SCRATCH/soak" "$BEGIN_US" \
        $PERIOD $NODES &
    WATCH=$!
    cluster run --timeout 0 $C "$HERE/soak-watch" ledgers "$SCRATCH/soak" "$LEDGERDUMP" \
        $NODES &
    WATCH+=" $!"
}

warm_up() {
    local seconds=$((SOAK_S < 300 ? 10 : SOAK_S / 30))
    plan warm $seconds 0 > "$SCRATCH/plan-warm"
    start_load warm $seconds
    wait $LOAD
    wait_for 60 no_job_is_left || fail "the first jobs do not end"
    wait_for 20 ledgers_are_empty || fail "the first jobs stay in the ledgers"
    rest
    FIRST=$REST
}

soak() {
    plan soak "$SOAK_S" "$FAULTS" > "$SCRATCH/plan-soak"
    say "$(grep -c ' job ' "$SCRATCH/plan-soak") submissions and" \
        "$(grep -c ' fault ' "$SCRATCH/plan-soak") faults in $SOAK_S s"
    read_ledgers begin
    SOAK_FROM_S=${EPOCHREALTIME%.*}
    grep ' fault ' "$SCRATCH/plan-soak" > "$SCRATCH/plan-faults"
    do_faults < "$SCRATCH/plan-faults" &
    HELPERS+=($!)
    watch_nodes &
    HELPERS+=($!)
    start_load soak "$SOAK_S"
    while sleep 60; do
        say "$(stat -c %s "$SCRATCH/soak/jobs") jobs," \
            "$(stat -c %s "$SCRATCH/soak/steps") steps done"
    done &
    HELPERS+=($!)
    wait "${HELPERS[0]}"
    # One srun that waits for ever is not to keep this one.
    wait_for $((SOAK_S / 10 + 60)) load_is_over
    drain
    end_helpers
    SOAK_TO_S=${EPOCHREALTIME%.*}
    if [ "$LEFT" != 0 ]; then
        evidence "$LEFT jobs are left"
        cluster run --timeout 20 $C scancel -u alice
        wait_for 60 no_job_is_left
    fi
    wait_for 20 ledgers_are_empty
    read_ledgers end
    rest
    LAST=$REST
    : > "$SCRATCH/soak/stop"
    # shellcheck disable=SC2086  # two
    wait $WATCH
}

load_is_over() {
    ! kill -0 "$LOAD" 2> /dev/null
}

accounting() {
    cluster run --timeout 120 "$C" env SLURM_TIME_FORMAT=%s sacct -a -n -P -D \
        -S now-2days -o JobIDRaw,JobID,JobName,State,Start,End,NodeList,ConsumedEnergyRaw
}

# The rows of the last step of a job may be in the database a moment later.
accounting_is_final() {
    accounting > "$SCRATCH/sacct" &&
        ! awk -F'|' '$4 ~ /^(RUNNING|COMPLETING|PENDING)/' "$SCRATCH/sacct" | grep -q .
}

# Sets WATT_J, CHARGED_J, LEDGER_JOBS_J, REST_J: of all nodes, while it lasted; and
# BROKEN, the number of ledgers that do not add up.
sum_ledgers() {
    local i from to key line
    local -A sum=() part
    BROKEN=0
    table_open soak-nodes "the nodes of a soak of $SOAK_S s, seed $SEED: what the \
wattmeter counted, and what the ledger says of it" \
        node,wattmeter_j,charged_j,jobs_j,unallocated_j,system_j
    for ((i = 1; i <= NODES; i++)); do
        from=$(sed -n 's/^totals //p' "$SCRATCH/begin.node$i")
        to=$(sed -n 's/^totals //p' "$SCRATCH/end.node$i")
        part[watt]=$(cluster energy $C "$(of mono_ns <<< "$from")" \
            "$(of mono_ns <<< "$to")" "node$i")
        line=node$i
        for key in watt charged jobs unallocated system; do
            [ $key = watt ] || part[$key]=$(($(of ${key}_uj <<< "$to") -
                $(of ${key}_uj <<< "$from")))
            sum[$key]=$((${sum[$key]:-0} + part[$key]))
            line+=,$(joules "${part[$key]}")
        done
        echo "$line" >> "$TABLE"
        say "$line; $to"
        [ "$(of identity <<< "$to") $(of faults <<< "$to")" = "yes 0" ] ||
            BROKEN=$((BROKEN + 1))
    done
    WATT_J=$(joules "${sum[watt]}")
    CHARGED_J=$(joules "${sum[charged]}")
    LEDGER_JOBS_J=$(joules "${sum[jobs]}")
    REST_J=$(joules $((sum[unallocated] + sum[system])))
}

# How long nothing was written that is written every $PERIOD seconds: the machine
# had no time for it, and none for the simulators either.
longest_pause() {
    awk -F, -v period=$PERIOD '
        { if (NR > 1 && $1 - last > most) most = $1 - last; last = $1 }
        END { printf "%.1f\n", (most > period ? most - period : 0) }' \
        "$SCRATCH/soak/daemons"
}

# percent PART WHOLE - without its sign
percent() {
    awk -v part="$1" -v whole="$2" 'BEGIN {
        p = 100 * part / whole; printf "%.4f\n", p < 0 ? -p : p }'
}

difference() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f\n", a - b }'
}

# How many lines there are; they are told.
count_lines() { # WHAT
    awk -v what="$1" '{ print "soak: " what ": " $0 > "/dev/stderr" }
        END { print NR }'
}

# What of a node is known to be other than it should be.
bad_nodes() {
    cluster run --timeout 20 $C sinfo -h -N -O NodeHost,StateComplete,Reason |
        awk '$2 != "idle" || $3 != "none"'
}

# The sessions of those whose BMC is killed and whose slurmd is are expected.
bad_lines() {
    local i
    for ((i = 1; i <= NODES; i++)); do
        cluster log $C "node$i"
    done | grep -E 'error: (joule_[a-z0-9]*|slurm-joule): ' | grep -vE 'BMC|reader'
}

# Of jobs of which something was killed, too: up to the last flush.
bad_profiles() {
    # shellcheck disable=SC2016  # expanded in the cluster
    cluster user --timeout 0 $C sh -c 'cd "$1/profile/alice" || exit
        ls | sed "s/_.*//" | sort -un | while read -r job; do
            said=$("$2" -S -j "$job" -p "$1/profile" -o "$HOME/$job.h5" 2>&1) ||
                echo "job $job: $said"
        done' - "$(cluster dir $C)" "$JOULE_BUILD/tools/sh5util/sh5util" 2>&1
}

# A slurmstepd that is killed leaves the socket of its step's regions, which the next
# one removes.
strangers_in_run() {
    # shellcheck disable=SC2016  # expanded in the cluster
    cluster run --timeout 20 $C find /run/slurm-joule -mindepth 1 | grep -vE \
        '^/run/slurm-joule/node[1-4](/(ledger|users(/5001(/rows)?)?|regions(/[0-9]+\.[0-9a-z]+)?))?$'
}

core_files() {
    find "$(cluster dir $C)" "$SCRATCH" -xdev -type f \
        \( -name core -o -name 'core.[0-9]*' \)
}

left_processes() {
    cluster run --timeout 20 $C ps -eo comm= |
        awk '/^slurmstepd/ || /^srun/ || /^stamp/ || /^joule-profile-c/ ||
            /^joule-ipmi-read/ && ++n > '$NODES
}

# The starts of slurmd that are not ours to explain.
unknown_starts() {
    local i starts ours
    for ((i = 1; i <= NODES; i++)); do
        starts=$(cluster log $C "node$i" | grep -c 'slurmd version .* started')
        ours=$((2 + $(grep -c "^slurmd node$i " "$SCRATCH/faults")))
        [ "$starts" = $ours ] || echo "node$i: $starts starts, $ours of them known"
    done
}

killed() {
    grep -cE "^($1) " "$SCRATCH/faults"
}

planned() {
    grep -cE " fault ($1) " "$SCRATCH/plan-faults"
}

report() {
    local summary jobs=$((SOAK_S * 2000 / 1800)) steps=$((SOAK_S * 5000 / 1800)) what
    local lost_j sum_j allowed
    table_open soak-jobs "the jobs of a soak of $SOAK_S s, seed $SEED; \
energy_j by sacct, ledger_j when the ledgers were last looked at; killed: what of it \
was" job,name,state,start_s,end_s,nodes,steps,energy_j,ledger_j,killed
    summary=$(awk -v until_s="$SOAK_TO_S" -v table="$TABLE" -v unbegun="$UNBEGUN" \
        -f "$HERE/soak_jobs.awk" "$SCRATCH/soak/accepted" "$SCRATCH/faults" \
        "$SCRATCH/soak/ledgers" "$SCRATCH/sacct")
    say "$summary"
    sum_ledgers
    row_head
    row "soak: jobs" count "$(of jobs <<< "$summary")" "" ">=$jobs"
    row "soak: steps" count "$(of steps <<< "$summary")" "" ">=$steps"
    # Slurm takes half a minute to end a job once more whose slurmd was away.
    row "soak: until the last job is over" s \
        $(($(of over_s <<< "$summary") - SOAK_FROM_S)) "" \
        "<=$((SOAK_S + 60))"
    row "soak: longest pause of the machine" s "$(longest_pause)" "" "<=10"
    for what in slurmd slurmstepd 'bmc|hang'; do
        row "soak: kills of ${what/bmc|hang/the BMC}" count "$(killed "$what")" "" \
            ">=$(planned "$what")"
    done
    row "soak: submissions refused" count "$(wc -l < "$SCRATCH/soak/refused")" "" "<=0"
    row "soak: jobs lost" count "$(of lost <<< "$summary")" "" "<=0"
    row "soak: jobs that do not end" count \
        $((LEFT + $(of running <<< "$summary"))) "" "<=0"
    # Slurm's, and not many: a slurmd is killed in that moment once in some dozen
    # times.
    row "soak: jobs left in their prolog by a killed slurmd" count \
        "$(of unbegun <<< "$summary")" "" "<=$((1 + $(killed slurmd) / 4))"
    # Slurm's as well: an extern step is killed in that moment once in some dozen times.
    row "soak: nodes that wait for a killed extern step" count "$(waited killed)" \
        "" "<=$((1 + $(grep -c "$KILLED_EXTERN" "$SCRATCH/faults") / 8))"
    row "soak: nodes that wait for another extern step" count "$(waited other)" \
        "" "<=0"
    row "soak: nodes drained by a step that does not end" count "$(drained step)" \
        "" "<=0"
    # Slurm's, too: one that was killed with a job between prolog and script has
    # forgotten the prolog, and tells the controller of an error when it has waited
    # for it.  On a slow machine many a job is there when slurmd is killed.
    row "soak: nodes drained by a prolog that a killed slurmd had" count \
        "$(drained prolog)" "" "<=$(killed slurmd)"
    row "soak: nodes drained for another reason" count "$(drained other)" "" "<=0"
    row "soak: jobs without energy" count "$(of silent <<< "$summary")" "" "<=0"
    row "soak: jobs without energy beside a killed slurmd" count \
        "$(of touched_silent <<< "$summary")" "" "<=0"
    sum_j=$(awk -v a="$(of sacct_j <<< "$summary")" -v b="$(of cut_j <<< "$summary")" \
        'BEGIN { printf "%.3f\n", a + b }')
    lost_j=$(difference "$WATT_J" "$(awk -v a="$sum_j" -v b="$REST_J" \
        'BEGIN { printf "%.3f\n", a + b }')")
    say "wattmeters $WATT_J J, nodes $CHARGED_J J, rest $REST_J J, jobs by the" \
        "ledgers $LEDGER_JOBS_J J, by sacct and of the killed $sum_j J"
    # Either way.  A BMC that measures in steps of 2 W, and for a while not at all:
    # 0.1 %; whole joules of each job: 0.01 %; what the job of a killed extern step
    # used since its ledger was looked at last, and what is told of jobs that end
    # while slurmd is away, at their last power: some tens of joules each time, of 420
    # that the nodes use in a second.  In minutes each weighs more.
    allowed=$((SOAK_S < 600 ? 10 : 5))
    allowed=$((allowed / 10)).$((allowed % 10))
    row "soak: energy lost: jobs and rest against the wattmeters" % \
        "$(percent "$lost_j" "$WATT_J")" "" "<=$allowed"
    row "soak: nodes against the wattmeters" % \
        "$(percent "$(difference "$CHARGED_J" "$WATT_J")" "$WATT_J")" "" "<=$allowed"
    row "soak: jobs by sacct against the ledgers" % \
        "$(percent "$(difference "$sum_j" "$LEDGER_JOBS_J")" "$LEDGER_JOBS_J")" "" "<=2"
    row "soak: ledgers that do not add up" count $BROKEN "" "<=0"
    row "soak: steps left in the ledgers" count \
        "$(cat "$SCRATCH"/end.node* | grep -E '^(row|claim) ' | count_lines left)" "" "<=0"
    growth_rows
    row "soak: profiles that cannot be read" count \
        "$(bad_profiles | count_lines profile)" "" "<=0"
    row "soak: files of nobody in /run/slurm-joule" count \
        "$(strangers_in_run | count_lines stranger)" "" "<=0"
    row "soak: processes left" count "$(left_processes | count_lines left)" "" "<=0"
    row "soak: core files" count "$(core_files | count_lines core)" "" "<=0"
    row "soak: daemons that ended by themselves" count \
        "$(unknown_starts | count_lines slurmd)" "" "<=0"
    row "soak: nodes that are not idle" count "$(bad_nodes | count_lines node)" "" "<=0"
    row "soak: errors in slurmd's logs" count "$(bad_lines | count_lines error)" "" "<=0"
}

write_tables() {
    table_open soak-faults "what was killed in a soak of $SOAK_S s, seed $SEED; times \
are seconds since its begin" what,node,from_s,to_s,job,step
    sort -k3n "$SCRATCH/faults" | awk -v begin_us="$BEGIN_US" '{
        printf "%s,%s,%.1f,%.1f,%s,%s\n", $1, $2, $3 - begin_us / 1e6,
               $4 - begin_us / 1e6, $5, $6 }' >> "$TABLE"
    table_open soak "the daemons in a soak of $SOAK_S s, seed $SEED; at rest from and \
to second $FIRST, jobs from second $((SOAK_FROM_S - BEGIN_US / 1000000)) to \
$((SOAK_TO_S - BEGIN_US / 1000000)), at rest from and to $LAST" \
        "$("$HERE/soak-watch" daemons head $NODES)"
    cat "$SCRATCH/soak/daemons" >> "$TABLE"
}

case ${1:-} in
--help | -h) usage; exit 0 ;;
'') ;;
*) usage >&2; exit 2 ;;
esac
[[ $SOAK_S =~ ^[1-9][0-9]{1,5}$ ]] || fail "JOULE_SOAK_S is seconds, 10 or more"
[[ $SEED =~ ^[0-9]{1,10}$ ]] || fail "JOULE_SOAK_SEED is a number"
[ "$(id -u)" = 0 ] || fail "needs root"
[ -e "$JOULE_BUILD/plugins/acct_gather_profile_joule_hdf5.so" ] ||
    fail "the profile plugin is not built (HDF5)"
[ -e /sys/fs/cgroup/cpuacct/cpuacct.usage_percpu ] || fail "no cgroup v1 with cpuacct"
: > "$SCRATCH/faults"
: > "$SCRATCH/drained"
: > "$SCRATCH/waited"
for dir in warm soak; do
    make_dir "$SCRATCH/$dir" || fail "no directory"
done
say "seed $SEED (JOULE_SOAK_SEED)"
start_cluster
start_watch
warm_up
soak
wait_for 30 accounting_is_final
write_tables
report
say "over; the tables are in $BENCH_OUT"
exit $STATUS
