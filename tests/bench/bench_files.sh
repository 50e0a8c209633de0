#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_files.sh - how profile files grow, and what merging and extracting them
# takes, beside Slurm's plugin, Slurm's sh5util and cp: energy series of a
# thousand to a million samples, 1 to 4,096 node files of ten minutes at 1 Hz,
# and 64 node files of ten minutes at 1, 10 and 100 Hz and of an hour at 100 Hz.
#
# Rows as tests/bench/run prints them: the exponent k of what grows as samples^k
# or files^k, by least squares of the logarithms of all points and, for times, of
# the three largest, where starting a program counts for least; and the figures at
# the largest point.  All points are in files-growth.csv in $JOULE_BENCH_OUT (default: bench
# in the build directory).  Points at which Slurm's sh5util would take longer
# than SLURM_LIMIT_S are left out of its columns, and that is said.
# BENCH_SMALL=1 measures the smaller points alone.
set -u
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=h5tools.sh
. "$HERE/h5tools.sh"
# shellcheck source-path=SCRIPTDIR source=rows.sh
. "$HERE/rows.sh"
SLURM_DIR=${SLURM_PLUGIN_DIR:-/usr/lib/$(gcc -dumpmachine 2> /dev/null)/slurm-wlm}
CSV=$BENCH_OUT/files-growth.csv
RUNS=${BENCH_RUNS:-3}
SLURM_LIMIT_S=30
FILES=(1 4 16 64 256 1024 4096) WIDE_ROWS=600
DEEP_FILES=64 DEEP=("600 1" "6000 10" "60000 100" "360000 100")
APPEND_MOST=1000000
[ -z "${BENCH_SMALL:-}" ] ||
    FILES=(1 4 16 64) DEEP_FILES=16 DEEP=("600 1" "6000 10" "60000 100") \
        APPEND_MOST=100000
# What each command took it last, for how many, and as which power of them it grew.
declare -A SLURM_US=() SLURM_SIZE=() SLURM_K=()

say() {
    echo "bench_files: $*" >&2
}

# point WHAT AXIS FILES HZ SAMPLES BYTES SLURM_BYTES S SLURM_S CP_S KIB SLURM_KIB -
# a line of the table; empty is not measured
point() {
    local IFS=,
    echo "$*" | awk -F, -v OFS=, '
        function per(a, b, by) { return a == "" ? "" : sprintf("%.6g", a / b * by) }
        { print $0, per($6, $5, 1), per($7, $5, 1), per($8, $5, 1e6), per($9, $5, 1e6) }' \
        >> "$CSV"
}

write_head() {
    cat << EOT
# What the profiles of a step take.  append: the energy series of a node written by
# slurmstepd, seconds of CPU time.  merge, extract: sh5util on files of ten minutes
# at 1 Hz (axis files) and on $DEEP_FILES files (axis samples), elapsed seconds with fsync;
# slurm_: Slurm's plugin and sh5util, which syncs nothing; cp_: cp -r of the files that
# are merged.  Memory: the most that was resident, of all processes of a sh5util (see
# tests/bench/peak.c).
what,axis,files,rate_hz,samples,bytes,slurm_bytes,seconds,slurm_seconds,cp_seconds,memory_kib,slurm_memory_kib,bytes_per_sample,slurm_bytes_per_sample,us_per_sample,slurm_us_per_sample
EOT
}

# ---- one file ----

append_points() {
    local hz rows bytes slurm_bytes us slurm_us
    mkdir -m 755 "$DIR/append" || fail "no directory"
    "$JOULE_BUILD/tests/bench/bench_append" "$SLURM_DIR/acct_gather_profile_hdf5.so" \
        "$SLURM_DIR/libslurmfull.so" "$DIR/append" $APPEND_MOST > "$DIR/appended" ||
        fail "no series could be written"
    while read -r hz rows bytes slurm_bytes us slurm_us; do
        point append samples 1 "$hz" "$rows" "$bytes" "$slurm_bytes" \
            "$(awk -v us="$us" -v n="$rows" 'BEGIN { printf "%.6f", us * n / 1e6 }')" \
            "$(awk -v us="$slurm_us" -v n="$rows" 'BEGIN { printf "%.6f", us * n / 1e6 }')" \
            '' '' ''
    done < "$DIR/appended"
    rm -rf "$DIR/append"
}

# ---- many files ----

# make_files DIRECTORY FILES ROWS HZ - in both layouts
make_files() {
    local layout half=$((($2 + 1) / 2))
    for layout in slurm ours; do
        mkdir -p "$1/$layout/root"
        printf '%s\n' "1 $half" "$((half + 1)) $2" |
            xargs -P 2 -L 1 "$MAKENODE" many "$1/$layout/root" "$3" "$4" $layout ||
            fail "cannot write the files"
    done
}

# take_files FROM TO FILES - the first of them
take_files() {
    local layout
    for layout in slurm ours; do
        mkdir -p "$2/$layout/root"
        seq -f "$1/$layout/root/7_0_node%.0f.h5" "$3" |
            xargs ln -t "$2/$layout/root" || fail "cannot link the files"
    done
}

bytes_of() {
    find "$1" -type f -printf '%s\n' | awk '{ s += $1 } END { printf "%.0f\n", s }'
}

seconds() {
    awk -v us="$1" 'BEGIN { printf "%.6f\n", us / 1e6 }'
}

# slurm_can COMMAND SIZE - by what it took it for the sizes before: as much for
# each of it, or more if that has been seen to grow
slurm_can() {
    [ -n "${SLURM_US[$1]:-}" ] || return 0
    awk -v us="${SLURM_US[$1]}" -v ratio="$2/${SLURM_SIZE[$1]}" -v k="${SLURM_K[$1]:-1}" \
        -v limit=$SLURM_LIMIT_S 'BEGIN {
            split(ratio, part, "/")
            exit us / 1e6 * (part[1] / part[2]) ^ k > limit }' && return
    say "Slurm's sh5util is left out: ${1%%-*} of $2 ${1##*-}"
    return 1
}

# sh5util_us ARGUMENT... - Slurm's, as the user; prints the microseconds it took,
# without those to get there
sh5util_us() {
    # shellcheck disable=SC2016  # it is the other shell's
    "$CLUSTER" user --timeout 0 "$NAME" bash -c 'cd "$0" || exit 1
        start=${EPOCHREALTIME/./}
        sh5util "$@" > log 2>&1 || { cat log >&2; exit 1; }
        echo $((${EPOCHREALTIME/./} - start))' "$DIR/alice" "$@"
}

# slurm_takes COMMAND SIZE ARGUMENT... - time it, twice if that is soon done
slurm_takes() {
    local command=$1 size=$2 us again
    shift 2
    sync -f "$DIR"
    us=$(sh5util_us "$@") || fail "Slurm's sh5util failed"
    if [ "$us" -lt 3000000 ]; then
        again=$(sh5util_us "$@") || fail "Slurm's sh5util failed"
        [ "$again" -ge "$us" ] || us=$again
    fi
    [ -z "${SLURM_US[$command]:-}" ] ||
        SLURM_K[$command]=$(awk -v a="$us" -v b="${SLURM_US[$command]}" -v m="$size" \
            -v n="${SLURM_SIZE[$command]}" 'BEGIN {
                k = log(a / b) / log(m / n); print (k > 1 ? k : 1) }')
    SLURM_US[$command]=$us SLURM_SIZE[$command]=$size
}

SERIES=(-E -s Energy -l Node:TimeSeries)

merge_theirs() {
    theirs -j 7 -S -p "$1" -o merged.h5
}

extract_ours() {
    ours -i "$DIR/merged.h5" "${SERIES[@]}" -o "$DIR/e.csv"
}

# Whether both extract the same from Slurm's merged file.
is_same() {
    ours -i "$DIR/alice/merged.h5" "${SERIES[@]}" -o "$DIR/same.csv" > /dev/null 2>&1 &&
        cmp -s <(sort "$DIR/same.csv") <(sort "$DIR/alice/e.csv")
}

# merge_point AXIS SIZE DIRECTORY FILES ROWS HZ - merge and extract; SIZE is that
# of the axis
merge_point() {
    local axis=$1 size=$2 dir=$3 files=$4 hz=$6 samples=$(($4 * $5)) i s='' kib='' e=''
    local bytes slurm_bytes ours_kib
    say "$files files of $5 samples"
    show_user "$dir/slurm"
    bytes=$(bytes_of "$dir/ours") slurm_bytes=$(bytes_of "$dir/slurm")
    BEST=()
    for ((i = 0; i < RUNS; i++)); do
        timed merge fresh "$dir/ours"
        timed extract extract_ours
        timed cp copy "$dir/ours/root"
    done
    if slurm_can "merge-$axis" "$size"; then
        slurm_takes "merge-$axis" "$size" -j 7 -S -p "$dir/slurm" -o merged.h5
        s=$(seconds "${SLURM_US["merge-$axis"]}")
        if slurm_can "extract-$axis" "$size"; then
            slurm_takes "extract-$axis" "$size" -j 7 -i merged.h5 "${SERIES[@]}" -o e.csv
            e=$(seconds "${SLURM_US["extract-$axis"]}")
            is_same || fail "the rows of $dir are not the same"
        fi
        kib=$(peak_kib merge_theirs "$dir/slurm") || exit 2
    fi
    ours_kib=$(peak_kib fresh "$dir/ours") || exit 2
    point merge "$axis" "$files" "$hz" "$samples" "$bytes" "$slurm_bytes" \
        "$(seconds "${BEST[merge]}")" "$s" "$(seconds "${BEST[cp]}")" \
        "$ours_kib" "$kib"
    bytes=$(stat -c %s "$DIR/merged.h5") slurm_bytes=''
    [ -z "$s" ] || slurm_bytes=$(stat -c %s "$DIR/alice/merged.h5")
    ours_kib=$(peak_kib extract_ours) || exit 2
    point extract "$axis" "$files" "$hz" "$samples" "$bytes" "$slurm_bytes" \
        "$(seconds "${BEST[extract]}")" "$e" '' "$ours_kib" ''
    rm -rf "$DIR/copied" "$DIR"/*.csv "$DIR/alice/merged.h5" "$DIR/alice/e.csv"
}

wide_points() {
    local files
    make_files "$DIR/wide" "${FILES[-1]}" $WIDE_ROWS 1
    for files in "${FILES[@]}"; do
        take_files "$DIR/wide" "$DIR/some" "$files"
        merge_point files "$files" "$DIR/some" "$files" $WIDE_ROWS 1
        rm -rf "$DIR/some"
    done
    rm -rf "$DIR/wide"
}

deep_points() {
    local point rows hz
    for point in "${DEEP[@]}"; do
        read -r rows hz <<< "$point"
        make_files "$DIR/deep" $DEEP_FILES "$rows" "$hz"
        merge_point samples $((DEEP_FILES * rows)) "$DIR/deep" $DEEP_FILES "$rows" "$hz"
        rm -rf "$DIR/deep"
    done
}

# ---- what comes of it ----

# select WHAT AXIS X Y [HZ] - "x y" of the points that have both; columns by name
select_points() {
    awk -F, -v what="$1" -v axis="$2" -v x="$3" -v y="$4" -v hz="${5:-}" '
        /^#/ { next }
        !head { for (i = 1; i <= NF; i++) at[$i] = i; head = 1; next }
        $1 == what && $2 == axis && (hz == "" || $4 == hz) && $at[x] > 0 &&
            $at[y] > 0 { print $at[x], $at[y] }' "$CSV"
}

# exponent - of "x y" on stdin; nothing with less than three
exponent() {
    awk '{ x = log($1); y = log($2); n++; sx += x; sy += y; sxx += x * x; sxy += x * y }
        END { if (n >= 3) printf "%.4f\n", (n * sxy - sx * sy) / (n * sxx - sx * sx) }'
}

# growth NAME WHAT AXIS X Y GOAL [HZ]
growth() {
    local k
    k=$(select_points "$2" "$3" "$4" "$5" "${7:-}" | exponent)
    [ -n "$k" ] || fail "$1: too few points"
    row "$1" exponent "$k" "$(select_points "$2" "$3" "$4" "slurm_$5" "${7:-}" | exponent)" \
        "<=$6"
}

# late_growth NAME WHAT AXIS X Y GOAL - Slurm's at the same points, if it has them
late_growth() {
    local k peer
    k=$(select_points "$2" "$3" "$4" "$5" | sort -n | tail -n 3 | exponent)
    [ -n "$k" ] || fail "$1: too few points"
    peer=$(join <(select_points "$2" "$3" "$4" "$5" | sort -n | tail -n 3 | sort) \
        <(select_points "$2" "$3" "$4" "slurm_$5" | sort) | cut -d ' ' -f 1,3 | exponent)
    row "$1" exponent "$k" "$peer" "<=$6"
}

# largest NAME UNIT WHAT AXIS Y GOAL [HZ] - at the largest point that both have
largest() {
    local ours peer samples
    read -r samples peer < <(select_points "$3" "$4" samples "slurm_$5" "${7:-}" |
        sort -n | tail -n 1)
    [ -n "${peer:-}" ] || fail "$1: there is no point of Slurm's"
    ours=$(select_points "$3" "$4" samples "$5" "${7:-}" |
        awk -v n="$samples" '$1 == n { print $2 }')
    row "$1 of $samples samples" "$2" "$ours" "$peer" "$6"
}

print_rows() {
    local hz axis
    for hz in 1 100; do
        growth "file at $hz Hz: bytes ~ samples^k" append samples samples bytes 1.02 $hz
        growth "file at $hz Hz: CPU ~ samples^k" append samples samples seconds 1.05 $hz
        largest "file at $hz Hz" "bytes/sample" append samples bytes_per_sample \
            "<=0.34x" $hz
        largest "appending at $hz Hz" "us/sample" append samples us_per_sample "<=1x" $hz
    done
    for axis in files samples; do
        growth "merge: time ~ $axis^k" merge $axis $axis seconds 1.1
        late_growth "merge: time ~ $axis^k for many" merge $axis $axis seconds 1.1
        growth "merge: memory ~ $axis^k" merge $axis $axis memory_kib 0.2
        growth "extract: time ~ $axis^k" extract $axis $axis seconds 1.1
        late_growth "extract: time ~ $axis^k for many" extract $axis $axis seconds 1.1
        largest "merge of more $axis:" "us/sample" merge $axis us_per_sample "<=0.34x"
        largest "extract of more $axis:" "us/sample" extract $axis us_per_sample "<=0.125x"
    done
}

for file in "$JOULE_BUILD/tests/bench/bench_append" \
    "$SLURM_DIR/acct_gather_profile_hdf5.so" "$SLURM_DIR/libslurmfull.so"; do
    [ -e "$file" ] || fail "there is no $file"
done
h5tools_begin bench-files
mkdir -p "$BENCH_OUT" || fail "cannot make $BENCH_OUT"
write_head > "$CSV" || fail "cannot write to $BENCH_OUT"
say "series of up to $APPEND_MOST samples"
append_points
wide_points
deep_points
row_head
print_rows
exit $STATUS
