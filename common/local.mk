# SPDX-License-Identifier: GPL-2.0-or-later
# Archives: of libjoule a plugin, a command or a test takes what it needs.  Whoever
# links one says $(LIBJOULE), which names what that needs, too.
noinst_LIBRARIES += libjoule.a
LIBJOULE = libjoule.a -lm

libjoule_a_SOURCES = \
	common/base/callfilter.c common/base/callfilter.h \
	common/base/clock.c common/base/clock.h \
	common/base/conffile.c common/base/conffile.h \
	common/base/cpus.c common/base/cpus.h \
	common/base/deadline.c common/base/deadline.h \
	common/base/error.c common/base/error.h \
	common/base/file.c common/base/file.h \
	common/base/hash.h \
	common/base/helper.c common/base/helper.h \
	common/base/int128.h \
	common/base/list.h \
	common/base/option.c common/base/option.h \
	common/base/parse.c common/base/parse.h \
	common/base/process.c common/base/process.h \
	common/base/rundir.c common/base/rundir.h \
	common/base/thread.c common/base/thread.h \
	common/base/ticker.c common/base/ticker.h \
	common/base/words.h \
	common/energy/attribution.c common/energy/attribution.h \
	common/energy/counter.c common/energy/counter.h \
	common/energy/domain.h \
	common/energy/fused.c common/energy/fused.h \
	common/energy/idle_power.c common/energy/idle_power.h \
	common/energy/integrator.c common/energy/integrator.h \
	common/energy/lag_model.c common/energy/lag_model.h \
	common/energy/node_total.c common/energy/node_total.h \
	common/energy/sensor_state.h \
	common/sensors/counter_sensor.c common/sensors/counter_sensor.h \
	common/sensors/cpu_counters.c common/sensors/cpu_counters.h \
	common/sensors/cpu_states.c common/sensors/cpu_states.h \
	common/sensors/cpuinfo.c common/sensors/cpuinfo.h \
	common/sensors/cray.c common/sensors/cray.h \
	common/sensors/energy_config.c common/sensors/energy_config.h \
	common/sensors/fused_sensor.c common/sensors/fused_sensor.h \
	common/sensors/hwmon.c common/sensors/hwmon.h \
	common/sensors/ipmi_choice.c common/sensors/ipmi_choice.h \
	common/sensors/ipmi_config.c common/sensors/ipmi_config.h \
	common/sensors/ipmi_helper.c common/sensors/ipmi_helper.h \
	common/sensors/ipmi_wire.c common/sensors/ipmi_wire.h \
	common/sensors/meter.c common/sensors/meter.h \
	common/sensors/meter_sensor.c common/sensors/meter_sensor.h \
	common/sensors/powercap.c common/sensors/powercap.h \
	common/sensors/rapl.c common/sensors/rapl.h \
	common/sensors/rapl_row.c common/sensors/rapl_row.h \
	common/sensors/sdr.c common/sensors/sdr.h \
	common/sensors/sensor.c common/sensors/sensor.h \
	common/sensors/sensor_table.c common/sensors/sensor_table.h \
	common/sensors/topology.c common/sensors/topology.h \
	common/cgroup/busy.c common/cgroup/busy.h \
	common/cgroup/cpuset.c common/cgroup/cpuset.h \
	common/cgroup/hierarchy.c common/cgroup/hierarchy.h \
	common/cgroup/processes.c common/cgroup/processes.h \
	common/cgroup/usage.c common/cgroup/usage.h \
	common/node/ledger.c common/node/ledger.h \
	common/node/ledger_file.c common/node/ledger_file.h \
	common/node/ledger_node.c common/node/ledger_tickets.c \
	common/node/node_dir.c common/node/node_dir.h \
	common/node/user_file.c common/node/user_file.h \
	common/node/user_view.c common/node/user_view.h \
	common/daemon/job_rows.c common/daemon/job_rows.h \
	common/daemon/sampler.c common/daemon/sampler.h \
	common/daemon/step_rows.c common/daemon/step_rows.h \
	common/daemon/steps.c common/daemon/steps.h \
	common/daemon/tickets.c common/daemon/tickets.h \
	common/step/energy_columns.c common/step/energy_columns.h \
	common/step/node_energy.c common/step/node_energy.h \
	common/step/row_queue.c common/step/row_queue.h \
	common/step/step_energy.c common/step/step_energy.h \
	common/cpufreq/average.c common/cpufreq/average.h \
	common/cpufreq/control.c common/cpufreq/control.h \
	common/cpufreq/journal.c common/cpufreq/journal.h \
	common/cpufreq/journal_file.c \
	common/cpufreq/keeper.c common/cpufreq/keeper.h \
	common/cpufreq/plan.c common/cpufreq/plan.h \
	common/cpufreq/policy.c common/cpufreq/policy.h \
	common/cpufreq/request.c common/cpufreq/request.h \
	common/waits/matcher.c common/waits/matcher.h \
	common/waits/patterns.c common/waits/patterns.h \
	common/waits/power_fit.c common/waits/power_fit.h \
	common/waits/power_states.c common/waits/power_states.h \
	common/waits/slack.c common/waits/slack.h \
	common/waits/table.h

# Profiles: what slurmstepd writes, and in a library of its own all that takes
# libhdf5, which only tools and helper programs link.
noinst_LIBRARIES += libjoule_profile.a
LIBJOULE_PROFILE = libjoule_profile.a $(LIBJOULE)

libjoule_profile_a_SOURCES = \
	common/profile/config.c common/profile/config.h \
	common/profile/converter.c common/profile/converter.h \
	common/profile/log.c common/profile/log.h \
	common/profile/place.c common/profile/place.h \
	common/profile/writer.c common/profile/writer.h

if HAVE_HDF5
noinst_LIBRARIES += libjoule_hdf5.a
endif
LIBJOULE_HDF5 = libjoule_hdf5.a $(LIBJOULE_PROFILE) $(HDF5_LIBS)

libjoule_hdf5_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
libjoule_hdf5_a_SOURCES = \
	common/profile/convert.c common/profile/convert.h \
	common/profile/hdf5_copy.c common/profile/hdf5_copy.h \
	common/profile/hdf5_driver.c common/profile/hdf5_driver.h \
	common/profile/hdf5_read.c common/profile/hdf5_read.h \
	common/profile/worker.c common/profile/worker.h

# The energy series of a step.  Whoever links it says $(LIBJOULE_SERIES).
noinst_LIBRARIES += libjoule_series.a
LIBJOULE_SERIES = libjoule_series.a $(LIBJOULE_PROFILE)

libjoule_series_a_SOURCES = \
	common/step/energy_series.c common/step/energy_series.h \
	common/step/pace.c common/step/pace.h \
	common/step/region_reader.c common/step/region_reader.h \
	common/step/regions.c common/step/regions.h \
	common/step/state_series.c common/step/state_series.h
