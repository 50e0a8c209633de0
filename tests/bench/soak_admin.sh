# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# soak_admin.sh - what an admin does for the cluster of a soak where Slurm waits for it,
# and how often it was to be done, by its cause; for bench_soak.sh.  $C is the cluster.
#
# $SCRATCH/waited has a line "NODE SINCE_S" for each slurmd that waited for a step that
# was gone, $SCRATCH/drained "NODE REASON" for each node that was drained.

# Jobs that slurmctld takes to be in their prolog: slurmd was killed between the
# launch of the extern step and its word that the prolog is over, and nobody asks
# again.  They neither begin nor end.
in_prolog() {
    cluster run --timeout 20 "$C" squeue -a -h -r -o '%A %i %r' |
        awk '$3 == "Prolog" { print $1, $2 }'
}

# As an admin would do.  Sets UNBEGUN.
cancel_unbegun() {
    local job number
    in_prolog > "$SCRATCH/in-prolog" || return 1
    while read -r job number; do
        say "job $job is in its prolog for ever"
        UNBEGUN+=" $job"
        cluster run --timeout 20 "$C" scancel "$number" < /dev/null
    done < "$SCRATCH/in-prolog"
}

# slurmd waits for a word of the step that it starts, from a pipe that is the step's
# stdout.  An extern step starts a process of Slurm's own before it says it.  If its
# slurmstepd is killed between the two, that process keeps the pipe open, and slurmd
# waits for ever, and so does the job.  Ends such processes, and prints for each the node
# and when it began, in seconds since the epoch.
# shellcheck disable=SC2016  # expanded where it is run
END_ORPHANS='for pid in $(pgrep -P 1 -xf "sleep 100000000"); do
    pipe=$(readlink /proc/$pid/fd/1)
    [[ $pipe == pipe:* ]] || continue
    for slurmd in $(pgrep -x slurmd); do
        node=$(tr "\0" " " < /proc/$slurmd/cmdline | sed "s/.*-N //")
        readlink /proc/$slurmd/fd/* | grep -qxF "$pipe" || continue
        age=$(ps -o etimes= -p $pid) && kill -KILL $pid &&
            echo "$node $(($(date +%s) - age))"
    done
done 2> /dev/null'

# What Slurm waits for until somebody does something, for ever: a slurmd that waits for
# a killed extern step, and nodes that are drained, as by slurmstepd when a step does
# not end.  Told with the reason, the first drain looked at, and ended as an admin would.
watch_nodes() {
    local node since reason
    while sleep 20; do
        while read -r node since <&3; do
            echo "$node $since" >> "$SCRATCH/waited"
            say "$node waits for an extern step of $(date -d "@$since" +%T) that is gone"
        done 3< <(cluster run --timeout 20 "$C" bash -c "$END_ORPHANS")
        while read -r node reason <&3; do
            echo "$node $reason" >> "$SCRATCH/drained"
            say "$node is drained: $reason"
            [ "$(wc -l < "$SCRATCH/drained")" -gt 1 ] || evidence "$node is drained"
            cluster run --timeout 20 "$C" scontrol update "nodename=$node" state=resume
        done 3< <(cluster run --timeout 20 "$C" sinfo -h -N -t drain -o '%N %E' \
            2> /dev/null)
    done
}

# An extern step in the list of faults.
KILLED_EXTERN='^slurmstepd .* extern$'

# waited killed | other - how many slurmds waited: for an extern step that began when one
# was killed (ps tells of whole seconds), and for one that ended by itself.
waited() {
    {
        grep "$KILLED_EXTERN" "$SCRATCH/faults"
        sed 's/^/waited /' "$SCRATCH/waited"
    } | awk -v wanted="$1" '
        $1 == "slurmstepd" { at[++kills] = $3 }
        $1 == "waited" {
            cause = "other"
            for (i = 1; i <= kills; i++)
                if ($3 >= at[i] - 2 && $3 <= at[i] + 1)
                    cause = "killed"
            count += cause == wanted
        }
        END { print count + 0 }'
}

# drained step | prolog | other - how often, by its cause: the slurmd of a prolog was
# killed, and has said that it has waited
drained() {
    local log
    log=$(cluster dir "$C")/log
    {
        grep -E '^slurmd ' "$SCRATCH/faults"
        grep -l 'REQUEST_LAUNCH_PROLOG notification failed' "$log"/slurmd-node*.log |
            sed -E 's|.*/slurmd-(.*)\.log|waited \1|'
        sed 's/^/drained /' "$SCRATCH/drained"
    } | awk -v wanted="$1" '
        $1 == "slurmd" { killed[$2] }
        $1 == "waited" { waited[$2] }
        $1 == "drained" {
            cause = /Kill task failed/ ? "step" \
                : / Prolog error/ && $2 in killed && $2 in waited ? "prolog" : "other"
            count += cause == wanted
        }
        END { print count + 0 }'
}
