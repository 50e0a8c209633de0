#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# Steps and jobs of all fates.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

up jobs --sim '--load const:100' || exit 1

# Two tasks that end at different times: the step lasts as long as the longer, and 0.1 s
# where slurmstepd of 22.05 looks for the next one that late (10 J).
measure_step jobs user -n2 --overcommit -- \
    sh -c 'sleep $((1 + SLURM_PROCID * 4))'
check "tasks of 1 s and 5 s ($STEP_J J, wattmeter $STEP_TRUE_J J)" \
    step_within 0.5 12
measure_step jobs user -n2 --overcommit -- \
    sh -c 'sleep $((5 - SLURM_PROCID * 4))'
check "tasks of 5 s and 1 s ($STEP_J J, wattmeter $STEP_TRUE_J J)" \
    step_within 0.5 12

# Fifty short steps: their sum is the sum of their times.
cat > "$SCRATCH/fifty" <<END
#!/bin/sh
for i in \$(seq 50); do srun -n1 "$STAMP" --sleep 0.2 "$SCRATCH/fifty.times"; done
END
cluster user jobs sbatch --wait -o /dev/null "$SCRATCH/fifty" > "$SCRATCH/out" 2>&1 ||
    not_ok "the job of fifty steps" "$(cat "$SCRATCH/out")"
JOB=$(last_job jobs)
wait_for 60 step_ended jobs "$JOB.49"
SUM=$(cluster run jobs sacct -a -n -P -j "$JOB" -o JobID,ConsumedEnergyRaw |
    awk -F'|' '$1 ~ /\.[0-9]+$/ { n++; sum += $2; if ($2 == "") bad++ }
               END { print (n == 50 && !bad) ? sum : "steps: " n " unknown: " bad }')
# As step_within, of each; and half a joule of rounding.
read -r STEP_TRUE_J STEP_MOST_J < <(awk -v edge="$STEP_EDGE_NS" '
    { sum += $2 - $1 } END { print sum / 1e7, (sum + NR * 2 * edge) / 1e7 }' \
    "$SCRATCH/fifty.times")
STEP_J=$SUM
check "fifty steps of 0.2 s ($SUM J, wattmeter $STEP_TRUE_J J)" step_within 0 25
check "none of the fifty is 0 J" test "$(cluster run jobs sacct -a -n -P \
    -j "$JOB" -o JobID,ConsumedEnergyRaw | grep -c '\.[0-9]*|0$')" -eq 0

# The hardware goes on counting while a job is suspended.
begin_step jobs user -- --sleep 3
JOB=$(last_job jobs)
sleep 1
cluster run jobs scontrol suspend "$JOB"
sleep 4
cluster run jobs scontrol resume "$JOB"
end_step
check "a suspended and resumed job ($STEP_J J, wattmeter $STEP_TRUE_J J)" \
    step_within 0.5 2
check "it was suspended: 3 s took longer" test "${STEP_TRUE_J%.*}" -ge 450

BEGAN_NS=$(now_ns)
cluster user jobs srun sleep 100 > /dev/null 2>&1 &
wait_for 60 bash -c '"$0" run jobs squeue -h -t R -o %A | grep -q .' "$LIB/cluster"
JOB=$(last_job jobs)
sleep 3
cluster run jobs scancel "$JOB"
J=$(step_energy jobs "$JOB.0")
check "a cancelled job ($J J in $((($(now_ns) - BEGAN_NS) / 1000000)) ms)" \
    test "$J" -ge 300 -a "$J" -le $((($(now_ns) - BEGAN_NS) / 10000000))

STEP_MAY_FAIL=yes measure_step jobs user -- sh -c 'sleep 2; exit 3' 2> /dev/null
check "a failed job ($STEP_J J)" step_within 2 4
check "no error of ours in slurmd's log" bash -c \
    '! "$0" log jobs node1 | grep -E "error:.*(joule_rapl|slurm-joule:)"' \
    "$LIB/cluster"
finish
