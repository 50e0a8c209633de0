# SPDX-License-Identifier: GPL-2.0-or-later
# Whose joules.
if HAVE_CHECK
LEDGER_TESTS = \
	tests/unit/test_book \
	tests/unit/test_charge \
	tests/unit/test_charge_random \
	tests/unit/test_cores \
	tests/unit/test_floor \
	tests/unit/test_ledger \
	tests/unit/test_processes \
	tests/unit/test_request \
	tests/unit/test_share \
	tests/unit/test_split \
	tests/unit/test_steps \
	tests/unit/test_usage \
	tests/unit/test_userview \
	tests/unit/test_userview_access
check_PROGRAMS += $(LEDGER_TESTS)
TESTS += $(LEDGER_TESTS)

tests_unit_test_charge_SOURCES = tests/unit/test_charge.c tests/unit/fail.h
tests_unit_test_charge_LDFLAGS = $(FAIL_CALLOC)

tests_unit_test_charge_random_SOURCES = tests/unit/test_charge_random.c \
	tests/unit/dice.h

tests_unit_test_book_SOURCES = tests/unit/test_book.c tests/unit/fake.h \
	tests/unit/fake_power.h

tests_unit_test_cores_SOURCES = tests/unit/test_cores.c tests/unit/fail.h
tests_unit_test_cores_LDFLAGS = $(FAIL_CALLOC)

tests_unit_test_floor_SOURCES = tests/unit/test_floor.c tests/unit/dice.h

tests_unit_test_ledger_SOURCES = tests/unit/test_ledger.c tests/unit/dice.h

tests_unit_test_processes_SOURCES = tests/unit/test_processes.c

tests_unit_test_request_SOURCES = tests/unit/test_request.c

tests_unit_test_share_SOURCES = tests/unit/test_share.c tests/unit/dice.h

tests_unit_test_steps_SOURCES = tests/unit/test_steps.c tests/unit/dice.h

tests_unit_test_split_SOURCES = tests/unit/test_split.c tests/unit/dice.h

tests_unit_test_usage_SOURCES = tests/unit/test_usage.c

tests_unit_test_userview_SOURCES = tests/unit/test_userview.c \
	tests/unit/userrows.h

tests_unit_test_userview_access_SOURCES = tests/unit/test_userview_access.c \
	tests/unit/fail.h tests/unit/userrows.h
tests_unit_test_userview_access_LDFLAGS = $(FAIL_CALLOC)
endif
