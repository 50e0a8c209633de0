# SPDX-License-Identifier: GPL-2.0-or-later
dist_check_SCRIPTS += \
	tests/system/test_cpufreq.sh \
	tests/system/test_cpufreq_drivers.sh \
	tests/system/test_cpufreq_kill.sh \
	tests/system/test_cpuset.sh \
	tests/system/test_sweep.sh
EXTRA_DIST += tests/system/cpufreq.sh tests/system/sweep.sh
