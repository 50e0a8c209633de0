# SPDX-License-Identifier: GPL-2.0-or-later
# Writing profiles, HDF5 files, without libhdf5.  Whoever links it says
# $(LIBJOULESTORE).
if HAVE_ZLIB
noinst_LIBRARIES += libjoulestore.a
endif
LIBJOULESTORE = libjoulestore.a $(LIBJOULE) -lz

libjoulestore_a_SOURCES = \
	common/store/chunktree.c common/store/chunktree.h \
	common/step/energy_series.c common/step/energy_series.h \
	common/store/fletcher.c common/store/fletcher.h \
	common/store/group.c common/store/group.h \
	common/store/image.c common/store/image.h \
	common/store/intake.c common/store/intake.h \
	common/store/little.h \
	common/store/newheader.c common/store/newheader.h \
	common/store/newtype.c common/store/newtype.h \
	common/store/nodefile.c common/store/nodefile.h \
	common/store/output.c common/store/output.h \
	common/store/pack.c common/store/pack.h \
	common/store/place.c common/store/place.h \
	common/step/pace.c common/step/pace.h \
	common/store/queue.c common/store/queue.h \
	common/store/table.c common/store/table.h \
	common/store/tableheader.c common/store/tableheader.h \
	common/store/writer.c common/store/writer.h
