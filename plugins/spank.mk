# SPDX-License-Identifier: GPL-2.0-or-later
# SPANK plugins; LDFLAGS_PLUGIN is in local.mk.
if HAVE_SLURM
plugins_PROGRAMS += plugins/spank_joule_cpufreq.so
endif
plugins_spank_joule_cpufreq_so_SOURCES = \
	plugins/slurm_abi/host.c plugins/slurm_abi/host.h \
	plugins/slurm_abi/slurm_abi.h \
	plugins/spank/joule_cpufreq/core.c plugins/spank/joule_cpufreq/core.h \
	plugins/spank/joule_cpufreq/logpath.c \
	plugins/spank/joule_cpufreq/logpath.h \
	plugins/spank/joule_cpufreq/cpufreq_options.c \
	plugins/spank/joule_cpufreq/cpufreq_options.h \
	plugins/spank/joule_cpufreq/cpufreq_series.c \
	plugins/spank/joule_cpufreq/cpufreq_series.h \
	plugins/spank/joule_cpufreq/spank_joule_cpufreq.c \
	plugins/spank/joule_cpufreq/cpufreq_step.c plugins/spank/joule_cpufreq/cpufreq_step.h
plugins_spank_joule_cpufreq_so_LDFLAGS = $(LDFLAGS_PLUGIN)
plugins_spank_joule_cpufreq_so_LDADD = $(LIBJOULE)
