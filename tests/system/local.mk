# SPDX-License-Identifier: GPL-2.0-or-later
# System tests need root and a whole Slurm: tests/run runs them, not make check.
check_PROGRAMS += tests/system/stamp

tests_system_stamp_SOURCES = tests/system/stamp.c
# Nothing to load but libc: a task starts in a fraction of a millisecond.
tests_system_stamp_LDADD =

check_PROGRAMS += tests/system/fusedledger
tests_system_fusedledger_SOURCES = tests/system/fusedledger.c
tests_system_fusedledger_LDADD = $(LIBJOULE) -lm

# A program with regions; it has the library in itself.
check_PROGRAMS += tests/system/phases
tests_system_phases_SOURCES = tests/system/phases.c lib/regions.c
tests_system_phases_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS)
tests_system_phases_LDADD =

if HAVE_SLURM
check_PROGRAMS += tests/system/rpcping tests/system/spoil
endif
tests_system_rpcping_SOURCES = tests/system/rpcping.c
tests_system_rpcping_LDADD = $(SLURM_LIBS)

tests_system_spoil_SOURCES = tests/system/spoil.c \
	plugins/slurm_abi/step_layout.c plugins/slurm_abi/step_layout.h
tests_system_spoil_LDADD =

if HAVE_FREEIPMI
check_PROGRAMS += tests/system/hogsessions
endif
tests_system_hogsessions_SOURCES = tests/system/hogsessions.c
tests_system_hogsessions_CPPFLAGS = $(AM_CPPFLAGS) $(FREEIPMI_CFLAGS)
tests_system_hogsessions_LDADD = $(FREEIPMI_LIBS)

# Built by who asks for it, as slowseries.so.
EXTRA_PROGRAMS += tests/system/confrace.so
tests_system_confrace_so_SOURCES = tests/system/confrace.c
tests_system_confrace_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_system_confrace_so_LDADD = -ldl -lpthread

EXTRA_PROGRAMS += tests/system/shim_title.so
tests_system_shim_title_so_SOURCES = tests/system/shim_title.c
tests_system_shim_title_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_system_shim_title_so_LDADD = -ldl

dist_check_SCRIPTS += \
	tests/packages.sh \
	tests/run \
	tests/system/cluster \
	tests/system/cluster-init \
	tests/system/guest \
	tests/system/guest-clock.sh \
	tests/system/guest-cpufreq.sh \
	tests/system/guest-inband.sh \
	tests/system/guest-init \
	tests/system/guest-states.sh \
	tests/system/test_abi.sh \
	tests/system/test_attribution.sh \
	tests/system/test_clock.sh \
	tests/system/test_conf_parse.sh \
	tests/system/test_conf_race.sh \
	tests/system/test_counters.sh \
	tests/system/test_energy.sh \
	tests/system/test_fused.sh \
	tests/system/test_ledger.sh \
	tests/system/test_ledger_series.sh \
	tests/system/test_freqscore.sh \
	tests/system/test_freqsim.sh \
	tests/system/test_guest_cpufreq.sh \
	tests/system/test_inband.sh \
	tests/system/test_ipmi.sh \
	tests/system/test_ipmi_faults.sh \
	tests/system/test_ipmi_options.sh \
	tests/system/test_jobs.sh \
	tests/system/test_launch.sh \
	tests/system/test_live.sh \
	tests/system/test_missing.sh \
	tests/system/test_options.sh \
	tests/system/test_pause.sh \
	tests/system/test_annotated.sh \
	tests/system/test_waits.sh \
	tests/system/test_regions.sh \
	tests/system/test_reread.sh \
	tests/system/test_restart.sh \
	tests/system/test_sampling.sh \
	tests/system/test_unlike.sh \
	tests/system/test_symbols.sh \
	tests/system/test_valgrind.sh \
	tests/system/test_waits_page.sh

EXTRA_DIST += \
	.ci/run \
	tests/system/annotated.c \
	tests/system/annotated.f90 \
	tests/system/attribution.sh \
	tests/system/cluster-conf.sh \
	tests/system/faults.sh \
	tests/system/freqscore.sh \
	tests/system/helgrind.supp \
	tests/system/ipmi.sh \
	tests/system/jobtruth.awk \
	tests/system/lib.sh \
	tests/system/moneq.c \
	tests/system/pagevalues.py \
	tests/system/slack.c \
	tests/system/waits.c \
	tests/system/waits.f90 \
	tests/system/pmlib.c \
	tests/system/readtrace.py \
	tests/system/readwaits.py \
	tests/system/waits_page.py

# What scripts need beside what `make all` makes; tests/run makes it.
system-programs: tests/system/stamp tests/system/phases tests/system/burn tests/system/rpcping \
	tests/system/hogsessions tests/system/stuckfs tests/system/fusedledger \
	tests/system/ledgerdump tests/system/steps tests/system/spoil \
	tests/system/slowseries.so tests/system/confrace.so \
	tests/system/shim_title.so tests/peer/cpusets tests/unit/makenode \
	tests/unit/makepage tests/unit/fakereader
.PHONY: system-programs

dist_check_SCRIPTS += \
	tests/system/test_cpufreq.sh \
	tests/system/test_cpufreq_drivers.sh \
	tests/system/test_cpufreq_kill.sh \
	tests/system/test_cpuset.sh \
	tests/system/test_sweep.sh
EXTRA_DIST += tests/system/cpufreq.sh tests/system/sweep.sh

if HAVE_FUSE3
check_PROGRAMS += tests/system/stuckfs
endif
tests_system_stuckfs_SOURCES = tests/system/stuckfs.c
tests_system_stuckfs_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_system_stuckfs_LDADD = $(FUSE3_LIBS)

# Built by who asks for it.
EXTRA_PROGRAMS += tests/system/slowseries.so
tests_system_slowseries_so_SOURCES = tests/system/slowseries.c
tests_system_slowseries_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_system_slowseries_so_LDADD = -ldl

dist_check_SCRIPTS += tests/system/test_profile.sh \
	tests/system/test_profile_end.sh \
	tests/system/test_profile_loads.sh \
	tests/system/test_profile_rate.sh \
	tests/system/test_profile_stuck.sh \
	tests/system/test_fuzz_profile.sh \
	tests/system/test_sh5util_more.sh
EXTRA_DIST += tests/system/profile.sh

# The ledger on real clusters.
check_PROGRAMS += \
	tests/system/burn \
	tests/system/ledgerdump \
	tests/system/steps

tests_system_burn_SOURCES = tests/system/burn.c
tests_system_burn_LDADD = $(LIBJOULE) -lm

tests_system_ledgerdump_SOURCES = tests/system/ledgerdump.c
tests_system_ledgerdump_LDADD = $(LIBJOULE) -lm

tests_system_steps_SOURCES = tests/system/steps.c
tests_system_steps_LDADD = $(LIBJOULE) -lm

dist_check_SCRIPTS += \
	tests/system/guest-ledger.sh \
	tests/system/test_guest_ledger.sh \
	tests/system/test_ledger_bmc.sh \
	tests/system/test_ledger_faults.sh \
	tests/system/test_ledger_steps.sh
EXTRA_DIST += tests/system/ledger.sh

# The tarball, packages made of it, and what is done with them.
dist_check_SCRIPTS += \
	tests/release \
	tests/system/debs \
	tests/system/installed \
	tests/system/overlay \
	tests/system/test_configure.sh \
	tests/system/test_dist.sh \
	tests/system/test_guide.sh \
	tests/system/test_installed.sh \
	tests/system/test_package_deb.sh \
	tests/system/test_package_rpm.sh
EXTRA_DIST += tests/system/package.sh
