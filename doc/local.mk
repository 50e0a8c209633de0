# SPDX-License-Identifier: GPL-2.0-or-later
dist_man_MANS += \
	doc/joule-acct_gather.conf.5 \
	doc/joule-cpufreq.7 \
	doc/joule.1 \
	doc/joule_region_begin.3 \
	doc/sh5util.1 \
	doc/slurm-joule.7

dist_doc_DATA = \
	README.md \
	NEWS.md \
	doc/admin-guide.md \
	doc/architecture.md \
	doc/hdf5-format.md \
	doc/measurements.md \
	doc/migration.md \
	doc/pmlib.md \
	doc/regions.md \
	doc/slurm-abi.md \
	doc/waits.md

measurementsdir = $(docdir)/measurements
dist_measurements_DATA = \
	doc/measurements/attribution.csv \
	doc/measurements/attribution.svg \
	doc/measurements/rows.csv
