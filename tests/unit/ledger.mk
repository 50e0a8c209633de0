# SPDX-License-Identifier: GPL-2.0-or-later
# Whose joules.
if HAVE_CHECK
LEDGER_TESTS = \
	tests/unit/test_daemon_steps \
	tests/unit/test_step_rows \
	tests/unit/test_step_rows_random \
	tests/unit/test_cores \
	tests/unit/test_idle_power \
	tests/unit/test_ledger \
	tests/unit/test_processes \
	tests/unit/test_request \
	tests/unit/test_row_queue \
	tests/unit/test_attribution \
	tests/unit/test_attribution_steps \
	tests/unit/test_usage \
	tests/unit/test_user_view \
	tests/unit/test_user_view_access
check_PROGRAMS += $(LEDGER_TESTS)
TESTS += $(LEDGER_TESTS)

tests_unit_test_step_rows_SOURCES = tests/unit/test_step_rows.c tests/unit/fail.h
tests_unit_test_step_rows_LDFLAGS = $(FAIL_CALLOC)

tests_unit_test_step_rows_random_SOURCES = tests/unit/test_step_rows_random.c \
	tests/unit/dice.h

tests_unit_test_daemon_steps_SOURCES = tests/unit/test_daemon_steps.c tests/unit/fake.h \
	tests/unit/fake_power.h

tests_unit_test_cores_SOURCES = tests/unit/test_cores.c tests/unit/fail.h
tests_unit_test_cores_LDFLAGS = $(FAIL_CALLOC)

tests_unit_test_idle_power_SOURCES = tests/unit/test_idle_power.c tests/unit/dice.h

tests_unit_test_ledger_SOURCES = tests/unit/test_ledger.c tests/unit/dice.h

tests_unit_test_processes_SOURCES = tests/unit/test_processes.c

tests_unit_test_request_SOURCES = tests/unit/test_request.c

tests_unit_test_row_queue_SOURCES = tests/unit/test_row_queue.c tests/unit/dice.h

tests_unit_test_attribution_steps_SOURCES = tests/unit/test_attribution_steps.c tests/unit/dice.h

tests_unit_test_attribution_SOURCES = tests/unit/test_attribution.c tests/unit/dice.h

tests_unit_test_usage_SOURCES = tests/unit/test_usage.c

tests_unit_test_user_view_SOURCES = tests/unit/test_user_view.c \
	tests/unit/userrows.h

tests_unit_test_user_view_access_SOURCES = tests/unit/test_user_view_access.c \
	tests/unit/fail.h tests/unit/userrows.h
tests_unit_test_user_view_access_LDFLAGS = $(FAIL_CALLOC)
endif
