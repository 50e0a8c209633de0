# SPDX-License-Identifier: GPL-2.0-or-later
# Reading profile files and writing job files: for tools and tests.  Not part
# of libjoule, which the plugins link.  What takes libhdf5 is in a library of
# its own: a module for sh5util, and for tests, which are linked with it.
if HAVE_HDF5
noinst_LIBRARIES += libjoule_store_read.a libjoule_hdf5.a
endif
LIBJOULE_READ = libjoule_store_read.a $(LIBJOULE) -lz
LIBJOULE_HDF5 = libjoule_store_read.a libjoule_hdf5.a $(LIBJOULE_READ) \
	$(HDF5_LIBS)

libjoule_store_read_a_SOURCES = \
	common/store/btree.c common/store/btree.h \
	common/store/chunkmap.c common/store/chunkmap.h \
	common/store/copy.c common/store/copy.h \
	common/store/fletcher.c common/store/fletcher.h \
	common/store/headers.c common/store/headers.h \
	common/store/layout.h common/store/libhdf5.h \
	common/store/little.h \
	common/store/newheader.c common/store/newheader.h \
	common/store/newtable.c common/store/newtable.h \
	common/store/object.c common/store/object.h \
	common/store/outline.c common/store/outline.h \
	common/store/outlinewalk.c common/store/outlinewalk.h \
	common/store/plaintype.c common/store/plaintype.h \
	common/store/pool.c common/store/pool.h \
	common/store/reader.c common/store/reader.h \
	common/store/record.c common/store/record.h \
	common/store/recordbody.h common/store/recordsend.c \
	common/store/rows.c common/store/rows.h \
	common/store/rowtype.c common/store/rowtype.h \
	common/store/sandbox.c common/store/sandbox.h \
	common/store/send.c common/store/send.h \
	common/store/spool.c common/store/spool.h \
	common/store/tableheader.c common/store/tableheader.h \
	common/store/tablesend.c common/store/tablesend.h \
	common/store/typecache.c common/store/typecache.h \
	common/store/typeencode.c common/store/typeencode.h \
	common/store/typeform.h \
	common/store/unfilter.c common/store/unfilter.h \
	common/store/visitor.h \
	common/store/windows.c common/store/windows.h

libjoule_hdf5_a_SOURCES = \
	common/libhdf5/filedriver.c common/libhdf5/filedriver.h \
	common/libhdf5/hdferror.c common/libhdf5/hdferror.h \
	common/libhdf5/hdffile.c common/libhdf5/hdffile.h \
	common/libhdf5/hdftable.c common/libhdf5/hdftable.h \
	common/libhdf5/linked.c \
	common/libhdf5/readattr.c common/libhdf5/readattr.h \
	common/libhdf5/readlayout.c common/libhdf5/readlayout.h \
	common/libhdf5/readtype.c common/libhdf5/readtype.h
libjoule_hdf5_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
