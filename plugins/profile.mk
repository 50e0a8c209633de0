# SPDX-License-Identifier: GPL-2.0-or-later
# The profile plugin; LDFLAGS_PLUGIN is in local.mk.
if HAVE_SLURM
plugins_PROGRAMS += plugins/acct_gather_profile_joule_hdf5.so
endif
plugins_acct_gather_profile_joule_hdf5_so_SOURCES = \
	plugins/slurm_abi/conf.c plugins/slurm_abi/conf.h \
	plugins/slurm_abi/host.c plugins/slurm_abi/host.h \
	plugins/slurm_abi/series_input.c plugins/slurm_abi/series_input.h \
	plugins/slurm_abi/profile.c plugins/slurm_abi/profile.h \
	plugins/slurm_abi/slurm_step.c plugins/slurm_abi/slurm_step.h \
	plugins/slurm_abi/step_layout.c plugins/slurm_abi/step_layout.h \
	plugins/slurm_abi/timers.c plugins/slurm_abi/timers.h \
	plugins/slurm_abi/slurm_abi.h \
	plugins/acct_gather_profile/joule_hdf5/acct_gather_profile_joule_hdf5.c
plugins_acct_gather_profile_joule_hdf5_so_LDFLAGS = $(LDFLAGS_PLUGIN)
plugins_acct_gather_profile_joule_hdf5_so_LDADD = $(LIBJOULESTORE)
