# SPDX-License-Identifier: GPL-2.0-or-later
noinst_LTLIBRARIES += libjoule.la

libjoule_la_SOURCES = \
	common/base/clock.c common/base/clock.h \
	common/base/conffile.c common/base/conffile.h \
	common/base/error.c common/base/error.h \
	common/base/file.c common/base/file.h \
	common/base/option.c common/base/option.h \
	common/base/parse.c common/base/parse.h \
	common/source/cpuinfo.c common/source/cpuinfo.h \
	common/source/rapl.c common/source/rapl.h \
	common/source/rapl_row.c common/source/rapl_row.h \
	common/source/ipmi_config.h common/source/ipmi_wire.h \
	common/source/source.c common/source/source.h \
	common/source/topology.c common/source/topology.h \
	common/meter/counter.c common/meter/counter.h \
	common/meter/integrator.h \
	common/meter/tally.c common/meter/tally.h \
	common/board/account.c common/board/account.h \
	common/board/board.c common/board/board.h \
	common/sampler/config.c common/sampler/config.h \
	common/sampler/reader.h \
	common/sampler/sampler.c common/sampler/sampler.h
