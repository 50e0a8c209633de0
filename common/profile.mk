# SPDX-License-Identifier: GPL-2.0-or-later
# Profiles: what slurmstepd writes, and in a library of its own all that takes
# libhdf5, which only tools and helper programs link.
noinst_LIBRARIES += libjoule_profile.a
LIBJOULE_PROFILE = libjoule_profile.a $(LIBJOULE)

libjoule_profile_a_SOURCES = \
	common/profile/config.c common/profile/config.h \
	common/profile/helper.c common/profile/helper.h \
	common/profile/log.c common/profile/log.h \
	common/profile/place.c common/profile/place.h \
	common/profile/queue.c common/profile/queue.h \
	common/profile/writer.c common/profile/writer.h

if HAVE_HDF5
noinst_LIBRARIES += libjoule_hdf5.a
endif
LIBJOULE_HDF5 = libjoule_hdf5.a $(LIBJOULE_PROFILE) $(HDF5_LIBS)

libjoule_hdf5_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
libjoule_hdf5_a_SOURCES = \
	common/profile/convert.c common/profile/convert.h \
	common/profile/hdf5_copy.c common/profile/hdf5_copy.h \
	common/profile/hdf5_driver.c common/profile/hdf5_driver.h \
	common/profile/hdf5_read.c common/profile/hdf5_read.h \
	common/profile/rowtype.c common/profile/rowtype.h \
	common/profile/sandbox.c common/profile/sandbox.h \
	common/profile/worker.c common/profile/worker.h
