# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# cpufreq.sh - clusters whose node has simulated frequency policies; source it
# after lib.sh.
#
# shellcheck disable=SC2034  # for the tests

FREQ_DIR=/sys/devices/system/cpu/cpufreq
FREQ_JOURNAL=/run/slurm-joule/cpufreq/journal
FREQ_PLUGIN=$JOULE_BUILD/plugins/spank_joule.so
FREQ_KEEPER=$JOULE_BUILD/joule-cpufreq-keeper
FREQ_TOOL=$JOULE_BUILD/tools/joule/joule

# freq_up NAME 'SIMULATOR-OPTIONS' 'PLUGIN-OPTIONS' [CLUSTER-OPTION...] -
# SIMULATOR-OPTIONS as of tests/sim/freqsim; PLUGIN-OPTIONS 'none': without the
# plugin, Slurm's own code alone
freq_up() {
    local name=$1 simulator=$2 options=$3
    shift 3
    FREQ=$name
    up "$name" --no-sim --energy none --cpufreq "$simulator" "$@" || return 1
    freq_options "$options" || return 1
    FREQ_BOOT=$(freq_dump)
}

# What can be set, as it is: "PATH VALUE" a line.
freq_dump() {
    cluster cpufreq "$FREQ" node1 dump
}

freq_set() { # POLICY FILE VALUE, as if no kernel had a say
    cluster cpufreq "$FREQ" node1 "set cpufreq/policy$1/$2 $3" > /dev/null
}

# As at the node's boot.  Limits last: some governors have a say in the rest.
freq_reset() {
    local path value
    [ "$(freq_dump)" = "$FREQ_BOOT" ] && return
    grep -v setspeed <<< "$FREQ_BOOT" | while read -r path value; do
        cluster cpufreq "$FREQ" node1 "set $path $value" > /dev/null
    done
}

# freq_options 'OPTIONS' - what stands behind the plugin; slurmd is restarted
freq_options() {
    local dir
    dir=$(cluster dir "$FREQ")
    if [ "$1" = none ]; then
        : > "$dir/etc/plugstack.conf"
    else
        echo "optional $FREQ_PLUGIN keeper=$FREQ_KEEPER $1" \
            > "$dir/etc/plugstack.conf"
    fi
    freq_restart
}

freq_restart() {
    cluster slurmd "$FREQ" node1 stop && cluster slurmd "$FREQ" node1 start &&
        wait_for 60 freq_idle
}

freq_idle() {
    [ "$(cluster run --timeout 5 "$FREQ" sinfo -h -N -t idle -o %N)" = node1 ]
}

# Reset, and any job's remains with it.
freq_clear() {
    cluster run --timeout 20 "$FREQ" scancel -u root
    cluster run --timeout 20 "$FREQ" pkill -KILL -x sleep
    wait_for 60 freq_no_jobs
    cluster run "$FREQ" rm -f "$FREQ_JOURNAL"
    freq_reset
}

freq_no_jobs() {
    [ -z "$(cluster run --timeout 5 "$FREQ" squeue -h)" ]
}

# "governor setspeed min max" of each policy, with a comma between two.
freq_state() {
    freq_dump | awk '$1 ~ /governor$/ { g = $2 }
        $1 ~ /max_freq$/ { max = $2 }
        $1 ~ /min_freq$/ { min = $2 }
        $1 ~ /setspeed$/ { printf "%s%s %s %s %s", n++ ? "," : "", g, $2, min, max }
        END { print "" }'
}

FREQ_ONE="ondemand <unsupported> 1500000 3000000"

# Everything is as at boot, byte for byte, and nothing on record.
freq_clean() {
    [ "$(freq_dump)" = "$FREQ_BOOT" ] ||
        { echo "it is: $(freq_state)"; return 1; }
    ! cluster run --timeout 10 "$FREQ" cat $FREQ_JOURNAL 2> /dev/null
}

# The same within 5 s.
freq_clean_soon() {
    wait_for 5 freq_clean || freq_clean
}

# freq_is STATE - within 5 s
freq_is() {
    wait_for 5 freq_is_now "$1" || { echo "not '$1' but '$(freq_state)'"; return 1; }
}

freq_is_now() {
    [ "$(freq_state)" = "$1" ]
}

# A request: in later releases srun wants to be told the governor of a range.
freq_range() { # REQUEST [GOVERNOR]
    case $1 in
    *:* | *[!0-9-]*) echo "$1" ;;
    *-*) if release_is 22.05; then echo "$1"; else echo "$1:${2:-OnDemand}"; fi ;;
    *) echo "$1" ;;
    esac
}

# srun in the cluster, in the background of the caller or not.
freq_srun() {
    cluster run --timeout 120 "$FREQ" srun "$@"
}

# A file that a step waits for.
freq_gate() {
    echo "$(cluster dir "$FREQ")/run/gate-$1"
}

# freq_step GATE SRUN-OPTION... - a step that lasts until its gate is opened;
# returns when it runs
freq_step() {
    local gate
    gate=$(freq_gate "$1")
    shift
    rm -f "$gate" "$gate.up"
    # It waits at a pipe that nobody writes to, and starts no process for it.
    freq_srun "$@" bash -c "exec 3<> <(:); echo \$\$ > $gate.up
        until [ -e $gate ]; do read -rt 0.05 -u 3; done; true" \
        > "$SCRATCH/step.out" 2>&1 &
    wait_for 60 test -s "$gate.up"
}

# The process of a step's task behind that gate, or one of them.
freq_task() {
    cat "$(freq_gate "$1").up"
}

freq_open() {
    : > "$(freq_gate "$1")"
}
