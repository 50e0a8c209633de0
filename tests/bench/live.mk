# SPDX-License-Identifier: GPL-2.0-or-later
# Benchmarks in clusters of tests/system/cluster, and the drawings of all tables.
EXTRA_DIST += \
	tests/bench/bench_attribution.sh \
	tests/bench/bench_tradeoff.sh \
	tests/bench/measurements.md \
	tests/bench/plot \
	tests/bench/publish \
	tests/bench/rows.sh
