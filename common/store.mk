# SPDX-License-Identifier: GPL-2.0-or-later
# Writing HDF5 files: apart from libjoule, which needs no HDF5.  Whoever links
# it names libjoule.la behind it.
if HAVE_HDF5
noinst_LTLIBRARIES += libjoulestore.la
endif

libjoulestore_la_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS)
libjoulestore_la_LIBADD = $(HDF5_LIBS) -lz
libjoulestore_la_SOURCES = \
	common/store/attribute.c common/store/attribute.h \
	common/store/driver.c common/store/driver.h \
	common/store/energy.c common/store/energy.h \
	common/store/fletcher.c common/store/fletcher.h \
	common/store/image.c common/store/image.h \
	common/store/intake.c common/store/intake.h \
	common/store/nodefile.c common/store/nodefile.h \
	common/store/output.c common/store/output.h \
	common/store/pack.c common/store/pack.h \
	common/store/place.c common/store/place.h \
	common/store/punctual.c common/store/punctual.h \
	common/store/queue.c common/store/queue.h \
	common/store/table.c common/store/table.h \
	common/store/writer.c common/store/writer.h
