# SPDX-License-Identifier: GPL-2.0-or-later
# The process beside slurmd that looks after frequencies of steps that died.
if HAVE_SLURM
joulelibexec_PROGRAMS += joule-cpufreq-keeper
endif
joule_cpufreq_keeper_SOURCES = tools/cpufreq-keeper/main.c \
	tools/cpufreq-keeper/log.c tools/cpufreq-keeper/log.h
joule_cpufreq_keeper_LDADD = $(LIBJOULE)
