# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# soak_faults.sh - what is killed in a soak; for bench_soak.sh.  $C is the cluster.
#
# $SCRATCH/faults has a line for each: "WHAT NODE FROM_S TO_S JOB STEP", times in
# seconds since the epoch; "-" for what it has not.

# A step of 22.05 and later has its number in the title of its slurmstepd.  Prints
# "AT_S JOB STEP" of the one that was killed; waits for one.
KILL_STEPD='for try in $(seq 200); do
    found=($(pgrep -f "^slurmstepd: \[[0-9]"))
    [ ${#found[@]} -gt 0 ] && {
        pid=${found[$1 % ${#found[@]}]}
        title=$(tr "\0" " " < /proc/$pid/cmdline)
        at=${EPOCHREALTIME%???}
        [[ $title =~ ^slurmstepd:\ \[([0-9]+)\.([a-z0-9]+)\] ]] && kill -KILL $pid &&
            { echo "$at ${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"; exit 0; }
    }
    sleep 0.1
done 2> /dev/null
exit 1'

# seconds - since the epoch
seconds() {
    echo "${EPOCHREALTIME%???}"
}

# Slurm waits in vain for a step whose slurmstepd is gone: its job is cancelled, as
# an admin would do.  That of an extern step is not missed.
kill_stepd() { # CHOICE
    local victim at
    # shellcheck disable=SC2016  # expanded in the cluster
    victim=$(cluster run --timeout 60 "$C" bash -c "$KILL_STEPD" - "$1") || return 1
    read -r at victim <<< "$victim"
    echo "slurmstepd - $at $at $victim" >> "$SCRATCH/faults"
    [[ $victim != *" extern" ]] || return 0
    sleep 1
    # By the number of the array's task: the controller of 22.05 does not know the
    # other one.
    # shellcheck disable=SC2016  # expanded in the cluster
    cluster run --timeout 20 "$C" bash -c 'squeue -h -o "%A %i" |
        awk -v job="$1" "\$1 == job { print \$2 }" | xargs -r scancel' - "${victim% *}"
}

kill_slurmd() { # NODE AWAY-S
    local from
    from=$(seconds)
    cluster slurmd "$C" "$1" kill && sleep "$2" &&
        cluster slurmd "$C" "$1" start || return 1
    echo "slurmd $1 $from $(seconds) - -" >> "$SCRATCH/faults"
}

kill_bmc() { # NODE AWAY-S
    local from
    from=$(seconds)
    cluster bmc "$C" "$1" kill && sleep "$2" && cluster bmc "$C" "$1" restart ||
        return 1
    echo "bmc $1 $from $(seconds) - -" >> "$SCRATCH/faults"
}

hang_bmc() { # NODE AWAY-S
    local from
    from=$(seconds)
    cluster bmc "$C" "$1" stop && sleep "$2" && cluster bmc "$C" "$1" cont ||
        return 1
    echo "hang $1 $from $(seconds) - -" >> "$SCRATCH/faults"
}

# The faults of a plan (soak_plan.awk), in lines on stdin, at their times.  What
# cannot be done is told on stderr, and is not in the list.
do_faults() {
    local at what node away choice begin=${EPOCHREALTIME/./} now
    local -A last=() # on the same node one after the other
    while read -r at _ what node away choice; do
        now=$(((${EPOCHREALTIME/./} - begin) / 1000))
        [ "$at" -le $now ] ||
            sleep "$(((at - now) / 1000)).$(printf %03d $(((at - now) % 1000)))"
        away=$((away / 1000)).$(printf %03d $((away % 1000)))
        [ -z "${last[${what/hang/bmc} $node]:-}" ] ||
            wait "${last[${what/hang/bmc} $node]}"
        case $what in
        slurmstepd) kill_stepd "$choice" ;;
        slurmd) kill_slurmd "$node" "$away" ;;
        bmc) kill_bmc "$node" "$away" ;;
        hang) hang_bmc "$node" "$away" ;;
        esac > /dev/null || echo "soak: $what of $node: failed" >&2 &
        last[${what/hang/bmc} $node]=$!
    done
    wait
}
