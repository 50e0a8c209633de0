#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all alone
#
# What a BMC does wrong in the middle of a step: the energy of the step, and
# how long slurmd kept others waiting, for each fault.
#
# The faults are in groups, each with a cluster of its own ($C), beside one
# another.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/ipmi.sh"
. "$LIB/faults.sh"

bmc_stop() { bmc stop; }
bmc_cont() { bmc cont; }
bmc_kill() { bmc kill; }
bmc_start() { bmc restart; }

group_long() {
    begin
    fault "BMC hangs for 120 s" 120 0.5 bmc_stop bmc_cont
    end
}

group_hangs() {
    begin
    fault "BMC hangs for 5 s" 5 0.5 bmc_stop bmc_cont
    fault "BMC hangs for 30 s" 30 0.5 bmc_stop bmc_cont
    fault "BMC dead for 8 s" 8 0.5 bmc_kill bmc_start
    fault "BMC restarted, its session dropped" 4 1 bmc_start nothing
    end
}

slow() { bmc faults delay_ms=3000; }
quick() { bmc faults; }
lossy10() { bmc relay drop_pct=10; }
lossy30() { bmc relay drop_pct=30; }
clean() { bmc relay; }
twice() { bmc relay dup=1; }
spoilt() { bmc relay corrupt=1; }

# All sessions of the BMC taken, ours lost: in use again when they time out
# (30 s in ipmi_sim).
no_sessions() {
    bmc restart
    cluster run "$C" "$JOULE_BUILD/tests/system/hogsessions" bmc-node1 \
        admin secret 70 > "$SCRATCH/$C.hog"
    signal_reader KILL
}

group_wire() {
    begin
    fault "answers take 3 s" 20 1 slow quick
    fault "10 % of the answers lost" 10 0.5 lossy10 clean
    fault "30 % of the answers lost" 10 0.5 lossy30 clean
    fault "every answer twice" 6 0.5 twice clean
    fault "every answer spoilt" 6 0.5 spoilt clean
    fault "all its sessions used up" 45 0.5 no_sessions nothing
    check "that were many ($(cat "$SCRATCH/$C.hog"))" \
        test "$(cat "$SCRATCH/$C.hog")" -gt 30
    end
}

refused() { bmc faults dcmi_cc=0xD5; }
inactive() { bmc faults dcmi_active=0; }
zero() { bmc faults dcmi_w=0; }
absurd() { bmc faults dcmi_w=65535; }
short() { bmc faults dcmi_short=1; }

group_answers() {
    begin
    fault "refused with a completion code" 5 0.5 refused quick
    fault "power measurement not active" 5 0.5 inactive quick
    fault "0 W" 5 0.5 zero quick
    fault "65535 W" 5 0.5 absurd quick
    fault "answers cut short" 5 0.5 short quick
    end
}

kill_reader() { signal_reader KILL; }
stop_reader() { signal_reader STOP; }

# A reader that finds its sensors and dies at every reading of them.
write_reader() {
    ln -s "$JOULE_BUILD/tests/unit/fakereader" "$SCRATCH/crashes"
    cat > "$SCRATCH/reader" << END
#!/bin/sh
echo >> '$SCRATCH/readers-started'
[ -e '$SCRATCH/crash' ] && exec '$SCRATCH/crashes'
exec '$JOULE_BUILD/joule-ipmi-reader'
END
    chmod 755 "$SCRATCH/reader"
}

crash_reader() {
    touch "$SCRATCH/crash"
    signal_reader KILL
}

mend_reader() {
    rm "$SCRATCH/crash"
}

readers_started() {
    wc -l < "$SCRATCH/readers-started"
}

# slurmd has no descriptor left for a new reader.
no_descriptors() {
    cluster run "$C" sh -c 'pid=$(cat "$0") && last=$(ls "/proc/$pid/fd" |
        sort -n | tail -n 1) && prlimit --pid "$pid" --nofile=$((last + 1)):' \
        "$(cluster dir "$C")/run/slurmd-node1.pid"
    signal_reader KILL
    sleep 3
    cluster run "$C" sh -c 'prlimit --pid "$(cat "$0")" --nofile=1024:' \
        "$(cluster dir "$C")/run/slurmd-node1.pid"
}

# aside SECONDS COMMAND... - a step of SECONDS, COMMAND after 2 s of it
aside() {
    begin_step "$C" user -- --sleep "$1"
    sleep 2
    "${@:2}"
    end_step
}

group_reader() {
    local name="no descriptors left for 3 s" started
    begin
    fault "reader killed" 6 0.5 kill_reader nothing
    fault "reader stopped" 12 0.5 stop_reader nothing
    started=$(readers_started)
    fault "reader crashes at every reading" 15 0.5 crash_reader mend_reader
    started=$(($(readers_started) - started))
    check "it was started again, ever more seldom ($started times)" \
        test $started -ge 4 -a $started -le 18
    # An RPC needs descriptors, too: it is not asked here.
    aside 12 no_descriptors
    check "$name: the step's energy ($STEP_J J, $STEP_TRUE_J J)" \
        step_within 0.5 2
    check "$name: the power is known again" wait_for 60 is_measured "$C" node1
    # Nobody could reach slurmd meanwhile.
    check "$name: the node is not drained" wait_for 60 not_drained
    end
}

# The sensor's record has another id, or other factors, when the BMC is back:
# by record id and by name, with and without a new timestamp of the repository.
changed_records() {
    local records
    for records in reordered rescaled plain rescaled,new reordered,new; do
        aside 6 bmc restart $records
        check "$C, $records: the step's energy ($STEP_J J, $STEP_TRUE_J J)" \
            step_within 1 2
        check "$C, $records: the power" wait_for 60 watts_are 240
    done
}
group_byid() { changed_records; }
group_byname() { changed_records; }

# One line that does not name it, energy unknown.
group_password() {
    local raw
    check "wrong password: a job runs" cluster user "$C" srun sleep 1
    raw=$(last_job_energy "$C" .0)
    check "wrong password: energy is blank ('$raw')" test -z "$raw"
    check "wrong password: power is unknown" [ "$UNKNOWN_WATTS" = \
        "$(node_field "$C" node1 CurrentWatts)" ]
    check "wrong password: the log says so, without it" bash -c \
        'lines=$("$0" log "$1" node1 | grep "error.*joule_ipmi")
        echo "$lines"
        [ -n "$lines" ] && ! grep -q wrongpw <<< "$lines" &&
            grep -q -i password <<< "$lines"' "$LIB/cluster" "$C"
    check "wrong password: the node is idle" wait_for 60 bash -c \
        '"$0" run "$1" sinfo -h -o %T | grep -qx idle' "$LIB/cluster" "$C"
}

write_reader
for C in long hangs wire answers reader; do
    conf=$BMC_CONF
    [ $C != reader ] || BMC_CONF=${BMC_CONF/$BMC_READER/$SCRATCH/reader}
    up_bmc $C --relay 'EnergyIPMIPowerSensors=Node=DCMI
JouleSamplePeriod=500ms' --sim '--load const:200' || exit 1
    BMC_CONF=$conf
done
up_bmc byid '' "EnergyIPMIPowerSensors='Node=3'" --sim '--load const:240' &&
    up_bmc byname '' "EnergyIPMIPowerSensors='Node=\"Node\"'" \
        --sim '--load const:240' || exit 1
BMC_WRONG=$SCRATCH/wrong.credentials
(umask 077 && printf 'username admin\npassword wrongpw\n' > "$BMC_WRONG")
up password --energy acct_gather_energy/joule_ipmi --bmc '' \
    --gather "${BMC_CONF/$BMC_CREDENTIALS/$BMC_WRONG}" \
    --sim '--load const:200' || exit 1

# The groups byid and byname have short steps and allow 1 %; where eight steps begin at
# once, each takes up to 0.15 s to begin.  So they run after the others.
GROUPS_RUN='long hangs wire answers reader password byid byname'
for C in $GROUPS_RUN; do
    [ $C != byid ] || wait
    "group_$C" > "$SCRATCH/$C.out" 2>&1 &
done
wait
for C in $GROUPS_RUN; do
    cat "$SCRATCH/$C.out"
    TESTS_FAILED=$((TESTS_FAILED + $(grep -c '^not ok' "$SCRATCH/$C.out")))
done
finish
