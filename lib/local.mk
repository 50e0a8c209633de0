# SPDX-License-Identifier: GPL-2.0-or-later
# What applications link; its license is that of its files (lib/COPYING).  It takes
# nothing of what Slurm loads.
libjouledir = $(libdir)
libjoule_PROGRAMS = lib/libjoule.so.1
# What is in the preloaded library, too.
LIBJOULE_OWN = lib/energy.c lib/regions.c lib/segment.h lib/user_rows.h
lib_libjoule_so_1_SOURCES = $(LIBJOULE_OWN) \
	lib/moneq.c \
	lib/mpi_world.c lib/mpi_world.h \
	lib/pmlib.c lib/pmlib_print.c
lib_libjoule_so_1_CPPFLAGS = $(AM_CPPFLAGS) -DJOULE_RUN_DIR=\"/run/slurm-joule\"
# It stays when a program closes it: threads that have called it end there.
lib_libjoule_so_1_LDFLAGS = $(LDFLAGS_MODULE) -Wl,-z,nodelete
lib_libjoule_so_1_LDADD = -ldl

# A Fortran module is compiled with its program, by the program's compiler.
include_HEADERS = lib/joule.h lib/joule.f90 lib/moneq.h lib/pmlib.h
pythondir = $(datadir)/slurm-joule/python
dist_python_DATA = lib/joule.py
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = lib/joule.pc lib/moneq.pc
# Named as in MonEQ, and out of the way.
moneqdir = $(includedir)/slurm-joule
moneq_HEADERS = lib/powermon_bgq.h

lib/joule.pc lib/moneq.pc: %.pc: %.pc.in Makefile
	$(AM_V_GEN)mkdir -p lib && sed -e 's|@prefix[@]|$(prefix)|' \
		-e 's|@includedir[@]|$(includedir)|' -e 's|@libdir[@]|$(libdir)|' \
		-e 's|@PACKAGE_VERSION[@]|$(PACKAGE_VERSION)|' \
		-e 's|@moneqdir[@]|$(moneqdir)|' -e 's|@pythondir[@]|$(pythondir)|' \
		$< > $@
CLEANFILES += lib/joule.pc lib/moneq.pc
EXTRA_DIST += lib/joule.pc.in lib/moneq.pc.in lib/COPYING

# spank_joule.so was named spank_joule_cpufreq.so: a plugstack.conf may say so.
install-data-hook:
	cd $(DESTDIR)$(libdir) && ln -sf libjoule.so.1 libjoule.so
if HAVE_SLURM
	cd $(DESTDIR)$(pluginsdir) && ln -sf spank_joule.so spank_joule_cpufreq.so
endif
uninstall-hook:
	rm -f $(DESTDIR)$(libdir)/libjoule.so \
		$(DESTDIR)$(pluginsdir)/spank_joule_cpufreq.so

# What is preloaded.  It has regions in itself, so that nothing else is needed to start
# a program; where the program has the library, too, both take what comes first.  It has
# not the names of MonEQ and pmlib, which may be a program's own.
hooksdir = $(libdir)/slurm-joule
hooks_PROGRAMS = lib/libjoule_hooks.so
lib_libjoule_hooks_so_SOURCES = lib/hooks.c lib/preload.c lib/preload.h \
	$(LIBJOULE_OWN)
lib_libjoule_hooks_so_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS)
lib_libjoule_hooks_so_LDFLAGS = $(LDFLAGS_MODULE) -Wl,-z,nodelete
lib_libjoule_hooks_so_LDADD = -ldl

# What is preloaded to record the calls of MPI, whichever library the program has.
hooks_PROGRAMS += lib/libjoule_waits.so
LIBJOULE_WAITS = lib/joule.h \
	lib/waits/calls.c lib/waits/calls.h \
	lib/waits/clock_sync.c lib/waits/clock_sync.h \
	lib/waits/comms.c lib/waits/comms.h \
	lib/waits/log.h \
	lib/waits/mpi_library.c lib/waits/mpi_library.h \
	lib/waits/program.c \
	lib/waits/recorder.c lib/waits/recorder.h \
	lib/waits/requests.c lib/waits/requests.h
lib_libjoule_waits_so_SOURCES = lib/preload.c lib/preload.h $(LIBJOULE_WAITS)
nodist_lib_libjoule_waits_so_SOURCES = lib/waits/mpi_calls.c
# Names of MPI are declared in no header of ours.
lib_libjoule_waits_so_CFLAGS = $(AM_CFLAGS) -Wno-missing-prototypes
lib_libjoule_waits_so_LDFLAGS = $(LDFLAGS_MODULE) -Wl,-z,nodelete
lib_libjoule_waits_so_LDADD = -ldl
$(lib_libjoule_waits_so_OBJECTS): lib/waits/mpi_calls.h
CLEANFILES += lib/waits/mpi_calls.c lib/waits/mpi_calls.h
EXTRA_DIST += lib/waits/calls.awk lib/waits/calls.txt
lib/waits/mpi_calls.h: lib/waits/calls.awk lib/waits/calls.txt
	$(AM_V_GEN)mkdir -p lib/waits && $(AWK) -f $(srcdir)/lib/waits/calls.awk \
		-v make=list $(srcdir)/lib/waits/calls.txt > $@.tmp && mv $@.tmp $@
lib/waits/mpi_calls.c: lib/waits/calls.awk lib/waits/calls.txt
	$(AM_V_GEN)mkdir -p lib/waits && $(AWK) -f $(srcdir)/lib/waits/calls.awk \
		-v make=code $(srcdir)/lib/waits/calls.txt > $@.tmp && mv $@.tmp $@

if HAVE_CHECK
REGION_TESTS = tests/unit/test_hooks tests/unit/test_joule_energy \
	tests/unit/test_moneq tests/unit/test_pmlib tests/unit/test_pmlib_client \
	tests/unit/test_pmlib_print tests/unit/test_regions \
	tests/unit/test_waits_calls tests/unit/test_waits_log
check_PROGRAMS += $(REGION_TESTS)
TESTS += $(REGION_TESTS)
tests_unit_test_hooks_SOURCES = tests/unit/test_hooks.c \
	tests/unit/regionstep.c tests/unit/regionstep.h lib/hooks.c lib/preload.c \
	lib/regions.c
tests_unit_test_hooks_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS)
tests_unit_test_hooks_LDADD = $(LIBJOULE_SERIES) $(LIBUNIT) -ldl
tests_unit_test_joule_energy_SOURCES = tests/unit/test_joule_energy.c \
	tests/unit/userrows.h lib/energy.c
tests_unit_test_joule_energy_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS)
tests_unit_test_moneq_SOURCES = tests/unit/test_moneq.c \
	tests/unit/regionstep.c tests/unit/regionstep.h lib/energy.c lib/moneq.c \
	lib/mpi_world.c lib/regions.c
tests_unit_test_moneq_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS) -I$(top_srcdir)/lib
tests_unit_test_moneq_LDADD = $(LIBJOULE_SERIES) $(LIBUNIT) -ldl
# With the real server.
tests_unit_test_pmlib_SOURCES = tests/unit/test_pmlib.c \
	tests/unit/userrows.h lib/pmlib.c lib/pmlib_print.c
tests_unit_test_pmlib_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\"
EXTRA_tests_unit_test_pmlib_DEPENDENCIES = joule-pmserver
tests_unit_test_pmlib_client_SOURCES = tests/unit/test_pmlib_client.c \
	lib/pmlib.c
tests_unit_test_pmlib_client_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS)
tests_unit_test_pmlib_print_SOURCES = tests/unit/test_pmlib_print.c \
	lib/pmlib.c lib/pmlib_print.c
tests_unit_test_pmlib_print_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS)
tests_unit_test_regions_SOURCES = tests/unit/test_regions.c \
	tests/unit/regionstep.c tests/unit/regionstep.h lib/regions.c
tests_unit_test_regions_CPPFLAGS = $(lib_libjoule_so_1_CPPFLAGS)
tests_unit_test_regions_LDADD = $(LIBJOULE_SERIES) $(LIBUNIT)
tests_unit_test_waits_calls_SOURCES = tests/unit/test_waits_calls.c \
	lib/preload.h $(LIBJOULE_WAITS) \
	tools/waits/recorded_log.c tools/waits/recorded_log.h
nodist_tests_unit_test_waits_calls_SOURCES = lib/waits/mpi_calls.c
tests_unit_test_waits_calls_CFLAGS = $(lib_libjoule_waits_so_CFLAGS)
tests_unit_test_waits_calls_LDADD = $(LIBUNIT) -ldl
$(tests_unit_test_waits_calls_OBJECTS): lib/waits/mpi_calls.h
tests_unit_test_waits_log_SOURCES = tests/unit/test_waits_log.c \
	tests/unit/dice.h lib/waits/recorder.c lib/waits/requests.c \
	tools/waits/recorded_log.c tools/waits/recorded_log.h
tests_unit_test_waits_log_LDFLAGS = -Wl,--wrap=pwrite
tests_unit_test_waits_log_LDADD = $(LIBUNIT)
endif
