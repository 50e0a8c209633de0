# SPDX-License-Identifier: GPL-2.0-or-later
powerstatesdir = $(pkgdatadir)/power-states
dist_powerstates_DATA = \
	etc/power-states/juropa.conf \
	etc/power-states/opteron.conf \
	etc/power-states/template.conf \
	etc/power-states/xeon.conf

examplesdir = $(docdir)/examples
dist_examples_DATA = \
	etc/acct_gather-ipmi-lan.conf.example \
	etc/acct_gather-ipmi.conf.example \
	etc/acct_gather-profile.conf.example \
	etc/acct_gather.conf.example \
	etc/plugstack.conf.example \
	etc/slurm.conf.example
