# SPDX-License-Identifier: GPL-2.0-or-later
# Plugins export exactly what Slurm looks up (JOULE_SLURM_EXPORT), are not linked
# with libslurm (the host has it) and stay mapped over 22.05's dlclose at a
# reconfigure.
LDFLAGS_PLUGIN = $(LDFLAGS_MODULE) -Wl,-z,nodelete -Wl,-z,lazy
ENERGY_SOURCES = \
	plugins/slurm_abi/conf.c plugins/slurm_abi/conf.h \
	plugins/slurm_abi/energy.c plugins/slurm_abi/energy.h \
	plugins/slurm_abi/host.c plugins/slurm_abi/host.h \
	plugins/slurm_abi/registration.c plugins/slurm_abi/registration.h \
	plugins/slurm_abi/slurm_step.c plugins/slurm_abi/slurm_step.h \
	plugins/slurm_abi/step_layout.c plugins/slurm_abi/step_layout.h \
	plugins/slurm_abi/slurm_series.c plugins/slurm_abi/slurm_series.h \
	plugins/slurm_abi/slurm_abi.h

if HAVE_SLURM
plugins_PROGRAMS += \
	plugins/acct_gather_energy_joule.so \
	plugins/acct_gather_energy_joule_fused.so \
	plugins/acct_gather_energy_joule_ipmi.so \
	plugins/acct_gather_energy_joule_rapl.so
endif
plugins_acct_gather_energy_joule_so_SOURCES = $(ENERGY_SOURCES) \
	plugins/acct_gather_energy/joule/acct_gather_energy_joule.c
plugins_acct_gather_energy_joule_so_LDFLAGS = $(LDFLAGS_PLUGIN)
plugins_acct_gather_energy_joule_so_LDADD = $(LIBJOULE)

plugins_acct_gather_energy_joule_rapl_so_SOURCES = $(ENERGY_SOURCES) \
	plugins/acct_gather_energy/joule_rapl/acct_gather_energy_joule_rapl.c
plugins_acct_gather_energy_joule_rapl_so_LDFLAGS = $(LDFLAGS_PLUGIN)
plugins_acct_gather_energy_joule_rapl_so_LDADD = $(LIBJOULE)

plugins_acct_gather_energy_joule_fused_so_SOURCES = $(ENERGY_SOURCES) \
	plugins/acct_gather_energy/joule_fused/acct_gather_energy_joule_fused.c
plugins_acct_gather_energy_joule_fused_so_LDFLAGS = $(LDFLAGS_PLUGIN)
plugins_acct_gather_energy_joule_fused_so_LDADD = $(LIBJOULE)

# Not linked with FreeIPMI, and built without it: the reader process has it.
plugins_acct_gather_energy_joule_ipmi_so_SOURCES = $(ENERGY_SOURCES) \
	plugins/acct_gather_energy/joule_ipmi/acct_gather_energy_joule_ipmi.c
plugins_acct_gather_energy_joule_ipmi_so_LDFLAGS = $(LDFLAGS_PLUGIN)
plugins_acct_gather_energy_joule_ipmi_so_LDADD = $(LIBJOULE)

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
plugins_acct_gather_profile_joule_hdf5_so_LDADD = $(LIBJOULE_SERIES)

# SPANK plugins; LDFLAGS_PLUGIN is in local.mk.
if HAVE_SLURM
plugins_PROGRAMS += plugins/spank_joule.so
endif
plugins_spank_joule_so_SOURCES = \
	plugins/slurm_abi/host.c plugins/slurm_abi/host.h \
	plugins/slurm_abi/slurm_abi.h \
	plugins/spank/joule/cpufreq_core.c \
	plugins/spank/joule/cpufreq_step.c \
	plugins/spank/joule/options.c \
	plugins/spank/joule/region_hooks.c \
	plugins/spank/joule/waits_option.c \
	plugins/spank/joule/spank_joule.c \
	plugins/spank/joule/spank_joule.h
plugins_spank_joule_so_LDFLAGS = $(LDFLAGS_PLUGIN)
plugins_spank_joule_so_LDADD = $(LIBJOULE)
