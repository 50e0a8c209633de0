/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is particular to each driver of the simulated frequency policies.
 */
#include <stdlib.h>

#include "tests/unit/simfreq.h"

static const char *driver_name(int i)
{
    return sim_freq_drivers[i].name;
}

/* A table: limits and speeds are frequencies of it. */
START_TEST(acpi_table)
{
    struct sim_freq *freq = simfreq_simple("acpi-cpufreq");

    SHOWS("cpufreq/policy0/scaling_available_frequencies",
          "3000000 2600000 2000000 1500000 \n");
    OK(MAX, "2100000");
    SHOWS(MAX, "2000000\n");
    OK(MAX, "3000000");
    OK(MIN, "2100000");
    SHOWS(MIN, "2600000\n");
    /* Nothing between them: the next larger one. */
    OK(MIN, "2100000");
    OK(MAX, "2200000");
    SHOWS(MAX, "2600000\n");
    SHOWS(MIN, "2600000\n");
    OK(MIN, "0");
    OK(MAX, "3000000");
    OK(GOV, "userspace");
    OK(SET, "2100000");
    SHOWS(SET, "2600000\n");
    OK(SET, "1");
    SHOWS(SET, "1500000\n");
    OK(SET, "9999999");
    SHOWS(SET, "3000000\n");
    SHOWS("cpufreq/policy0/cpuinfo_cur_freq", "3000000\n");
    REFUSED(SET, "fast", EINVAL);
    SHOWS(EPP, "ENOENT");
    sim_freq_destroy(freq);
}
END_TEST

/* What userspace was told is kept beyond the limits. */
START_TEST(userspace)
{
    struct sim_freq *freq = simfreq_simple(driver_name(_i));

    if (freq->driver->setpolicy) {
        REFUSED(GOV, "userspace", EINVAL);
        REFUSED(GOV, "schedutil", EINVAL);
        SHOWS(SET, "<unsupported>\n");
        SHOWS("cpufreq/policy0/scaling_available_governors",
              "performance powersave\n");
        sim_freq_destroy(freq);
        return;
    }
    SHOWS(SET, "<unsupported>\n");
    OK(GOV, "performance");
    OK(MAX, "2000000");
    OK(GOV, "userspace");
    SHOWS(SET, "2000000\n"); /* where it was */
    OK(SET, "1500000\n");
    SHOWS(SET, "1500000\n");
    SHOWS(CUR, "1500000\n");
    OK(SET, "2600000");
    SHOWS(SET, "2000000\n");
    OK(MAX, "99999999");
    ck_assert_uint_eq(freq->policies[0].cur,
                      freq->policies[0].high < 2600000 ? 2400000 : 2600000);
    /* Started anew it begins with the present frequency. */
    OK(SET, "2000000");
    OK(GOV, "powersave");
    ck_assert_uint_eq(freq->policies[0].cur, freq->policies[0].low);
    SHOWS(SET, "<unsupported>\n");
    REFUSED(SET, "2000000", EINVAL);
    OK(GOV, "userspace");
    ck_assert_uint_eq(freq->policies[0].cur, freq->policies[0].low);
    /* But not when it is only named again. */
    OK(SET, "2000000");
    OK(GOV, "userspace");
    SHOWS(SET, "2000000\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(governors_of_the_kernel)
{
    struct sim_freq_options opt = simfreq_options("cppc_cpufreq");
    struct sim_freq *freq;

    opt.governors = 1u << SIM_SCHEDUTIL;
    opt.loadable = 1u << SIM_ONDEMAND;
    freq = simfreq_make(&opt);
    SHOWS("cpufreq/policy0/scaling_available_governors", "schedutil \n");
    SHOWS(GOV, "schedutil\n");
    REFUSED(GOV, "userspace", EINVAL);
    REFUSED(GOV, "performance", EINVAL);
    OK(GOV, "ondemand");
    SHOWS("cpufreq/policy0/scaling_available_governors",
          "schedutil ondemand \n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(governors_follow_load)
{
    struct sim_freq_options opt = simfreq_options("acpi-cpufreq");
    struct sim_freq *freq;

    opt.per_policy = 2;
    freq = simfreq_make(&opt);
    SHOWS("cpufreq/policy0/affected_cpus", "0 1\n");
    SHOWS("cpufreq/policy1/affected_cpus", "ENOENT");
    SHOWS(CUR, "1500000\n");
    OK(GOV, "ondemand");
    freq->cpus[1].load_pct = 30; /* the busiest counts */
    sim_freq_refresh_all(freq);
    SHOWS(CUR, "2000000\n");
    freq->cpus[1].load_pct = 81;
    sim_freq_refresh_all(freq);
    SHOWS(CUR, "3000000\n");
    OK(MAX, "2000000");
    SHOWS(CUR, "2000000\n");
    OK(GOV, "conservative");
    freq->cpus[1].load_pct = 10;
    sim_freq_refresh_all(freq);
    SHOWS(CUR, "1500000\n");
    OK(MAX, "3000000");
    OK(GOV, "schedutil");
    freq->cpus[1].load_pct = 40; /* 1.25 x 40 % of 3 GHz */
    sim_freq_refresh_all(freq);
    SHOWS(CUR, "1500000\n");
    freq->cpus[1].load_pct = 60;
    sim_freq_refresh_all(freq);
    SHOWS(CUR, "2600000\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(cppc_boost)
{
    struct sim_freq *freq = simfreq_simple("cppc_cpufreq");

    SHOWS("cpufreq/boost", "1\n");
    REFUSED("cpufreq/boost", "2", EINVAL);
    REFUSED("cpufreq/boost", "-1", EINVAL);
    REFUSED("cpufreq/boost", "on", EINVAL);
    OK(MAX, "2000000");
    /* It takes the place of the limit that was asked for. */
    OK("cpufreq/boost", "0");
    SHOWS("cpufreq/policy0/cpuinfo_max_freq", "2400000\n");
    SHOWS(MAX, "2400000\n");
    OK("cpufreq/boost", "1\n");
    SHOWS(MAX, "3000000\n");
    SHOWS("cpufreq/policy0/scaling_available_frequencies", "ENOENT");
    OK(GOV, "userspace");
    OK(SET, "1234567");
    SHOWS(SET, "1234567\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(pcc_many_cpus)
{
    struct sim_freq_options opt = simfreq_options("pcc-cpufreq");
    struct sim_freq *freq = simfreq_make(&opt);

    OK(GOV, "ondemand");
    SHOWS(GOV, "ondemand\n");
    SHOWS("cpufreq/boost", "ENOENT");
    sim_freq_destroy(freq);
    opt.cpus = "0-4";
    freq = simfreq_make(&opt);
    /* Accepted, and another one is there. */
    OK(GOV, "ondemand");
    SHOWS(GOV, "performance\n");
    OK(GOV, "userspace");
    SHOWS(GOV, "userspace\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(intel_active)
{
    struct sim_freq *freq = simfreq_simple("intel_pstate");

    SHOWS("intel_pstate/status", "active\n");
    SHOWS(GOV, "powersave\n");
    SHOWS(EPP, "balance_performance\n");
    SHOWS(EPPS, "default performance balance_performance balance_power "
                "power \n");
    REFUSED(EPP, "nonsense", EINVAL);
    REFUSED(EPP, "256", EINVAL);
    REFUSED(EPP, "-1", EINVAL);
    REFUSED(EPP, "4294967296", ERANGE);
    REFUSED(EPP, "12 ", EINVAL);
    REFUSED(EPP, "", 0);
    OK(EPP, "100\n");
    SHOWS(EPP, "100\n");
    OK(EPP, "192");
    SHOWS(EPP, "balance_power\n");
    /* "performance" takes it along, and gives it back. */
    OK(GOV, "performance");
    SHOWS(EPP, "performance\n");
    REFUSED(EPP, "power", EBUSY);
    REFUSED(EPP, "default", EBUSY);
    REFUSED(EPP, "1", EBUSY);
    OK(EPP, "0");
    OK(EPP, "performance");
    OK(GOV, "powersave");
    SHOWS(EPP, "balance_power\n");
    OK(EPP, "default");
    SHOWS(EPP, "balance_performance\n");
    /* Limits are kept as written, the hardware has steps. */
    OK(MAX, "1234567");
    SHOWS(MAX, "1234567\n");
    OK(GOV, "performance");
    SHOWS(CUR, "1200000\n");
    SHOWS("cpufreq/policy0/base_frequency", "2400000\n");
    SHOWS("cpufreq/policy0/cpuinfo_cur_freq", "ENOENT");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(intel_global)
{
    struct sim_freq *freq = simfreq_simple("intel_pstate");

    OK(GOV, "performance");
    REFUSED("intel_pstate/no_turbo", "yes", EINVAL);
    OK("intel_pstate/no_turbo", "1\n");
    SHOWS(MAX, "2400000\n");
    SHOWS("cpufreq/policy0/cpuinfo_max_freq", "3000000\n");
    OK("intel_pstate/no_turbo", "0");
    SHOWS(MAX, "3000000\n");
    REFUSED("intel_pstate/max_perf_pct", "all", EINVAL);
    OK("intel_pstate/max_perf_pct", "70");
    SHOWS(MAX, "3000000\n"); /* no limit of the policy */
    SHOWS(CUR, "2100000\n");
    OK("intel_pstate/max_perf_pct", "1000");
    SHOWS("intel_pstate/max_perf_pct", "100\n");
    OK("intel_pstate/min_perf_pct", "0");
    SHOWS("intel_pstate/min_perf_pct", "40\n");
    REFUSED("intel_pstate/num_pstates", "1", EACCES);
    SHOWS("intel_pstate/num_pstates", "19\n");
    REFUSED("intel_pstate/status", "off", EBUSY);
    REFUSED("intel_pstate/status", "passively", EINVAL);
    REFUSED("intel_pstate/status", "act", EINVAL);
    OK("intel_pstate/status", "passive\n");
    SHOWS("cpufreq/policy0/scaling_driver", "intel_cpufreq\n");
    SHOWS(GOV, "schedutil\n");
    SHOWS("intel_pstate/hwp_dynamic_boost", "ENOENT");
    OK("intel_pstate/max_perf_pct", "70");
    SHOWS(MAX, "2100000\n"); /* here it is one */
    SHOWS("amd_pstate/status", "ENOENT");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(intel_passive)
{
    struct sim_freq *freq = simfreq_simple("intel_cpufreq");

    OK(GOV, "performance");
    OK(EPP, "power"); /* nothing in the way */
    OK(GOV, "powersave");
    SHOWS(EPP, "power\n");
    OK(GOV, "userspace");
    OK(SET, "1850000");
    SHOWS(SET, "1900000\n");
    OK(MAX, "1850000");
    SHOWS(MAX, "1850000\n");
    SHOWS(SET, "1800000\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(intel_off)
{
    struct sim_freq_options opt = simfreq_options("intel_pstate");
    struct sim_freq *freq;

    opt.no_hwp = true;
    freq = simfreq_make(&opt);
    SHOWS(EPP, "ENOENT");
    OK("intel_pstate/status", "off\n");
    SHOWS("intel_pstate/status", "off\n");
    SHOWS(GOV, "ENOENT");
    SHOWS("intel_pstate/no_turbo", "EAGAIN");
    REFUSED("intel_pstate/no_turbo", "1", EAGAIN);
    REFUSED("intel_pstate/status", "off", EINVAL);
    OK("intel_pstate/status", "active");
    SHOWS(GOV, "powersave\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(amd_active)
{
    struct sim_freq *freq = simfreq_simple("amd-pstate-epp");

    SHOWS("amd_pstate/status", "active\n");
    SHOWS("cpufreq/policy0/scaling_driver", "amd-pstate-epp\n");
    REFUSED(EPP, "100", EINVAL);
    REFUSED(EPP, "nonsense", EINVAL);
    OK(EPP, "power");
    OK(GOV, "performance");
    SHOWS(EPP, "performance\n");
    SHOWS(EPPS, "performance\n");
    REFUSED(EPP, "power", EBUSY);
    OK(GOV, "powersave");
    SHOWS(EPP, "performance\n"); /* is not given back */
    OK(EPP, "power");
    SHOWS(EPP, "power\n");
    REFUSED("amd_pstate/status", "off", EINVAL);
    OK("amd_pstate/status", "guided\n");
    SHOWS("cpufreq/policy0/scaling_driver", "amd-pstate\n");
    OK(GOV, "userspace");
    OK("amd_pstate/status", "passive"); /* the same driver stays */
    SHOWS(GOV, "userspace\n");
    SHOWS(EPP, "ENOENT");
    OK("amd_pstate/status", "disable");
    SHOWS("amd_pstate/status", "disable\n");
    SHOWS(GOV, "ENOENT");
    OK("amd_pstate/status", "passive");
    SHOWS(GOV, "schedutil\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(amd_passive)
{
    struct sim_freq *freq =
        simfreq_simple(_i ? "amd-pstate-guided" : "amd-pstate");

    SHOWS("amd_pstate/status", _i ? "guided\n" : "passive\n");
    OK(MAX, "2700000");
    OK("cpufreq/boost", "0");
    SHOWS(MAX, "2400000\n");
    OK("cpufreq/boost", "1");
    SHOWS(MAX, "2700000\n"); /* the request has stayed */
    SHOWS("cpufreq/policy0/amd_pstate_max_freq", "3000000\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(firmware_limit)
{
    struct sim_freq *freq = simfreq_simple("acpi-cpufreq");

    OK(GOV, "performance");
    freq->policies[0].firmware_max = 2000000;
    sim_freq_refresh_all(freq);
    SHOWS(MAX, "2000000\n");
    SHOWS(CUR, "2000000\n");
    SHOWS("cpufreq/policy0/bios_limit", "2000000\n");
    OK(MAX, "3000000");
    SHOWS(MAX, "2000000\n");
    sim_freq_destroy(freq);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("freqsim_drivers");
    TCase *tc = tcase_create("freqsim_drivers");
    SRunner *runner;
    int drivers = 0, failed;

    while (sim_freq_drivers[drivers].name)
        drivers++;
    tcase_add_test(tc, acpi_table);
    tcase_add_loop_test(tc, userspace, 0, drivers);
    tcase_add_test(tc, governors_of_the_kernel);
    tcase_add_test(tc, governors_follow_load);
    tcase_add_test(tc, cppc_boost);
    tcase_add_test(tc, pcc_many_cpus);
    tcase_add_test(tc, intel_active);
    tcase_add_test(tc, intel_global);
    tcase_add_test(tc, intel_passive);
    tcase_add_test(tc, intel_off);
    tcase_add_test(tc, amd_active);
    tcase_add_loop_test(tc, amd_passive, 0, 2);
    tcase_add_test(tc, firmware_limit);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
