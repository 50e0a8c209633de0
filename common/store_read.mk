# SPDX-License-Identifier: GPL-2.0-or-later
# Reading profile files and writing job files: for tools and tests.  Not part
# of libjoule, which the plugins link: slurmd needs no libhdf5 for it.
if HAVE_HDF5
noinst_LIBRARIES += libjoule_store_read.a
endif
LIBJOULE_READ = libjoule_store_read.a $(LIBJOULE) $(HDF5_LIBS) -lz

libjoule_store_read_a_SOURCES = \
	common/store/btree.c common/store/btree.h \
	common/store/chunkmap.c common/store/chunkmap.h \
	common/store/copy.c common/store/copy.h \
	common/store/filedriver.c common/store/filedriver.h \
	common/store/fletcher.c common/store/fletcher.h \
	common/store/hdferror.c common/store/hdferror.h \
	common/store/headers.c common/store/headers.h \
	common/store/layout.c common/store/layout.h \
	common/store/little.h \
	common/store/newheader.c common/store/newheader.h \
	common/store/newtable.c common/store/newtable.h \
	common/store/object.c common/store/object.h \
	common/store/outline.c common/store/outline.h \
	common/store/outlinewalk.c common/store/outlinewalk.h \
	common/store/plaintype.c common/store/plaintype.h \
	common/store/pool.c common/store/pool.h \
	common/store/readattr.c common/store/readattr.h \
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
	common/store/unfilter.c common/store/unfilter.h \
	common/store/visitor.h \
	common/store/windows.c common/store/windows.h
libjoule_store_read_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
