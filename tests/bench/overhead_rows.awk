# SPDX-License-Identifier: GPL-2.0-or-later
#
# overhead_rows.awk - the rows of bench_overhead.sh from overhead.csv, beside the goals.
# Exits 1 if one is missed, 2 if a figure or a control is not in the table.  -F,
#
# What a mode costs is its difference from a control (NO_JOBACCT, JOBACCT): not from
# what that cost at its own time, but from what it would have cost at the mode's (at_s),
# on the line from the nearest control before to the nearest one after in the same run.
# Where there is none on one side, it is the other one.  Slurm's plugins are compared at
# their own time.  Of several runs the median of the differences counts.
#
# The same of a control, left out between its neighbours, is the error of such a
# difference.  A goal that is no farther from a figure than the worst of these is said
# to be within what the control varies by; it is met or missed all the same.

BEGIN {
    # Figures are kept in lists.
    CONVFMT = "%.15g"
}

function quit(why) {
    print "bench_overhead: " why > "/dev/stderr"
    failed = 2
    exit failed
}

function absolute(x) {
    return x < 0 ? -x : x
}

function median(list,    value, n, i, j, t) {
    n = split(list, value, " ")
    if (!n) quit("a figure is missing")
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && value[j] + 0 < value[j - 1] + 0; j--) {
            t = value[j]; value[j] = value[j - 1]; value[j - 1] = t
        }
    return n % 2 ? value[(n + 1) / 2] + 0 : (value[n / 2] + value[n / 2 + 1]) / 2
}

# The highest of a list less the lowest.
function spread(list,    value, n, i, least, most) {
    n = split(list, value, " ")
    for (i = 1; i <= n; i++) {
        if (i == 1 || value[i] + 0 < least) least = value[i] + 0
        if (i == 1 || value[i] + 0 > most) most = value[i] + 0
    }
    return most - least
}

# The highest of a list without signs.
function worst_of(list,    value, n, i, most) {
    n = split(list, value, " ")
    for (i = 1; i <= n; i++)
        if (absolute(value[i]) > most) most = absolute(value[i])
    return most + 0
}

# keep WHAT VALUE - a figure of the mode that the line is about
function keep(what, value,    key, i) {
    if (value == "") return
    key = mode SUBSEP plugins SUBSEP kind SUBSEP what
    i = ++figures[key]
    run_of[key, i] = $column["run"]
    time_of[key, i] = $column["at_s"] + 0
    figure[key, i] = value + 0
}

# All figures of a mode, as a list.
function all(mode, plugins, kind, what,    key, i, list) {
    key = mode SUBSEP plugins SUBSEP kind SUBSEP what
    for (i = 1; i <= figures[key]; i++) list = list " " figure[key, i]
    return list
}

# neighbours KEY RUN TIME BUT - finds the figures before and after in that run, but for
# one; how many there are
function neighbours(key, run, time, but,    i) {
    before = after = 0
    for (i = 1; i <= figures[key]; i++) {
        if (i == but || run_of[key, i] != run) continue
        if (time_of[key, i] <= time) {
            if (!before || time_of[key, i] > time_of[key, before]) before = i
        } else if (!after || time_of[key, i] < time_of[key, after])
            after = i
    }
    return (before > 0) + (after > 0)
}

# What lies between these neighbours at a time.
function interpolated(key, time) {
    if (!before || !after) return figure[key, before ? before : after]
    return figure[key, before] + (figure[key, after] - figure[key, before]) * \
        (time - time_of[key, before]) / (time_of[key, after] - time_of[key, before])
}

# differences MODE PLUGINS KIND WHAT BASE PERCENT - what each figure of a mode is beyond
# its control, or how many percent of that are missing; of a control itself, where it
# has two neighbours
function differences(mode, plugins, kind, what, base, percent,    key, from, i, sides,
    there, list) {
    key = mode SUBSEP plugins SUBSEP kind SUBSEP what
    from = base SUBSEP "none" SUBSEP kind SUBSEP what
    for (i = 1; i <= figures[key]; i++) {
        sides = neighbours(from, run_of[key, i], time_of[key, i], key == from ? i : 0)
        if (key == from && sides < 2) continue
        if (!sides) quit("run " run_of[key, i] " has no " base " (" kind ")")
        there = interpolated(from, time_of[key, i])
        list = list " " \
            (percent ? 100 * (1 - figure[key, i] / there) : figure[key, i] - there)
    }
    return list
}

# The cost of a mode beyond that of no accounting, or of accounting without energy.
function extra(mode, plugins, kind, what, base) {
    return median(differences(mode, plugins, kind, what, base))
}

# Of all loads.
function extra_rss(mode, plugins,    j, list) {
    for (j = 1; j <= kinds; j++)
        list = list differences(mode, plugins, order[j], "rss", "NO_JOBACCT")
    return median(list)
}

# By how much a load is slower than without accounting, in percent.
function slower(mode, plugins, kind) {
    return median(differences(mode, plugins, kind, "work", "NO_JOBACCT", 1))
}

# What a control varies by at most, as the differences from it do.
function variation(base, kind, what, percent,    list) {
    list = differences(base, "none", kind, what, base, percent)
    if (list != "") return worst_of(list)
    # None has two neighbours.
    list = all(base, "none", kind, what)
    return percent ? 100 * spread(list) / median(list) : spread(list)
}

# row NAME UNIT OURS PEER GOAL LIMIT DOUBT - PEER, DOUBT "": none; GOAL as in the last
# column
function row(name, unit, ours, peer, goal, limit, doubt,    most, pass) {
    most = goal == "x" ? limit * peer : limit
    pass = goal == "<" ? ours < most : ours <= most
    if (doubt != "" && absolute(ours - most) <= doubt)
        name = name "; goal within what that varies by"
    printf "%s,%s,%.5g,", name, unit, ours
    if (peer == "")
        printf ",,"
    else
        printf "%.5g,%s,", peer, (peer > 0 ? sprintf("%.3f", ours / peer) : "")
    printf "%s%g%s,%s\n", goal == "<" ? "<" : "<=", limit, goal == "x" ? "x" : "",
        pass ? "pass" : "miss"
    if (!pass) missed = 1
}

# No goals: what a control varies by, in seconds or percent.
function control_rows(name, unit, base, kind, what, percent,    list, value, n, i, size) {
    list = differences(base, "none", kind, what, base, percent)
    if (list != "") {
        n = split(list, value, " ")
        for (i = 1; i <= n; i++) size = size " " absolute(value[i])
        printf "%s off the line between its neighbours; median,%s,%.5g,,,,\n", name, unit,
            median(size)
        printf "%s off the line between its neighbours; worst,%s,%.5g,,,,\n", name, unit,
            worst_of(list)
    }
    list = all(base, "none", kind, what)
    if (split(list, value, " ") > 1)
        printf "%s from lowest to highest,%s,%.5g,,,,\n", name, unit,
            percent ? 100 * spread(list) / median(list) : spread(list)
}

# No goal.  What does not stand out from what the control varies by has no ratio, and
# says so.
function load_rows(kind,    i, mode, peer, noise, ours, name) {
    if (all("NO_JOBACCT", "none", kind, "work") == "") return
    noise = variation("NO_JOBACCT", kind, "work", 1)
    control_rows("load NO_JOBACCT (" kind "): instructions per second", "%",
        "NO_JOBACCT", kind, "work", 1)
    for (i = 1; i <= count; i++) {
        mode = modes[i]
        peer = mode
        sub(/_100?HZ/, "", peer)
        ours = slower(mode, "ours", kind)
        name = "load " mode " (" kind "): fewer instructions per second than" \
            " NO_JOBACCT" (peer == mode ? "" : "; peer: at 1 Hz")
        if (absolute(ours) <= noise) name = name "; within what that varies by"
        printf "%s,%%,%.5g,", name, ours
        if (!((peer, "slurm") in seen))
            print ",,,"
        else
            printf "%.5g,%s,,\n", slower(peer, "slurm", kind),
                (absolute(ours) > noise && slower(peer, "slurm", kind) > noise ? \
                sprintf("%.3f", ours / slower(peer, "slurm", kind)) : "")
    }
}

/^#/ { next }
!column["mode"] {
    for (i = 1; i <= NF; i++) column[$i] = i
    if (!column["run"] || !column["at_s"])
        quit("the table does not say when a mode was measured")
    next
}
{
    mode = $column["mode"]
    plugins = $column["plugins"]
    kind = $column["load"]
}
$column["thread"] != "" { next }
$column["process"] == "node" {
    if (!((mode, plugins) in seen)) {
        seen[mode, plugins] = 1
        if (plugins == "ours") modes[++count] = mode
    }
    if (!(kind in loads)) { loads[kind] = 1; order[++kinds] = kind }
    keep("cpu", $column["cpu_44min_s"])
    keep("rate", $column["cpu_us_per_s"])
    keep("work", $column["load_instructions_per_s"])
    keep("waking", $column["waking_us"])
    stolen[mode, plugins] = stolen[mode, plugins] " " $column["stolen_pct"]
}
$column["process"] == "slurmstepd" {
    keep("rss", $column["rss_kib"])
    if (plugins == "ours" && mode !~ /HZ|FILES/ && $column["hwm_kib"] > most_kib)
        most_kib = $column["hwm_kib"]
}

END {
    if (failed) exit failed
    if (!count) quit("there is nothing to compare")
    print "name,unit,ours,peer,ratio,goal,verdict"
    for (j = 1; j <= kinds; j++) {
        control_rows("CPU NO_JOBACCT (" order[j] "): 44 min", "s", "NO_JOBACCT",
            order[j], "cpu")
        control_rows("CPU JOBACCT (" order[j] "): 44 min", "s", "JOBACCT", order[j],
            "cpu")
    }
    for (i = 1; i <= count; i++)
        for (j = 1; j <= kinds; j++) cpu_rows(modes[i], order[j])
    for (j = 1; j <= kinds; j++) load_rows(order[j])
    for (i = 1; i <= count; i++) {
        peer = (modes[i], "slurm") in seen ? extra_rss(modes[i], "slurm") : ""
        row("memory " modes[i] ": slurmstepd beyond NO_JOBACCT", "KiB",
            extra_rss(modes[i], "ours"), peer, "<=", 2048)
    }
    worst()
    exit missed
}

function cpu_rows(mode, kind,    peer) {
    if (mode ~ /_100HZ/) {
        rate_row(mode, kind, "NO_JOBACCT")
        rate_row(mode, kind, "JOBACCT")
        return
    }
    peer = mode
    sub(/_10HZ/, "", peer)
    if (!((peer, "slurm") in seen)) return
    beyond("NO_JOBACCT", mode, kind, peer)
    # That of task=1 is Slurm's own, with whatever plugin.
    if (mode !~ /_0_/) beyond("JOBACCT", mode, kind, peer)
}

# Beside a thread that is woken as often, and does nothing.
function rate_row(mode, kind, base) {
    row("CPU " mode " (" kind "): beyond " base "; peer: waking up and nothing else",
        "% of a core", extra(mode, "ours", kind, "rate", base) / 1e4,
        median(all(mode, "ours", kind, "waking")) * 100 / 1e4, "<", 0.2,
        variation(base, kind, "rate") / 1e4)
}

function beyond(base, mode, kind, peer) {
    row("CPU " mode " (" kind "): 44 min beyond " base \
        (peer == mode ? "" : "; peer: at 1 Hz"), "s",
        extra(mode, "ours", kind, "cpu", base), extra(peer, "slurm", kind, "cpu", base),
        "x", peer == mode ? 0.5 : 2, variation(base, kind, "cpu"))
}

# The paper's modes, without ours of more than 1 Hz; its figures are the worst
# of its modes, too.
function worst(    i, j, s, long, share) {
    for (i = 1; i <= count; i++) {
        if (modes[i] ~ /HZ|FILES/) continue
        for (j = 1; j <= kinds; j++) {
            s = median(all(modes[i], "ours", order[j], "cpu"))
            if (s > long) long = s
        }
        s = median(stolen[modes[i], "ours"])
        if (s > share) share = s
    }
    if (!long) return
    row("CPU of the worst mode in 44 min; peer: Georgiou et al. 2014", "s", long,
        3.5, "<=", 3.5)
    row("slurmstepd of the worst mode at its most; peer: Georgiou et al. 2014",
        "MB", most_kib * 1024 / 1e6, 34, "<=", 34)
    row("CPU of the worst mode; peer: time lost in Georgiou et al. 2014",
        "% of the node", share, 0.15, "<=", 0.15)
}
