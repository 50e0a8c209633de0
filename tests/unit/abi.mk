# SPDX-License-Identifier: GPL-2.0-or-later
# What is known of Slurm's private interface; libslurm stands for the host.
if HAVE_CHECK
if HAVE_SLURM
ABI_TESTS = tests/unit/test_node_name tests/unit/test_step_record \
	tests/unit/test_timers tests/unit/test_timers_changed
check_PROGRAMS += $(ABI_TESTS)
TESTS += $(ABI_TESTS)
endif
endif
tests_unit_test_step_record_SOURCES = tests/unit/test_step_record.c \
	tests/unit/dice.h \
	plugins/slurm_abi/host.c plugins/slurm_abi/host.h \
	plugins/slurm_abi/slurm_step.c plugins/slurm_abi/slurm_step.h \
	plugins/slurm_abi/step_layout.c plugins/slurm_abi/step_layout.h
tests_unit_test_step_record_LDADD = $(LIBUNIT) $(SLURM_LIBS)

# The test is the host.
tests_unit_test_node_name_SOURCES = tests/unit/test_node_name.c \
	plugins/slurm_abi/host.c plugins/slurm_abi/host.h
tests_unit_test_node_name_LDFLAGS = -rdynamic

# Looked up in the program itself; the other has three of them.
tests_unit_test_timers_SOURCES = tests/unit/test_timers.c \
	plugins/slurm_abi/timers.c plugins/slurm_abi/timers.h
tests_unit_test_timers_LDFLAGS = -rdynamic
tests_unit_test_timers_LDADD = $(LIBJOULE) $(CHECK_LIBS)
tests_unit_test_timers_changed_SOURCES = $(tests_unit_test_timers_SOURCES)
tests_unit_test_timers_changed_CFLAGS = $(AM_CFLAGS) -DTIMERS=3
tests_unit_test_timers_changed_LDFLAGS = -rdynamic
tests_unit_test_timers_changed_LDADD = $(LIBJOULE) $(CHECK_LIBS)
