#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: default
#
# What people see of the ledger: root the whole node, alice her own steps and
# nothing else, no more often than she may; and that it agrees with sacct.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

JOULE=$JOULE_BUILD/tools/joule/joule
PYTHON=/usr/bin/python3
RUN=/run/slurm-joule/node1
ALICE=5001

root() {
    cluster at whose node1 "$JOULE" ledger "$@"
}

alice() {
    cluster user whose "$JOULE" ledger "$@"
}

# holds FILE EXPRESSION - of the JSON document d in FILE, its totals t
holds() {
    "$PYTHON" - "$1" "$2" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
t = d.get("totals")
if not eval("(" + sys.argv[2] + ")"):
    sys.exit(json.dumps(d, indent=1))
PY
}

# value FILE EXPRESSION - print it
value() {
    "$PYTHON" -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(eval("(" + sys.argv[2] + ")"))' "$1" "$2"
}

# refused NAME COMMAND... - alice may not; what is there is as before
refused() {
    local name=$1
    shift
    check_not "alice cannot $name" cluster user whose "$@"
}

steps_run() {
    [ "$(cluster run whose squeue -h -s -t R -o %i | grep -cv extern)" -eq "$1" ]
}

# Steps that take no CPU time, and as long as this script needs them.
mkfifo -m 644 "$SCRATCH/first" "$SCRATCH/second" "$SCRATCH/roots" || exit 1
# shellcheck disable=SC2016  # the other shell's
HOLD='read x < "$0"'
let_go() {
    # shellcheck disable=SC2016
    timeout 20 sh -c 'echo > "$0"' "$SCRATCH/$1"
}

up whose --contain --conf 'KillWait=5' --sim '--load const:60' --gather 'JouleAttribution=cputime
JouleIdleWatts=20' || exit 1

alice > "$SCRATCH/none" 2>&1
check "without a step: exit status 1" test $? -eq 1
check "and one sentence" test "$(cat "$SCRATCH/none")" = \
    "joule ledger: user $ALICE has had no step here in the last minute"
sleep 2
root > "$SCRATCH/none"
check "root sees a node without steps: exit status 0" test $? -eq 0
check "and its sums" grep -q '^node .* J  *[56][0-9.]* W *100.0 %' "$SCRATCH/none"

# Two users, one CPU each.
cluster run whose srun -c1 --mem=100 sh -c "$HOLD" "$SCRATCH/roots" &
cluster user whose sbatch -c1 --mem=100 -o /dev/null --wrap \
    "srun sh -c '$HOLD' $SCRATCH/first; srun sh -c '$HOLD' $SCRATCH/second; sleep 1" \
    > /dev/null
check "two jobs run" wait_for 60 steps_run 3
JOBS=$(cluster run whose squeue -h -t R -o '%u %A')
HERS=$(awk '$1 == "alice" { print $2 }' <<< "$JOBS")
ROOTS=$(awk '$1 == "root" { print $2 }' <<< "$JOBS")
sleep 2

# -- what each of them sees -------------------------------------------------
root > "$SCRATCH/root.txt"
check "root: exit status 0" test $? -eq 0
note < "$SCRATCH/root.txt"
check "root sees both jobs" test "$(awk '$2 == "job" { print $1, $3 }' \
    "$SCRATCH/root.txt" | sort)" = \
    "$(printf '%s root\n%s alice\n' "$ROOTS" "$HERS" | sort)"
check "with extern, batch and numbered steps" test "$(awk \
    '$1 == "extern" || $1 == "batch" || $1 == "0"' "$SCRATCH/root.txt" |
    wc -l)" -eq 5
check "attribution and age are said" grep -q \
    '^Node node1: attribution cputime, last sample [0-9.]* s ago$' \
    "$SCRATCH/root.txt"
check "no line is longer than 80" test -z "$(awk 'length > 80' "$SCRATCH/root.txt")"

root --json > "$SCRATCH/root.json"
check "it is JSON, and jobs + unallocated + system = node, exactly" holds \
    "$SCRATCH/root.json" 't["jobs_uj"] + t["unallocated_uj"] + t["system_uj"]
        == t["node_uj"] > 0 and t["multiple_uj"] == 0'
check "steps + what is gone = jobs, exactly" holds "$SCRATCH/root.json" \
    'sum(s["energy_uj"] for j in d["jobs"] for s in j["steps"])
        + t["jobs_gone_uj"] == t["jobs_uj"]'
check "a job is its steps, exactly" holds "$SCRATCH/root.json" \
    'all(sum(s["energy_uj"] for s in j["steps"]) + j["earlier_steps_uj"]
        == j["energy_uj"] for j in d["jobs"])'
# Half of the idle power each; nobody uses much CPU time.
check "each is charged half of what idles" holds "$SCRATCH/root.json" \
    'all(9000 < j["power_mw"] < 14000 for j in d["jobs"]) and len(d["jobs"]) == 2'
# Asleep, they hold its CPU; the script has that in the time between them alone.
check "her step has the idle power of the CPU that it holds" holds \
    "$SCRATCH/root.json" "[[s['power_mw'] > 9000 if s['step'] == '0' else
        s['power_mw'] < 2000 for s in j['steps']] for j in d['jobs']
        if j['job'] == $HERS] == [[True] * 3]"
check "nothing is amiss" holds "$SCRATCH/root.json" \
    'not d["stale"] and d["attribution"] == "cputime" and all(d["totals"][k] == 0
        for k in ("faults", "cpu_time_backwards", "registrations_refused"))'

alice --json > "$SCRATCH/alice.json"
check "alice: exit status 0" test $? -eq 0
check "alice sees her job alone, and no sums" holds "$SCRATCH/alice.json" \
    "[j['job'] for j in d['jobs']] == [$HERS] and t is None
        and d['only_user_id'] == $ALICE == d['jobs'][0]['user_id']"
check "with its three steps" holds "$SCRATCH/alice.json" \
    '[s["step"] for s in d["jobs"][0]["steps"]] == ["extern", "batch", "0"]'
check "no more than root sees a little later" test \
    "$(value "$SCRATCH/alice.json" 'd["jobs"][0]["energy_uj"]')" -le \
    "$(root -j "$HERS" --json > "$SCRATCH/hers.json"
       value "$SCRATCH/hers.json" 'd["jobs"][0]["energy_uj"]')"
alice > "$SCRATCH/alice.txt"
check "as text, too" grep -q "^ *$HERS job  *alice " "$SCRATCH/alice.txt"
check_not "without anything of the node" grep -qE '%|system|node  |root' \
    "$SCRATCH/alice.txt"
alice -j "$ROOTS" 2> "$SCRATCH/err"
check "of root's job she sees nothing: exit status 1" test $? -eq 1
check "and is told so" grep -q "^joule ledger: job $ROOTS has no step on node \
node1 that this user may see$" "$SCRATCH/err"
check "root sees the one that is asked for" test "$(root -j "$ROOTS" |
    awk '$2 == "job" { print $1 }')" = "$ROOTS"
cluster run whose setpriv --reuid 5002 --clear-groups "$JOULE" ledger \
    > "$SCRATCH/other" 2>&1
check "who has no step sees nothing" test $? -eq 1

# -- what alice cannot do ---------------------------------------------------
check "alice can read her file" cluster user whose sh -c "cat $RUN/users/$ALICE/rows > /dev/null"
for file in ledger users/0/rows; do
    check "there is a $file" cluster run whose test -s $RUN/$file
    refused "read $file" cat $RUN/$file
    refused "write $file" sh -c ": >> $RUN/$file"
done
refused "list the node" ls $RUN
refused "list the users" ls $RUN/users
refused "write her file" sh -c ": >> $RUN/users/$ALICE/rows"
refused "cut her file" sh -c ": > $RUN/users/$ALICE/rows"
refused "remove her file" rm -f $RUN/users/$ALICE/rows
refused "rename her file" mv $RUN/users/$ALICE/rows $RUN/users/x
refused "change its mode" chmod 666 $RUN/users/$ALICE/rows
refused "make another file" sh -c ": > $RUN/users/4999"
refused "see another's file" stat $RUN/users/0/rows
refused "make another node" mkdir /run/slurm-joule/node9
check "permissions are as they must be" test "$(cluster run whose stat -c '%a %U' \
    /run/slurm-joule $RUN $RUN/ledger $RUN/users $RUN/users/$ALICE \
    $RUN/users/$ALICE/rows | xargs)" = \
    "755 root 711 root 600 root 711 root 710 root 640 root"
# Of its access list the second entry: a user, may read, 5001.
check "nobody but alice is let in" test "$(cluster run whose "$PYTHON" -c 'import os, sys
acl = os.getxattr(sys.argv[1], "system.posix_acl_access")
print(len(acl), acl[12:20].hex())' $RUN/users/$ALICE/rows)" = "44 0200040089130000"

# -- again and again --------------------------------------------------------
check "her second step begins when the first ends" eval \
    'let_go first && wait_for 60 cluster run whose sh -c "squeue -h -s | grep -q \"^ *$HERS.1 \""'
cluster user whose timeout --preserve-status -s INT 5.5 \
    "$JOULE" ledger --watch=0.1 --json > "$SCRATCH/watch.json"
check "--watch ends well when interrupted" test $? -eq 0
"$PYTHON" - "$SCRATCH/watch.json" > "$SCRATCH/watch" <<'PY'
import json, sys
text, at, docs = open(sys.argv[1]).read(), 0, []
while text[at:].strip():
    at += len(text[at:]) - len(text[at:].lstrip())
    d, end = json.JSONDecoder().raw_decode(text[at:])
    docs.append(d)
    at += end
times = sorted({d["sample_ns"] for d in docs})
steps = [b - a for a, b in zip(times, times[1:])]
print(len(docs), len(times), min(steps) // 1000000)
PY
read -r LOOKS NUMBERS SHORTEST_MS < "$SCRATCH/watch"
note <<< "$LOOKS looks, $NUMBERS times new numbers, $SHORTEST_MS ms apart"
check "alice looks often" test "$LOOKS" -ge 30
check "and sees new numbers each second" test "$NUMBERS" -ge 4 -a "$NUMBERS" -le 7
check "no sooner" test "$SHORTEST_MS" -ge 875
root --watch=0.1 2> "$SCRATCH/err" | head -n 30 > "$SCRATCH/head"
check "who stops reading ends it without a word" test ! -s "$SCRATCH/err"
check "one look after another" test "$(grep -c '^Node node1' "$SCRATCH/head")" -ge 2
cat > "$SCRATCH/terminal.py" <<'PY'
import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "ledger", "--watch=0.1"])
text, end, asked = b"", time.time() + 10, False
while time.time() < end:
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    text += part
    if not asked and text.count(b"\033[H") >= 4:
        os.write(fd, b"\003")
        asked = True
status = os.waitpid(pid, 0)[1]
print(text.count(b"\033[2J"), text.count(b"\033[H"), text.count(b"Node node1"),
      status)
PY
check "in place on a terminal, until ^C" test "$(cluster at whose node1 "$PYTHON" \
    "$SCRATCH/terminal.py" "$JOULE" | awk '{ print $1, $2 >= 4, $3 >= 4, $4 }')" = "1 1 1 0"

# -- slurmd is away ---------------------------------------------------------
cluster slurmd whose node1 stop
sleep 4.5
alice > "$SCRATCH/stale"
check "slurmd away: exit status 1" test $? -eq 1
check "and the numbers are called stale" grep -q STALE "$SCRATCH/stale"
root > "$SCRATCH/stale"
check "for root as well" grep -q STALE "$SCRATCH/stale"
cluster slurmd whose node1 start
check "afterwards they go on" wait_for 60 alice

# -- the end ----------------------------------------------------------------
let_go second
let_go roots
wait
wait_for 60 step_ended whose "$HERS"
wait_for 60 step_ended whose "$HERS.extern"
sleep 3
alice --json > "$SCRATCH/end.json"
check "what has ended is seen for a minute" holds "$SCRATCH/end.json" \
    "d['jobs'][0]['state'] == 'ended' and not d['stale'] and
        {s['state'] for s in d['jobs'][0]['steps']} == {'ended'}"
for step in extern batch 1; do
    SACCT=$(sacct_field whose "$HERS.$step" ConsumedEnergyRaw)
    UJ=$(value "$SCRATCH/end.json" "[s['energy_uj'] for s in d['jobs'][0]['steps']
        if s['step'] == '$step'][0]")
    [ "$step" = extern ] &&
        UJ=$(value "$SCRATCH/end.json" "d['jobs'][0]['energy_uj']")
    check "sacct has the same of $step: $SACCT J, $UJ uJ" test \
        "$SACCT" = "$(((UJ + 500000) / 1000000))"
done
check "her steps have most of what the job was charged" holds \
    "$SCRATCH/end.json" "d['jobs'][0]['earlier_steps_uj'] + sum(s['energy_uj']
        for s in d['jobs'][0]['steps'] if s['step'] == '1')
        > 0.7 * d['jobs'][0]['energy_uj']"
root --json > "$SCRATCH/sums.json"
JOBS_J=$(sacct_field whose "$HERS" ConsumedEnergyRaw)
JOBS_J=$((JOBS_J + $(sacct_field whose "$ROOTS" ConsumedEnergyRaw)))
check "the sum of all jobs is that of sacct ($JOBS_J J)" within \
    "$(value "$SCRATCH/sums.json" 'd["totals"]["jobs_uj"] / 1e6')" "$JOBS_J" 0 1
check "joule probe knows the ledger" bash -c '"$0" at whose node1 "$1" probe \
    --node node1 --conf "$2/etc" --json > "$3"' "$LIB/cluster" "$JOULE" \
    "$(cluster dir whose)" "$SCRATCH/probe.json"
check "its rule, and nothing to change" holds "$SCRATCH/probe.json" \
    'd["ledger"]["present"] and d["ledger"]["attribution"] == "cputime" and not
        {f["id"] for f in d["findings"]} & {"contain", "attribution", "job-gather",
                                            "charged-twice", "ledger-faults"}'
! is_long || check "a minute later alice's file is gone" wait_for 70 bash -c \
    '! "$0" run whose test -e "$1"' "$LIB/cluster" $RUN/users/$ALICE

# -- no access lists --------------------------------------------------------
cluster slurmd whose node1 stop
cluster run whose mount -t ramfs -o mode=755 none /run/slurm-joule
cluster slurmd whose node1 start
check "a node whose /run has no access lists measures" wait_for 60 root
cluster user whose srun -c1 --mem=100 sleep 4 &
wait_for 60 steps_run 1
sleep 2
alice 2> "$SCRATCH/err"
check "alice sees nothing there: exit status 1" test $? -eq 1
check "and why" grep -q "has no access lists (POSIX ACLs)" "$SCRATCH/err"
wait
# -- a cancelled job that takes its time ------------------------------------
# Slurm ends the extern step with the first signal; the job's figure is that step's.
# shellcheck disable=SC2016
cluster user whose srun -J stubborn -c2 sh -c \
    'trap "" TERM; : > "$0"; while :; do sleep 0.1; done' "$SCRATCH/stubborn" \
    > "$SCRATCH/srun" 2>&1 &
check "a step that ignores SIGTERM runs" wait_for 15 test -e "$SCRATCH/stubborn"
STUBBORN=$(cluster run whose squeue -h -n stubborn -o %A)
sleep 1
cluster run whose scancel "$STUBBORN"
wait $!
check "it was killed" wait_for 15 step_ended whose "$STUBBORN.0"
check "its extern step is over" wait_for 15 step_ended whose "$STUBBORN.extern"
JOB_J=$(sacct_field whose "$STUBBORN" ConsumedEnergyRaw)
STEP_J=$(sacct_field whose "$STUBBORN.0" ConsumedEnergyRaw)
STEP_S=$(sacct_field whose "$STUBBORN.0" ElapsedRaw)
# A second, and KillWait, which slurmctld counts in whole seconds of the clock.
check "it took KillWait to end ($STEP_S s)" test "$STEP_S" -ge 5
check "its job ($JOB_J J) has what its step ($STEP_J J) has" test "$JOB_J" -ge "$STEP_J"
check "and the idle power of its CPUs until it was dead" test "$JOB_J" -ge $((20 * (STEP_S - 1) * 9 / 10))
finish
