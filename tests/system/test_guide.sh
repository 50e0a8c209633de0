#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# doc/admin-guide.md, done as it says: its fenced commands in their order, on a
# cluster that knows nothing of energy at first, in an overlay of this machine.
# The first word behind a fence is sh (with "user" or "controller", else on the
# node) or conf with the name of a file; there must be no other fences.
#
# What a test cannot have is played: systemctl restarts the daemons of the
# cluster, and modprobe has nothing to do where the devices are simulated.
#
# shellcheck disable=SC2317  # functions are called through check
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=package.sh
. "$LIB/package.sh"
GUIDE=$TOP/doc/admin-guide.md

# Write each block to a file "NUMBER KIND" in the directory $1; the section that
# it is of to the same with .section.
take_apart() {
    awk -v dir="$1" '
        /^## / { section = $2 }
        /^```/ && !inside {
            kind = substr($0, 4); inside = 1
            file = sprintf("%s/%03d %s", dir, ++count, kind)
            print section > (file ".section"); close(file ".section")
            next
        }
        /^```/ { inside = 0; close(file); next }
        inside { print > file }
        END { exit inside || count == 0 }' "$GUIDE"
}

play_programs() {
    rm -f /usr/sbin/systemctl /usr/sbin/modprobe
    cat > /usr/sbin/systemctl <<END
#!/bin/bash
[ "\$1" = restart ] || { echo "systemctl: \$1?" >&2; exit 1; }
# Daemons live outside of what a node's commands see.
in_init() { nsenter -t 1 -m -C env WORK="\$WORK" "\$@"; }
case \$2 in
slurmd) in_init "$LIB/cluster-init" slurmd node1 stop &&
    in_init "$LIB/cluster-init" slurmd node1 start ;;
slurmctld)
    pid=\$(cat "\$WORK/run/slurmctld.pid") && kill "\$pid" || exit
    while [ -e "/proc/\$pid" ]; do sleep 0.05; done
    in_init slurmctld ;;
*) echo "systemctl: \$2?" >&2; exit 1 ;;
esac
END
    # shellcheck disable=SC2016  # sh's
    printf '#!/bin/sh\n[ "$*" = msr ]\n' > /usr/sbin/modprobe
    chmod 755 /usr/sbin/systemctl /usr/sbin/modprobe
}

# The files of a machine, as the guide names them.
make_machine() {
    up pkgguide --energy none --plugindir /nonexistent --bmc '' --cpufreq '' \
        --sim '--load const:60' || return 1
    DIR=$(cluster dir pkgguide) || return 1
    mkdir -p /etc/slurm /etc/modules-load.d /usr/local/src /var/log/slurm &&
        cluster run pkgguide mount -n --bind "$DIR/etc" /etc/slurm &&
        ln -sf "$DIR/log/slurmd-node1.log" /var/log/slurm/slurmd.log &&
        cp "$1" /usr/local/src/ && rm -f "$DIR/etc/acct_gather.conf" &&
        play_programs
}

# configure FILE LINES - lines that take the place of others of their keys
configure() {
    local file=$DIR/etc/$1 line
    [ -e "$file" ] || : > "$file"
    while IFS= read -r line; do
        sed -i "/^${line%%=*}=/d" "$file" && echo "$line" >> "$file" || return 1
    done < "$2"
}

run_block() {
    local kind=${1##*/}
    kind=${kind#* }
    case $kind in
    sh) cluster at pkgguide node1 bash -e -o pipefail "$1" ;;
    "sh controller") cluster run pkgguide bash -e -o pipefail "$1" ;;
    "sh user") cluster user pkgguide bash -e -o pipefail "$1" ;;
    conf\ *) configure "${kind#conf }" "$1" ;;
    *) echo "what is a block of '$kind'?"; return 1 ;;
    esac
}

node_watts() {
    [ "$(cluster run pkgguide scontrol show node node1 |
        sed -n 's/.*CurrentWatts=\([^ ]*\).*/\1/p')" = "$1" ]
}

idle_is_known() {
    local out
    out=$(cluster at pkgguide node1 joule ledger --json) &&
        grep -q '"learned_idle_mw": *[1-9]' <<< "$out" &&
        ! grep -q '"learned_idle_mw": *null' <<< "$out"
}

# What must be true when the section is done.
after_section() {
    local job
    case $1 in
    3.) check "section 3: the node can be measured" \
        cluster at pkgguide node1 joule probe --no-conf ;;
    6.) check "section 6: the node learns what it uses when idle" \
        wait_for 100 idle_is_known ;;
    7.) job=$(last_job pkgguide)
        check "section 7: a job would be measured" eval '
            cluster at pkgguide node1 joule probe --json |
                grep -q "\"job_would_be_measured\": *true"'
        # One of two CPUs of a node that always uses 60 W, for 5 s.
        check "section 7: the job has its energy" \
            within "$(step_energy pkgguide "$job")" 150 10 ;;
    8.) check "section 8: the frequency was set" grep -q \
        'joule_cpufreq: step .*: set .* kHz' <(cluster log pkgguide node1) ;;
    9.) check "section 9: the node has the power of its BMC" \
        wait_for 60 node_watts 60 ;;
    12.) check "section 12: jobs run without it" cluster user pkgguide srun true
        check "section 12: no package is left" eval '
            ! dpkg-query -W -f "\${db:Status-Status}\n" "slurm-joule-*" \
                2> /dev/null | grep -vx not-installed' ;;
    esac
}

inside() {
    local block section='' next
    in_overlay || { not_ok "there is an overlay"; return; }
    make_machine "$1" || { not_ok "a cluster without energy"; return; }
    mkdir "$SCRATCH/blocks" && take_apart "$SCRATCH/blocks" ||
        { not_ok "the guide is whole"; return; }
    chmod 755 "$SCRATCH/blocks"
    for block in "$SCRATCH"/blocks/???\ *; do
        case $block in *.section) continue ;; esac
        next=$(cat "$block.section")
        [ "$next" = "$section" ] || after_section "$section"
        section=$next
        check "section $section ${block##*/??? }: $(tail -n 1 "$block")" \
            run_block "$block"
    done
    after_section "$section"
}

if [ "${1-}" = inside ]; then
    inside "$2"
    finish
fi
# slurms_keys - of acct_gather.conf, as the manual of this Slurm has them
slurms_keys() {
    zcat /usr/share/man/man5/acct_gather.conf.5.gz |
        grep -oE 'fB(EnergyIPMI|ProfileHDF5|ProfileInfluxDB|Infiniband|Sysfs)[A-Za-z0-9]+' |
        sed 's/^fB//; s/^\(ProfileInfluxDB\).*/\1.../' | sort -u
}

keys_are_told() {
    local key count=0
    for key in $(slurms_keys); do
        grep -qF "\`$key\`" "$TOP/doc/migration.md" ||
            { echo "$key is missing"; return 1; }
        count=$((count + 1))
    done
    echo "$count keys"
    [ $count -ge 8 ]
}

check "doc/migration.md has each key of Slurm's manual" keys_are_told
need dpkg-buildpackage dh
TARBALL=$(make_dist "$SCRATCH") || { not_ok "make dist"; finish; }
"$LIB/overlay" --bind "$SCRATCH" "$0" inside "$TARBALL" ||
    TESTS_FAILED=$((TESTS_FAILED + 1))
finish
