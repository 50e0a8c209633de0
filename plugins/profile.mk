# SPDX-License-Identifier: GPL-2.0-or-later
# The profile plugin; PLUGIN_LDFLAGS is in local.mk.
PROFILE_LDFLAGS = $(PLUGIN_LDFLAGS) \
	-export-symbols-regex '^(plugin_(name|type|version)|init|fini|acct_gather_profile_p_.*)$$'

if HAVE_SLURM
if HAVE_ZLIB
plugins_LTLIBRARIES += acct_gather_profile_joule_hdf5.la
endif
endif
acct_gather_profile_joule_hdf5_la_SOURCES = \
	plugins/slurm_abi/conf.c plugins/slurm_abi/conf.h \
	plugins/slurm_abi/host.c plugins/slurm_abi/host.h \
	plugins/slurm_abi/meter.c plugins/slurm_abi/meter.h \
	plugins/slurm_abi/profile.c plugins/slurm_abi/profile.h \
	plugins/slurm_abi/step.c plugins/slurm_abi/step.h \
	plugins/slurm_abi/step_layout.c plugins/slurm_abi/step_layout.h \
	plugins/slurm_abi/timers.c plugins/slurm_abi/timers.h \
	plugins/slurm_abi/slurm_abi.h \
	plugins/acct_gather_profile/joule_hdf5/acct_gather_profile_joule_hdf5.c
acct_gather_profile_joule_hdf5_la_LDFLAGS = $(PROFILE_LDFLAGS)
acct_gather_profile_joule_hdf5_la_LIBADD = libjoulestore.la libjoule.la
