#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: quiet
#
# A node without a job, or with one that has it to itself, is left alone
# (JouleQuietPeriod): how often it is sampled, and that every figure is as exact
# as with a sample each second.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

JOULE=$JOULE_BUILD/tools/joule/joule

board() { # KEY
    cluster at still node1 "$JOULE" probe --no-conf --json 2> "$SCRATCH/probe.err" |
        /usr/bin/python3 -c 'import json, sys
print(json.load(sys.stdin)["board"][sys.argv[1]])' "$1"
}

# samples COMMAND... - what the command prints goes to a file; SAMPLES is how often the
# counters were read meanwhile, TOOK how many seconds that was
samples() {
    local before from
    before=$(board samples) from=$(now_ns)
    "$@" > "$SCRATCH/samples.out" 2>&1
    TOOK=$((($(now_ns) - from) / 1000000000))
    SAMPLES=$(($(board samples) - before))
}

age_of() { # as who: "at still node1" or "user still"
    # shellcheck disable=SC2086  # two words and more
    cluster $1 "$JOULE" ledger --json | /usr/bin/python3 -c 'import json, sys
print(json.load(sys.stdin)["age_ns"])'
}

# Slurm polls tasks and the node each 30 s, as sites have it.
up still --sim '--load const:100' --conf 'JobAcctGatherFrequency=task=30,energy=1
AcctGatherNodeFreq=30' || exit 1
check "slurmd says how often it reads" test "$(cluster log still node1 |
    grep -c 'every 1s, or every 10s while there is nothing to divide')" -eq 1
is_quiet() { # SECONDS
    [ "$(board period_ns)" = "${1}000000000" ]
}
# The first ten seconds are sampled each second.
check "an idle node becomes quiet" wait_for 20 is_quiet 10
samples sleep 21
check "an idle node: $SAMPLES samples in $TOOK s" test "$SAMPLES" -le 4 -a \
    "$SAMPLES" -ge 2
check "its board is not old for that" test "$(board fresh)" = True

# A step that has the node to itself, in which the power changes.
lone_step() { # [SRUN-OPTION...] [-- TASK...]
    [ $# -gt 0 ] || set -- -- --sleep 16
    begin_step still user "$@"
    sleep 5
    cluster sim still node1 'load const:300'
    sleep 4
    cluster sim still node1 'load const:100'
    end_step
}
samples lone_step
# Begin and end, of the step and the extern step, are samples as well.
check "a job that has the node: $SAMPLES samples in $TOOK s" test "$SAMPLES" -le 12
check "and its energy is right ($STEP_J J, wattmeter $STEP_TRUE_J J)" \
    step_within 0.5 2

# What is looked at is of this moment.
begin_step still user -- --sleep 45
JOB=$(last_job still)
sleep 8
FROM=$(now_ns)
J=$(cluster run still sstat -a -n -P -j "$JOB" -o ConsumedEnergyRaw | head -n 1)
sleep 5
TO=$(now_ns)
LATER_J=$(cluster run still sstat -a -n -P -j "$JOB" -o ConsumedEnergyRaw | head -n 1)
TRUE_J=$(awk -v ns=$((TO - FROM)) 'BEGIN { printf "%.1f\n", ns / 1e9 * 100 }')
check "sstat sees the energy of these seconds ($J, then $LATER_J J: $TRUE_J J more)" \
    within "$((LATER_J - J))" "$TRUE_J" 2 30
sleep 4
AGE=$(age_of "at still node1")
check "root's look is of this moment ($((AGE / 1000000)) ms)" \
    test "$AGE" -lt 1700000000
users_looks() {
    local end=$((SECONDS + 13))
    while [ $SECONDS -lt $end ]; do
        AGE=$(age_of "user still")
        sleep 0.4
    done
}
users_looks
check "a user who looks all the time sees what is a second old ($((AGE / 1000000)) ms)" \
    test "$AGE" -lt 2500000000

# slurmd dies in a long interval.
cluster slurmd still node1 kill
sleep 2
cluster slurmd still node1 start
end_step
check "slurmd was killed and came back ($STEP_J J, wattmeter $STEP_TRUE_J J)" \
    step_within 0.5 2

# Two jobs: the node is divided each second.
two_jobs() {
    cluster user still srun -c1 --mem=100 sleep 12 &
    cluster user still srun -c1 --mem=100 sleep 12
    wait $!
}
samples two_jobs
check "two jobs: $SAMPLES samples in $TOOK s" test "$SAMPLES" -ge 11
cluster down still

# Its energy is divided, and it is polled each second.
up still --profile=acct_gather_profile/joule_hdf5 --sim '--load const:100' \
    --conf 'JobAcctGatherFrequency=task=1,energy=1
AcctGatherNodeFreq=30' \
    --gather 'JouleAttribution=cputime' || exit 1
check "one with a profile becomes quiet" wait_for 20 is_quiet 10
samples cluster user still srun -n2 "$STAMP" --spin 16 "$SCRATCH/polled"
check "a job that is polled: $SAMPLES samples in $TOOK s" test "$SAMPLES" -le 8
samples cluster user still srun -n2 --profile=energy "$STAMP" --spin 16 \
    "$SCRATCH/profiled"
# Each ten seconds; and each second until it is known how much of the node it has.
check "a job with a profile: $SAMPLES samples in $TOOK s" test "$SAMPLES" -le 17
# With half of the node each second all the time.
samples cluster user still srun -n1 --profile=energy "$STAMP" --spin 16 \
    "$SCRATCH/half"
check "a profile of a part of the node: $SAMPLES samples in $TOOK s" \
    test "$SAMPLES" -ge 15
cluster down still

# Samples that are asked for more often than the node is read stand for that, and have
# the node's power as well.
up still --sim '--load const:100' --conf 'JobAcctGatherFrequency=task=30,energy=1
AcctGatherNodeFreq=30' --gather 'JouleAttribution=cputime
JouleQuietPeriod=6s' || exit 1
check "one that is looked at becomes quiet" wait_for 20 is_quiet 6
look() {
    [ -n "$(cluster run still sstat -a -n -P -j "$JOB" -o ConsumedEnergyRaw)" ]
}
begin_step still user -- --sleep 34
JOB=$(last_job still)
check "the step is seen" wait_for 10 look
sleep 2
LOOKS=0 BEFORE=$(board samples) END=$((SECONDS + 21))
while [ $SECONDS -lt $END ]; do
    [ $LOOKS -ne 3 ] || cluster sim still node1 'load const:180' > /dev/null
    look && LOOKS=$((LOOKS + 1))
    sleep 2
done
SAMPLES=$(($(board samples) - BEFORE)) WATTS=$(($(board node_power_mw) / 1000))
# Read besides each six seconds, it would be three more at least.
check "a job that is looked at $LOOKS times in 21 s: $SAMPLES samples" \
    test "$LOOKS" -ge 4 -a "$SAMPLES" -le $((LOOKS + 1)) \
    -a "$SAMPLES" -ge $((LOOKS - 1))
check "the power is of these samples ($WATTS W)" within "$WATTS" 180 2
end_step
cluster down still

# A BMC is read once a second all the same, by a process of its own; slurmd is woken for
# that each ten seconds, and when a step begins or ends.
# shellcheck source-path=SCRIPTDIR source=ipmi.sh
. "$LIB/ipmi.sh"
wakes() {
    # shellcheck disable=SC2016  # the other shell's
    cluster at still node1 bash -c 'for status in /proc/$(pgrep -x slurmd)/task/*/status
        do grep -q "^Name:.joule_sampler$" "$status" && cat "$status"
        done' | awk '/^voluntary_ctxt_switches:/ { print $2 }'
}
up still --energy acct_gather_energy/joule_ipmi --bmc '' --sim '--load const:100' \
    --profile=acct_gather_profile/joule_hdf5 --gather "JouleAttribution=cputime
$BMC_CONF
EnergyIPMIFrequency=1
EnergyIPMIPowerSensors=Node=3" --conf 'JobAcctGatherFrequency=task=30
AcctGatherNodeFreq=30' || exit 1
check "a node with a BMC becomes quiet" wait_for 20 is_quiet 10
sleep 3
BEFORE=$(wakes)
samples sleep 31
WAKES=$(($(wakes) - BEFORE))
check "a BMC: $SAMPLES readings in $TOOK s" test "$SAMPLES" -ge 18
check "slurmd is woken $WAKES times for them" test "$WAKES" -ge 2 -a "$WAKES" -le 6
BEFORE=$(wakes)
lone_step -n2 -- --spin 16 > /dev/null
echo "# woken $(($(wakes) - BEFORE)) times in a step"
# 300 W for four seconds are 800 J more than 100 W; the BMC is read once a second.
check "the BMC's readings are in a job's energy ($STEP_J J of $STEP_TRUE_J)" \
    step_within 8 100
check "the BMC's board is not old for that" test "$(board fresh)" = True

# The power has changed since slurmd took readings last: the first row of a profile has
# what was used in it, and nothing of before.
# shellcheck source-path=SCRIPTDIR source=profile.sh
. "$LIB/profile.sh"
rests() { # for three seconds
    local before
    before=$(wakes)
    sleep 3
    [ "$(wakes)" = "$before" ]
}
is_woken() { [ "$(wakes)" -gt "$BEFORE" ]; }
check "slurmd rests again" wait_for 30 rests
BEFORE=$(wakes)
check "and is woken after a while" wait_for 12 is_woken
cluster sim still node1 'load const:300' > /dev/null
# So much that it has not looked at: 1,200 J more than at 100 W.
sleep 6
SEEN_MW=$(board node_power_mw)
check "slurmd has not seen the load yet ($SEEN_MW mW)" within "$SEEN_MW" 100000 2
step still --profile=energy --acctg-freq=energy=1 sleep 4 ||
    not_ok "a step with a profile"
rows "$(profile_dir still)/${JOB}_0_node1.h5" /node1/Energy > "$SCRATCH/rows"
note < "$SCRATCH/rows"
WATTS=$(cut -d, -f3 "$SCRATCH/rows" | sort -n | tr '\n' ' ')
check "the rows of a profile after a rest: ${WATTS}W" test "$(wc -w <<< "$WATTS")" -ge 3 \
    -a "${WATTS%% *}" -ge 294 -a "$(awk '{ print $NF }' <<< "$WATTS")" -le 306
finish
