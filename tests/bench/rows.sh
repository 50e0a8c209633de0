# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# rows.sh - for benchmarks that are scripts: rows of CSV with the goal beside the
# figure (as bench.h has it for programs), and the tables behind them.
#
# shellcheck disable=SC2034  # for the benchmarks

STATUS=0 # 1 once a goal was missed
BENCH_OUT=${JOULE_BENCH_OUT:-${JOULE_BUILD:?is the build directory}/bench}

# What could not be measured is not a goal missed.
fail() {
    echo "${0##*/}: $*" >&2
    exit 2
}

row_head() {
    echo "name,unit,ours,peer,ratio,goal,verdict"
}

# row NAME UNIT OURS PEER GOAL - PEER may be empty.  GOAL: "<N", "<=N" or ">=N"
# for ours, with an x behind it ("<=Nx") for N times the peer; "=1x": as the peer;
# empty: the figure is stated without one.
row() {
    local word
    for word in "$3" ${4:+"$4"}; do
        [[ $word =~ ^[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?$ ]] ||
            fail "$1: '$word' is not a number"
    done
    awk -v name="$1" -v unit="$2" -v ours="$3" -v peer="$4" -v goal="$5" 'BEGIN {
        limit = goal; gsub(/[<>=x]/, "", limit); limit += 0
        if (goal ~ /x$/ && peer == "")
            exit 2
        if (goal ~ /x$/)
            limit *= peer
        pass = goal == "" ? 1 : goal ~ /^>=/ ? ours >= limit : goal ~ /^<=/ ? \
               ours <= limit : goal ~ /^</ ? ours < limit : \
               sprintf("%.6g", ours) == sprintf("%.6g", limit)
        printf "%s,%s,%.5g,%s,%s,%s,%s\n", name, unit, ours,
            (peer == "" ? "" : sprintf("%.5g", peer)),
            (peer > 0 ? sprintf("%.3f", ours / peer) : ""), goal,
            (goal == "" ? "" : pass ? "pass" : "miss")
        exit !pass }'
    case $? in
    0) ;;
    1) STATUS=1 ;;
    *) fail "$1: there is no peer to be compared with" ;;
    esac
}

# table_open NAME 'WHAT IT IS' COLUMNS - the table of a benchmark, in TABLE
table_open() {
    TABLE=$BENCH_OUT/$1.csv
    mkdir -p "$BENCH_OUT" || fail "cannot make $BENCH_OUT"
    printf '# %s\n%s\n' "$2" "$3" > "$TABLE" || fail "cannot write $TABLE"
}

# table_line VALUES - all of them; shown as progress, too
table_line() {
    case ,$1, in *,,*) fail "a value is missing: $1" ;; esac
    echo "$1" >> "$TABLE" || fail "cannot write $TABLE"
    echo "$1" >&2
}

# table_select COLUMN[,COLUMN] KEY=VALUE... - of TABLE: the values of these columns
# where the others have these values
table_select() {
    local columns=$1
    shift
    awk -F, -v OFS=, -v columns="$columns" -v keys="$*" '
        /^#/ { next }
        !head++ {
            for (i = 1; i <= NF; i++) at[$i] = i
            columns_count = split(columns, column, ",")
            keys_count = split(keys, key, " ")
            next
        }
        { for (i = 1; i <= keys_count; i++) {
              split(key[i], pair, "=")
              if ($at[pair[1]] != pair[2]) next
          }
          for (i = 1; i <= columns_count; i++)
              printf "%s%s", $at[column[i]], i < columns_count ? OFS : ORS
        }' "$TABLE"
}

# table_worst COLUMN KEY=VALUE... - the greatest of a column without its sign;
# nothing where there is none
table_worst() {
    table_select "$@" | sed 's|^-||' | sort -g | tail -n 1
}
