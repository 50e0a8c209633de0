# SPDX-License-Identifier: GPL-2.0-or-later
if HAVE_FUSE3
check_PROGRAMS += tests/system/stuckfs
endif
tests_system_stuckfs_SOURCES = tests/system/stuckfs.c
tests_system_stuckfs_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
tests_system_stuckfs_LDADD = $(FUSE3_LIBS)

# Built by who asks for it.
EXTRA_PROGRAMS += tests/system/slowseries.so
tests_system_slowseries_so_SOURCES = tests/system/slowseries.c
tests_system_slowseries_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_system_slowseries_so_LDADD = -ldl

dist_check_SCRIPTS += tests/system/test_profile.sh \
	tests/system/test_profile_end.sh \
	tests/system/test_profile_loads.sh \
	tests/system/test_profile_rate.sh \
	tests/system/test_profile_stuck.sh \
	tests/system/test_fuzz_profile.sh \
	tests/system/test_sh5util_more.sh
EXTRA_DIST += tests/system/profile.sh
