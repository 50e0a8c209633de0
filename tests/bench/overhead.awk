# SPDX-License-Identifier: GPL-2.0-or-later
#
# overhead.awk - from what `usage` saw of a step to lines of overhead.csv.
#
# Reads ended (of `ranks`) and the snapshots of one step: idle and idled, without
# a job; before it; begun, when its tasks run, and seen, some time later; after it.
# Variables: run, since (what the clock of the snapshots showed when the first was
# taken), mode, plugins, kind, cpus, rows, energy, reading, waking, per_round
# (instructions of a round of the load, where its tasks could not count them); or
# header=1, seconds, slurm and reckoned ("LOAD INSTRUCTIONS, ..." of a round) for what
# stands above the lines.
#
# What goes on is what the processes used from begun to seen.  The whole is what
# the group used from before to after, less the tasks' own: it has all that ended
# in between.  What is then above what goes on is one-off; of that, the start is
# what was used until begun.

function per_second(from, to) {
    return (to - from) / ((at["seen"] - at["begun"]) / 1e9)
}

BEGIN {
    if (header) {
        print "# What monitoring costs a node, by mode (table 1 of Georgiou et" \
            " al. 2014), load and process;"
        print "# " slurm ", " seconds " s of each step, 44 min reckoned:" \
            " one-off + 2640 s x cpu_us_per_s."
        print "# at_s: the middle of those seconds, since the benchmark began; modes" \
            " are compared with what NO_JOBACCT and JOBACCT cost then, interpolated."
        print "# node: all processes but the tasks; stolen_pct: cpu_44min_s of" \
            " the CPUs; threads: main, or by name."
        print "# The counters are simulated (FUSE), the BMC is asked over the" \
            " network by both."
        print "# reading_us: CPU time of one reading of a counter, there;" \
            " _FILES: they are plain files."
        print "# waking_us: CPU time of a thread that is woken 100 times a second" \
            " and does nothing, each time, right after that."
        if (reckoned)
            print "# load_instructions_per_s: reckoned, load_rounds_per_s x" \
                " instructions of a round in user mode, as callgrind counts: " \
                reckoned "."
        print "# Blank: not to be told, or not counted by this machine" \
            " (instructions)."
        print "run,at_s,mode,plugins,load,process,thread,idle_us_per_s," \
            "cpu_us_per_s,start_ms,end_ms,whole_ms,cpu_44min_s,stolen_pct,rss_kib," \
            "hwm_kib,pss_kib,voluntary_per_s,involuntary_per_s,instructions_per_s," \
            "load_cpu_s,load_rounds_per_s,load_instructions_per_s,rows,energy_j," \
            "reading_us,waking_us"
        exit
    }
}

FILENAME == "ended" {
    if (!began || $1 < began) began = $1
    if ($2 > ended) ended = $2
    load_ns += $3
    rounds += $4
    instructions += $5
    if ($5 == "-") uncounted = 1
    next
}
$1 == "at" { at[FILENAME] = $2 }
$1 == "group" { group[FILENAME] = $2 }
$1 == "process" && $NF != "ranks" {
    cpu[FILENAME, $2] = $3
    name[$2] = $NF
    if (FILENAME == "seen") { rss[$2] = $4; hwm[$2] = $5; pss[$2] = $6 }
}
$1 == "thread" && $2 in name {
    thread_cpu[FILENAME, $2, $3] = $4
    voluntary[FILENAME, $2, $3] = $5
    involuntary[FILENAME, $2, $3] = $6
    thread_name[$2, $3] = $2 == $3 ? "main" : $NF
}

END {
    if (header) exit
    if (!began || !at["after"] || at["seen"] <= at["begun"]) {
        print "a snapshot is missing" > "/dev/stderr"
        exit 2
    }
    for (pid in name) {
        idle = 0
        if (("idle", pid) in cpu && ("idled", pid) in cpu)
            idle = cpu["idled", pid] - cpu["idle", pid]
        idle /= at["idled"] - at["idle"]
        # It ended before, or came after, what is looked at.
        if (!(("begun", pid) in cpu) || !(("seen", pid) in cpu)) continue
        rate = (cpu["seen", pid] - cpu["begun", pid]) / (at["seen"] - at["begun"])
        start = cpu["begun", pid] - cpu["before", pid]
        start -= rate * (at["begun"] - began) + idle * (began - at["before"])
        put_process("node")
        put_process(name[pid])
    }
    for (key in thread_name) {
        split(key, id, SUBSEP)
        put_thread(id[1], id[2])
    }
    put_node()
    for (i = 1; i <= lines; i++) print_line(order[i])
}

function put_process(process) {
    put(process, "", "idle", idle * 1e6)
    put(process, "", "rate", rate * 1e6)
    put(process, "", "start", start / 1e6)
    if (process == "node") return
    put(process, "", "rss", rss[pid])
    put(process, "", "hwm", hwm[pid])
    if (pss[pid] != "-") put(process, "", "pss", pss[pid])
}

function put_thread(pid, tid,    thread) {
    if (!(("begun", pid, tid) in thread_cpu) || !(("seen", pid, tid) in thread_cpu))
        return
    thread = thread_name[pid, tid]
    put(name[pid], thread, "rate", per_second(thread_cpu["begun", pid, tid],
        thread_cpu["seen", pid, tid]) / 1e3)
    put_switches(name[pid], thread, pid, tid)
    put_switches(name[pid], "", pid, tid)
    put_switches("node", "", pid, tid)
}

function put_switches(process, thread, pid, tid) {
    put(process, thread, "voluntary", per_second(voluntary["begun", pid, tid],
        voluntary["seen", pid, tid]))
    put(process, thread, "involuntary",
        per_second(involuntary["begun", pid, tid], involuntary["seen", pid, tid]))
}

function put_node(    key, whole, seconds, without, once, line, counted, text) {
    key = "node" SUBSEP ""
    seconds = (ended - began) / 1e9
    whole = (group["after"] - group["before"] - load_ns) / 1e6
    without = (at["after"] - at["before"]) / 1e9 - seconds
    once = whole - sum[key, "rate"] / 1e3 * seconds - sum[key, "idle"] / 1e3 * without
    put("node", "", "whole", whole)
    put("node", "", "end", once - sum[key, "start"])
    put("node", "", "long", once / 1e3 + sum[key, "rate"] / 1e6 * 2640)
    put("node", "", "stolen", sum[key, "long"] / 2640 / cpus * 100)
    put("node", "", "load_cpu", load_ns / 1e9)
    put("node", "", "rounds", rounds / seconds)
    if (!uncounted)
        put("node", "", "load_instructions", instructions / seconds)
    else if (per_round)
        put("node", "", "load_instructions", rounds / seconds * per_round)
    while ((getline line < "perf") > 0)
        if (line ~ /^[0-9]+,.*instructions/) {
            split(line, counted, ",")
            put("node", "", "instructions", per_second(0, counted[1]))
        }
}

function print_line(key,    id) {
    split(key, id, SUBSEP)
    printf "%d,%.1f,%s,%s,%s,%s,%s", run,
        ((at["begun"] + at["seen"]) / 2 - since) / 1e9, mode, plugins, kind, id[1],
        id[2]
    printf ",%s,%s,%s,%s,%s,%s,%s", number(key, "idle", "%.2f"),
        number(key, "rate", "%.2f"), number(key, "start", "%.3f"),
        number(key, "end", "%.3f"), number(key, "whole", "%.3f"),
        number(key, "long", "%.4f"), number(key, "stolen", "%.5f")
    printf ",%s,%s,%s,%s,%s,%s", number(key, "rss", "%d"),
        number(key, "hwm", "%d"), number(key, "pss", "%d"),
        number(key, "voluntary", "%.2f"), number(key, "involuntary", "%.2f"),
        number(key, "instructions", "%.0f")
    printf ",%s,%s,%s", number(key, "load_cpu", "%.4f"),
        number(key, "rounds", "%.2f"), number(key, "load_instructions", "%.0f")
    print id[1] == "node" ? "," rows "," energy "," reading "," waking : ",,,,"
}
