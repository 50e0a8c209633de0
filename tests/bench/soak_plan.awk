# SPDX-License-Identifier: GPL-2.0-or-later
#
# soak_plan.awk - what happens in a soak, and when: the same for the same seed.
#
# Variables: name (of jobs); seed; seconds; jobs and steps (of srun) in it; nodes;
# faults (0: none).  Prints lines that begin with a time in ms, not sorted:
#
#     MS job NAME KIND WHERE TASKS PROFILE PARALLEL STEP...
#     MS fault WHAT NODE MS-AWAY CHOICE
#
# KIND is batch, wide (on WHERE nodes), array (of WHERE tasks) or srun; for batch,
# array and srun a node follows WHERE, as in "3@node2".  A STEP is
# LOAD:SECONDS:TASKS, LOAD being an option of stamp; PARALLEL of them run at once.
# WHAT is slurmd, slurmstepd, bmc (killed) or hang (the BMC's); CHOICE is any
# number, by which one of several is chosen.

# In [0, 1): Park and Miller, 1988, exact in a double.
function random() {
    state = (state * 16807) % 2147483647
    return (state - 1) / 2147483646
}

# One of 0 ... most - 1.
function pick(most) {
    return int(random() * most)
}

function between(least, most) {
    return least + random() * (most - least)
}

# Most steps sleep, so that two CPUs can do all of it; one in five computes.
function load(tasks) {
    return random() < 0.2 ? sprintf("spin:%.2f:%d", between(0.1, 0.5), tasks) \
                          : sprintf("sleep:%.2f:%d", between(0.2, 1.5), tasks)
}

function job(ms, number, kind,    where, tasks, wide, i, line) {
    where = (kind == "array" ? sizes[number] : 1) "@node" 1 + pick(nodes)
    tasks = 1 + pick(4)
    if (kind == "wide") {
        wide = 2 + pick(nodes - 1)
        where = wide
        tasks = wide * (1 + pick(2))
    }
    line = sprintf("%d job %s%d %s %s %d %s %d", ms, name, number, kind, where, tasks,
                   random() < 0.1 ? "energy" : "none", 1 + pick(3))
    for (i = 0; i < (number in count ? count[number] : 1); i++)
        line = line " " load(kind == "wide" ? tasks : 1 + pick(tasks))
    print line
}

# Which kinds there are: jobs are counted, an array has one for each task.
function choose_kinds(    left, n, part) {
    for (left = jobs; left > 0; left -= sizes[n]) {
        part = random()
        kinds[++n] = part < 0.22 ? "srun" : part < 0.28 && left >= 4 ? "array" :
                     part < 0.40 && nodes > 1 ? "wide" : "batch"
        sizes[n] = kinds[n] == "array" ? 2 + pick(left < 6 ? left - 1 : 5) : 1
        if (kinds[n] == "batch" || kinds[n] == "wide") {
            several[++scripts] = n
            count[n] = 1
        }
    }
    for (left = steps - jobs; left > 0 && scripts; left--)
        count[several[1 + pick(scripts)]]++
    return n
}

# One of [number] in each part of the time between the first tenth and 85 %.
function fault(what, i, number, node, away) {
    printf "%d fault %s %s %d %d\n",
           seconds * 1000 * (0.1 + 0.75 * (i + random()) / number), what, node,
           away * 1000, pick(1000000)
}

# slurmd of the last node is spared: it shows what all of the time does to one.
# A hang is shorter than what the last power of a BMC is carried on for.
function choose_faults(    i, n) {
    n = 2 + int(seconds / 60)
    for (i = 0; i < n; i++)
        fault("slurmd", i, n, "node" 1 + pick(nodes > 1 ? nodes - 1 : 1),
              between(0, 4))
    n = 2 + int(seconds / 90)
    for (i = 0; i < n; i++)
        fault(i % 2 ? "hang" : "bmc", i, n, "node" 1 + pick(nodes), between(2, 10))
    n = 4 + int(seconds / 20)
    for (i = 0; i < n; i++)
        fault("slurmstepd", i, n, "any", 0)
}

BEGIN {
    state = seed % 2147483646 + 1
    for (i = 0; i < 10; i++)
        random()
    n = choose_kinds()
    for (i = 1; i <= n; i++)
        job(seconds * 970 * (i - 1 + random()) / n, i, kinds[i])
    if (faults)
        choose_faults()
}
