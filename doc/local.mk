# SPDX-License-Identifier: GPL-2.0-or-later
dist_man_MANS += \
	doc/joule-acct_gather.conf.5 \
	doc/joule-cpufreq.7 \
	doc/joule.1 \
	doc/sh5util.1 \
	doc/slurm-joule.7

dist_doc_DATA = \
	README.md \
	NEWS.md \
	doc/admin-guide.md \
	doc/dataflow.md \
	doc/hdf5-format.md \
	doc/ledger.md \
	doc/measurements.md \
	doc/migration.md \
	doc/slurm-abi.md

# As tests/bench/publish leaves them.
measurementsdir = $(docdir)/measurements
dist_measurements_DATA = \
	doc/measurements/attribution.csv \
	doc/measurements/attribution.svg \
	doc/measurements/files-growth.csv \
	doc/measurements/files.svg \
	doc/measurements/instructions.csv \
	doc/measurements/machine.csv \
	doc/measurements/overhead.csv \
	doc/measurements/overhead.svg \
	doc/measurements/precision-live.csv \
	doc/measurements/precision.csv \
	doc/measurements/precision.svg \
	doc/measurements/rows-attribution.csv \
	doc/measurements/rows-cpufreq.csv \
	doc/measurements/rows-extract.csv \
	doc/measurements/rows-files.csv \
	doc/measurements/rows-fused.csv \
	doc/measurements/rows-instructions.csv \
	doc/measurements/rows-ipmi.csv \
	doc/measurements/rows-ledger.csv \
	doc/measurements/rows-merge.csv \
	doc/measurements/rows-overhead.csv \
	doc/measurements/rows-precision.csv \
	doc/measurements/rows-profile.csv \
	doc/measurements/rows-rapl.csv \
	doc/measurements/rows-replay.csv \
	doc/measurements/rows-soak.csv \
	doc/measurements/rows-tradeoff.csv \
	doc/measurements/soak-faults.csv \
	doc/measurements/soak-jobs.csv \
	doc/measurements/soak-nodes.csv \
	doc/measurements/soak.csv \
	doc/measurements/soak.svg \
	doc/measurements/tradeoff.csv \
	doc/measurements/tradeoff.svg

# What the same gave on another machine, for the page to set beside it.
measurementsxeondir = $(measurementsdir)/xeon
dist_measurementsxeon_DATA = \
	doc/measurements/xeon/machine.csv \
	doc/measurements/xeon/rows-overhead.csv
