# SPDX-License-Identifier: GPL-2.0-or-later
examplesdir = $(docdir)/examples
dist_examples_DATA = \
	etc/acct_gather-ipmi-lan.conf.example \
	etc/acct_gather-ipmi.conf.example \
	etc/acct_gather-profile.conf.example \
	etc/acct_gather.conf.example \
	etc/plugstack.conf.example \
	etc/slurm.conf.example
