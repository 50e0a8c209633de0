# SPDX-License-Identifier: GPL-2.0-or-later
# A long time on a real cluster, and a short one as a test.
dist_check_SCRIPTS += \
	tests/bench/bench_soak.sh \
	tests/bench/soak-load \
	tests/bench/soak-watch \
	tests/system/test_soak.sh
EXTRA_DIST += \
	tests/bench/rows.sh \
	tests/bench/soak_admin.sh \
	tests/bench/soak_evidence.sh \
	tests/bench/soak_faults.sh \
	tests/bench/soak_growth.sh \
	tests/bench/soak_jobs.awk \
	tests/bench/soak_plan.awk
