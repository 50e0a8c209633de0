/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The simulated frequency policies: what every driver refuses must be refused
 * with its errno, what it takes must have its effect; CPUs and policies that
 * come and go; faults and the log of writes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/sim/freqfault.h"
#include "tests/unit/simfreq.h"

static const char *driver_name(int i)
{
    return sim_freq_drivers[i].name;
}

START_TEST(options_bad)
{
    struct sim_freq_options opt = simfreq_options("intel_pstate");
    struct joule_error err = {""};

    opt.cpus = "0-";
    ck_assert_ptr_null(sim_freq_create(&opt, &simfreq_clock, &err));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_str_ne(err.text, "");
    opt.cpus = "";
    ck_assert_ptr_null(sim_freq_create(&opt, &simfreq_clock, &err));
    opt.cpus = "0";
    opt.nominal_khz = opt.max_khz + 1;
    ck_assert_ptr_null(sim_freq_create(&opt, &simfreq_clock, &err));
    opt.nominal_khz = opt.max_khz;
    opt.table_khz[0] = 1000000;
    ck_assert_ptr_null(sim_freq_create(&opt, &simfreq_clock, &err));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* Refused by every driver, and nothing changes by it. */
START_TEST(refused_everywhere)
{
    static const struct {
        const char *path, *value;
        int error;
    } bad[] = {
        {GOV, "nonsense\n", EINVAL},
        {GOV, "performancex", EINVAL},
        {GOV, "perform", EINVAL},
        {GOV, " \n", EINVAL},
        {GOV, "averyverylongnameofagovernor", EINVAL},
        {MIN, "fast", EINVAL},
        {MIN, "", 0},
        {MIN, "-1", EINVAL},
        {MIN, "+1500000", EINVAL},
        {MIN, "2147483648", EINVAL},
        {MAX, "\n", EINVAL},
        {MAX, "kHz 1500000", EINVAL},
        {MAX, "4294967295", EINVAL},
        {SET, "1500000", EINVAL},
        {SET, "", 0},
        {CUR, "1500000", EACCES},
        {"cpufreq/policy0/cpuinfo_max_freq", "1500000", EACCES},
        {"cpufreq/policy0/scaling_driver", "x", EACCES},
        {"cpufreq/policy0/affected_cpus", "0", EACCES},
        {"cpufreq/policy9/scaling_governor", "performance", ENOENT},
        {"cpu0/online", "0", ENOENT},
        {"cpu1/online", "", 0},
        {"cpu1/online", "maybe", EINVAL},
        {"online", "0", EACCES},
    };
    struct sim_freq *freq = simfreq_simple(driver_name(_i));
    static char before[65536], after[65536];

    sim_freq_dump(freq, true, before, sizeof(before));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ssize_t rc = simfreq_put(freq, bad[i].path, bad[i].value);

        ck_assert_msg(rc == -bad[i].error, "%s < \"%s\": %zd", bad[i].path,
                      bad[i].value, rc);
    }
    sim_freq_dump(freq, true, after, sizeof(after));
    ck_assert_str_eq(before, after);
    ck_assert_int_gt(strlen(before), 500);
    sim_freq_destroy(freq);
}
END_TEST

/* As sscanf takes them. */
START_TEST(taken_everywhere)
{
    struct sim_freq *freq = simfreq_simple(driver_name(_i));
    unsigned low = freq->policies[0].low, high = freq->policies[0].high;

    OK(GOV, "performance\n");
    SHOWS(GOV, "performance\n");
    OK(GOV, "  PowerSave performance");
    SHOWS(GOV, "powersave\n");
    OK(GOV, "PERFORMANCE");
    SHOWS(GOV, "performance\n");
    ck_assert_uint_eq(freq->policies[0].cur, high);

    /* Clamped to what the hardware has. */
    OK(MIN, "1");
    OK(MAX, "99999999\n");
    ck_assert_uint_eq(freq->policies[0].min, low);
    ck_assert_uint_eq(freq->policies[0].max, high);
    OK(MAX, " 2000000 kHz");
    SHOWS(MAX, "2000000\n");
    ck_assert_uint_eq(freq->policies[0].cur, 2000000);
    OK(MAX, "1");
    ck_assert_uint_eq(freq->policies[0].max, low);

    /* Minimum above maximum: both are requests, the maximum wins. */
    OK(MAX, "2000000");
    OK(MIN, "2600000");
    SHOWS(MIN, "2000000\n");
    SHOWS(MAX, "2000000\n");
    OK(MAX, "99999999");
    ck_assert_uint_eq(freq->policies[0].min, high < 2600000 ? high : 2600000);
    OK(MIN, "0");
    ck_assert_uint_eq(freq->policies[0].min, low);

    /* Policy 1 has seen nothing of it. */
    ck_assert_uint_eq(freq->policies[1].max, high);
    SHOWS("cpufreq/policy1/affected_cpus", "1\n");
    SHOWS("cpufreq/policy1/related_cpus", "1\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(old_kernel_limits)
{
    struct sim_freq_options opt = simfreq_options("acpi-cpufreq");
    struct sim_freq *freq;

    opt.kernel = SIM_LINUX_4_18;
    freq = simfreq_make(&opt);
    OK(MAX, "2000000");
    REFUSED(MIN, "2600000", EINVAL);
    SHOWS(MIN, "1500000\n");
    OK(MIN, "2000000");
    REFUSED(MAX, "1500000", EINVAL);
    OK(MAX, "99999999");
    SHOWS(MAX, "3000000\n");
    /* Between two frequencies it is kept as it is. */
    OK(MAX, "2100000");
    SHOWS(MAX, "2100000\n");
    OK(GOV, "performance");
    SHOWS(CUR, "2000000\n");
    sim_freq_hotplug(freq, 1, false);
    ck_assert_int_eq(
        simfreq_put(freq, "cpufreq/policy1/scaling_governor", "powersave"),
        -EINVAL);
    SHOWS("cpufreq/policy1/scaling_max_freq", "3000000\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(new_kernel_limits)
{
    struct sim_freq_options opt = simfreq_options("acpi-cpufreq");
    struct sim_freq *freq;

    opt.kernel = SIM_LINUX_6_12;
    freq = simfreq_make(&opt);
    REFUSED(MAX, "2000000 kHz", EINVAL);
    REFUSED(MAX, " 2000000", EINVAL);
    REFUSED(MAX, "\n", EINVAL);
    REFUSED(MAX, "-1", EINVAL);
    REFUSED(MAX, "+-1", EINVAL);
    REFUSED(MAX, "2000000\n\n", EINVAL);
    REFUSED(MAX, "99999999999999999999", ERANGE);
    REFUSED(MAX, "4294967295", EINVAL);
    SHOWS(MAX, "3000000\n");
    OK(MAX, "+2000000\n");
    SHOWS(MAX, "2000000\n");
    OK(MAX, "0x27AC40");
    SHOWS(MAX, "2600000\n");
    /* Between two frequencies: the lower one. */
    OK(MIN, "2100000");
    SHOWS(MIN, "2600000\n");
    OK(MAX, "2100000");
    SHOWS(MIN, "2000000\n");
    SHOWS(MAX, "2000000\n");
    sim_freq_destroy(freq);
}
END_TEST

#define SPEED "cpufreq/policy0/scaling_setspeed"

START_TEST(setspeed_as_written)
{
    struct sim_freq_options opt = simfreq_options("acpi-cpufreq");
    struct sim_freq *freq;

    opt.kernel = SIM_LINUX_7_2;
    freq = simfreq_make(&opt);
    OK(GOV, "userspace");
    OK(MAX, "2000000");
    OK(SPEED, "2600000");
    SHOWS(SPEED, "2600000\n");
    SHOWS(CUR, "2000000\n");
    REFUSED(SPEED, "1500000x", EINVAL);
    REFUSED(SPEED, " 1500000", EINVAL);
    REFUSED(SPEED, "4294967296", ERANGE);
    SHOWS(SPEED, "2600000\n");
    OK(MAX, "3000000");
    SHOWS(CUR, "2600000\n");
    OK(GOV, "powersave");
    SHOWS(SPEED, "<unsupported>\n");
    OK(GOV, "userspace");
    SHOWS(SPEED, "1500000\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(limits_later)
{
    struct sim_freq_options opt = simfreq_options("intel_cpufreq");
    struct sim_freq *freq;

    opt.limits_ns = 1000;
    freq = simfreq_make(&opt);
    OK(GOV, "performance");
    OK(MAX, "2000000");
    SHOWS(MAX, "3000000\n");
    SHOWS(CUR, "3000000\n");
    ck_assert_int_eq(sim_freq_settle(freq, false), 1000);
    simfreq_now_ns += 999;
    OK(MIN, "1800000");
    SHOWS(MIN, "1200000\n");
    simfreq_now_ns++;
    SHOWS(MAX, "2000000\n");
    SHOWS(MIN, "1800000\n");
    SHOWS(CUR, "2000000\n");
    ck_assert_int_eq(sim_freq_settle(freq, false), -1);
    OK(MAX, "1900000");
    sim_freq_settle(freq, true);
    SHOWS(MAX, "1900000\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(hotplug)
{
    struct sim_freq_options opt = simfreq_options(driver_name(_i));
    struct sim_freq *freq;

    opt.cpus = "0-3";
    opt.per_policy = 2;
    freq = simfreq_make(&opt);
    OK("cpufreq/policy2/scaling_max_freq", "2000000");
    OK("cpufreq/policy2/scaling_governor", "performance");
    OK("cpu2/online", "0\n");
    SHOWS("cpu2/online", "0\n");
    SHOWS("online", "0-1,3\n");
    SHOWS("offline", "2\n");
    SHOWS("cpufreq/policy2/affected_cpus", "3\n");
    SHOWS("cpufreq/policy2/related_cpus", "2 3\n");
    OK("cpu3/online", "off");
    SHOWS("cpufreq/policy2/scaling_governor", "EBUSY");
    SHOWS("cpufreq/policy2/scaling_driver", "EBUSY");
    REFUSED("cpufreq/policy2/scaling_max_freq", "1500000", EBUSY);
    REFUSED("cpufreq/policy2/scaling_governor", "nonsense", EBUSY);
    OK("cpu3/online", "1");
    SHOWS("cpufreq/policy2/scaling_governor", "performance\n");
    SHOWS("cpufreq/policy2/scaling_max_freq", "2000000\n");
    SHOWS("cpufreq/policy2/scaling_cur_freq", "2000000\n");
    OK("cpu1/online", "0");
    ck_assert_int_eq(sim_freq_hotplug(freq, 0, false), 0);
    REFUSED("cpu3/online", "0", EBUSY); /* the last one */
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(vanish)
{
    struct sim_freq *freq = simfreq_simple(driver_name(_i));
    const struct sim_freq_file *file;
    enum sim_freq_dir dir;
    char buf[SIM_FREQ_PAGE];
    size_t i;

    OK(GOV, "performance");
    OK(MAX, "2000000");
    ck_assert_int_eq(sim_freq_path(freq, MAX, &dir, &i, &file), 0);
    sim_freq_vanish(freq, &freq->policies[0], true);
    SHOWS(GOV, "ENOENT");
    REFUSED(GOV, "performance", ENOENT);
    /* To who has it open. */
    ck_assert_int_eq(sim_freq_show(freq, dir, i, file, buf), -ENODEV);
    ck_assert_int_eq(sim_freq_store(freq, dir, i, file, "1", 1), -ENODEV);
    sim_freq_vanish(freq, &freq->policies[0], false);
    ck_assert_uint_eq(freq->policies[0].max, freq->policies[0].high);
    SHOWS(GOV, freq->driver->setpolicy ? "powersave\n" : "schedutil\n");
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(many_policies)
{
    struct sim_freq_options opt = simfreq_options("acpi-cpufreq");
    static char dump[SIM_FREQ_PAGE * 16];
    struct sim_freq *freq;
    size_t lines = 1;

    opt.cpus = "0-127";
    freq = simfreq_make(&opt);
    SHOWS("possible", "0-127\n");
    ck_assert_uint_lt(sim_freq_dump(freq, false, dump, sizeof(dump)),
                      sizeof(dump));
    for (const char *c = dump; *c; c++)
        lines += *c == '\n';
    /* Four a policy, cpuN/online of all but CPU 0, boost. */
    ck_assert_uint_eq(lines, 4 * 128 + 127 + 1);
    ck_assert_ptr_nonnull(
        strstr(dump, "\ncpufreq/policy127/scaling_max_freq 3000000\n"));
    sim_freq_destroy(freq);
}
END_TEST

START_TEST(faults)
{
    static const char *const bad[] = {"",
                                      "write",
                                      "write *",
                                      "write * EWHAT",
                                      "delete * EIO",
                                      "write * EIO 0",
                                      "write * EIO x",
                                      "write * EIO 1 1 1",
                                      "off now"};
    struct sim_freqfault fault = {.log_fd = -1};
    struct joule_error err = {""};
    char text[64];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        strcpy(text, bad[i]);
        ck_assert_msg(sim_freqfault_add(&fault, text, &err) == -1, "%s",
                      bad[i]);
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_uint_eq(fault.rule_count, 0);
    strcpy(text, "write cpufreq/policy?/scaling_m* EBUSY 2 2");
    ck_assert_int_eq(sim_freqfault_add(&fault, text, &err), 0);
    strcpy(text, "read */scaling_governor EIO 1 0");
    ck_assert_int_eq(sim_freqfault_add(&fault, text, &err), 0);
    ck_assert_int_eq(sim_freqfault_strike(&fault, MIN, true), 0);
    ck_assert_int_eq(sim_freqfault_strike(&fault, GOV, true), 0);
    ck_assert_int_eq(sim_freqfault_strike(&fault, MIN, false), 0);
    ck_assert_int_eq(sim_freqfault_strike(&fault, MAX, true), EBUSY);
    ck_assert_int_eq(sim_freqfault_strike(&fault, MIN, true), EBUSY);
    ck_assert_int_eq(sim_freqfault_strike(&fault, MIN, true), 0);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(sim_freqfault_strike(&fault, GOV, false), EIO);
    strcpy(text, "off");
    ck_assert_int_eq(sim_freqfault_add(&fault, text, &err), 0);
    ck_assert_int_eq(sim_freqfault_strike(&fault, GOV, false), 0);
}
END_TEST

START_TEST(write_log)
{
    char path[] = "/tmp/test_freqsim.XXXXXX", line[512], comm[64];
    struct sim_freqfault fault = {.log_fd = mkstemp(path)};
    FILE *f = fopen(path, "re");
    int pid;

    ck_assert_int_ge(fault.log_fd, 0);
    sim_freqfault_log(&fault, 42, getpid(), GOV, "a b\tc\n", 6, 0);
    sim_freqfault_log(&fault, 43, 0, MAX, "\n", 1, EBUSY);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
    ck_assert_int_eq(sscanf(line, "42 %d %63s " GOV " a?b?c ok\n", &pid, comm),
                     2);
    ck_assert_int_eq(pid, getpid());
    ck_assert_str_eq(comm, "test_freqsim");
    ck_assert_ptr_nonnull(strstr(line, " " GOV " a?b?c ok\n"));
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
    ck_assert_str_eq(line, "43 0 ? " MAX " - EBUSY\n");
    ck_assert_uint_eq(fault.writes, 2);
    fclose(f);
    close(fault.log_fd);
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("freqsim");
    TCase *tc = tcase_create("freqsim");
    SRunner *runner;
    int drivers = 0, failed;

    while (sim_freq_drivers[drivers].name)
        drivers++;
    tcase_add_test(tc, options_bad);
    tcase_add_loop_test(tc, refused_everywhere, 0, drivers);
    tcase_add_loop_test(tc, taken_everywhere, 0, drivers);
    tcase_add_test(tc, old_kernel_limits);
    tcase_add_test(tc, new_kernel_limits);
    tcase_add_test(tc, setspeed_as_written);
    tcase_add_test(tc, limits_later);
    tcase_add_loop_test(tc, hotplug, 0, drivers);
    tcase_add_loop_test(tc, vanish, 0, drivers);
    tcase_add_test(tc, many_policies);
    tcase_add_test(tc, faults);
    tcase_add_test(tc, write_log);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
