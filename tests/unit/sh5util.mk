# SPDX-License-Identifier: GPL-2.0-or-later
# Profile files: their reader, the merge and what is made of them.
if HAVE_HDF5
if HAVE_CHECK
SH5UTIL_TESTS = \
	tests/unit/test_hdf5_copy \
	tests/unit/test_hdf5_driver \
	tests/unit/test_hdf5_read \
	tests/unit/test_merge \
	tests/unit/test_sh5util \
	tests/unit/test_worker
check_PROGRAMS += $(SH5UTIL_TESTS)
TESTS += $(SH5UTIL_TESTS)

SH5UTIL_TEST_LIBS = $(LIBSH5UTIL) $(LIBPROFILES)

tests_unit_test_hdf5_copy_SOURCES = tests/unit/test_hdf5_copy.c
tests_unit_test_hdf5_copy_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_hdf5_copy_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_hdf5_driver_SOURCES = tests/unit/test_hdf5_driver.c
tests_unit_test_hdf5_driver_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_hdf5_driver_LDFLAGS = -Wl,--wrap=pwrite
tests_unit_test_hdf5_driver_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_hdf5_read_SOURCES = tests/unit/test_hdf5_read.c
tests_unit_test_hdf5_read_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_hdf5_read_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_merge_SOURCES = tests/unit/test_merge.c
tests_unit_test_merge_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_merge_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_sh5util_SOURCES = tests/unit/test_sh5util.c
tests_unit_test_sh5util_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_sh5util_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_worker_SOURCES = tests/unit/test_worker.c
tests_unit_test_worker_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_worker_LDADD = $(SH5UTIL_TEST_LIBS)
endif

# For scripts.
check_PROGRAMS += tests/unit/makenode
tests_unit_makenode_SOURCES = tests/unit/makenode.c
tests_unit_makenode_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_makenode_LDADD = $(LIBPROFILES)

check_PROGRAMS += tests/fuzz/fuzz_hdf5 tests/fuzz/fuzz_log
tests_fuzz_fuzz_hdf5_SOURCES = tests/fuzz/fuzz_hdf5.c $(FUZZ_COMMON)
tests_fuzz_fuzz_hdf5_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_fuzz_fuzz_hdf5_LDADD = $(LIBJOULE_HDF5)
tests_fuzz_fuzz_log_SOURCES = tests/fuzz/fuzz_log.c $(FUZZ_COMMON)
tests_fuzz_fuzz_log_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_fuzz_fuzz_log_LDADD = $(LIBJOULE_HDF5)

dist_check_SCRIPTS += tests/fuzz/run-fuzz-profile.sh tests/system/test_sh5util.sh
TESTS += tests/fuzz/run-fuzz-profile.sh
endif
