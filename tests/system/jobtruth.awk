# SPDX-License-Identifier: GPL-2.0-or-later
#
# jobtruth.awk - what the jobs of a simulated node are to be charged, see
# `cluster jobtruth`.
#
# Variables: how, watts, cpus; program and watt (nodesim and the log of its
# wattmeter); jobs, the answer of nodesim to "jobs".  Lines: JOB CPU-LIST
# [FROM_NS TO_NS].
#
# Between two times at which a job comes or goes, each CPU's part of the floor
# (or, with alloc, of the node's energy) is shared by the jobs that have it.

function fail(text) {
    print "jobtruth: " text > "/dev/stderr"
    failed = 1
    exit 1
}

# The node's energy in uJ by its wattmeter.
function energy(from, to,    command, uj) {
    command = sprintf("%s --integrate %s %.0f %.0f", program, watt, from, to)
    if ((command | getline uj) <= 0)
        fail("the wattmeter has no such interval")
    close(command)
    return uj
}

# Set has[job, cpu] from a list of CPUs ("0-2,7").
function take_cpus(job, list,    n, i, word, ends, cpu) {
    n = split(list, word, ",")
    if (!n)
        fail("job " job " has no CPUs")
    for (i = 1; i <= n; i++) {
        if (word[i] !~ /^[0-9]+(-[0-9]+)?$/)
            fail("\"" list "\" is not a list of CPUs")
        if (split(word[i], ends, "-") == 1)
            ends[2] = ends[1]
        for (cpu = ends[1] + 0; cpu <= ends[2] + 0; cpu++)
            has[job, cpu] = 1
        if (cpu > cpus)
            fail("CPU " cpu - 1 " is not one of " cpus)
    }
}

# What of the energy of a segment is the jobs' by their CPUs.
function divide(begin, end, uj,    cpu, i, n) {
    for (cpu = 0; cpu < cpus; cpu++) {
        n = 0
        for (i = 1; i <= count; i++)
            here[i] = has[id[i], cpu] && from[i] <= begin && to[i] >= end
        for (i = 1; i <= count; i++)
            n += here[i]
        for (i = 1; i <= count; i++)
            if (here[i])
                by_cpus[i] += uj / cpus / n
    }
}

BEGIN {
    n = split(jobs, entry, "; *")
    for (i = 2; i <= n; i++) {
        split(entry[i], field, " ")
        cpu_ns[field[1]] = field[2]
        own_uj[field[1]] = field[3] / 1000
        share_uj[field[1]] = field[4] / 1000
        first_ns[field[1]] = field[5]
        last_ns[field[1]] = field[6]
    }
    if (how !~ /^(node|alloc|cputime)$/)
        fail("\"" how "\" is not node, alloc or cputime")
    if (watts !~ /^[0-9]+(\.[0-9]+)?$/ || cpus !~ /^[1-9][0-9]*$/)
        fail("watts and CPUs are numbers")
}

NF {
    if (!($1 in cpu_ns))
        fail("the node has seen no job " $1)
    if (NF != 2 && NF != 4)
        fail("a line is JOB CPU-LIST [FROM_NS TO_NS]")
    id[++count] = $1
    take_cpus($1, $2)
    from[count] = NF == 4 ? $3 : first_ns[$1]
    to[count] = NF == 4 ? $4 : last_ns[$1]
    edge[2 * count - 1] = from[count] + 0
    edge[2 * count] = to[count] + 0
}

END {
    if (failed)
        exit 1
    for (i = 2; i <= 2 * count; i++)
        for (j = i; j > 1 && edge[j - 1] > edge[j]; j--) {
            t = edge[j]
            edge[j] = edge[j - 1]
            edge[j - 1] = t
        }
    for (i = 1; i < 2 * count && how != "node"; i++)
        if (edge[i + 1] > edge[i])
            divide(edge[i], edge[i + 1],
                   how == "alloc" ? energy(edge[i], edge[i + 1]) :
                   watts * (edge[i + 1] - edge[i]) / 1000)
    for (i = 1; i <= count; i++) {
        j = id[i]
        policy = how == "node" ? energy(from[i], to[i]) :
                 by_cpus[i] + (how == "cputime" ? share_uj[j] : 0)
        printf "%s policy_uj=%.0f physical_uj=%s cpu_ns=%s from_ns=%s to_ns=%s\n",
               j, policy,
               how == "cputime" ? sprintf("%.0f", by_cpus[i] + own_uj[j]) : "-",
               cpu_ns[j], from[i], to[i]
    }
}
