# SPDX-License-Identifier: GPL-2.0-or-later
# Plugins export exactly what Slurm looks up, are not linked with libslurm
# (the host has it) and stay mapped over 22.05's dlclose at a reconfigure.
PLUGIN_LDFLAGS = -module -avoid-version -shared -Wl,-z,nodelete -Wl,-z,lazy
ENERGY_LDFLAGS = $(PLUGIN_LDFLAGS) \
	-export-symbols-regex '^(plugin_(name|type|version)|init|fini|acct_gather_energy_p_.*)$$'
ENERGY_SOURCES = \
	plugins/slurm_abi/conf.c plugins/slurm_abi/conf.h \
	plugins/slurm_abi/energy.c plugins/slurm_abi/energy.h \
	plugins/slurm_abi/host.c plugins/slurm_abi/host.h \
	plugins/slurm_abi/registration.c plugins/slurm_abi/registration.h \
	plugins/slurm_abi/step.c plugins/slurm_abi/step.h \
	plugins/slurm_abi/step_layout.c plugins/slurm_abi/step_layout.h \
	plugins/slurm_abi/series.c plugins/slurm_abi/series.h \
	plugins/slurm_abi/slurm_abi.h

if HAVE_SLURM
plugins_LTLIBRARIES += \
	acct_gather_energy_joule_fused.la \
	acct_gather_energy_joule_ipmi.la \
	acct_gather_energy_joule_rapl.la
endif
acct_gather_energy_joule_rapl_la_SOURCES = $(ENERGY_SOURCES) \
	plugins/acct_gather_energy/joule_rapl/acct_gather_energy_joule_rapl.c
acct_gather_energy_joule_rapl_la_LDFLAGS = $(ENERGY_LDFLAGS)
acct_gather_energy_joule_rapl_la_LIBADD = libjoule.la

acct_gather_energy_joule_fused_la_SOURCES = $(ENERGY_SOURCES) \
	plugins/acct_gather_energy/joule_fused/acct_gather_energy_joule_fused.c
acct_gather_energy_joule_fused_la_LDFLAGS = $(ENERGY_LDFLAGS)
acct_gather_energy_joule_fused_la_LIBADD = libjoule.la

# Not linked with FreeIPMI, and built without it: the reader process has it.
acct_gather_energy_joule_ipmi_la_SOURCES = $(ENERGY_SOURCES) \
	plugins/acct_gather_energy/joule_ipmi/acct_gather_energy_joule_ipmi.c
acct_gather_energy_joule_ipmi_la_LDFLAGS = $(ENERGY_LDFLAGS)
acct_gather_energy_joule_ipmi_la_LIBADD = libjoule.la
