# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# soak_growth.sh - what daemons have more of after a soak than before it; for
# bench_soak.sh, after rows.sh.  FIRST and LAST are the two times (seconds: from, to)
# at which nothing ran.

# at_rest COLUMN FROM TO - the least of a column of soak.csv in this time: what the
# daemon has when it answers nobody
at_rest() {
    awk -F, -v column="$1" -v from="$2" -v to="$3" '
        /^#/ { next }
        !head++ { for (i = 1; i <= NF; i++) if ($i == column) at = i; next }
        $1 >= from && $1 <= to && $at != "" && (!some++ || $at + 0 < least) {
            least = $at + 0 }
        END { if (some) print least }' "$BENCH_OUT/soak.csv"
}

# most_growth QUANTITY DAEMON... - of any of them
most_growth() {
    local quantity=$1 daemon before after most=''
    shift
    for daemon; do
        # shellcheck disable=SC2086  # from, to
        before=$(at_rest "${daemon}_$quantity" $FIRST)
        # shellcheck disable=SC2086
        after=$(at_rest "${daemon}_$quantity" $LAST)
        [ -n "$before" ] && [ -n "$after" ] || fail "nothing is known of $daemon"
        echo "soak: $daemon: $before, then $after $quantity" >&2
        [ -n "$most" ] && [ $most -ge $((after - before)) ] ||
            most=$((after - before))
    done
    echo "$most"
}

# The bounds.  Descriptors and threads: connections and workers that come and go
# with the daemon's own doing.  Memory: what glibc's arenas keep of what was free
# again, of as many threads as there were at once; a leak of 100 bytes a step would
# be half a megabyte in 5,000 of them.
growth_rows() {
    local name quantity i bound
    local -a daemons
    local -A bounds=(
        [slurmctld]="16384 8 8" [slurmdbd]="16384 8 8"
        [slurmd]="4096 4 4" [reader]="512 0 0")
    for name in slurmctld slurmdbd slurmd reader; do
        daemons=("$name")
        case $name in slurmd | reader)
            daemons=()
            for ((i = 1; i <= NODES; i++)); do
                daemons+=("${name}_node$i")
            done ;;
        esac
        # shellcheck disable=SC2086
        set -- ${bounds[$name]}
        for quantity in rss_kib fds threads; do
            bound=$1
            shift
            row "soak: growth of $name" "$quantity" \
                "$(most_growth $quantity "${daemons[@]}")" "" "<=$bound"
        done
    done
}
