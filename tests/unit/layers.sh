#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Which part may include which: a joule flows one way (doc/architecture.md), only
# plugins see Slurm, and only plugins/slurm_abi rounds to joules.
set -eu
cd "${srcdir:-.}"
status=0

bad() {
    echo "$*"
    status=1
}

# may FOLDER FOLDER... - what a folder includes beside itself and common/base
may() {
    folder=$1
    shift
    allowed=" $folder common/base $* "
    for file in "$folder"/*.[ch]; do
        for other in $(sed -nE \
            's,^#include "((common/|plugins/|tools/|tests/|lib)[^"]*)/[^/"]*",\1,p' \
            "$file" | sort -u); do
            case $allowed in
            *" $other "*) ;;
            *) bad "$file includes a header of $other" ;;
            esac
        done
    done
}

may common/base
may common/energy
may common/sensors common/energy
may common/cgroup
may common/node common/energy lib
may common/daemon common/energy common/sensors common/cgroup common/node
may common/profile
may common/step common/energy common/sensors common/node common/profile lib
may common/cpufreq common/cgroup
may common/waits
may plugins/slurm_abi common/energy common/sensors common/node common/cgroup \
    common/daemon common/step common/profile
may plugins/acct_gather_energy/joule plugins/slurm_abi common/energy \
    common/sensors
may plugins/acct_gather_energy/joule_rapl plugins/slurm_abi common/energy \
    common/sensors
may plugins/acct_gather_energy/joule_fused plugins/slurm_abi common/energy \
    common/sensors
may plugins/acct_gather_energy/joule_ipmi plugins/slurm_abi common/energy \
    common/sensors
may plugins/acct_gather_profile/joule_hdf5 plugins/slurm_abi
may plugins/spank/joule plugins/slurm_abi common/cpufreq common/cgroup
may tools/ipmi-reader common/energy common/sensors
may tools/cpufreq-keeper common/cpufreq
may tools/profile-convert common/profile
may tools/joule common/energy common/sensors common/node common/daemon \
    common/cgroup common/profile common/cpufreq
may tools/pmserver common/energy common/sensors common/node tools/joule lib
may tools/report common/profile common/waits tools/joule tools/sh5util \
    tools/waits lib
may tools/waits common/waits tools/joule lib/waits
# Slurm's configuration as a tool finds it.
may tools/sh5util common/profile tools/joule

# only PATTERN WHERE... - no other file of the product has such a line
only() {
    pattern=$1
    shift
    for file in $(grep -rlE "$pattern" common plugins tools --include='*.[ch]'); do
        found=
        for where; do
            case $file in "$where"*) found=yes ;; esac
        done
        [ -n "$found" ] || bad "$file: $(grep -m 1 -E "$pattern" "$file")"
    done
}

only '#include [<"]slurm/' plugins/slurm_abi/
# slurmstepd has no libhdf5.
only '#include (<hdf5\.h>|"common/profile/(hdf5_|convert\.))' \
    common/profile/hdf5_ common/profile/convert. common/profile/worker.c tools/
only '#include <hdf5\.h>' common/profile/ tools/sh5util/ tools/report/
only '#include <otf2/' tools/report/trace_otf2.c tools/waits/trace_
only '#include <freeipmi/' common/sensors/ipmi_link.c
# What is not in a sentence for the log.
only '^[^"]*[a-z_]*uj / 1000000 \+' plugins/slurm_abi/energy.c

# What applications link knows nothing of the rest.
for file in lib/*.[ch] lib/waits/*.[ch]; do
    ! grep -HE '^#include "' "$file" | grep -v '"lib/' || status=1
done

# Every folder has a rule.
for folder in $(find common plugins tools -name '*.[ch]' |
    sed 's|/[^/]*$||' | sort -u); do
    grep -qE "^may $folder( |\$)" "tests/unit/layers.sh" ||
        bad "$folder has no rule in tests/unit/layers.sh"
done
exit $status
