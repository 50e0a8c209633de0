# SPDX-License-Identifier: GPL-2.0-or-later
# Profile files: their reader, the merge and what is made of them.
if HAVE_HDF5
if HAVE_CHECK
SH5UTIL_TESTS = \
	tests/unit/test_merge \
	tests/unit/test_sh5util \
	tests/unit/test_store_copy \
	tests/unit/test_outline \
	tests/unit/test_typeencode \
	tests/unit/test_windows \
	tests/unit/test_store_read
check_PROGRAMS += $(SH5UTIL_TESTS)
TESTS += $(SH5UTIL_TESTS)

SH5UTIL_TEST_LIBS = $(LIBSH5UTIL) $(LIBJOULE_HDF5) $(LIBPROFILES)

tests_unit_test_merge_SOURCES = tests/unit/test_merge.c
tests_unit_test_merge_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_merge_LDADD = libjoulestore.a $(SH5UTIL_TEST_LIBS)

tests_unit_test_sh5util_SOURCES = tests/unit/test_sh5util.c
tests_unit_test_sh5util_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_sh5util_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_store_copy_SOURCES = tests/unit/test_store_copy.c
tests_unit_test_store_copy_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_store_copy_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_outline_SOURCES = tests/unit/test_outline.c
tests_unit_test_outline_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_outline_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_typeencode_SOURCES = tests/unit/test_typeencode.c
tests_unit_test_typeencode_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_typeencode_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_windows_SOURCES = tests/unit/test_windows.c
tests_unit_test_windows_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_windows_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_store_read_SOURCES = tests/unit/test_store_read.c
tests_unit_test_store_read_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_store_read_LDADD = $(SH5UTIL_TEST_LIBS)
endif

# For scripts.
check_PROGRAMS += tests/unit/makenode
tests_unit_makenode_SOURCES = tests/unit/makenode.c
tests_unit_makenode_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_makenode_LDADD = $(LIBPROFILES)

check_PROGRAMS += tests/fuzz/fuzz_outline tests/fuzz/fuzz_store
tests_fuzz_fuzz_outline_SOURCES = tests/fuzz/fuzz_outline.c $(FUZZ_COMMON)
tests_fuzz_fuzz_outline_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_fuzz_fuzz_outline_LDADD = $(LIBJOULE_HDF5)
tests_fuzz_fuzz_store_SOURCES = tests/fuzz/fuzz_store.c $(FUZZ_COMMON)
tests_fuzz_fuzz_store_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_fuzz_fuzz_store_LDADD = $(LIBJOULE_HDF5)

dist_check_SCRIPTS += tests/fuzz/run-fuzz-store.sh tests/system/test_sh5util.sh
TESTS += tests/fuzz/run-fuzz-store.sh
endif
