# SPDX-License-Identifier: GPL-2.0-or-later
#
# soak_jobs.awk - what has become of the jobs of a soak.
#
# Files, in this order: accepted (soak-load), faults (soak_faults.sh), ledgers
# (soak-watch), and what sacct says, "JobIDRaw|JobID|JobName|State|Start|End|
# NodeList|ConsumedEnergyRaw" with times in seconds since the epoch.  Variables:
# until_s, when those that were left were cancelled; table, a file to which a line for
# each job is added; unbegun, those that were cancelled because they did not begin.
#
# Prints KEY=VALUE ...:
#
#     jobs, steps   that were over by until_s, and when the last of them was: over_s
#     lost          jobs that were accepted and are not in sacct
#     running       jobs that have no end, and those of unbegun for which no killed
#                   slurmd accounts
#     unbegun       the others of unbegun
#     silent        jobs of which tasks ran and that have no energy, although nothing
#                   of theirs was killed
#     touched       jobs on nodes whose slurmd was killed while they were there
#     touched_silent  those of them that have no energy
#     cut           jobs whose extern step was killed: they have no figure in sacct
#     sacct_j       all jobs together by sacct, but those
#     cut_j         those, by the ledgers

# expand("node[1,3-4]") - sets on[] to its nodes
function expand(list,    n, i, part, ends) {
    split("", on)
    gsub(/node|[][]/, "", list)
    for (n = split(list, part, ","); n > 0; n--) {
        if (split(part[n], ends, "-") == 1)
            ends[2] = ends[1]
        for (i = ends[1] + 0; i <= ends[2] + 0; i++)
            on["node" i] = 1
    }
}

# Whether a slurmd of its was away in this time.
function was_away(job, from, to,    i) {
    expand(nodes[job])
    for (i = 1; i <= aways; i++)
        if (away_node[i] in on && from <= away_to[i] && to >= away_from[i])
            return 1
    return 0
}

# What Slurm does when it is back takes it some seconds.
function was_touched(job) {
    return was_away(job, start[job] - 3, end[job] + 1)
}

# Whether it was to begin when a slurmd of its was killed.
function is_unbegun(job) {
    return job in cancelled && was_away(job, start[job] - 1, start[job] + 3)
}

FILENAME != file {
    file = FILENAME
    which++
}

which == 1 {
    if ($1 == "-" || $2 == 1)
        wanted[$3] = 1
    else
        for (i = 1; i <= $2; i++)
            wanted[$1 "_" i] = 1
    next
}

which == 2 && $1 == "slurmd" {
    away_node[++aways] = $2
    away_from[aways] = $3
    away_to[aways] = $4
}
which == 2 && $1 == "slurmstepd" {
    hit[$5] = 1
    if ($6 == "extern")
        cut[$5] = 1
}
which == 2 { next }

which == 3 {
    ledger_uj[$2] += $3
    next
}

{
    split($0, field, "|")
    split(field[1], id, ".")
    if (id[1] "" == field[1] "") { # names, not numbers
        if (field[3] !~ /^soak/)
            next
        job = field[1]
        is_job[job] = 1
        found[field[3]] = found[field[2]] = 1
        name[job] = field[3]
        state[job] = field[4]
        start[job] = field[5]
        end[job] = field[6]
        nodes[job] = field[7]
        sacct_j[job] = field[8]
    } else if (id[1] in is_job && id[2] != "extern") {
        if (id[2] ~ /^[0-9]+$/ && field[6] ~ /^[0-9]+$/) {
            numbered[id[1]]++
            steps += field[6] <= until_s
        }
        if (field[4] == "COMPLETED")
            ran[id[1]] = 1
    }
}

END {
    for (n = split(unbegun, part, " "); n > 0; n--)
        cancelled[part[n]] = 1
    for (w in wanted)
        if (!(w in found)) {
            lost++
            print "soak: lost: " w > "/dev/stderr"
        }
    for (job in is_job) {
        over = end[job] ~ /^[0-9]+$/
        if (is_unbegun(job)) {
            unbegun_jobs++
        } else if (!over || job in cancelled) {
            running++
        } else if (end[job] <= until_s) {
            jobs++
            if (end[job] > over_s)
                over_s = end[job]
        }
        touch = was_touched(job)
        touched += touch
        what = job in cut ? "extern" : job in hit ? "step" : touch ? "slurmd" : "-"
        if (job in cut) {
            cuts++
            cut_j += ledger_uj[job] / 1e6
        } else {
            sum_j += sacct_j[job]
            if (job in ran && sacct_j[job] + 0 == 0) {
                if (what == "-")
                    silent++
                else if (touch)
                    touched_silent++
                printf "soak: job %s (%s, %s to %s on %s; %s killed) has no " \
                       "energy, the ledgers %.3f J\n", job, state[job], start[job],
                       end[job], nodes[job], what, ledger_uj[job] / 1e6 \
                       > "/dev/stderr"
            }
        }
        gsub(/,/, " ", nodes[job])
        printf "%d,%s,%s,%s,%s,%s,%d,%s,%.6f,%s\n", job, name[job], state[job],
               start[job], over ? end[job] : "", nodes[job], numbered[job],
               sacct_j[job], ledger_uj[job] / 1e6, what >> table
    }
    printf "jobs=%d steps=%d over_s=%d lost=%d running=%d silent=%d touched=%d " \
           "touched_silent=%d cut=%d unbegun=%d sacct_j=%.3f cut_j=%.3f\n", jobs, steps,
           over_s, lost, running, silent, touched, touched_silent, cuts,
           unbegun_jobs, sum_j, cut_j
}
