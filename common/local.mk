# SPDX-License-Identifier: GPL-2.0-or-later
# Archives: of libjoule a plugin, a command or a test takes what it needs.  Whoever
# links one says $(LIBJOULE), which names what that needs, too.
noinst_LIBRARIES += libjoule.a
LIBJOULE = libjoule.a -lm

libjoule_a_SOURCES = \
	common/base/callfilter.c common/base/callfilter.h \
	common/base/clock.c common/base/clock.h \
	common/base/conffile.c common/base/conffile.h \
	common/base/deadline.c common/base/deadline.h \
	common/base/error.c common/base/error.h \
	common/base/file.c common/base/file.h \
	common/base/hash.h common/base/int128.h common/base/words.h \
	common/base/option.c common/base/option.h \
	common/base/parse.c common/base/parse.h \
	common/base/thread.c common/base/thread.h \
	common/sensors/cpuinfo.c common/sensors/cpuinfo.h \
	common/sensors/rapl.c common/sensors/rapl.h \
	common/sensors/rapl_row.c common/sensors/rapl_row.h \
	common/sensors/ipmi_answer.c common/sensors/ipmi_answer.h \
	common/sensors/ipmi_choice.c common/sensors/ipmi_choice.h \
	common/sensors/ipmi_config.c common/sensors/ipmi_config.h \
	common/sensors/ipmi_wire.c common/sensors/ipmi_wire.h \
	common/sensors/sdr.c common/sensors/sdr.h \
	common/sensors/sensor.c common/sensors/sensor.h \
	common/sensors/topology.c common/sensors/topology.h \
	common/energy/counter.c common/energy/counter.h \
	common/energy/lag_model.c common/energy/lag_model.h \
	common/energy/fused.c common/energy/fused.h \
	common/energy/integrator.c common/energy/integrator.h \
	common/energy/node_total.c common/energy/node_total.h \
	common/step/node_energy.c common/step/node_energy.h \
	common/node/board.c common/node/board.h \
	common/step/energy_columns.c common/step/energy_columns.h \
	common/step/row_queue.c common/step/row_queue.h \
	common/step/board_follower.c common/step/board_follower.h \
	common/sensors/bmc_open.c common/sensors/bmc_open.h \
	common/sensors/energy_config.c common/sensors/energy_config.h \
	common/sensors/energy_config_ipmi.c \
	common/base/helper.c common/base/helper.h \
	common/sensors/fused_sensor.c common/sensors/fused_sensor.h \
	common/sensors/ipmi_helper.c common/sensors/ipmi_helper.h \
	common/daemon/sampler.c common/daemon/sampler.h \
	common/daemon/sensor_log.c common/daemon/sensor_log.h
