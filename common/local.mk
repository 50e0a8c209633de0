# SPDX-License-Identifier: GPL-2.0-or-later
# Archives: of libjoule a plugin, a command or a test takes what it needs.  Whoever
# links one says $(LIBJOULE), which names what that needs, too.
noinst_LIBRARIES += libjoule.a
LIBJOULE = libjoule.a -lm

libjoule_a_SOURCES = \
	common/base/callfilter.c common/base/callfilter.h \
	common/base/clock.c common/base/clock.h \
	common/base/conffile.c common/base/conffile.h \
	common/base/error.c common/base/error.h \
	common/base/file.c common/base/file.h \
	common/base/hash.h \
	common/base/option.c common/base/option.h \
	common/base/parse.c common/base/parse.h \
	common/base/thread.c common/base/thread.h \
	common/source/cpuinfo.c common/source/cpuinfo.h \
	common/source/rapl.c common/source/rapl.h \
	common/source/rapl_row.c common/source/rapl_row.h \
	common/source/ipmi_answer.c common/source/ipmi_answer.h \
	common/source/ipmi_choice.c common/source/ipmi_choice.h \
	common/source/ipmi_config.c common/source/ipmi_config.h \
	common/source/ipmi_wire.c common/source/ipmi_wire.h \
	common/source/sdr.c common/source/sdr.h \
	common/source/source.c common/source/source.h \
	common/source/topology.c common/source/topology.h \
	common/meter/counter.c common/meter/counter.h \
	common/meter/fuse.c common/meter/fuse.h \
	common/meter/fused.c common/meter/fused.h \
	common/meter/integrator.c common/meter/integrator.h \
	common/meter/tally.c common/meter/tally.h \
	common/board/account.c common/board/account.h \
	common/board/board.c common/board/board.h \
	common/board/columns.c common/board/columns.h \
	common/board/share.c common/board/share.h \
	common/board/follow.c common/board/follow.h \
	common/sampler/bmc_open.c common/sampler/bmc_open.h \
	common/sampler/config.c common/sampler/config.h \
	common/sampler/config_ipmi.c \
	common/sampler/child.c common/sampler/child.h \
	common/sampler/fusion.c common/sampler/fusion.h \
	common/sampler/reader.c common/sampler/reader.h \
	common/sampler/sampler.c common/sampler/sampler.h \
	common/sampler/watch.c common/sampler/watch.h \
	common/store/config.c common/store/config.h
