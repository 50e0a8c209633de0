# SPDX-License-Identifier: GPL-2.0-or-later
# Writing profiles.  The calls to the disk are wrapped where a test makes them
# fail or wait.
if HAVE_CHECK
if HAVE_HDF5
STORE_TESTS = \
	tests/unit/test_convert \
	tests/unit/test_energy_series \
	tests/unit/test_log \
	tests/unit/test_place \
	tests/unit/test_writer
check_PROGRAMS += $(STORE_TESTS)
TESTS += $(STORE_TESTS)
endif
endif

if HAVE_HDF5
check_LIBRARIES += tests/unit/libprofiles.a
endif
tests_unit_libprofiles_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_libprofiles_a_SOURCES = \
	tests/unit/nodefile.c tests/unit/nodefile.h
if HAVE_CHECK
tests_unit_libprofiles_a_SOURCES += tests/unit/rows.c tests/unit/rows.h
endif
LIBPROFILES = tests/unit/libprofiles.a $(HDF5_LIBS) $(CHECK_LIBS)

STORE_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\"
STORE_LIBS = libjoulestore.a $(LIBPROFILES) tests/unit/libunit.a \
	$(LIBJOULE_HDF5)
WRAP_DISK = -Wl,--wrap=pwritev -Wl,--wrap=fdatasync

tests_unit_test_convert_SOURCES = tests/unit/test_convert.c
tests_unit_test_convert_CFLAGS = $(STORE_CFLAGS)
tests_unit_test_convert_LDFLAGS = -Wl,--wrap=fdatasync
tests_unit_test_convert_LDADD = $(STORE_LIBS)

tests_unit_test_log_SOURCES = tests/unit/test_log.c
tests_unit_test_log_CFLAGS = $(STORE_CFLAGS)
tests_unit_test_log_LDFLAGS = $(WRAP_DISK)
tests_unit_test_log_LDADD = $(STORE_LIBS)

tests_unit_test_place_SOURCES = tests/unit/test_place.c
tests_unit_test_place_CFLAGS = $(STORE_CFLAGS)
tests_unit_test_place_LDADD = $(STORE_LIBS)

tests_unit_test_writer_SOURCES = tests/unit/test_writer.c
tests_unit_test_writer_CFLAGS = $(STORE_CFLAGS)
tests_unit_test_writer_LDFLAGS = $(WRAP_DISK)
tests_unit_test_writer_LDADD = $(STORE_LIBS)
EXTRA_tests_unit_test_writer_DEPENDENCIES = joule-profile-convert

tests_unit_test_energy_series_SOURCES = tests/unit/test_energy_series.c \
	tests/unit/fake_power.h
tests_unit_test_energy_series_CFLAGS = $(STORE_CFLAGS)
tests_unit_test_energy_series_LDADD = $(STORE_LIBS)
