#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run: all
#
# slurmd and slurmstepd under memcheck and helgrind with each plugin loaded: no
# finding may have a frame of ours in it.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
. "$LIB/ipmi.sh"

command -v valgrind > /dev/null || {
    skip "valgrind" "valgrind is not installed"
    finish
}

# Frames of ours, by function or by source file.  Debian's Slurm has no file
# names in its frames.
OURS=$(cd "$TOP" && printf '%s|' common/*/*.c plugins/*/*.c plugins/*/*/*.c |
    sed -E 's/[^|]*\///g; s/\.c//g; s/\|$//')
OURS="joule_[a-z_]+|[(]($OURS)[.]c:[0-9]+[)]"

# findings FILE... - print the paragraphs of valgrind's reports that have a
# frame of ours; 1 if there are any.  Where a thread was made or a lock first
# seen is no finding but a remark on one.  What Slurm's own profile plugin does when
# we hand it a sample is its own.
findings() {
    cat "$@" | sed -E 's/^==[0-9]+== ?//' | awk -v RS= -v ours="$OURS" '
        /(at|by) 0x/ && !/^ *(Thread #[0-9]+ was created|Lock at)/ &&
            !/acct_gather_profile_hdf5[.]so/ && $0 ~ ours { print; print ""; n++ }
        END { exit n > 0 }'
}

# Without it our plugins do not believe the step's record, and do next to nothing.
SHIM=$JOULE_BUILD/tests/system/shim_title.so
[ -e "$SHIM" ] || { not_ok "there is a $SHIM"; finish; }

has_energy() {
    local joules
    joules=$(last_job_energy valgrind .0)
    echo "$joules J"
    [ "$joules" -gt 0 ]
}

# under NAME VALGRIND-OPTIONS CLUSTER-OPTION...
under() {
    local tool=$1 logs
    up valgrind --valgrind "$2" --preload "$SHIM" --sim '--load const:70' --profile \
        "${@:3}" || {
        not_ok "$tool: the cluster starts"
        return
    }
    check "$tool: a profiled step" cluster user --timeout 120 valgrind \
        srun --profile=energy --acctg-freq=energy=1 sleep 4
    check "$tool: slurmstepd has its energy" has_energy
    check "$tool: a step of two tasks" cluster user --timeout 120 valgrind \
        srun -n2 --overcommit sleep 1
    cluster run valgrind scontrol reconfigure
    check "$tool: a step after reconfigure" cluster user --timeout 120 \
        valgrind srun sleep 1
    cluster slurmd valgrind node1 stop
    logs=$(cluster dir valgrind)/log
    check "$tool: slurmd and slurmstepd were watched" bash -c \
        '[ "$(grep -lE "Command: .*slurmd" "$@" | wc -l)" -ge 1 ] &&
         [ "$(grep -lE "Command: .*slurmstepd" "$@" | wc -l)" -ge 3 ]' - \
        "$logs"/valgrind-*.log
    check "$tool: nothing from our code" findings "$logs"/valgrind-*.log
    cluster down valgrind
}

cat > "$SCRATCH/report" <<'END'
==12== Invalid read of size 8
==12==    at 0x1234: take_sample (sampler.c:99)
==12==    by 0x5678: joule_sampler_create (sampler.c:250)
END
check_not "a finding of ours would be seen" findings "$SCRATCH/report"
cat > "$SCRATCH/report" <<'END'
==12== 8 bytes in 1 blocks are definitely lost
==12==    at 0x1234: malloc (vg_replace_malloc.c:447)
==12==    by 0x3456: acct_gather_profile_p_create_dataset (in /usr/lib/x86_64-linux-gnu/slurm-wlm/acct_gather_profile_hdf5.so)
==12==    by 0x5678: make_dataset (series.c:58)
END
check "one of Slurm's profile plugin is not ours" findings "$SCRATCH/report"

# Frames keep their names when their plugin has been unloaded.
MEMCHECK="memcheck --leak-check=full --show-leak-kinds=definite \
--keep-debuginfo=yes"
HELGRIND="helgrind --suppressions=$LIB/helgrind.supp"
RAPL=(--gather JouleSamplePeriod=100ms)
IPMI=(--energy acct_gather_energy/joule_ipmi --bmc '' --gather "$BMC_CONF
JouleSamplePeriod=100ms")
under 'rapl, memcheck' "$MEMCHECK" "${RAPL[@]}"
under 'rapl, helgrind' "$HELGRIND" "${RAPL[@]}"
under 'ipmi, memcheck' "$MEMCHECK" "${IPMI[@]}"
under 'ipmi, helgrind' "$HELGRIND" "${IPMI[@]}"
finish
