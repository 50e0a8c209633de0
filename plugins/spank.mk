# SPDX-License-Identifier: GPL-2.0-or-later
# SPANK plugins; PLUGIN_LDFLAGS is in local.mk.
SPANK_LDFLAGS = $(PLUGIN_LDFLAGS) \
	-export-symbols-regex '^(plugin_(name|type|version)|spank_plugin_version|slurm_spank_.*)$$'

if HAVE_SLURM
plugins_LTLIBRARIES += spank_joule_cpufreq.la
endif
spank_joule_cpufreq_la_SOURCES = \
	plugins/slurm_abi/host.c plugins/slurm_abi/host.h \
	plugins/slurm_abi/slurm_abi.h \
	plugins/spank/joule_cpufreq/core.c plugins/spank/joule_cpufreq/core.h \
	plugins/spank/joule_cpufreq/logpath.c \
	plugins/spank/joule_cpufreq/logpath.h \
	plugins/spank/joule_cpufreq/options.c \
	plugins/spank/joule_cpufreq/options.h \
	plugins/spank/joule_cpufreq/series.c \
	plugins/spank/joule_cpufreq/series.h \
	plugins/spank/joule_cpufreq/spank_joule_cpufreq.c \
	plugins/spank/joule_cpufreq/step.c plugins/spank/joule_cpufreq/step.h
spank_joule_cpufreq_la_LDFLAGS = $(SPANK_LDFLAGS)
spank_joule_cpufreq_la_LIBADD = libjoule.la
