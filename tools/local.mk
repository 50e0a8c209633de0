# SPDX-License-Identifier: GPL-2.0-or-later
# Commands: they know libjoule and no Slurm.
bin_PROGRAMS += tools/joule/joule

# All but main and what is told where the plugins are.
noinst_LIBRARIES += tools/joule/libcommand.a
LIBCOMMAND = tools/joule/libcommand.a $(LIBJOULE_PROFILE)
tools_joule_libcommand_a_SOURCES = \
	tools/joule/bmc.c \
	tools/joule/bmc_judge.c \
	tools/joule/command.c tools/joule/command.h \
	tools/joule/cpufreq.c \
	tools/joule/finding.c tools/joule/finding.h \
	tools/joule/json.c tools/joule/json.h \
	tools/joule/ledger_command.c tools/joule/ledger_command.h \
	tools/joule/ledger_json.c \
	tools/joule/ledger_text.c \
	tools/joule/ledger_view.c \
	tools/joule/node.c \
	tools/joule/probe.c tools/joule/probe.h \
	tools/joule/report_json.c \
	tools/joule/report_text.c \
	tools/joule/probe_sensor.c \
	tools/joule/attribution_check.c \
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

# Slurm has a program of this name, in /usr/bin: whichever comes first in PATH.
if HAVE_HDF5
bin_PROGRAMS += tools/sh5util/sh5util
endif
tools_sh5util_sh5util_SOURCES = tools/sh5util/sh5util.c
tools_sh5util_sh5util_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tools_sh5util_sh5util_LDADD = $(LIBSH5UTIL)

# All but main.
if HAVE_HDF5
noinst_LIBRARIES += tools/sh5util/libsh5util.a
endif
LIBSH5UTIL = tools/sh5util/libsh5util.a tools/joule/libcommand.a $(LIBJOULE_HDF5)
tools_sh5util_libsh5util_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tools_sh5util_libsh5util_a_SOURCES = \
	tools/sh5util/cells.c tools/sh5util/cells.h \
	tools/sh5util/extract.c tools/sh5util/extract.h \
	tools/sh5util/item.c \
	tools/sh5util/jobid.c tools/sh5util/jobid.h \
	tools/sh5util/merge.c tools/sh5util/merge.h \
	tools/sh5util/options.c tools/sh5util/options.h \
	tools/sh5util/outfile.c tools/sh5util/outfile.h \
	tools/sh5util/jobtables.c tools/sh5util/jobtables.h \
	tools/sh5util/resolve.c tools/sh5util/resolve.h \
	tools/sh5util/say.c tools/sh5util/say.h \
	tools/sh5util/sources.c tools/sh5util/sources.h

# joule waits; what reads traces only where libotf2 is.
noinst_LIBRARIES += tools/waits/libwaits.a
LIBWAITS = tools/waits/libwaits.a tools/joule/libcommand.a $(LIBJOULE) $(OTF2_LIBS)
tools_waits_libwaits_a_CPPFLAGS = $(AM_CPPFLAGS) $(OTF2_CFLAGS)
tools_waits_libwaits_a_SOURCES = \
	tools/waits/trace_archive.c tools/waits/trace_archive.h \
	tools/waits/recorded_log.c tools/waits/recorded_log.h \
	tools/waits/definitions.c tools/waits/definitions.h \
	tools/waits/machine_states.c tools/waits/machine_states.h \
	tools/waits/scratch.c tools/waits/scratch.h \
	tools/waits/totals.c tools/waits/totals.h
$(tools_waits_libwaits_a_OBJECTS): lib/waits/mpi_calls.h
if HAVE_OTF2
tools_waits_libwaits_a_SOURCES += \
	tools/waits/trace_copy.c tools/waits/trace_copy.h \
	tools/waits/trace_definitions.c tools/waits/trace_definitions.h \
	tools/waits/trace_libotf2.c tools/waits/trace_libotf2.h \
	tools/waits/trace_reader.c tools/waits/trace_reader.h
else
EXTRA_DIST += tools/waits/trace_copy.c tools/waits/trace_copy.h \
	tools/waits/trace_definitions.c tools/waits/trace_definitions.h \
	tools/waits/trace_libotf2.c tools/waits/trace_libotf2.h \
	tools/waits/trace_reader.c tools/waits/trace_reader.h
endif

# Archives that tests and benchmarks write.
TRACEFILE = tests/unit/tracefile.c tests/unit/tracefile.h
EXTRA_DIST += $(TRACEFILE)
if HAVE_OTF2
if HAVE_HDF5
if HAVE_CHECK
check_PROGRAMS += tests/unit/test_trace_archive tests/unit/test_trace_reader \
	tests/unit/test_waits
TESTS += tests/unit/test_trace_archive tests/unit/test_trace_reader \
	tests/unit/test_waits
endif
endif
endif
# The command itself, which reads profiles, too.
WAITS_COMMAND = tools/report/nodes.c tools/report/nodes.h \
	tools/report/timeline.c tools/report/timeline.h \
	tools/report/wait_profile.c tools/report/wait_profile.h \
	tools/report/waits.c tools/report/waits.h \
	tools/report/paraver.c tools/report/paraver.h \
	tools/report/waits_hdf5.c \
	tools/report/waits_marked.c tools/report/waits_paraver.c \
	tools/report/waits_page.c tools/report/waits_print.c \
	tools/report/waits_slack.c
tests_unit_test_trace_archive_SOURCES = tests/unit/test_trace_archive.c
tests_unit_test_trace_archive_CPPFLAGS = $(joule_report_CPPFLAGS)
tests_unit_test_trace_archive_LDADD = $(LIBWAITS) $(LIBUNIT)
tests_unit_test_trace_reader_SOURCES = tests/unit/test_trace_reader.c \
	tests/unit/dice.h $(TRACEFILE) $(WAITS_COMMAND)
tests_unit_test_trace_reader_CPPFLAGS = $(joule_report_CPPFLAGS)
tests_unit_test_trace_reader_LDADD = tools/waits/libwaitspage.a $(LIBWAITS) $(LIBSH5UTIL) $(LIBUNIT)
tests_unit_test_waits_SOURCES = tests/unit/test_waits.c $(TRACEFILE) \
	$(WAITS_COMMAND)
tests_unit_test_waits_CPPFLAGS = $(joule_report_CPPFLAGS) \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
tests_unit_test_waits_LDADD = tools/waits/libwaitspage.a $(LIBWAITS) $(LIBSH5UTIL) $(LIBPROFILES) $(LIBUNIT)

# Commands of joule that read profiles and traces; joule starts it.
if HAVE_HDF5
joulelibexec_PROGRAMS += joule-report

joule_report_SOURCES = \
	tools/report/moneq.c tools/report/moneq.h \
	tools/report/moneq_reduce.c \
	tools/report/region_energy.c tools/report/region_energy.h \
	tools/report/regions.c \
	tools/report/report.c tools/report/report.h \
	tools/report/names.c tools/report/names.h \
	tools/report/trace.c tools/report/trace.h \
	tools/report/trace_chrome.c \
	tools/report/trace_events.c \
	tools/report/trace_otf2.c \
	tools/report/trace_paraver.c \
	$(WAITS_COMMAND)
joule_report_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS) $(OTF2_CFLAGS) \
	-DJOULE_POWER_STATES_DIR=\"$(powerstatesdir)\"
joule_report_LDADD = tools/waits/libwaitspage.a $(LIBWAITS) $(LIBSH5UTIL) $(OTF2_LIBS)

if HAVE_CHECK
check_PROGRAMS += tests/unit/test_trace
TESTS += tests/unit/test_trace
endif
tests_unit_test_trace_SOURCES = tests/unit/test_trace.c \
	tools/joule/text.c tools/report/names.c \
	tools/report/moneq.c tools/report/moneq_reduce.c \
	tools/report/paraver.c \
	tools/report/trace_chrome.c tools/report/trace_events.c \
	tools/report/trace_paraver.c
tests_unit_test_trace_CPPFLAGS = $(joule_report_CPPFLAGS)
tests_unit_test_trace_LDADD = $(LIBSH5UTIL) $(CHECK_LIBS)
endif

if HAVE_CHECK
check_PROGRAMS += tests/unit/test_region_energy
TESTS += tests/unit/test_region_energy
tests_unit_test_region_energy_SOURCES = tests/unit/test_region_energy.c \
	tests/unit/dice.h tools/report/region_energy.c
endif

# The server for pmlib's clients; joule starts it.
joulelibexec_PROGRAMS += joule-pmserver
joule_pmserver_SOURCES = tools/pmserver/pmserver.c
joule_pmserver_LDADD = $(LIBPMSERVER) tools/joule/libcommand.a $(LIBJOULE)

noinst_LIBRARIES += tools/pmserver/libpmserver.a
LIBPMSERVER = tools/pmserver/libpmserver.a
tools_pmserver_libpmserver_a_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS)
tools_pmserver_libpmserver_a_SOURCES = \
	lib/energy.c \
	tools/pmserver/counter.c tools/pmserver/counter.h \
	tools/pmserver/device.c tools/pmserver/device.h \
	tools/pmserver/peer.c tools/pmserver/peer.h \
	tools/pmserver/reply.c tools/pmserver/reply.h \
	tools/pmserver/request.c tools/pmserver/request.h \
	tools/pmserver/server.c tools/pmserver/server.h

if HAVE_CHECK
check_PROGRAMS += tests/unit/test_pmserver
TESTS += tests/unit/test_pmserver
tests_unit_test_pmserver_SOURCES = tests/unit/test_pmserver.c
tests_unit_test_pmserver_LDADD = $(LIBPMSERVER) $(LIBUNIT)
endif

# What `joule waits` finds, for others to show: a page, from C strings of HTML, style and
# script, and a profile for CubeGUI.
noinst_LIBRARIES += tools/waits/libwaitspage.a
LIBWAITSPAGE = tools/waits/libwaitspage.a $(LIBCOMMAND)
tools_waits_libwaitspage_a_SOURCES = tools/waits/cubex.c tools/waits/cubex.h \
	tools/waits/page.c tools/waits/page.h
$(tools_waits_libwaitspage_a_OBJECTS): tools/waits/page_text.h
CLEANFILES += tools/waits/page_text.h
PAGE_FILES = tools/waits/page/page.html tools/waits/page/page.css \
	tools/waits/page/page.js
EXTRA_DIST += tools/waits/page.awk $(PAGE_FILES)
tools/waits/page_text.h: tools/waits/page.awk $(PAGE_FILES)
	$(AM_V_GEN)mkdir -p tools/waits && page=$(srcdir)/tools/waits/page && \
		LC_ALL=C $(AWK) -f $$page.awk -v folder=$$page \
		-v style=`sha256sum < $$page/page.css | cut -c -64` \
		-v script=`sha256sum < $$page/page.js | cut -c -64` \
		> $@.tmp && mv $@.tmp $@

if HAVE_CHECK
check_PROGRAMS += tests/unit/test_waits_page
TESTS += tests/unit/test_waits_page
tests_unit_test_waits_page_SOURCES = tests/unit/test_waits_page.c \
	tests/unit/samplepage.c tests/unit/samplepage.h
tests_unit_test_waits_page_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
tests_unit_test_waits_page_LDFLAGS = $(FAIL_CALLOC)
tests_unit_test_waits_page_LDADD = $(LIBWAITSPAGE) $(LIBUNIT)
EXTRA_DIST += tests/unit/checkcubex.py tests/unit/checkpage.py
endif
# Sample pages for tests/system/test_waits_page.sh.
check_PROGRAMS += tests/unit/makepage
tests_unit_makepage_SOURCES = tests/unit/makepage.c \
	tests/unit/samplepage.c tests/unit/samplepage.h
tests_unit_makepage_LDADD = $(LIBWAITSPAGE)

# What slurmstepd starts at the end of a step that is profiled.
if HAVE_HDF5
joulelibexec_PROGRAMS += joule-profile-convert

joule_profile_convert_SOURCES = tools/profile-convert/profile_convert.c
joule_profile_convert_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
joule_profile_convert_LDADD = $(LIBJOULE_HDF5)
endif

# The process that FreeIPMI runs in.  What knows it is in none of the libraries.
if HAVE_FREEIPMI
joulelibexec_PROGRAMS += joule-ipmi-reader

joule_ipmi_reader_SOURCES = \
	common/sensors/ipmi.c common/sensors/ipmi.h \
	common/sensors/ipmi_link.c common/sensors/ipmi_link.h \
	tools/ipmi-reader/harden.c tools/ipmi-reader/harden.h \
	tools/ipmi-reader/ipmi_reader.c
joule_ipmi_reader_CFLAGS = $(AM_CFLAGS) $(FREEIPMI_CFLAGS)
joule_ipmi_reader_LDADD = $(LIBJOULE) $(FREEIPMI_LIBS)
endif

# The process beside slurmd that looks after frequencies of steps that died.
if HAVE_SLURM
joulelibexec_PROGRAMS += joule-cpufreq-keeper
endif
joule_cpufreq_keeper_SOURCES = tools/cpufreq-keeper/cpufreq_keeper.c
joule_cpufreq_keeper_LDADD = $(LIBJOULE)
