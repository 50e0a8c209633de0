#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: batch
#
# tests/bench/plot on small tables that are made up: every drawing is there, whole
# and well-formed; columns are found by their names; and what is wrong with a table
# is one sentence about that one, while the others are drawn.  Then the page that
# tests/bench/publish makes of them.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

PLOT=$TOP/tests/bench/plot
CSV=$SCRATCH/csv OUT=$SCRATCH/svg
DRAWINGS="attribution files overhead precision soak tradeoff"

# Lines of stdin as a table; "#" stands before what it is.
table() {
    { echo "# made up for a test"; cat; } > "$CSV/$1.csv"
}

tables() {
    rm -rf "$CSV" && mkdir "$CSV"
    table overhead << 'END'
mode,load,plugins,process,thread,cpu_us_per_s,start_ms,rss_kib
NO_JOBACCT,compute,none,node,,150,1,
NO_JOBACCT,compute,none,slurmd,,50,1,9000
NO_JOBACCT,compute,none,slurmstepd,,100,1,9000
JOBACCT_RAPL,compute,ours,node,,500,1,
JOBACCT_RAPL,compute,ours,slurmd,,300,1,9100
JOBACCT_RAPL,compute,ours,slurmd,joule_sampler,200,,
JOBACCT_RAPL,compute,ours,slurmstepd,,200,1,9100
JOBACCT_RAPL,compute,slurm,node,,1300,1,
JOBACCT_RAPL,compute,slurm,slurmd,,600,1,9100
JOBACCT_RAPL,compute,slurm,slurmstepd,,700,1,9100
END
    table precision << 'END'
class,frequency_ghz,source,bmc_settle_s,seconds,true_j,measured_j,error_pct,paper_error_pct
long,2.301,ipmi,70,2640,1000,1003,0.3,0.35
long,2.301,fused,70,2640,1000,1000.2,0.02,0.35
long,2.301,rapl,,2640,1000,1000,0.001,0.35
long,2.3,ipmi,70,2640,1000,998,-0.2,0.13
long,2.3,fused,70,2640,1000,1000.1,0.01,0.13
long,2.3,rapl,,2640,1000,1000,0,0.13
short,2.3,ipmi,70,120,100,92,-8,12.49
short,2.3,ipmi,23,120,100,96,-4,12.49
short,2.3,fused,70,120,100,99.8,-0.2,12.49
short,1.2,rapl,,120,100,100,0.01,6.02
END
    table tradeoff << 'END'
load,khz,elapsed_s,sacct_j,true_j,model_s,model_j,source
cpu,1200000,2.51,278,277.9,2.5,277,joule
cpu,1200000,2.51,279,277.9,2.5,277,slurm
cpu,3000000,1.01,270,269.8,1,268.8,joule
cpu,3000000,1.01,271,269.8,1,268.8,slurm
memory,1200000,1.68,187,186.9,1.675,185.6,joule
memory,3000000,1.01,270,269.8,1,268.8,joule
END
    table attribution << 'END'
jobs,job,source,cpus,true_j,measured_j,error_pct
1,1,joule,8,1000,1001,0.1
1,1,slurm,8,1000,1000,0
2,1,joule,4,500,498,-0.4
2,2,joule,4,300,301,0.333
2,1,slurm,4,500,800,60
2,2,slurm,4,300,800,166.667
END
    table files-growth << 'END'
what,axis,files,rate_hz,samples,bytes,slurm_bytes,seconds,slurm_seconds,cp_seconds
append,samples,1,1,1000,12000,40000,0.002,0.004,
append,samples,1,1,100000,850000,2900000,0.06,0.3,
append,samples,1,100,1000,9000,40000,0.002,0.004,
append,samples,1,100,100000,410000,2900000,0.03,0.3,
merge,files,1,1,600,9000,30000,0.012,0.03,0.003
merge,files,64,1,38400,400000,1900000,0.03,0.05,0.006
extract,files,1,1,600,9000,30000,0.011,0.03,
extract,files,64,1,38400,400000,1900000,0.04,0.4,
END
    table soak << 'END'
second,slurmctld_rss_kib,slurmd_node1_rss_kib,slurmd_node1_fds,slurmd_node2_rss_kib
0,14000,9000,16,9100
60,14100,9010,16,9110
120,14100,9010,16,9110
END
}

# plot STATUS LINES-ON-STDERR - the exit status, and how many sentences there are
plot() {
    local status
    rm -rf "$OUT"
    "$PLOT" "$CSV" "$OUT" > "$SCRATCH/stdout" 2> "$SCRATCH/stderr"
    status=$?
    cat "$SCRATCH/stdout" "$SCRATCH/stderr"
    [ "$status" = "$1" ] && [ "$(wc -l < "$SCRATCH/stderr")" = "$2" ]
}

# drawn NAME... - these, and no others
drawn() {
    [ "$(cd "$OUT" && echo *.svg)" = "$(printf '%s.svg ' "$@" | sed 's/ $//')" ] ||
        { ls "$OUT"; return 1; }
}

# well_formed NAME TEXT... - a drawing of the size of all, with these words in it
well_formed() {
    python3 - "$OUT/$1.svg" "${@:2}" << 'END'
import sys
import xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "{http://www.w3.org/2000/svg}svg", root.tag
assert root.get("viewBox") == "0 0 720 450", root.get("viewBox")
texts = ["".join(e.itertext()).strip() for e in root.iter("{http://www.w3.org/2000/svg}text")]
for text in sys.argv[2:]:
    assert text in texts, (text, texts)
END
}

# spoilt NAME DRAWING 'WHAT PLOT SAYS' - of a table that the caller has spoilt
spoilt() {
    local name=$1 drawing=$2 says=$3 rest
    rest=$(tr ' ' '\n' <<< "$DRAWINGS" | grep -vx "$drawing")
    check "$name: one sentence" plot 1 1
    check "$name: which" grep -qF "plot: $drawing.svg is not drawn: $says" \
        "$SCRATCH/stderr"
    # shellcheck disable=SC2086  # a list
    check "$name: the others are drawn" drawn $rest
    tables
}

command -v gnuplot > /dev/null || {
    skip "plot" "gnuplot is not installed"
    finish
}
tables
check "all tables are drawn, without a word" plot 0 0
# shellcheck disable=SC2086  # a list
check "six drawings" drawn $DRAWINGS
check "overhead" well_formed overhead "CPU time (ms per second)" \
    JOBACCT_RAPL NO_JOBACCT slurm-joule "Slurm's own"
check "precision" well_formed precision long short "error of a job's energy (%)" \
    "frequency (GHz), turbo last" published "joule_fused, BMC of 70 s"
check "tradeoff" well_formed tradeoff "energy (J)" "cpu, joule" \
    "memory, joule" 1.2 3.0
check "attribution" well_formed attribution "error of a job's energy (%)" \
    "jobs at the same time on a node" "joule_rapl, worst" "Slurm's rapl, worst"
check "files" well_formed files "samples in a file" bytes files "elapsed time (s)" \
    "joule_hdf5, 100 Hz" "Slurm's plugin" merge extract cp
check "soak" well_formed soak "resident memory (MiB)" "time (min)" slurmctld slurmd

mv "$OUT/attribution.svg" "$SCRATCH/before.svg"
awk -F, -v OFS=, '
    /^#/ { print; next }
    { print $7, $3, $1, $2, lines++ ? 1 : "more" }' "$CSV/attribution.csv" \
    > "$SCRATCH/turned"
mv "$SCRATCH/turned" "$CSV/attribution.csv"
check "columns in another order, and one more" plot 0 0
check "are the same drawing" cmp "$SCRATCH/before.svg" "$OUT/attribution.svg"
tables
mv "$OUT/overhead.svg" "$SCRATCH/before.svg"
sed -i '/^NO_JOBACCT/{p;p}' "$CSV/overhead.csv"
check "a mode that was measured three times" plot 0 0
check "is drawn at its mean" cmp "$SCRATCH/before.svg" "$OUT/overhead.svg"
tables

rm "$CSV/overhead.csv"
spoilt "a table is missing" overhead "there is no $CSV/overhead.csv"
: > "$CSV/soak.csv"
spoilt "an empty table" soak "$CSV/soak.csv is empty"
sed -i 3,\$d "$CSV/tradeoff.csv"
spoilt "a head alone" tradeoff "$CSV/tradeoff.csv has no line but its head"
sed -i s/frequency_ghz/frequency/ "$CSV/precision.csv"
spoilt "a column is missing" precision "$CSV/precision.csv has no column frequency_ghz"
sed -i s/plugins/from/ "$CSV/overhead.csv"
spoilt "another column is missing" overhead "$CSV/overhead.csv has no column plugins"
sed -i s/_rss_kib/_rss/g "$CSV/soak.csv"
spoilt "no column of memory" soak "$CSV/soak.csv has no column whose name ends in _rss_kib"
echo "2,3,joule" >> "$CSV/attribution.csv"
spoilt "a line that was cut off" attribution \
    "$CSV/attribution.csv: line 9 has not as many fields as the head"
sed -i '3,$s/,samples,1,/,samples,unknown,/; 3,$s/,[0-9.]*,[0-9.]*,[0-9.]*,[0-9.]*,/,,,,,/' \
    "$CSV/files-growth.csv"
spoilt "no numbers" files "$CSV/files-growth.csv has no line with numbers above 0"

# exits STATUS COMMAND...
exits() {
    local wanted=$1 status
    shift
    "$@" > "$SCRATCH/stdout" 2> "$SCRATCH/stderr"
    status=$?
    cat "$SCRATCH/stdout" "$SCRATCH/stderr"
    [ "$status" = "$wanted" ]
}

check "one directory is a wrong call" exits 2 "$PLOT" "$CSV"
check "no directory with tables" exits 2 "$PLOT" "$SCRATCH/nowhere" "$OUT"
check "without gnuplot" exits 2 env PATH=/nonexistent "$PLOT" "$CSV" "$OUT"
check "it is told" grep -qx \
    "plot: gnuplot is not installed (Debian: gnuplot-nox)" "$SCRATCH/stderr"

# ---- the page ----

PUBLISH=$TOP/tests/bench/publish
PAGE=$SCRATCH/doc/measurements.md
cat > "$SCRATCH/text.md" << 'END'
Before.
<!-- table: missed -->
Between.
<!-- table: rows-fast -->
<!-- table: rows-none -->
END
cat > "$CSV/rows-fast.csv" << 'END'
name,unit,ours,peer,ratio,goal,verdict
one call,us,1.5,3,0.500,<=1x,pass
another,us,9,,,<5,miss
END
publish() { # STATUS [CSVDIR]
    exits "$1" "$PUBLISH" "${2:-$CSV}" "$SCRATCH/doc" "$SCRATCH/text.md"
}
check "a table of the page is missing" publish 1
check "it is told" grep -qx "tests/bench/publish: there is no rows-none.csv" \
    "$SCRATCH/stderr"
cat > "$SCRATCH/wanted" << 'END'
Before.
| benchmark | name | unit | ours | peer | ratio | goal | verdict |
|---|--:|--:|--:|--:|--:|--:|--:|
| fast | another | us | 9 |  |  | <5 | miss |
Between.
| name | unit | ours | peer | ratio | goal | verdict |
|---|--:|--:|--:|--:|--:|--:|
| one call | us | 1.5 | 3 | 0.500 | <=1x | pass |
| another | us | 9 |  |  | <5 | miss |
Not measured.
END
check "the page" diff "$SCRATCH/wanted" "$PAGE"
check "the tables lie beside the drawings" \
    [ -s "$SCRATCH/doc/measurements/rows-fast.csv" -a \
    -s "$SCRATCH/doc/measurements/tradeoff.svg" ]
sed -i s/miss/pass/ "$CSV/rows-fast.csv"
echo "name,unit" > "$CSV/rows-none.csv"
check "everything is there" publish 0
check "no goal is missed" grep -qx "None." "$PAGE"
rm "$CSV/rows-none.csv"
check "what was measured before stays" publish 0
echo "<!-- table: rows-fast beside other -->" >> "$SCRATCH/text.md"
check "another machine's table is missing" publish 1
check "which one" grep -qx \
    "tests/bench/publish: there is no rows-fast beside other.csv" "$SCRATCH/stderr"
mkdir "$SCRATCH/doc/measurements/other"
cat > "$SCRATCH/doc/measurements/other/rows-fast.csv" << 'END'
name,unit,ours,peer,ratio,goal,verdict
one call; goal within what that varies by,us,4,3,1.333,<=1x,miss
END
cat > "$SCRATCH/wanted" << 'END'
| name | unit | goal | ours | ratio | verdict | there: ours | ratio | verdict |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
| one call | us | <=1x | 1.5 | 0.500 | pass | 4 | 1.333 | miss |
| another | us | <5 | 9 |  | pass |  |  |  |
END
check "two machines beside each other" publish 0
check "by the names of the rows" diff "$SCRATCH/wanted" <(tail -n 4 "$PAGE")
check "no directory with rows" publish 2 "$CSV/nowhere"
finish
