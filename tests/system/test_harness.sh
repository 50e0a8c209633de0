#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: alone
#
# The harness itself: if it does not hold what it says, no other system test
# means anything.  Slurm's own RAPL plugin measures here, so that these tests
# say nothing about ours.
#
# shellcheck disable=SC2317  # functions are called through check
# shellcheck disable=SC2016  # and expanded in the cluster
set -u
# A base of its own where tests/run has not given one: check-clean must not
# see the clusters of others.
export JOULE_TEST_BASE=${JOULE_TEST_BASE:-/run/slurm-joule-harness.$$}
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

STOCK=(--energy acct_gather_energy/rapl)
# Slurm's plugin does not know that DRAM may count in another unit.
SIM=(--sim '--no-dram --load const:60')

clean() {
    cluster check-clean && [ ! -e "$JOULE_TEST_BASE" ]
}

# What daemons and plugins would leave on the machine itself, had they not
# their own /run, /dev and cgroups.
machine_state() {
    local path
    for path in /run/slurm-joule /run/slurm* /run/munge* /run/mysqld/* \
        /var/spool/slurm* /var/log/slurm* /sys/fs/cgroup/*/slurm*; do
        case $path in /run/slurm-joule-*) continue ;; esac
        [ ! -e "$path" ] || echo "$path"
    done
}

milliseconds() {
    sed -n 's/.* ready in \([0-9]*\) ms$/\1/p' "$SCRATCH/up.out"
}

# 5 s where a program starts within 2 ms; in proportion on a slower machine.
limit_ms() {
    local from=${EPOCHREALTIME//[.,]/} ms
    for _ in {1..100}; do
        /bin/true
    done
    ms=$(((${EPOCHREALTIME//[.,]/} - from) / 1000))
    [ "$ms" -gt 200 ] || ms=200
    echo $((ms * 25))
}

within_5_s() {
    local limit
    limit=$(limit_ms)
    echo "$1 ms of $limit"
    [ -n "$1" ] && [ "$1" -le "$limit" ]
}

# says TEXT COMMAND... - COMMAND fails and its message has TEXT
says() {
    local text=$1 out
    shift
    out=$("$@" 2>&1) && { echo "did not fail"; return 1; }
    echo "$out"
    [[ $out == *"$text"* ]]
}

# output_is TEXT COMMAND...
output_is() {
    local text=$1 out
    shift
    out=$("$@" 2>&1)
    echo "$out"
    [ "$out" = "$text" ]
}

test_calls() {
    check "--help shows the usage" cluster --help
    check "an unknown command is named" says "'frob'" cluster frob
    check "an unknown option is named" says "'--frob'" cluster up harness --frob
    check "a bad name is refused" says "not a cluster's name" cluster up ../x
    check "five nodes are refused" says "1 to 4" cluster up harness --nodes 5
    check "an option without its value is refused" \
        says "needs a value" cluster up harness --nodes
    check "a plugin that is not there is named" says "joule_nothing is not built" \
        cluster up harness --energy acct_gather_energy/joule_nothing
    check "a cluster that is not there is named" \
        says "no cluster 'harness'" cluster run harness true
    check "wrong calls leave nothing" clean
}

test_one_node() {
    up harness "${STOCK[@]}" "${SIM[@]}" --profile --contain \
        --conf 'MinJobAge=77' || {
        not_ok "one node comes up"
        return
    }
    check "one node is up within 5 s ($(milliseconds) ms)" \
        within_5_s "$(milliseconds)"
    check "list shows it" output_is "harness running" cluster list
    check "a second one of that name is refused" \
        says "already" cluster up harness "${STOCK[@]}"
    check "an unknown node is named" says "'node2'" cluster sim harness node2 energy
}

test_inside() {
    check "run is root" output_is 0 cluster run harness id -u
    check "user is alice, at home" output_is "alice 5001 $(cluster dir harness)/home/alice" \
        cluster user harness sh -c 'echo $(id -un) $(id -u) $PWD'
    cluster run harness sh -c 'exit 7'
    check "the exit status is the command's" [ $? = 7 ]
    cluster run --timeout 1 harness sleep 60
    check "a command is ended at its time limit" [ $? = 124 ]
    check "there is no way out of the loopback" \
        output_is lo cluster run harness sh -c 'ip -o link | cut -d: -f2 | tr -d " "'
    check "a default of slurm.conf is replaced" output_is "MinJobAge=77" \
        cluster run harness grep -i minjobage "$(cluster dir harness)/etc/slurm.conf"

    # The command must not outlive the caller, or `down` has to chase it.
    cluster run harness sleep 4321 &
    local caller=$!
    wait_for 5 cluster run harness sh -c 'grep -qsx sleep /proc/[0-9]*/comm &&
        grep -qs 4321 /proc/[0-9]*/cmdline'
    kill "$caller"
    wait "$caller" 2> /dev/null
    check "a command ends with its caller" wait_for 5 cluster run harness sh -c \
        '! grep -qs "^sleep.4321" /proc/[0-9]*/cmdline'
}

test_energy() {
    if ! measure_step harness user -- --sleep 3; then
        not_ok "a job of alice runs"
        return
    fi
    # The database hears of a step at once, of its job within some seconds; until then
    # the job is root's.
    check "a job of alice is in sacct" wait_for 10 output_is alice \
        sacct_field harness "$STEP_JOB" User
    note <<< "sacct: $STEP_J J, wattmeter: $STEP_TRUE_J J"
    check "Slurm's own plugin measures the simulated node" \
        within "$STEP_J" "$STEP_TRUE_J" 5 10
    check "the wattmeter is exact" within "$STEP_TRUE_J" 180 1
    check "the simulator answers" cluster sim harness node1 energy
    check "the simulator's errors are passed on" \
        says "" cluster sim harness node1 frob
    check "PrologFlags=Contain makes an extern step" \
        wait_for 10 step_ended harness "$STEP_JOB.extern"
    test_failing_step
}

# What was measured before is not taken for it, nor for unknown.
test_failing_step() {
    local how said
    for how in measured begun; do
        if [ $how = measured ]; then
            measure_step harness user -- sh -c 'sleep 1; exit 3' > /dev/null 2>&1
        else
            begin_step harness user -- sh -c 'sleep 1; exit 3'
            # Not in a subshell: it sets the step.
            end_step > "$SCRATCH/said"
        fi
        check "a step that fails, $how: said by the status" [ $? != 0 ]
        check "a step that fails, $how: no figure" [ "$STEP_J $STEP_TRUE_J" = "? ?" ]
        check "a step that fails, $how: none that is near" says "not a number" \
            step_within 100 1e9
    done
    check "a step that fails, begun: why" grep -q "the step failed" "$SCRATCH/said"
    begin_step harness user -- --sleep 2
    end_step
    check "a step in the background: $STEP_J J, wattmeter $STEP_TRUE_J J" \
        within "$STEP_J" "$STEP_TRUE_J" 5 10
}

test_slurmd() {
    local before
    before=$(cat "$(cluster dir harness)/run/slurmd-node1.pid")
    check "slurmd is not started twice" \
        says "already runs" cluster slurmd harness node1 start
    check "slurmd is killed" cluster slurmd harness node1 kill
    check "a slurmd that does not run is not killed" \
        says "does not run" cluster slurmd harness node1 kill
    check "slurmd is started again" cluster slurmd harness node1 start
    check "it is another process" \
        [ "$before" != "$(cat "$(cluster dir harness)/run/slurmd-node1.pid")" ]
    check "its sensors are there again" measure_step harness run -- --sleep 1
    check "slurmd is stopped" cluster slurmd harness node1 stop
    check "its log is there" says_log "Slurmd shutdown completing"
    check "slurmd is started after a stop" cluster slurmd harness node1 start
}

says_log() {
    wait_for 5 eval "cluster log harness node1 | grep -q '$1'"
}

test_sensors() {
    check "a node's own cpuinfo is simulated" output_is GenuineIntel \
        cluster run harness srun sh -c \
        'sed -n "s/^vendor_id[^:]*: //p" /proc/cpuinfo | head -n 1'
    check "and the rest of the cluster has the machine's" \
        output_is "$(grep -c ^processor /proc/cpuinfo)" \
        cluster run harness grep -c ^processor /proc/cpuinfo
    check "the registers are seen in the node only" \
        output_is "" cluster run harness ls /dev/cpu
}

test_down() {
    local dir
    dir=$(cluster dir harness)
    # A job that runs, and a command inside: both must go.
    cluster run harness srun sleep 600 > /dev/null 2>&1 &
    wait_for 10 cluster run harness sh -c 'squeue -h -t R | grep -q sleep'
    check "down with a job running" cluster down harness
    wait
    check "down leaves nothing" clean
    check "not even its directory" [ ! -e "$dir" ]
    check "down of what is not there says so" says "no cluster" cluster down harness
}

test_four_nodes() {
    up harness4 "${STOCK[@]}" --nodes 4 --sim '--no-dram --load const:20' \
        --sim4 '--no-dram --load const:80 --packages 2 --threads 2 --cpus 8' || {
        not_ok "four nodes come up"
        return
    }
    check "four nodes are up within 5 s ($(milliseconds) ms)" \
        within_5_s "$(milliseconds)"
    check "each answers for itself" output_is "node1 node2 node3 node4" \
        cluster run harness4 sh -c \
        'srun -N4 printenv SLURMD_NODENAME | sort | tr "\n" " " | sed "s/ $//"'
    if measure_step harness4 user -N4 -- --sleep 3; then
        note <<< "sacct: $STEP_J J, wattmeters: $STEP_TRUE_J J"
        check "the step has the energy of all four" \
            within "$STEP_J" "$STEP_TRUE_J" 5 20
        check "each node has its own load" within \
            "$(cluster energy harness4 "$STEP_START_NS" "$STEP_END_NS" node4)" \
            $(((STEP_END_NS - STEP_START_NS) * 80 / 1000)) 1
    else
        not_ok "a step on four nodes runs"
    fi
    up harness5 "${STOCK[@]}" --linuxproc --no-sim
    check "another cluster beside it, without cgroups and sensors" \
        output_is 1 cluster run harness5 srun -n1 echo 1
    check "list shows both" output_is "harness4 running
harness5 running" cluster list
    check "both go" cluster down harness4 harness5
    check "both leave nothing" clean
}

# bmc_reads CLUSTER NODE SENSOR - what FreeIPMI reads in the cluster
bmc_reads() {
    cluster run --timeout 20 "$1" sh -c '
        dir=$(mktemp -d) && ipmi-sensors -h "bmc-$0" -u mon -p monpw -l USER \
            -D LAN_2_0 -W opensesspriv --sdr-cache-directory="$dir" -Q \
            --no-header-output --comma-separated-output |
            awk -F, -v name="$1" "\$2 == name { print \$4 }"
        rm -rf "$dir"' "$2" "$3"
}

test_bmc() {
    local dir
    if ! command -v ipmi_sim > /dev/null || ! command -v ipmi-sensors > /dev/null; then
        skip "a simulated BMC for each node" "openipmi or freeipmi-tools is not installed"
        return
    fi
    check "a BMC with unknown options is refused" \
        says "--frob" cluster up harness-bmc "${STOCK[@]}" --bmc '--frob'
    up harness-bmc "${STOCK[@]}" --nodes 4 --sim '--load const:80' \
        --sim2 '--load const:240' --bmc '' --bmc2 '--update 100ms --relay' \
        --bmc4 none || {
        not_ok "four nodes with BMCs come up"
        return
    }
    check "four nodes with BMCs are up within 5 s ($(milliseconds) ms)" \
        within_5_s "$(milliseconds)"
    dir=$(cluster dir harness-bmc)
    check "the BMC shows its node's power" output_is 80.00 \
        bmc_reads harness-bmc node1 Node
    check "each node has its own" output_is 240.00 \
        bmc_reads harness-bmc node2 PSU1
    check "a node without one says so" \
        says "has no BMC" cluster bmc harness-bmc node4 count
    check "an unknown action is named" \
        says "bmc takes" cluster bmc harness-bmc node1 frob
    cluster sim harness-bmc node1 'load const:100' > /dev/null
    check "it follows its node" output_is 100.00 \
        bmc_reads harness-bmc node1 Node
    check "faults of one are set" output_is ok \
        cluster bmc harness-bmc node1 faults 'sens_cc=0xC0'
    check "a fault that is not known is refused" \
        says "frob" cluster bmc harness-bmc node1 faults 'frob=1'
    check "they show" output_is N/A bmc_reads harness-bmc node1 Node
    check "and not in the other" output_is 240.00 \
        bmc_reads harness-bmc node2 Node
    cluster bmc harness-bmc node1 faults > /dev/null
    cluster bmc harness-bmc node1 count-reset > /dev/null
    check "readings are counted" eval '
        bmc_reads harness-bmc node1 Node > /dev/null
        cluster bmc harness-bmc node1 count | grep " 04:2d=7\>"'
    check "the relay works" eval '
        cluster bmc harness-bmc node2 relay "delay_ms=5" > /dev/null
        bmc_reads harness-bmc node2 Node | grep -qx 240.00 &&
            cluster bmc harness-bmc node2 relay-count | grep -v " held=0 "'
    check "a BMC is stopped" cluster bmc harness-bmc node3 stop
    check "it does not answer" output_is "" bmc_silent
    check "it goes on" cluster bmc harness-bmc node3 cont
    check "and answers" output_is 80.00 bmc_reads harness-bmc node3 Node
    check "a BMC is killed" cluster bmc harness-bmc node3 kill
    check_not "it is dead" cluster bmc harness-bmc node3 cont
    check "it is restarted at its address" output_is "ready 127.0.1.3:623" \
        cluster bmc harness-bmc node3 restart rescaled
    check "it shows power again" output_is 80.00 bmc_reads harness-bmc node3 Node
    cluster bmc harness-bmc node1 stop
    check "down with a stopped BMC" cluster down harness-bmc
    check "down leaves nothing of BMCs" clean
    check "not even a directory" [ ! -e "$dir" ]
}

# What is printed by a client of a BMC that hangs: nothing but its complaint.
bmc_silent() {
    cluster run --timeout 20 harness-bmc ipmi-sensors -h bmc-node3 -u mon \
        -p monpw -l USER -D LAN_2_0 -W opensesspriv --session-timeout=500 \
        --retransmission-timeout=100 2> /dev/null
}

# The CPU time of a node's jobs, and of nothing else, is what its load is.
test_cgroup_load() {
    if ! up harness "${STOCK[@]}" --cgroup \
        --sim '--no-dram --idle 40 --busy 30 --cgroup %c'; then
        skip "load by the jobs' CPU time" "no cgroup v1: $(tail -n 1 "$SCRATCH/up.out")"
        return
    fi
    measure_step harness user -- --spin 2
    check "a busy task draws more" within "$STEP_TRUE_J" 140 8
    measure_step harness user -- --sleep 2
    check "a sleeping one does not" within "$STEP_TRUE_J" 80 8
    cluster down harness
}

# truth HOW LINE... - of a node with 4 CPUs and a floor of 8 W, on which job 1 was
# there from 1 s to 3 s and job 2 from 2 s to 4 s
truth() {
    printf '%s\n' "${@:2}" | awk -v how="$1" -v watts=8 -v cpus=4 \
        -v jobs='9 9 9; system 1 1 1 0 9; 1 5 7000 3000 1000000000 3000000000;
            2 6 8000 4000 2000000000 4000000000' -f "$LIB/jobtruth.awk" 2>&1
}

test_jobtruth() {
    # Of 2 W a CPU: 2 s alone, 1 s alone and 1 s with the other; 1 s more alone.
    check "the floor is shared by CPUs, while they are shared" output_is \
        "1 policy_uj=7000003 physical_uj=7000007 cpu_ns=5 from_ns=1000000000 to_ns=3000000000
2 policy_uj=3000004 physical_uj=3000008 cpu_ns=6 from_ns=2000000000 to_ns=4000000000" \
        truth cputime "1 0-1" "2 1"
    check "times may be given" output_is \
        "2 policy_uj=12000004 physical_uj=12000008 cpu_ns=6 from_ns=0 to_ns=2000000000" \
        truth cputime "2 0,2,3 0 2000000000"
    check "a job that was not there is named" says "no job 3" truth cputime "3 0"
    check "a CPU that is not there is named" says "CPU 4 " truth cputime "1 3-4"
    check "nonsense for CPUs is named" says '"x"' truth cputime "1 x"
    check "another rule is refused" says '"even"' truth even "1 0"
}

# interrupted SIGNAL SECONDS - send it to an `up` after so long; 1 if the cluster
# was up by then
interrupted() {
    local pid rc
    # A background process of a script would ignore SIGINT.
    env --default-signal "$LIB/cluster" up harness "${STOCK[@]}" \
        "${SIM[@]}" > "$SCRATCH/interrupted.out" 2>&1 &
    pid=$!
    sleep "$2"
    kill "-$1" "$pid" 2> /dev/null
    wait "$pid"
    rc=$?
    ! grep -q "^cluster 'harness': .* ready" "$SCRATCH/interrupted.out" || return 1
    check "SIG$1 after $2 s of up: it fails" [ $rc != 0 ]
    check "SIG$1 after $2 s of up: nothing is left" clean
}

# Interrupted at any moment: nothing is left.
test_interrupted() {
    local signal delay pid
    for signal in INT TERM; do
        for delay in 0.03 0.1 0.25 0.6 1.2; do
            # Some releases are ready sooner than others.
            until interrupted $signal $delay; do
                cluster down harness
                delay=$(awk -v s="$delay" 'BEGIN { print s * 0.7 }')
            done
        done
    done
    # Even where it could not clean up itself, `down` can.
    "$LIB/cluster" up harness "${STOCK[@]}" "${SIM[@]}" > /dev/null 2>&1 &
    pid=$!
    wait_for 10 [ -e "${JOULE_TEST_BASE:-/run/slurm-joule-test}/harness/init.pid" ]
    kill -KILL "$pid"
    wait "$pid" 2> /dev/null
    check_not "SIGKILL in the middle of up leaves something" cluster check-clean
    check "down removes it" cluster down harness
    check "and then nothing is left" clean
}

BEFORE=$(machine_state)
test_calls
test_one_node
test_inside
test_sensors
test_energy
test_slurmd
test_down
test_four_nodes
test_bmc
test_cgroup_load
test_jobtruth
test_interrupted
check "the machine is as before" output_is "$BEFORE" machine_state
finish
