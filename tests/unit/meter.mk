# SPDX-License-Identifier: GPL-2.0-or-later
# From the counter to the sampler.  calloc is wrapped where a test makes it
# fail.
if HAVE_CHECK
METER_TESTS = \
	tests/unit/test_node_energy \
	tests/unit/test_board \
	tests/unit/test_counter \
	tests/unit/test_lag_model \
	tests/unit/test_fused \
	tests/unit/test_fused_sensor \
	tests/unit/test_integrator \
	tests/unit/test_sampler \
	tests/unit/test_node_total
check_PROGRAMS += $(METER_TESTS)
TESTS += $(METER_TESTS)

FAIL_CALLOC = -Wl,--wrap=calloc

tests_unit_test_counter_SOURCES = tests/unit/test_counter.c

tests_unit_test_lag_model_SOURCES = tests/unit/test_lag_model.c tests/unit/dice.h

tests_unit_test_fused_SOURCES = tests/unit/test_fused.c tests/unit/dice.h

tests_unit_test_fused_sensor_SOURCES = tests/unit/test_fused_sensor.c tests/unit/fake.h \
	tests/unit/fake_power.h

tests_unit_test_integrator_SOURCES = tests/unit/test_integrator.c

tests_unit_test_node_total_SOURCES = tests/unit/test_node_total.c \
	tests/unit/fake.h tests/unit/fake_power.h

tests_unit_test_board_SOURCES = tests/unit/test_board.c tests/unit/fail.h
tests_unit_test_board_LDFLAGS = $(FAIL_CALLOC)

tests_unit_test_node_energy_SOURCES = tests/unit/test_node_energy.c tests/unit/fail.h \
	tests/unit/fake.h tests/unit/fake_power.h
tests_unit_test_node_energy_LDFLAGS = $(FAIL_CALLOC)

tests_unit_test_sampler_SOURCES = tests/unit/test_sampler.c tests/unit/fail.h \
	tests/unit/fake.h tests/unit/fake_power.h
tests_unit_test_sampler_LDFLAGS = $(FAIL_CALLOC)
endif
