#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all build
#
# Plugins that do not fit: of another release, down to its last number, each
# program refuses them and says so, and nothing takes their place; where Slurm's
# record of a step is not what they think, steps run and are not measured wrongly.
#
# shellcheck disable=SC2317  # functions are called through check
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
SPOIL=$JOULE_BUILD/tests/system/spoil
PLUGINS=$SCRATCH/plugins
RAPL=$PLUGINS/acct_gather_energy_joule_rapl.so
HDF5=$PLUGINS/acct_gather_profile_joule_hdf5.so

# fresh - plugins that fit; a file that is mapped is not written to
fresh() {
    rm -rf "$PLUGINS" && mkdir "$PLUGINS" &&
        cp "$JOULE_BUILD"/plugins/acct_gather_*.so "$PLUGINS"
}

# spoil HOW FILE [ARGUMENT] - in another file of that name
spoil() {
    cp "$2" "$2.new" && "$SPOIL" "$1" "$2.new" "${@:3}" && mv "$2.new" "$2"
}

abi_up() { # NAME [OPTION...]
    fresh && up "$@" --plugindir "$PLUGINS"
}

# step CLUSTER SRUN-OPTION... -- - of 3 s; sets STEP_J and the like
step() {
    measure_step "$1" user "${@:2}" --sleep 3 > "$SCRATCH/step" 2>&1 ||
        note < "$SCRATCH/step"
}

# ---- another release ----

# Slurm's words for it, in all releases.
REFUSED='Incompatible Slurm plugin .*acct_gather_energy_joule_rapl\.so version'

# refuses NAME COMMAND... - it ends by itself, and says why
refuses() {
    local name=$1 status
    shift
    cluster at abi node1 timeout 20 "$@" > "$SCRATCH/said" 2>&1
    status=$?
    check "$name ends by itself, and not well ($status)" \
        [ $status != 0 -a $status != 124 ]
    check "$name: the release is said" says "$REFUSED"
    check "$name: nothing else was found" \
        says 'cannot create .* for acct_gather_energy/joule_rapl'
    check "$name: it is fatal" says 'fatal: .*plugin'
}

says() {
    grep -qE "$1" "$SCRATCH/said" || { cat "$SCRATCH/said"; return 1; }
}

# runs_on COMMAND... - it has to be ended
runs_on() {
    cluster at abi node1 timeout 5 "$@" > "$SCRATCH/said" 2>&1
    [ $? = 124 ] || { cat "$SCRATCH/said"; return 1; }
}

# A controller beside the one that runs, of a cluster that nobody has.
# shellcheck disable=SC2016  # the other shell's
second_controller() {
    local etc
    etc=$(cluster dir abi)/etc
    rm -rf "$etc.2" && cp -r "$etc" "$etc.2" && mkdir -p "$etc.2/state" &&
        sed -i -e "s|^StateSaveLocation=.*|StateSaveLocation=$etc.2/state|" \
            -e "s|^SlurmctldPidFile=.*|SlurmctldPidFile=$etc.2/pid|" \
            -e "s|^SlurmctldLogFile=.*|SlurmctldLogFile=$etc.2/log|" \
            -e '/^AccountingStorage/d' -e 's/^ClusterName=.*/ClusterName=other/' \
            -e '$aSlurmctldPort=6917' "$etc.2/slurm.conf"
    CONTROLLER=(env "SLURM_CONF=$etc.2/slurm.conf" slurmctld -D -i -c
        -f "$etc.2/slurm.conf")
}

another_release() {
    abi_up abi || { not_ok "a cluster"; return; }
    second_controller
    cluster slurmd abi node1 stop
    check "slurmd runs with plugins that fit" runs_on slurmd -D -N node1
    check "slurmctld runs with plugins that fit" runs_on "${CONTROLLER[@]}"
    cluster slurmd abi node1 start
    wait_for 60 idle
    check "a step runs with plugins that fit" cluster user abi srun sleep 1
    check "a plugin for the release after this one" spoil version "$RAPL"
    step_refused
    cluster slurmd abi node1 stop
    refuses slurmd slurmd -D -N node1
    refuses slurmctld "${CONTROLLER[@]}"
    fresh
    check "slurmd starts with one that fits again" cluster slurmd abi node1 start
    check "and is idle" wait_for 60 idle
    step abi --
    check "and a step is measured" near_truth
    cluster down abi
}

idle() {
    [ "$(cluster run --timeout 5 abi sinfo -h -N -t idle -o %N)" = node1 ]
}

# slurmd goes on with what it has loaded; slurmstepd loads the new one.
step_refused() {
    local before energy
    before=$(cluster log abi node1 | wc -l)
    check_not "a step does not run" cluster user --timeout 60 abi srun sleep 1
    cluster log abi node1 | tail -n "+$((before + 1))" > "$SCRATCH/said"
    check "slurmstepd: the release is said" says "$REFUSED"
    energy=$(sacct_field abi "$(last_job abi).0" ConsumedEnergyRaw)
    check "nothing measures in its place ('$energy')" [ -z "${energy/#0/}" ]
    cluster run abi scancel -u alice
    cluster run abi scontrol update NodeName=node1 State=RESUME 2> /dev/null
}

# ---- another record of a step ----

# A field more in front of all, or less; the fields of a struct that has grown;
# and one that reads where nothing is.
shifted() { # BYTES
    local dir
    abi_up shift --contain --profile=acct_gather_profile/joule_hdf5 \
        --gather "JouleAttribution=$ATTRIBUTION
JouleIdleWatts=20" || { not_ok "by $1 bytes: a cluster"; return; }
    check "a record that is thought to be $1 bytes off" spoil layout "$RAPL" "$1"
    check "for profiles as well" spoil layout "$HDF5" "$1"
    step shift --profile=energy --
    cluster log shift node1 > "$SCRATCH/said"
    check "$1 bytes, $ATTRIBUTION: a step runs" [ -n "$STEP_END_NS" ]
    check "$1 bytes, $ATTRIBUTION: the log says that there is no profile" \
        says 'error: joule_hdf5: no profile: the step.s record'
    dir=$(cluster dir shift)/profile
    check "$1 bytes, $ATTRIBUTION: there is none" [ -z "$(find "$dir" -type f)" ]
    check "$1 bytes, $ATTRIBUTION: the log says that energy is unknown" \
        says 'error: joule_rapl: the energy of the step is unknown: the step.s record'
    check "$1 bytes, $ATTRIBUTION: it is ('$STEP_J')" [ -z "$STEP_J" ]
    check "$1 bytes, $ATTRIBUTION: the job ends, and the node is idle" \
        wait_for 60 shift_idle
    check "$1 bytes, $ATTRIBUTION: nobody crashed" \
        eval '! grep -iE "signal 11|segfault|core dumped" "$SCRATCH/said"'
    cluster down shift
}

shift_idle() {
    [ "$(cluster run --timeout 5 shift sinfo -h -N -t idle -o %N)" = node1 ]
}

another_release
for bytes in 8 $(! is_long || echo -8 4 400); do
    ATTRIBUTION=cputime shifted $bytes
done
ATTRIBUTION=node shifted 8
finish
