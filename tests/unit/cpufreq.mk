# SPDX-License-Identifier: GPL-2.0-or-later
# Frequencies of CPUs.  System calls are wrapped where a test makes them fail.
if HAVE_CHECK
CPUFREQ_TESTS = \
	tests/unit/test_cpufreq_control \
	tests/unit/test_cpufreq_cycles \
	tests/unit/test_cpufreq_faults \
	tests/unit/test_cpufreq_journal \
	tests/unit/test_cpufreq_keeper \
	tests/unit/test_cpufreq_options \
	tests/unit/test_cpufreq_plan \
	tests/unit/test_cpufreq_policy \
	tests/unit/test_cpufreq_request \
	tests/unit/test_cpufreq_trouble \
	tests/unit/test_cpuset
check_PROGRAMS += $(CPUFREQ_TESTS)
TESTS += $(CPUFREQ_TESTS)

FREQ_WRAP = -Wl,--wrap=openat,--wrap=write,--wrap=renameat \
	-Wl,--wrap=unlinkat,--wrap=fsync

tests_unit_test_cpufreq_request_SOURCES = tests/unit/test_cpufreq_request.c

tests_unit_test_cpufreq_plan_SOURCES = tests/unit/test_cpufreq_plan.c

tests_unit_test_cpufreq_journal_SOURCES = tests/unit/test_cpufreq_journal.c

tests_unit_test_cpufreq_policy_SOURCES = tests/unit/test_cpufreq_policy.c
tests_unit_test_cpufreq_policy_LDFLAGS = $(FREQ_WRAP)

tests_unit_test_cpufreq_control_SOURCES = tests/unit/test_cpufreq_control.c \
	tests/unit/freqsteps.h
tests_unit_test_cpufreq_control_LDFLAGS = $(FREQ_WRAP)

tests_unit_test_cpufreq_trouble_SOURCES = tests/unit/test_cpufreq_trouble.c \
	tests/unit/freqsteps.h
tests_unit_test_cpufreq_trouble_LDFLAGS = $(FREQ_WRAP)

tests_unit_test_cpufreq_faults_SOURCES = tests/unit/test_cpufreq_faults.c
tests_unit_test_cpufreq_faults_LDFLAGS = $(FREQ_WRAP)

tests_unit_test_cpufreq_keeper_SOURCES = tests/unit/test_cpufreq_keeper.c \
	tools/cpufreq-keeper/log.c tools/cpufreq-keeper/log.h
tests_unit_test_cpufreq_keeper_LDFLAGS = $(FREQ_WRAP)

tests_unit_test_cpufreq_cycles_SOURCES = tests/unit/test_cpufreq_cycles.c

tests_unit_test_cpufreq_options_SOURCES = tests/unit/test_cpufreq_options.c \
	plugins/spank/joule_cpufreq/logpath.c \
	plugins/spank/joule_cpufreq/logpath.h \
	plugins/spank/joule_cpufreq/cpufreq_options.c
tests_unit_test_cpufreq_options_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"

# The test is the Slurm that the plugin's part runs in.
if HAVE_SLURM
check_PROGRAMS += tests/unit/test_cpufreq_step
TESTS += tests/unit/test_cpufreq_step
endif
tests_unit_test_cpufreq_step_SOURCES = tests/unit/test_cpufreq_step.c \
	plugins/spank/joule_cpufreq/cpufreq_options.c \
	plugins/spank/joule_cpufreq/cpufreq_step.c
tests_unit_test_cpufreq_step_LDFLAGS = $(FREQ_WRAP) -Wl,--wrap=open

tests_unit_test_cpuset_SOURCES = tests/unit/test_cpuset.c
endif
