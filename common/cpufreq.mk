# SPDX-License-Identifier: GPL-2.0-or-later
# Frequencies of CPUs: requests, policies, the journal.
libjoule_a_SOURCES += \
	common/base/process.c common/base/process.h \
	common/base/rundir.c common/base/rundir.h \
	common/base/ticker.c common/base/ticker.h \
	common/cgroup/cpuset.c common/cgroup/cpuset.h \
	common/cpufreq/average.c common/cpufreq/average.h \
	common/cpufreq/control.c common/cpufreq/control.h \
	common/base/cpus.c common/base/cpus.h \
	common/cpufreq/cycles.c common/cpufreq/cycles.h \
	common/cpufreq/driver.c common/cpufreq/driver.h \
	common/cpufreq/journal.c common/cpufreq/journal.h \
	common/cpufreq/journal_text.c \
	common/cpufreq/plan.c common/cpufreq/plan.h \
	common/cpufreq/policy.c common/cpufreq/policy.h \
	common/cpufreq/request.c common/cpufreq/request.h \
	common/cpufreq/apply.c common/cpufreq/apply.h \
	common/cpufreq/journal_file.c common/cpufreq/journal_file.h \
	common/cpufreq/hold.c \
	common/cpufreq/keeper.c common/cpufreq/keeper.h
