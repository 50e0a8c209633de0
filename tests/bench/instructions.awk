# SPDX-License-Identifier: GPL-2.0-or-later
#
# instructions.awk - from what callgrind-counts saw of a step to lines of
# instructions.csv.
#
# Reads ended (of `ranks`), began ("NS", by the clock of the snapshots), collected
# ("PID INSTRUCTIONS" of processes that ended), and the snapshots: before the step;
# begun, when its tasks run, half, and seen, equally far apart; after the step; idle
# and idled, without one.  Variables: mode, plugins, rows, due; or header=1, seconds
# and slurm for what stands above the lines.
#
# As in overhead.awk: what goes on is what was executed from begun to seen; what the
# whole is above that is one-off; of that, the start is what was executed until begun.

function per_second(from, to, a, b) {
    return (b - a) / ((at[to] - at[from]) / 1e9)
}

BEGIN {
    if (header) {
        print "# What monitoring costs a node in instructions, by mode (table 1 of" \
            " Georgiou et al. 2014) and process;"
        print "# " slurm ", " seconds " s of each step, 44 min reckoned: one-off +" \
            " 2640 s x per_s."
        print "# Counted by callgrind: those of user mode alone, not the kernel's." \
            " Tasks (`ranks compute`) do not run under it."
        print "# node: slurmd, slurmstepd and what they start, together; threads:" \
            " main, or by name."
        print "# spread_pct: by how much the two halves of what was looked at" \
            " differ, of their mean."
        print "# Blank: not to be told."
        print "mode,plugins,process,thread,idle_per_s,per_s,spread_pct,start," \
            "end,whole,in_44min,rows,rows_due"
        exit
    }
}

FILENAME == "began" { began = $1; next }
FILENAME == "collected" { collected[$1] = $2; next }
FILENAME == "ended" {
    if (!from || $1 < from) from = $1
    if ($2 > to) to = $2
    next
}
$1 == "at" { at[FILENAME] = $2 }
$1 == "process" {
    count[FILENAME, $2] = $3
    name[$2] = $4
}
$1 == "thread" {
    thread_count[FILENAME, $2, $3] = $4
    if (FILENAME == "seen" && NF > 4) thread_name[$2, $3] = $5
}

END {
    if (header) exit
    if (!began || !to || !at["after"] || !at["idled"] || at["seen"] <= at["begun"]) {
        print "instructions.awk: a snapshot is missing" > "/dev/stderr"
        exit 2
    }
    duration = (to - from) / 1e9
    without = (at["after"] - at["before"]) / 1e9 - duration
    for (pid in name) {
        # It ended before, or came after, what is looked at.
        if (!(("begun", pid) in count) || !(("seen", pid) in count)) continue
        if (("after", pid) in count)
            last = count["after", pid]
        else if (pid in collected)
            last = collected[pid]
        else {
            print "instructions.awk: it is not known what " name[pid] \
                " executed at its end" > "/dev/stderr"
            exit 2
        }
        first = count["before", pid]
        idle = 0
        if (("idle", pid) in count && ("idled", pid) in count)
            idle = per_second("idle", "idled", count["idle", pid],
                count["idled", pid])
        rate = per_second("begun", "seen", count["begun", pid], count["seen", pid])
        put_process("node")
        put_process(name[pid])
        slurmstepd += name[pid] == "slurmstepd"
    }
    # slurmd and the step's.
    if (slurmstepd != 1) {
        print "instructions.awk: not one slurmstepd but " slurmstepd + 0 \
            > "/dev/stderr"
        exit 2
    }
    for (key in thread_name) {
        split(key, id, SUBSEP)
        put_rate(name[id[1]], thread_name[key], thread_count["begun", key],
            thread_count["half", key], thread_count["seen", key])
    }
    for (i = 1; i <= lines; i++) print_line(order[i])
}

function put_process(process,    whole, once, start) {
    whole = last - first
    once = whole - rate * duration - idle * without
    start = count["begun", pid] - first - rate * (at["begun"] - began) / 1e9 - \
        idle * (began - at["before"]) / 1e9
    put(process, "", "idle", idle)
    put_rate(process, "", count["begun", pid], count["half", pid],
        count["seen", pid])
    put(process, "", "start", start)
    put(process, "", "end", once - start)
    put(process, "", "whole", whole)
    put(process, "", "long", once + rate * 2640)
}

function put_rate(process, thread, begun, half, seen) {
    put(process, thread, "rate", per_second("begun", "seen", begun, seen))
    put(process, thread, "first", per_second("begun", "half", begun, half))
    put(process, thread, "second", per_second("half", "seen", half, seen))
}

function print_line(key,    id, spread) {
    split(key, id, SUBSEP)
    spread = sum[key, "first"] - sum[key, "second"]
    if (spread < 0) spread = -spread
    printf "%s,%s,%s,%s", mode, plugins, id[1], id[2]
    printf ",%s,%s,%s,%s,%s,%s,%s", number(key, "idle", "%.0f"),
        number(key, "rate", "%.0f"), (sum[key, "rate"] > 0 ? \
        sprintf("%.2f", 100 * spread / sum[key, "rate"]) : ""),
        number(key, "start", "%.0f"), number(key, "end", "%.0f"),
        number(key, "whole", "%.0f"), number(key, "long", "%.0f")
    print id[1] == "node" ? "," rows "," due : ",,"
}
