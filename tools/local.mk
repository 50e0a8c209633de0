# SPDX-License-Identifier: GPL-2.0-or-later
# Commands: they know libjoule and no Slurm.
bin_PROGRAMS += tools/joule/joule

# All but main and what is told where the plugins are.
noinst_LIBRARIES += tools/joule/libcommand.a
LIBCOMMAND = tools/joule/libcommand.a $(LIBJOULE_PROFILE)
tools_joule_libcommand_a_SOURCES = \
	tools/joule/bmc.c tools/joule/bmc.h \
	tools/joule/bmc_judge.c \
	tools/joule/confcheck.h \
	tools/joule/cpufreq.c tools/joule/cpufreq.h \
	tools/joule/cpufreq_report.c \
	tools/joule/finding.c tools/joule/finding.h \
	tools/joule/gathercheck.c tools/joule/gathercheck.h \
	tools/joule/json.c tools/joule/json.h \
	tools/joule/ledger_command.c tools/joule/ledger_command.h \
	tools/joule/ledger_json.c \
	tools/joule/ledger_text.c \
	tools/joule/ledger_view.c \
	tools/joule/node.c tools/joule/node.h \
	tools/joule/probe.c tools/joule/probe.h \
	tools/joule/report.c tools/joule/report.h \
	tools/joule/report_bmc.c \
	tools/joule/report_json.c \
	tools/joule/report_text.c \
	tools/joule/probe_sensor.c tools/joule/probe_sensor.h \
	tools/joule/attribution_check.c tools/joule/attribution_check.h \
	tools/joule/slurmconf.c tools/joule/slurmconf.h \
	tools/joule/text.c tools/joule/text.h

tools_joule_joule_SOURCES = tools/joule/joule.c tools/joule/confcheck.c
tools_joule_joule_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_PLUGIN_DIR=\"$(pluginsdir)\"
tools_joule_joule_LDADD = $(LIBCOMMAND)

if HAVE_CHECK
check_PROGRAMS += tests/unit/test_joule_ledger tests/unit/test_probe
TESTS += tests/unit/test_joule_ledger tests/unit/test_probe
tests_unit_test_probe_SOURCES = tests/unit/test_probe.c tools/joule/confcheck.c
tests_unit_test_probe_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_PLUGIN_DIR=\"/opt/slurm-joule\" \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
tests_unit_test_probe_LDADD = $(LIBCOMMAND) $(LIBUNIT)

tests_unit_test_joule_ledger_SOURCES = tests/unit/test_joule_ledger.c \
	tools/joule/confcheck.c
tests_unit_test_joule_ledger_CPPFLAGS = $(tests_unit_test_probe_CPPFLAGS)
tests_unit_test_joule_ledger_LDADD = $(LIBCOMMAND) $(LIBUNIT)
endif
EXTRA_DIST += tools/demo
