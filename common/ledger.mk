# SPDX-License-Identifier: GPL-2.0-or-later
# Whose joules: doc/architecture.md.
libjoule_a_SOURCES += \
	common/energy/idle_power.c common/energy/idle_power.h \
	common/energy/attribution.c common/energy/attribution.h \
	common/daemon/step_rows.c common/daemon/step_rows.h \
	common/daemon/job_rows.c common/daemon/job_rows.h \
	common/node/ledger.c common/node/ledger.h \
	common/node/ledger_file.c common/node/ledger_file.h \
	common/node/node_dir.c common/node/node_dir.h \
	common/node/ledger_tickets.c \
	common/step/step_energy.c common/step/step_energy.h \
	common/node/user_file.c common/node/user_file.h \
	common/node/user_view.c common/node/user_view.h \
	common/sensors/cores.c common/sensors/cores.h \
	common/cgroup/busy.c common/cgroup/busy.h \
	common/cgroup/hierarchy.c common/cgroup/hierarchy.h \
	common/cgroup/processes.c common/cgroup/processes.h \
	common/cgroup/usage.c common/cgroup/usage.h \
	common/daemon/steps.c common/daemon/steps.h \
	common/daemon/tickets.c common/daemon/tickets.h
