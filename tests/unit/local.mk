# SPDX-License-Identifier: GPL-2.0-or-later
# A unit test is one word here and a file of that name with .c behind it.
UNIT_TESTS = \
	tests/unit/test_base \
	tests/unit/test_cpu_states \
	tests/unit/test_cpuinfo \
	tests/unit/test_matcher \
	tests/unit/test_powercap \
	tests/unit/test_power_fit tests/unit/test_power_states \
	tests/unit/test_rapl tests/unit/test_slack \
	tests/unit/test_topology

tests_unit_test_matcher_SOURCES = tests/unit/test_matcher.c tests/unit/dice.h
tests_unit_test_slack_SOURCES = tests/unit/test_slack.c tests/unit/dice.h
tests_unit_test_power_fit_SOURCES = tests/unit/test_power_fit.c tests/unit/dice.h
tests_unit_test_power_states_SOURCES = tests/unit/test_power_states.c \
	tests/unit/dice.h
tests_unit_test_power_states_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
tests_unit_test_cpu_states_SOURCES = tests/unit/test_cpu_states.c tests/unit/dice.h

# What they share, and benchmarks with them.
check_LIBRARIES = tests/unit/libunit.a
tests_unit_libunit_a_SOURCES = \
	tests/unit/asker.c tests/unit/asker.h \
	tests/unit/bmc.c tests/unit/bmc.h \
	tests/unit/freqtree.c tests/unit/freqtree.h \
	tests/unit/fusednode.c tests/unit/fusednode.h \
	tests/unit/nodeload.c tests/unit/nodeload.h \
	tests/unit/relay.c tests/unit/relay.h \
	tests/unit/tree.c tests/unit/tree.h
LIBUNIT = tests/unit/libunit.a $(LIBJOULE) $(CHECK_LIBS)

# For programs that have no _LDADD of their own: the unit tests.
LDADD = $(LIBUNIT)

if HAVE_CHECK
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
AM_CPPFLAGS += $(CHECK_CFLAGS)
endif

# From the counter to the sampler.  calloc is wrapped where a test makes it
# fail.
if HAVE_CHECK
METER_TESTS = \
	tests/unit/test_node_energy \
	tests/unit/test_counter \
	tests/unit/test_counter_sensor \
	tests/unit/test_lag_model \
	tests/unit/test_fused \
	tests/unit/test_fused_sensor \
	tests/unit/test_integrator \
	tests/unit/test_meter_sensor \
	tests/unit/test_sampler \
	tests/unit/test_node_total
check_PROGRAMS += $(METER_TESTS)
TESTS += $(METER_TESTS)

FAIL_CALLOC = -Wl,--wrap=calloc

tests_unit_test_counter_SOURCES = tests/unit/test_counter.c

tests_unit_test_counter_sensor_SOURCES = tests/unit/test_counter_sensor.c \
	tests/unit/fake.h

tests_unit_test_lag_model_SOURCES = tests/unit/test_lag_model.c tests/unit/dice.h

tests_unit_test_fused_SOURCES = tests/unit/test_fused.c tests/unit/dice.h \
	tests/unit/fake.h

tests_unit_test_fused_sensor_SOURCES = tests/unit/test_fused_sensor.c tests/unit/fake.h \
	tests/unit/fake_power.h

tests_unit_test_integrator_SOURCES = tests/unit/test_integrator.c

tests_unit_test_meter_sensor_SOURCES = tests/unit/test_meter_sensor.c \
	tests/unit/dice.h tests/unit/fail.h tests/unit/fake_power.h
tests_unit_test_meter_sensor_LDFLAGS = $(FAIL_CALLOC) \
	-Wl,--wrap=joule_thread_start

tests_unit_test_node_total_SOURCES = tests/unit/test_node_total.c \
	tests/unit/dice.h


tests_unit_test_node_energy_SOURCES = tests/unit/test_node_energy.c tests/unit/fail.h \
	tests/unit/fake.h tests/unit/fake_power.h
tests_unit_test_node_energy_LDFLAGS = $(FAIL_CALLOC)

tests_unit_test_sampler_SOURCES = tests/unit/test_sampler.c tests/unit/fail.h \
	tests/unit/fake.h tests/unit/fake_power.h
tests_unit_test_sampler_LDFLAGS = $(FAIL_CALLOC)
endif

# The BMC's configuration and the process that reads it, played by fakereader.
if HAVE_CHECK
IPMI_TESTS = \
	tests/unit/test_energy_config \
	tests/unit/test_ipmi_config \
	tests/unit/test_ipmi_helper \
	tests/unit/test_sensor_table
check_PROGRAMS += $(IPMI_TESTS) tests/unit/fakereader
TESTS += $(IPMI_TESTS)

tests_unit_test_energy_config_SOURCES = tests/unit/test_energy_config.c
tests_unit_test_energy_config_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"

tests_unit_test_ipmi_config_SOURCES = tests/unit/test_ipmi_config.c

tests_unit_test_ipmi_helper_SOURCES = tests/unit/test_ipmi_helper.c tests/unit/fail.h
tests_unit_test_ipmi_helper_CPPFLAGS = $(AM_CPPFLAGS) \
	-DFAKEREADER=\"$(abs_top_builddir)/tests/unit/fakereader\"
tests_unit_test_ipmi_helper_LDFLAGS = $(FAIL_CALLOC) -Wl,--wrap=kill

tests_unit_test_sensor_table_SOURCES = tests/unit/test_sensor_table.c

tests_unit_fakereader_SOURCES = tests/unit/fakereader.c
tests_unit_fakereader_LDADD = $(LIBJOULE)

if HAVE_FREEIPMI
check_PROGRAMS += tests/unit/test_ipmi_helper_bmc
TESTS += tests/unit/test_ipmi_helper_bmc
tests_unit_test_ipmi_helper_bmc_SOURCES = tests/unit/test_ipmi_helper_bmc.c
tests_unit_test_ipmi_helper_bmc_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\"
EXTRA_tests_unit_test_ipmi_helper_bmc_DEPENDENCIES = joule-ipmi-reader
endif
endif

# The reader process and what it is made of, against OpenIPMI's ipmi_sim.
if HAVE_CHECK
BMC_TESTS = \
	tests/unit/test_ipmi_answer \
	tests/unit/test_ipmi_choice \
	tests/unit/test_ipmi_find \
	tests/unit/test_ipmi_wire \
	tests/unit/test_sdr
check_PROGRAMS += $(BMC_TESTS)
TESTS += $(BMC_TESTS)

tests_unit_test_ipmi_answer_SOURCES = tests/unit/test_ipmi_answer.c

tests_unit_test_ipmi_choice_SOURCES = tests/unit/test_ipmi_choice.c

# Without ipmi_link.c, whose part it plays: needs no FreeIPMI.
tests_unit_test_ipmi_find_SOURCES = tests/unit/test_ipmi_find.c \
	common/sensors/ipmi.c common/sensors/ipmi.h \
	common/sensors/ipmi_link.h

tests_unit_test_ipmi_wire_SOURCES = tests/unit/test_ipmi_wire.c

# Compared with what FreeIPMI makes of the same bytes, where it is there.
tests_unit_test_sdr_SOURCES = tests/unit/test_sdr.c
tests_unit_test_sdr_CFLAGS = $(AM_CFLAGS) $(FREEIPMI_CFLAGS)
tests_unit_test_sdr_LDADD = $(LIBUNIT) $(FREEIPMI_LIBS)

if HAVE_FREEIPMI
check_PROGRAMS += tests/unit/test_ipmi
TESTS += tests/unit/test_ipmi
tests_unit_test_ipmi_SOURCES = tests/unit/test_ipmi.c
tests_unit_test_ipmi_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\"
EXTRA_tests_unit_test_ipmi_DEPENDENCIES = joule-ipmi-reader \
	tests/unit/shim_breakout.so tests/unit/shim_clock.so

# From the command's options to its reports; the simulator's module is needed.
check_PROGRAMS += tests/unit/test_probe_bmc
TESTS += tests/unit/test_probe_bmc
tests_unit_test_probe_bmc_SOURCES = tests/unit/test_probe_bmc.c \
	tools/joule/confcheck.c
tests_unit_test_probe_bmc_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_PLUGIN_DIR=\"/opt/slurm-joule\" \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\" \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
tests_unit_test_probe_bmc_LDADD = $(LIBCOMMAND) $(LIBUNIT)
EXTRA_tests_unit_test_probe_bmc_DEPENDENCIES = joule-ipmi-reader

check_PROGRAMS += tests/unit/test_ipmi_faults
TESTS += tests/unit/test_ipmi_faults
tests_unit_test_ipmi_faults_SOURCES = tests/unit/test_ipmi_faults.c
tests_unit_test_ipmi_faults_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\" \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
EXTRA_tests_unit_test_ipmi_faults_DEPENDENCIES = joule-ipmi-reader

check_PROGRAMS += tests/unit/shim_breakout.so tests/unit/shim_clock.so
tests_unit_shim_breakout_so_SOURCES = tests/unit/shim_breakout.c
tests_unit_shim_breakout_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_unit_shim_breakout_so_LDADD =
tests_unit_shim_clock_so_SOURCES = tests/unit/shim_clock.c
tests_unit_shim_clock_so_LDFLAGS = $(LDFLAGS_MODULE)
tests_unit_shim_clock_so_LDADD =
endif
endif

# Frequencies of CPUs.  System calls are wrapped where a test makes them fail.
if HAVE_CHECK
CPUFREQ_TESTS = \
	tests/unit/test_cpufreq_control \
	tests/unit/test_cpufreq_cycles \
	tests/unit/test_cpufreq_faults \
	tests/unit/test_cpufreq_journal \
	tests/unit/test_cpufreq_keeper \
	tests/unit/test_cpufreq_options \
	tests/unit/test_cpufreq_plan \
	tests/unit/test_cpufreq_policy \
	tests/unit/test_cpufreq_request \
	tests/unit/test_cpufreq_trouble \
	tests/unit/test_cpuset
check_PROGRAMS += $(CPUFREQ_TESTS)
TESTS += $(CPUFREQ_TESTS)

FREQ_WRAP = -Wl,--wrap=openat,--wrap=write,--wrap=renameat \
	-Wl,--wrap=unlinkat,--wrap=fsync

tests_unit_test_cpufreq_request_SOURCES = tests/unit/test_cpufreq_request.c

tests_unit_test_cpufreq_plan_SOURCES = tests/unit/test_cpufreq_plan.c

tests_unit_test_cpufreq_journal_SOURCES = tests/unit/test_cpufreq_journal.c

tests_unit_test_cpufreq_policy_SOURCES = tests/unit/test_cpufreq_policy.c
tests_unit_test_cpufreq_policy_LDFLAGS = $(FREQ_WRAP)

tests_unit_test_cpufreq_control_SOURCES = tests/unit/test_cpufreq_control.c \
	tests/unit/freqsteps.h
tests_unit_test_cpufreq_control_LDFLAGS = $(FREQ_WRAP)

tests_unit_test_cpufreq_trouble_SOURCES = tests/unit/test_cpufreq_trouble.c \
	tests/unit/freqsteps.h
tests_unit_test_cpufreq_trouble_LDFLAGS = $(FREQ_WRAP)

tests_unit_test_cpufreq_faults_SOURCES = tests/unit/test_cpufreq_faults.c
tests_unit_test_cpufreq_faults_LDFLAGS = $(FREQ_WRAP)

tests_unit_test_cpufreq_keeper_SOURCES = tests/unit/test_cpufreq_keeper.c
tests_unit_test_cpufreq_keeper_LDFLAGS = $(FREQ_WRAP)

tests_unit_test_cpufreq_cycles_SOURCES = tests/unit/test_cpufreq_cycles.c

tests_unit_test_cpufreq_options_SOURCES = tests/unit/test_cpufreq_options.c \
	plugins/spank/joule/options.c
tests_unit_test_cpufreq_options_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"

# The tests are the Slurm that the plugin's parts run in.
if HAVE_SLURM
SPANK_TESTS = tests/unit/test_cpufreq_step tests/unit/test_region_hooks
check_PROGRAMS += $(SPANK_TESTS)
TESTS += $(SPANK_TESTS)
endif
tests_unit_test_cpufreq_step_SOURCES = tests/unit/test_cpufreq_step.c \
	plugins/spank/joule/options.c \
	plugins/spank/joule/cpufreq_step.c
tests_unit_test_cpufreq_step_LDFLAGS = $(FREQ_WRAP) -Wl,--wrap=open
tests_unit_test_region_hooks_SOURCES = tests/unit/test_region_hooks.c \
	plugins/spank/joule/region_hooks.c plugins/spank/joule/waits_option.c

tests_unit_test_cpuset_SOURCES = tests/unit/test_cpuset.c
endif

# Whose joules.
if HAVE_CHECK
LEDGER_TESTS = \
	tests/unit/test_daemon_steps \
	tests/unit/test_step_rows \
	tests/unit/test_step_rows_random \
	tests/unit/test_idle_power \
	tests/unit/test_ledger \
	tests/unit/test_ledger_node \
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


tests_unit_test_idle_power_SOURCES = tests/unit/test_idle_power.c tests/unit/dice.h

tests_unit_test_ledger_SOURCES = tests/unit/test_ledger.c tests/unit/dice.h

tests_unit_test_ledger_node_SOURCES = tests/unit/test_ledger_node.c \
	tests/unit/dice.h tests/unit/fail.h
tests_unit_test_ledger_node_LDFLAGS = $(FAIL_CALLOC)

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

# Which part may include which.
dist_check_SCRIPTS += tests/unit/layers.sh
EXTRA_DIST += tests/unit/lsan.supp tests/unit/tsan.supp
TESTS += tests/unit/layers.sh

# What the manual and the examples say, against the tables of options; the
# options of profiles, which need no HDF5.
if HAVE_CHECK
MANUAL_TESTS = \
	tests/unit/test_manual \
	tests/unit/test_profile_config
check_PROGRAMS += $(MANUAL_TESTS)
TESTS += $(MANUAL_TESTS)

tests_unit_test_manual_SOURCES = tests/unit/test_manual.c
tests_unit_test_manual_CPPFLAGS = $(AM_CPPFLAGS) \
	-DJOULE_SOURCE_DIR=\"$(abs_top_srcdir)\"
tests_unit_test_manual_LDADD = libjoule_profile.a $(LIBUNIT)

tests_unit_test_profile_config_SOURCES = tests/unit/test_profile_config.c
tests_unit_test_profile_config_LDADD = libjoule_profile.a $(LIBUNIT)
endif

# Writing profiles.  The calls to the disk are wrapped where a test makes them
# fail or wait.
if HAVE_CHECK
if HAVE_HDF5
STORE_TESTS = \
	tests/unit/test_convert \
	tests/unit/test_energy_series \
	tests/unit/test_log \
	tests/unit/test_place \
	tests/unit/test_state_series \
	tests/unit/test_writer
check_PROGRAMS += $(STORE_TESTS)
TESTS += $(STORE_TESTS)
endif
endif

if HAVE_HDF5
check_LIBRARIES += tests/unit/libprofiles.a
endif
tests_unit_libprofiles_a_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_libprofiles_a_SOURCES = \
	tests/unit/nodefile.c tests/unit/nodefile.h
if HAVE_CHECK
tests_unit_libprofiles_a_SOURCES += tests/unit/rows.c tests/unit/rows.h
endif
LIBPROFILES = tests/unit/libprofiles.a $(HDF5_LIBS) $(CHECK_LIBS)

STORE_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) \
	-DJOULE_BUILD_DIR=\"$(abs_top_builddir)\"
STORE_LIBS = libjoule_series.a $(LIBPROFILES) tests/unit/libunit.a \
	$(LIBJOULE_HDF5)
WRAP_DISK = -Wl,--wrap=pwritev -Wl,--wrap=fdatasync

tests_unit_test_convert_SOURCES = tests/unit/test_convert.c
tests_unit_test_convert_CFLAGS = $(STORE_CFLAGS)
tests_unit_test_convert_LDFLAGS = -Wl,--wrap=fdatasync
tests_unit_test_convert_LDADD = $(STORE_LIBS)

tests_unit_test_log_SOURCES = tests/unit/test_log.c
tests_unit_test_log_CFLAGS = $(STORE_CFLAGS)
tests_unit_test_log_LDFLAGS = $(WRAP_DISK)
tests_unit_test_log_LDADD = $(STORE_LIBS)

tests_unit_test_place_SOURCES = tests/unit/test_place.c
tests_unit_test_place_CFLAGS = $(STORE_CFLAGS)
tests_unit_test_place_LDADD = $(STORE_LIBS)

tests_unit_test_writer_SOURCES = tests/unit/test_writer.c
tests_unit_test_writer_CFLAGS = $(STORE_CFLAGS)
tests_unit_test_writer_LDFLAGS = $(WRAP_DISK)
tests_unit_test_writer_LDADD = $(STORE_LIBS)
EXTRA_tests_unit_test_writer_DEPENDENCIES = joule-profile-convert

tests_unit_test_energy_series_SOURCES = tests/unit/test_energy_series.c \
	tests/unit/fake_power.h
tests_unit_test_energy_series_CFLAGS = $(STORE_CFLAGS)
tests_unit_test_energy_series_LDADD = $(STORE_LIBS)

tests_unit_test_state_series_SOURCES = tests/unit/test_state_series.c
tests_unit_test_state_series_LDADD = libjoule_series.a $(LIBUNIT)

# Profile files: their reader, the merge and what is made of them.
if HAVE_HDF5
if HAVE_CHECK
SH5UTIL_TESTS = \
	tests/unit/test_hdf5_copy \
	tests/unit/test_hdf5_driver \
	tests/unit/test_hdf5_read \
	tests/unit/test_merge \
	tests/unit/test_sh5util \
	tests/unit/test_worker
check_PROGRAMS += $(SH5UTIL_TESTS)
TESTS += $(SH5UTIL_TESTS)

SH5UTIL_TEST_LIBS = $(LIBSH5UTIL) $(LIBPROFILES)

tests_unit_test_hdf5_copy_SOURCES = tests/unit/test_hdf5_copy.c
tests_unit_test_hdf5_copy_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_hdf5_copy_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_hdf5_driver_SOURCES = tests/unit/test_hdf5_driver.c
tests_unit_test_hdf5_driver_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_hdf5_driver_LDFLAGS = -Wl,--wrap=pwrite
tests_unit_test_hdf5_driver_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_hdf5_read_SOURCES = tests/unit/test_hdf5_read.c
tests_unit_test_hdf5_read_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_hdf5_read_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_merge_SOURCES = tests/unit/test_merge.c
tests_unit_test_merge_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_merge_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_sh5util_SOURCES = tests/unit/test_sh5util.c
tests_unit_test_sh5util_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_sh5util_LDADD = $(SH5UTIL_TEST_LIBS)

tests_unit_test_worker_SOURCES = tests/unit/test_worker.c
tests_unit_test_worker_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_test_worker_LDADD = $(SH5UTIL_TEST_LIBS)
endif

# For scripts.
check_PROGRAMS += tests/unit/makenode
tests_unit_makenode_SOURCES = tests/unit/makenode.c
tests_unit_makenode_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_unit_makenode_LDADD = $(LIBPROFILES)

check_PROGRAMS += tests/fuzz/fuzz_hdf5 tests/fuzz/fuzz_log
tests_fuzz_fuzz_hdf5_SOURCES = tests/fuzz/fuzz_hdf5.c $(FUZZ_COMMON)
tests_fuzz_fuzz_hdf5_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_fuzz_fuzz_hdf5_LDADD = $(LIBJOULE_HDF5)
tests_fuzz_fuzz_log_SOURCES = tests/fuzz/fuzz_log.c $(FUZZ_COMMON)
tests_fuzz_fuzz_log_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_fuzz_fuzz_log_LDADD = $(LIBJOULE_HDF5)

dist_check_SCRIPTS += tests/fuzz/run-fuzz-profile.sh tests/system/test_sh5util.sh
TESTS += tests/fuzz/run-fuzz-profile.sh
endif
