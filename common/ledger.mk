# SPDX-License-Identifier: GPL-2.0-or-later
# Whose joules: doc/ledger.md.
libjoule_a_SOURCES += \
	common/meter/apportion.c \
	common/meter/floor.c common/meter/floor.h \
	common/meter/split.c common/meter/split.h \
	common/meter/steps.c \
	common/board/charge.c common/board/charge.h \
	common/board/jobs.c common/board/jobs.h \
	common/board/ledger.c common/board/ledger.h \
	common/board/ledger_file.c common/board/ledger_file.h \
	common/board/nodedir.c common/board/nodedir.h \
	common/board/request.c \
	common/board/stake.c common/board/stake.h \
	common/board/userfile.c common/board/userfile.h \
	common/board/userview.c common/board/userview.h \
	common/source/cores.c common/source/cores.h \
	common/cgroup/busy.c common/cgroup/busy.h \
	common/cgroup/hierarchy.c common/cgroup/hierarchy.h \
	common/cgroup/processes.c common/cgroup/processes.h \
	common/cgroup/usage.c common/cgroup/usage.h \
	common/sampler/book.c common/sampler/book.h \
	common/sampler/clerk.c common/sampler/clerk.h
