# SPDX-License-Identifier: GPL-2.0-or-later
#
# instructions_rows.awk - the rows of bench_instructions.sh from instructions.csv,
# beside the goals.  Exits 1 if one is missed.  -F,

# row NAME UNIT OURS PEER LIMIT - PEER "": none; LIMIT, of the peer, "": no goal
function row(name, unit, ours, peer, limit,    pass) {
    printf "%s,%s,%.5g,", name, unit, ours
    if (peer == "")
        printf ",,"
    else
        printf "%.5g,%s,", peer, (peer > 0 ? sprintf("%.3f", ours / peer) : "")
    if (limit == "") {
        print ","
        return
    }
    pass = ours <= limit * peer
    printf "<=%gx,%s\n", limit, pass ? "pass" : "miss"
    if (!pass) missed = 1
}

# What is not known is no figure, and no goal that is met.
function unknown(name, unit, limit) {
    printf "%s: not measured (the machine was too busy),%s,,,,%s,%s\n", name, unit,
        limit == "" ? "" : "<=" limit "x", limit == "" ? "" : "miss"
    if (limit != "") missed = 1
}

function beyond(base, mode, peer,    name, limit) {
    name = "instructions " mode ": 44 min beyond " base \
        (peer == mode ? "" : "; peer: at 1 Hz")
    limit = peer == mode ? 0.5 : 2
    if (!(base in accounting) || !((mode, "ours") in long) || \
        !((peer, "slurm") in long))
        unknown(name, "M", limit)
    else
        row(name, "M", (long[mode, "ours"] - accounting[base]) / 1e6,
            (long[peer, "slurm"] - accounting[base]) / 1e6, limit)
}

function rate_row(base, mode,    name) {
    name = "instructions " mode ": a second beyond " base
    if (!(base in accounting) || !((mode, "ours") in long))
        unknown(name, "k", "")
    else
        row(name, "k", (rate[mode, "ours"] - rate[base, "none"]) / 1e3, "", "")
}

function vary_row(base) {
    if (times[base, "none"] > 1)
        row("instructions " base ": 44 min vary by", "M",
            (most[base] - least[base]) / 1e6, "", "")
}

function rows_of(mode,    peer) {
    if (mode ~ /_100HZ/) {
        rate_row("NO_JOBACCT", mode)
        rate_row("JOBACCT", mode)
        return
    }
    peer = mode
    sub(/_10HZ/, "", peer)
    if (!((peer, "slurm") in seen)) return
    beyond("NO_JOBACCT", mode, peer)
    # That of task=1 is Slurm's own, with whatever plugin.
    if (mode !~ /_0_/) beyond("JOBACCT", mode, peer)
}

/^#/ { next }
!column["mode"] { for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["process"] != "node" || $column["thread"] != "" { next }
{
    mode = $column["mode"]
    plugins = $column["plugins"]
    seen[mode, plugins] = 1
    if (plugins == "ours") modes[++count] = mode
    if ($column["in_44min"] == "") next
    # What the others are compared with is measured several times.
    times[mode, plugins]++
    if (plugins == "none") {
        if (times[mode, plugins] == 1)
            least[mode] = most[mode] = $column["in_44min"] + 0
        if ($column["in_44min"] < least[mode]) least[mode] = $column["in_44min"] + 0
        if ($column["in_44min"] > most[mode]) most[mode] = $column["in_44min"] + 0
    }
    total[mode, plugins] += $column["in_44min"]
    total_rate[mode, plugins] += $column["per_s"]
    long[mode, plugins] = total[mode, plugins] / times[mode, plugins]
    rate[mode, plugins] = total_rate[mode, plugins] / times[mode, plugins]
    if (plugins == "none") accounting[mode] = long[mode, plugins]
    # Of next to nothing it says nothing.
    if (mode != "NO_JOBACCT" && $column["spread_pct"] > worst) {
        worst = $column["spread_pct"]
        worst_of = mode ", " plugins
        sub(/, none/, "", worst_of)
        sub(/, slurm/, " of Slurm's", worst_of)
        sub(/, ours/, "", worst_of)
    }
}

END {
    if (!count) {
        print "bench_instructions: there is nothing to compare" > "/dev/stderr"
        exit 2
    }
    print "name,unit,ours,peer,ratio,goal,verdict"
    for (i = 1; i <= count; i++) rows_of(modes[i])
    vary_row("NO_JOBACCT")
    vary_row("JOBACCT")
    row("instructions: the halves of a step differ most in " worst_of, "%", worst,
        "", "")
    exit missed
}
