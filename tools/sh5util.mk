# SPDX-License-Identifier: GPL-2.0-or-later
# Slurm has a program of this name, in /usr/bin: whichever comes first in PATH.
if HAVE_HDF5
bin_PROGRAMS += tools/sh5util/sh5util
endif
tools_sh5util_sh5util_SOURCES = tools/sh5util/sh5util.c
tools_sh5util_sh5util_LDADD = $(LIBSH5UTIL)

# All but main.
if HAVE_HDF5
noinst_LIBRARIES += tools/sh5util/libsh5util.a
endif
LIBSH5UTIL = tools/sh5util/libsh5util.a tools/joule/libcommand.a $(LIBJOULE_HDF5)
tools_sh5util_libsh5util_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tools_sh5util_libsh5util_a_SOURCES = \
	tools/sh5util/cells.c tools/sh5util/cells.h \
	tools/sh5util/cursor.c tools/sh5util/cursor.h \
	tools/sh5util/extract.c tools/sh5util/extract.h \
	tools/sh5util/extraction.c tools/sh5util/extraction.h \
	tools/sh5util/item.c \
	tools/sh5util/jobid.c tools/sh5util/jobid.h \
	tools/sh5util/list.c \
	tools/sh5util/merge.c tools/sh5util/merge.h \
	tools/sh5util/number.c tools/sh5util/number.h \
	tools/sh5util/options.c tools/sh5util/options.h \
	tools/sh5util/outfile.c tools/sh5util/outfile.h \
	tools/sh5util/plan.c tools/sh5util/plan.h \
	tools/sh5util/profiledir.c tools/sh5util/profiledir.h \
	tools/sh5util/progress.c tools/sh5util/progress.h \
	tools/sh5util/resolve.c tools/sh5util/resolve.h \
	tools/sh5util/say.c tools/sh5util/say.h \
	tools/sh5util/select.c tools/sh5util/select.h \
	tools/sh5util/sources.c tools/sh5util/sources.h \
	tools/sh5util/totals.c tools/sh5util/totals.h
