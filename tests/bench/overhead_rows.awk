# SPDX-License-Identifier: GPL-2.0-or-later
#
# overhead_rows.awk - the rows of bench_overhead.sh from overhead.csv: medians of
# all runs, beside the goals.  Exits 1 if one is missed.  -F,

function median(list,    value, n, i, j, t) {
    n = split(list, value, " ")
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && value[j] + 0 < value[j - 1] + 0; j--) {
            t = value[j]; value[j] = value[j - 1]; value[j - 1] = t
        }
    return n % 2 ? value[(n + 1) / 2] + 0 : (value[n / 2] + value[n / 2 + 1]) / 2
}

# row NAME UNIT OURS PEER GOAL LIMIT - PEER "": none; GOAL as in the last column
function row(name, unit, ours, peer, goal, limit,    pass) {
    pass = goal == "x" ? ours <= limit * peer : goal == "<" ? ours < limit \
                                                            : ours <= limit
    printf "%s,%s,%.5g,", name, unit, ours
    if (peer == "")
        printf ",,"
    else
        printf "%.5g,%s,", peer, (peer > 0 ? sprintf("%.3f", ours / peer) : "")
    printf "%s%g%s,%s\n", goal == "<" ? "<" : "<=", limit, goal == "x" ? "x" : "",
        pass ? "pass" : "miss"
    if (!pass) missed = 1
}

# The cost of a mode beyond that of no accounting, or of accounting without energy.
function extra(mode, plugins, kind, base) {
    return median(cpu[mode, plugins, kind]) - median(cpu[base, "none", kind])
}

function extra_rate(mode, kind, base) {
    return median(rate[mode, "ours", kind]) - median(rate[base, "none", kind])
}

function extra_rss(mode, plugins) {
    return median(rss[mode, plugins]) - median(rss["NO_JOBACCT", "none"])
}

# By how much a load is slower than without accounting, in percent.
function slower(mode, plugins, kind) {
    return 100 * (1 - median(work[mode, plugins, kind]) / \
        median(work["NO_JOBACCT", "none", kind]))
}

# The highest of a list less the lowest.
function spread(list,    value, n, i, least, most) {
    n = split(list, value, " ")
    for (i = 1; i <= n; i++) {
        if (i == 1 || value[i] + 0 < least) least = value[i] + 0
        if (value[i] + 0 > most) most = value[i] + 0
    }
    return most - least
}

# No goal: a difference that is less than this says nothing.
function base_row(base, kind,    value) {
    if (split(cpu[base, "none", kind], value, " ") > 1)
        printf "CPU %s (%s): 44 min vary by,s,%.5g,,,,\n", base, kind,
            spread(cpu[base, "none", kind])
}

function absolute(x) {
    return x < 0 ? -x : x
}

# No goal.  What does not stand out from the spread has no ratio, and says so.
function load_rows(kind,    i, mode, peer, noise, ours, name) {
    if (!median(work["NO_JOBACCT", "none", kind])) return
    noise = 100 * spread(work["NO_JOBACCT", "none", kind]) / \
        median(work["NO_JOBACCT", "none", kind])
    printf "load NO_JOBACCT (%s): instructions per second vary by,%%,%.5g,,,,\n",
        kind, noise
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
!column["mode"] { for (i = 1; i <= NF; i++) column[$i] = i; next }
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
    cpu[mode, plugins, kind] = cpu[mode, plugins, kind] " " $column["cpu_44min_s"]
    rate[mode, plugins, kind] = rate[mode, plugins, kind] " " \
        $column["cpu_us_per_s"]
    work[mode, plugins, kind] = work[mode, plugins, kind] " " \
        $column["load_instructions_per_s"]
    stolen[mode, plugins] = stolen[mode, plugins] " " $column["stolen_pct"]
    if ($column["waking_us"] != "")
        waking[mode, kind] = waking[mode, kind] " " $column["waking_us"]
}
$column["process"] == "slurmstepd" {
    rss[mode, plugins] = rss[mode, plugins] " " $column["rss_kib"]
    if (plugins == "ours" && mode !~ /HZ|FILES/ && $column["hwm_kib"] > most_kib)
        most_kib = $column["hwm_kib"]
}

END {
    if (!count) {
        print "bench_overhead: there is nothing to compare" > "/dev/stderr"
        exit 2
    }
    print "name,unit,ours,peer,ratio,goal,verdict"
    for (j = 1; j <= kinds; j++) {
        base_row("NO_JOBACCT", order[j])
        base_row("JOBACCT", order[j])
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
        "% of a core", extra_rate(mode, kind, base) / 1e4,
        median(waking[mode, kind]) * 100 / 1e4, "<", 0.2)
}

function beyond(base, mode, kind, peer) {
    row("CPU " mode " (" kind "): 44 min beyond " base \
        (peer == mode ? "" : "; peer: at 1 Hz"), "s",
        extra(mode, "ours", kind, base), extra(peer, "slurm", kind, base), "x",
        peer == mode ? 0.5 : 2)
}

# The paper's modes, without ours of more than 1 Hz; its figures are the worst
# of its modes, too.
function worst(    i, j, s, long, share) {
    for (i = 1; i <= count; i++) {
        if (modes[i] ~ /HZ|FILES/) continue
        for (j = 1; j <= kinds; j++) {
            s = median(cpu[modes[i], "ours", order[j]])
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
