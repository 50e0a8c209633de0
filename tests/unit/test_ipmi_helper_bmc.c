/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the words of acct_gather.conf to watts: options, credentials file, the
 * meter, the real reader process, and OpenIPMI's ipmi_sim as the BMC.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sensors/energy_config.h"
#include "common/sensors/ipmi_helper.h"
#include "tests/unit/bmc.h"
#include "tests/unit/tree.h"

#define READER    JOULE_BUILD_DIR "/joule-ipmi-reader"
#define FILE_NAME "etc/slurm/bmc"
#define SKIP_CODE 77
#define MS        JOULE_NS_PER_MS
#define S         JOULE_NS_PER_S

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct bmc_sensor usual[] = {
    {.name = "Temp", .number = 9, .m = 1, .unit = BMC_DEGREES_C, .raw = 40},
    {.name = "Node", .number = 1, .m = 2, .unit = BMC_WATTS, .raw = -1},
    {.name = "PSU1 PIN", .number = 5, .m = 4, .unit = BMC_WATTS, .raw = 60},
};

static struct tree tree;
static struct bmc bmc;
static struct joule_error err;
static struct joule_power power[4];
static struct joule_meter *meter;
static int64_t clock_ns;
static unsigned fds_before;

static int64_t test_clock_ns(void *arg)
{
    (void)arg;
    return clock_ns;
}

static const struct joule_clock test_clock = {.mono_ns = test_clock_ns,
                                              .wall_ns = test_clock_ns};

static void setup(void)
{
    tree_create(&tree);
    clock_ns = 1000 * S;
    meter = NULL;
    fds_before = tree_open_fds();
    bmc_create(&bmc);
    bmc_start(&bmc, usual, COUNT(usual));
    bmc_watts(&bmc, 1, 300);
}

/* A process that was killed may take its time to go. */
static void no_child_is_left(void)
{
    pid_t pid = 0;

    for (int i = 0; i < 10000 && pid >= 0; i++) {
        pid = waitpid(-1, NULL, WNOHANG);
        if (pid >= 0)
            usleep(1000);
    }
    ck_assert_int_eq(pid, -1);
}

static void teardown(void)
{
    joule_meter_destroy(meter);
    bmc_destroy(&bmc);
    ck_assert_uint_eq(tree_open_fds(), fds_before);
    no_child_is_left();
    tree_destroy(&tree);
}

static void create(const char *sensors, const char *password)
{
    struct joule_ipmi_helper_options opt = {
        .clock = &test_clock,
        .program = READER,
        .credentials_file = "/" FILE_NAME,
        .root_fd = tree.fd,
    };
    struct joule_energy_config config;
    struct joule_ipmi_config ipmi;
    char host[32], credentials[128];
    const char *const settings[][2] = {
        {"JouleIPMIHost", host},
        {"JouleIPMICredentialsFile", "/" FILE_NAME},
        {"JouleIPMIAnswerTimeout", "200ms"},
        {"EnergyIPMITimeout", "2"},
        {"EnergyIPMIWorkaroundFlags", "opensesspriv"},
        {"EnergyIPMIPowerSensors", sensors},
    };

    snprintf(host, sizeof(host), "127.0.0.1:%u", bmc.port);
    snprintf(credentials, sizeof(credentials), "username %s\npassword %s\n",
             BMC_USER, password);
    tree_write(&tree, FILE_NAME, credentials);
    ck_assert_int_eq(fchmodat(tree.fd, FILE_NAME, 0600, 0), 0);
    joule_option_defaults(joule_energy_config_options, &config);
    for (int i = 0; i < COUNT(settings); i++)
        ck_assert_msg(
            joule_option_set(
                joule_option_find(joule_energy_config_options, settings[i][0]),
                &config, settings[i][1], &err) == 0,
            "%s", err.text);
    ck_assert_msg(joule_ipmi_config_make(&config, tree.fd, "host", "node",
                                         &ipmi, &err) == 0,
                  "%s", err.text);
    opt.config = &ipmi;
    meter = joule_ipmi_helper_create(&opt, &err);
    ck_assert_msg(meter != NULL, "%s", err.text);
}

static int read_power(void)
{
    err.text[0] = '\0';
    return meter->ops->read(meter, power, &err);
}

static void must_read(double watts)
{
    ck_assert_msg(read_power() == 0, "%s", err.text);
    ck_assert_int_eq(power[0].status, JOULE_POWER_OK);
    ck_assert_double_eq(power[0].watts, watts);
}

/* Go on trying, a second after the other, until a reading works. */
static void must_recover(double watts)
{
    int tries = 0;

    while (read_power() < 0) {
        ck_assert_msg(tries++ < 20, "%s", err.text);
        clock_ns += 60 * S;
        usleep(100 * 1000);
    }
    ck_assert_double_eq(power[0].watts, watts);
}

/* The only child beside the simulator. */
static pid_t reader_pid(void)
{
    char path[64], text[256] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    if (!fgets(text, sizeof(text), file))
        text[0] = '\0';
    fclose(file);
    for (char *p = text, *end; *p; p = end) {
        long pid = strtol(p, &end, 10);

        if (end == p)
            break;
        if (pid != bmc.pid)
            return (pid_t)pid;
    }
    ck_abort_msg("no reader among \"%s\"", text);
}

START_TEST(wrong_password)
{
    create("Node=Node", "n0t-this-0ne");
    ck_assert_int_eq(read_power(), -1);
    ck_assert_str_ne(err.text, "");
    ck_assert_ptr_null(strstr(err.text, "n0t"));
    ck_assert_int_eq(read_power(), -1);
    ck_assert_int_eq(errno, EAGAIN);
}
END_TEST

/* The reader says what is wrong with the file, as slurmd's log has it then. */
START_TEST(bad_credentials)
{
    static const struct {
        const char *content, *sentence;
    } bad[] = {
        {"", "there is no line \"username NAME\""},
        {"username mon\n", "there is no line \"password WORDS\""},
        {"username mon\npassword a\npassword b\n", "line 3: a second password"},
        {"user mon\n", "line 1: neither \"username NAME\""},
    };
    char sentence[128];

    create("Node=Node", BMC_PASSWORD);
    for (int i = 0; i < COUNT(bad); i++) {
        tree_write(&tree, FILE_NAME, bad[i].content);
        clock_ns += 60 * S;
        ck_assert_int_eq(read_power(), -1);
        ck_assert_int_eq(errno, EINVAL);
        snprintf(sentence, sizeof(sentence),
                 "JouleIPMICredentialsFile: /" FILE_NAME ": %s",
                 bad[i].sentence);
        ck_assert_msg(strncmp(err.text, sentence, strlen(sentence)) == 0, "%s",
                      err.text);
    }
    tree_write(&tree, FILE_NAME,
               "username " BMC_USER "\npassword " BMC_PASSWORD "\n");
    must_recover(300);
}
END_TEST

START_TEST(no_such_sensor)
{
    create("Node=Nude", BMC_PASSWORD);
    ck_assert_int_eq(read_power(), -1);
    ck_assert_msg(strstr(err.text, "Nude"), "%s", err.text);
}
END_TEST

START_TEST(watts)
{
    struct joule_error remark = {""};

    create("Node=Node;PSU='PSU1 PIN';All=3,4", BMC_PASSWORD);
    for (int i = 0; i < 100; i++)
        must_read(300);
    ck_assert_double_eq(power[1].watts, 240);
    ck_assert_double_eq(power[2].watts, 540);
    ck_assert_int_eq(meter->ops->remark(meter, &remark), 1);
    ck_assert_msg(strstr(remark.text,
                         "reads sensors Node=Node (record 3, 0-510 W in steps "
                         "of 2 W), PSU=PSU1 PIN (record 4, 0-1020 W in steps "
                         "of 4 W), All=Node (record 3,"),
                  "%s", remark.text);
    ck_assert_msg(strstr(remark.text, ", LAN_2_0"), "%s", remark.text);
}
END_TEST

/* Without a configuration it is not the first sensor, but the one that covers
 * the node; and it stays that one. */
START_TEST(default_sensor)
{
    static const struct bmc_sensor before[] = {
        {.name = "CPU1 Pwr",
         .number = 2,
         .m = 1,
         .unit = BMC_WATTS,
         .entity = 3,
         .raw = 136},
        {.name = "Pwr Consumption",
         .number = 1,
         .m = 2,
         .unit = BMC_WATTS,
         .raw = -1},
    };
    static const struct bmc_sensor after[] = {
        {.name = "Pwr Board",
         .number = 2,
         .m = 1,
         .unit = BMC_WATTS,
         .raw = 136},
        {.name = "Pwr Consumption",
         .number = 1,
         .m = 2,
         .unit = BMC_WATTS,
         .raw = -1},
    };
    const struct joule_wire_found *found;
    uint32_t count;

    bmc_kill(&bmc);
    bmc_start(&bmc, before, COUNT(before));
    bmc_watts(&bmc, 1, 322);
    create("", BMC_PASSWORD);
    must_read(322);
    found = joule_reader_found(meter, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(found[0].name, "Pwr Consumption");
    bmc_kill(&bmc);
    ck_assert_int_eq(read_power(), -1);
    bmc_start(&bmc, after, COUNT(after));
    bmc_watts(&bmc, 1, 200);
    must_recover(200);
}
END_TEST

/* Several power supplies are one choice. */
START_TEST(default_supplies)
{
    static const struct bmc_sensor supplies[] = {
        {.name = "PS1 Input Power",
         .number = 5,
         .m = 4,
         .unit = BMC_WATTS,
         .entity = 10,
         .raw = 60},
        {.name = "PS2 Input Power",
         .number = 6,
         .m = 4,
         .unit = BMC_WATTS,
         .entity = 10,
         .raw = 20},
        {.name = "CPU1 Pwr",
         .number = 2,
         .m = 1,
         .unit = BMC_WATTS,
         .entity = 3,
         .raw = 136},
    };
    struct joule_error remark = {""};
    uint32_t count;

    bmc_kill(&bmc);
    bmc_start(&bmc, supplies, COUNT(supplies));
    create("", BMC_PASSWORD);
    must_read(320);
    ck_assert_ptr_nonnull(joule_reader_found(meter, &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(meter->ops->remark(meter, &remark), 1);
    ck_assert_msg(
        strstr(remark.text, "reads sensors PS1 Input Power (record 2"), "%s",
        remark.text);
    kill(reader_pid(), SIGKILL);
    ck_assert_int_eq(read_power(), -1);
    must_recover(320);
}
END_TEST

/* Sensors of the whole node that contradict each other: none is taken. */
START_TEST(default_refused)
{
    static const struct bmc_sensor two[] = {
        {.name = "Pwr 12V", .number = 2, .m = 1, .unit = BMC_WATTS, .raw = 136},
        {.name = "Sys Power",
         .number = 1,
         .m = 2,
         .unit = BMC_WATTS,
         .raw = -1},
    };

    bmc_kill(&bmc);
    bmc_start(&bmc, two, COUNT(two));
    bmc_watts(&bmc, 1, 322);
    create("", BMC_PASSWORD);
    ck_assert_int_eq(read_power(), -1);
    ck_assert_msg(strstr(err.text, "Pwr 12V 136 W, Sys Power 322 W") &&
                      strstr(err.text, "EnergyIPMIPowerSensors="),
                  "%s", err.text);
    joule_meter_destroy(meter);
    create("Node=Pwr 12V", BMC_PASSWORD); /* whatever is configured counts */
    must_read(136);
}
END_TEST

START_TEST(reader_is_killed)
{
    create("Node=Node", BMC_PASSWORD);
    for (int i = 0; i < 3; i++) {
        must_recover(300);
        kill(reader_pid(), SIGKILL);
        ck_assert_int_eq(read_power(), -1);
        ck_assert_msg(strstr(err.text, "died of signal 9"), "%s", err.text);
    }
    must_recover(300);
}
END_TEST

START_TEST(reader_is_stopped)
{
    create("Node=Node", BMC_PASSWORD);
    must_read(300);
    kill(reader_pid(), SIGSTOP);
    ck_assert_int_eq(read_power(), -1);
    ck_assert_int_eq(errno, ETIMEDOUT);
    must_recover(300);
}
END_TEST

START_TEST(bmc_is_restarted)
{
    create("Node=Node", BMC_PASSWORD);
    must_read(300);
    bmc_kill(&bmc);
    ck_assert_int_eq(read_power(), -1);
    ck_assert_str_ne(err.text, "");
    bmc_start(&bmc, usual, COUNT(usual));
    bmc_watts(&bmc, 1, 200);
    must_recover(200);
}
END_TEST

static void *read_in_thread(void *arg)
{
    (void)arg;
    errno = 0;
    (void)read_power();
    return errno == ECANCELED ? &meter : NULL;
}

/* The BMC hangs; whoever waits for it is let go at once. */
START_TEST(interrupted)
{
    pthread_t thread;
    void *canceled;
    int64_t begin_ns;

    create("Node=Node", BMC_PASSWORD);
    must_read(300);
    kill(bmc.pid, SIGSTOP);
    ck_assert_int_eq(pthread_create(&thread, NULL, read_in_thread, NULL), 0);
    usleep(50 * 1000);
    begin_ns = joule_clock_mono_ns(&joule_clock_system);
    meter->ops->interrupt(meter);
    pthread_join(thread, &canceled);
    ck_assert_int_lt(joule_clock_mono_ns(&joule_clock_system) - begin_ns,
                     100 * MS);
    ck_assert_ptr_nonnull(canceled);
    kill(bmc.pid, SIGCONT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ipmi helper and a BMC");
    TCase *t = tcase_create("reader_bmc");
    SRunner *runner;
    int failed;

    if (!bmc_installed()) {
        printf("SKIP: ipmi_sim is not installed\n");
        return SKIP_CODE;
    }
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, wrong_password);
    tcase_add_test(t, bad_credentials);
    tcase_add_test(t, no_such_sensor);
    tcase_add_test(t, watts);
    tcase_add_test(t, default_sensor);
    tcase_add_test(t, default_supplies);
    tcase_add_test(t, default_refused);
    tcase_add_test(t, reader_is_killed);
    tcase_add_test(t, reader_is_stopped);
    tcase_add_test(t, bmc_is_restarted);
    tcase_add_test(t, interrupted);
    suite_add_tcase(s, t);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
