/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The simulated BMC without ipmi_sim: what it shows of a power, and what it
 * answers under each fault.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sim/bmcsim/bmc.h"
#include "tests/sim/bmcsim/queue.h"

#define S  INT64_C(1000000000)
#define MS INT64_C(1000000)

#define T0 (1000 * S)

static int64_t fake_now(void *arg)
{
    return *(int64_t *)arg;
}

/* Faults. */

START_TEST(faults_bad)
{
    static const char *const bad[] = {
        "sens_cc",        "sens_cc=",       "sens_cc=256",
        "sens_cc=0xfff",  "nothing=1",      "sens_cc=1 sens_cc=1",
        "drop_pct=101",   "drop_pct=-1",    "=1",
        "delay_ms=1s",    "dcmi_w=65536",   "sens_raw=-2",
        "netfn=4,cmd=45", "drop_n=1.5",     "SENS_CC=1",
        "dcmi_active=2",  "sens_cc=0xC0 x", "block_ms=99999999999999999999",
    };
    struct bmc_faults faults = {.sens_cc = 77};
    struct joule_error err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err.text[0] = '\0';
        ck_assert_msg(bmc_faults_parse(bad[i], &faults, &err) == -1, "%s",
                      bad[i]);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_msg(err.text[0], "%s", bad[i]);
        ck_assert_int_eq(faults.sens_cc, 77);
    }
}
END_TEST

START_TEST(faults_good)
{
    struct bmc_faults f;

    ck_assert_int_eq(bmc_faults_parse("", &f, NULL), 0);
    ck_assert_int_eq(f.sens_num, -1);
    ck_assert_int_eq(f.sens_raw, -1);
    ck_assert_int_eq(f.dcmi_active, 1);
    ck_assert_int_eq(f.netfn, -1);
    ck_assert_int_eq(
        bmc_faults_parse(" sens_cc=0xC0  netfn=4\tdrop_n=3\n", &f, NULL), 0);
    ck_assert_int_eq(f.sens_cc, 0xC0);
    ck_assert_int_eq(f.netfn, 4);
    ck_assert_int_eq(f.drop_n, 3);
    ck_assert_int_eq(f.dcmi_w, -1);
}
END_TEST

/* Sensors. */

START_TEST(sensors_bad)
{
    static const char *const bad[] = {
        "",
        "1:node:100:2:0:0",
        "1:node:100:2:0:0:0:0",
        "0:node:100:2:0:0:0",
        "256:node:100:2:0:0:0",
        "1:fan:100:2:0:0:0",
        "1:cpu8:100:2:0:0:0",
        "1:cpu10:100:2:0:0:0",
        "1:node:101:2:0:0:0",
        "1:node:100:0:0:0:0",
        "1:node:100:512:0:0:0",
        "1:node:100:2:0:8:0",
        "1:node:100:2:0:0:--1",
        "1:node:100:2:0:0:-",
    };
    struct bmc_sensors sensors = {0};
    struct joule_error err;
    char text[64];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(bmc_sensors_add(&sensors, bad[i], &err) == -1, "%s",
                      bad[i]);
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_int_eq(bmc_sensors_add(&sensors, "7:node:100:2:0:0:0", &err), 0);
    ck_assert_int_eq(bmc_sensors_add(&sensors, "7:dram:100:2:0:0:0", &err), -1);
    for (unsigned i = 1; i < BMC_SENSORS_MAX; i++) {
        snprintf(text, sizeof(text), "%u:cpu1:50:15:0:0:-1", 100 + i);
        ck_assert_int_eq(bmc_sensors_add(&sensors, text, &err), 0);
    }
    ck_assert_int_eq(bmc_sensors_add(&sensors, "9:node:100:2:0:0:0", &err), -1);
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_ptr_null(bmc_sensors_find(&sensors, 9));
    ck_assert_uint_eq(bmc_sensors_find(&sensors, 102)->percent, 50);
}
END_TEST

START_TEST(sensors_raw)
{
    struct bmc_sensor two = {.m = 2}, cpu = {.m = 15, .r_exp = -1},
                      low = {.m = 1, .b = -2, .b_exp = 1, .r_exp = 0};

    ck_assert_uint_eq(bmc_sensor_raw(&two, -5), 0);
    ck_assert_uint_eq(bmc_sensor_raw(&two, 236), 118);
    ck_assert_uint_eq(bmc_sensor_raw(&two, 236.9), 118);
    ck_assert_uint_eq(bmc_sensor_raw(&two, 237.1), 119);
    ck_assert_uint_eq(bmc_sensor_raw(&two, 510), 255);
    ck_assert_uint_eq(bmc_sensor_raw(&two, 2000), 255);
    ck_assert_uint_eq(bmc_sensor_raw(&cpu, 120), 80);
    ck_assert_double_eq_tol(bmc_sensor_watts(&cpu, 80), 120, 1e-9);
    ck_assert_uint_eq(bmc_sensor_raw(&low, -20), 0);
    ck_assert_double_eq_tol(bmc_sensor_watts(&low, 5), -15, 1e-9);
}
END_TEST

/* What is shown. */

static struct bmc_sample sample(int64_t ns, double joules, double watts)
{
    return (struct bmc_sample){T0 + ns, joules, watts, 2, 0.15};
}

static double add(struct bmc_value *value, int64_t ns, double joules,
                  double watts)
{
    struct bmc_sample s = sample(ns, joules, watts);

    return bmc_value_add(value, &s);
}

START_TEST(value_plain)
{
    struct bmc_value value;

    bmc_value_init(&value, &(struct bmc_value_options){.seed = 1});
    ck_assert_double_eq(add(&value, 0, 0, 100), 100);
    ck_assert_double_eq(add(&value, S, 100, 300), 300);
    /* Neither the same moment again nor an earlier one is news. */
    ck_assert_double_eq(add(&value, S, 100, 70), 300);
    ck_assert_double_eq(add(&value, S / 2, 100, 70), 300);
    /* Another nodesim counts from 0. */
    ck_assert_double_eq(add(&value, 2 * S, 1, 70), 70);
    ck_assert_int_eq(bmc_value_next_ns(&value, T0), T0 + 250 * MS);
}
END_TEST

/* A step from 100 to 200 W: within 2 % at the settling time, whatever the
 * rate of samples. */
START_TEST(value_settles)
{
    static const int64_t steps[] = {MS, 10 * MS, 70 * MS, 1750 * MS};
    const struct bmc_value_options opt = {.settle_ns = 70 * S, .seed = 1};
    struct bmc_value value;

    for (size_t i = 0; i < 4; i++) {
        double shown = 0;

        bmc_value_init(&value, &opt);
        add(&value, 0, 0, 100);
        add(&value, S, 100, 100);
        for (int64_t ns = steps[i]; ns <= 70 * S; ns += steps[i])
            shown = add(&value, S + ns, 100 + 200.0 * (double)ns / S, 200);
        ck_assert_double_eq_tol(shown, 198, 0.01);
    }
    ck_assert_int_eq(bmc_value_next_ns(&value, T0), T0 + 100 * MS);
}
END_TEST

START_TEST(value_updates)
{
    const struct bmc_value_options opt = {.update_ns = 2 * S, .seed = 1};
    struct bmc_value value;

    bmc_value_init(&value, &opt);
    ck_assert_double_eq(add(&value, 0, 0, 100), 100);
    ck_assert_double_eq(add(&value, 1999 * MS, 300, 200), 100);
    ck_assert_int_eq(bmc_value_next_ns(&value, T0 + 1999 * MS), T0 + 2 * S);
    ck_assert_double_eq(add(&value, 2 * S, 300, 300), 300);
    ck_assert_double_eq(add(&value, 3 * S, 300, 100), 300);
    ck_assert_double_eq(add(&value, 9 * S, 300, 50), 50);
}
END_TEST

START_TEST(value_means)
{
    const struct bmc_value_options opt = {
        .update_ns = 2 * S, .mean = true, .seed = 1};
    struct bmc_value value;

    bmc_value_init(&value, &opt);
    add(&value, 0, 0, 100);
    ck_assert_double_eq(add(&value, 1 * S, 500, 100), 100);
    ck_assert_double_eq_tol(add(&value, 2 * S, 600, 100), 300, 1e-9);
    ck_assert_double_eq_tol(add(&value, 4 * S, 650, 999), 25, 1e-9);
}
END_TEST

START_TEST(value_noise)
{
    const struct bmc_value_options opt = {.noise_w = 5, .seed = 42};
    struct bmc_value value, twin;
    double sum = 0, squares = 0;
    int n = 20000;

    bmc_value_init(&value, &opt);
    bmc_value_init(&twin, &opt);
    for (int i = 0; i < n; i++) {
        double w = add(&value, i * S, i, 100);

        ck_assert_double_eq(w, add(&twin, i * S, i, 100));
        sum += w - 100;
        squares += (w - 100) * (w - 100);
    }
    ck_assert_double_eq_tol(sum / n, 0, 0.15);
    ck_assert_double_eq_tol(sqrt(squares / n), 5, 0.15);
    /* Never below 0. */
    for (int i = 0; i < 100; i++)
        ck_assert_double_ge(add(&value, (n + i) * S, n + i, 0), 0);
}
END_TEST

START_TEST(window_spans)
{
    static struct bmc_window window;
    struct bmc_statistics over;

    bmc_window_add(&window, T0, 100);
    for (int i = 1; i <= 100; i++)
        bmc_window_add(&window, T0 + i * S, i <= 90 ? 100 : 300);
    /* 90 s of 100 W, then 300 W from 91 s on. */
    over = bmc_window_over(&window, 0);
    ck_assert_double_eq(over.min_w, 100);
    ck_assert_double_eq(over.max_w, 300);
    ck_assert_double_eq_tol(over.mean_w, 100 + 200 * 9 / 100.0, 1e-6);
    ck_assert_int_eq(over.span_ns, 100 * S);
    over = bmc_window_over(&window, 5 * S);
    ck_assert_double_eq(over.min_w, 300);
    ck_assert_double_eq_tol(over.mean_w, 300, 1e-6);
    over = bmc_window_over(&window, 60 * S);
    ck_assert_double_eq(over.min_w, 100);
    ck_assert_double_eq_tol(over.mean_w, 100 + 200 * 9 / 60.0, 2);
}
END_TEST

/* The relay's queue. */

START_TEST(queue_order)
{
    static struct relay_queue queue;
    struct relay_packet packet = {.len = 1};
    int64_t last = -1;

    ck_assert_ptr_null(relay_queue_head(&queue));
    relay_queue_pop(&queue);
    for (unsigned i = 0; i < RELAY_QUEUE_MAX; i++) {
        packet.due_ns = (int64_t)(i * 7919 % 101);
        packet.client = i;
        ck_assert_int_eq(relay_queue_push(&queue, &packet), 0);
    }
    ck_assert_int_eq(relay_queue_push(&queue, &packet), -1);
    ck_assert_int_eq(errno, ENOBUFS);
    for (unsigned i = 0, client = 0; i < RELAY_QUEUE_MAX; i++) {
        const struct relay_packet *head = relay_queue_head(&queue);

        ck_assert_int_ge(head->due_ns, last);
        if (head->due_ns == last)
            ck_assert_uint_gt(head->client, client);
        last = head->due_ns;
        client = head->client;
        relay_queue_pop(&queue);
    }
    ck_assert_uint_eq(queue.count, 0);
    relay_queue_push(&queue, &packet);
    relay_queue_clear(&queue);
    ck_assert_uint_eq(queue.count, 0);
}
END_TEST

/* A whole BMC, fed by a file. */

static char dir[32], watts_path[64], config_path[64];
static int dir_fd;

static void text_write(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static void bmc_setup(void)
{
    strcpy(dir, "/tmp/test_bmcsim.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(watts_path, sizeof(watts_path), "%s/watts", dir);
    snprintf(config_path, sizeof(config_path), "%s/powerbmc.conf", dir);
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
}

static void bmc_teardown(void)
{
    unlink(watts_path);
    unlink(config_path);
    rmdir(dir);
    close(dir_fd);
}

static struct bmc *bmc_make(const struct joule_clock *clock)
{
    struct joule_error err = {""};
    struct bmc *bmc;
    char config[512];

    snprintf(config, sizeof(config),
             "File=%s\nSensor=1:node:100:2:0:0:0\nSensor=2:cpu0:100:15:0:0:-1\n"
             "Sensor=3:cpu1:100:15:0:0:-1\nSensor=4:dram:100:5:0:0:-1\n"
             "Sensor=5:node:0:4:0:0:0\nSensor=6:cpu2:100:15:0:0:-1\n",
             watts_path);
    text_write(config_path, config);
    text_write(watts_path, "200\n");
    bmc = bmc_create(dir_fd, clock, &err);
    ck_assert_msg(bmc != NULL, "%s", err.text);
    return bmc;
}

START_TEST(bmc_bad_config)
{
    static const char *const bad[] = {
        "",
        "Nodesim=/a File=/b",
        "File=/a Settle=-1",
        "File=/a Settle=2h",
        "File=/a Mean=perhaps",
        "File=/a Colour=red",
        "File=/a Sensor=1",
    };
    struct joule_error err;

    ck_assert_ptr_null(bmc_create(dir_fd, &joule_clock_system, &err));
    ck_assert_int_eq(errno, ENOENT);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err.text[0] = '\0';
        text_write(config_path, bad[i]);
        ck_assert_msg(!bmc_create(dir_fd, &joule_clock_system, &err), "%s",
                      bad[i]);
        ck_assert_msg(err.text[0], "%s", bad[i]);
    }
}
END_TEST

static void command(struct bmc *bmc, const char *text, const char *wanted)
{
    char line[256], reply[1024];

    snprintf(line, sizeof(line), "%s", text);
    bmc_command(bmc, line, reply, sizeof(reply));
    ck_assert_msg(!strncmp(reply, wanted, strlen(wanted)), "%s: %s", text,
                  reply);
}

/* Hexadecimal bytes of the answer of a sensor. */
static void sensor_is(struct bmc *bmc, unsigned number, const char *wanted)
{
    uint8_t answer[BMC_ANSWER_MAX];
    char text[2 * BMC_ANSWER_MAX + 1] = "";
    unsigned len;

    ck_assert(bmc_sensor_answer(bmc, (uint8_t)number, answer, &len));
    for (unsigned i = 0; i < len; i++)
        sprintf(text + 2 * i, "%02x", answer[i]);
    ck_assert_str_eq(text, wanted);
}

START_TEST(bmc_sensors)
{
    int64_t now = T0;
    const struct joule_clock clock = {fake_now, fake_now, &now};
    struct bmc *bmc = bmc_make(&clock);
    uint8_t answer[BMC_ANSWER_MAX];
    unsigned len;

    ck_assert(!bmc_sensor_answer(bmc, 77, answer, &len));
    sensor_is(bmc, 1, "0064c00000");
    sensor_is(bmc, 2, "0039c00000"); /* 85 W in steps of 1.5 */
    sensor_is(bmc, 4, "003cc00000"); /* 30 W in steps of 0.5 */
    sensor_is(bmc, 5, "0000c00000");
    sensor_is(bmc, 6, "0000c00000"); /* there is no third package */
    command(bmc, "faults sens_cc=0xC3", "ok");
    sensor_is(bmc, 1, "c3");
    command(bmc, "faults sens_num=2 sens_unavail=1", "ok");
    sensor_is(bmc, 1, "0064c00000");
    sensor_is(bmc, 2, "0039e00000");
    command(bmc, "faults sens_noscan=1 sens_raw=255", "ok");
    sensor_is(bmc, 1, "00ff800000");
    command(bmc, "faults sens_short=1", "ok");
    sensor_is(bmc, 1, "0064");
    command(bmc, "faults sens_stuck=1", "ok");
    sensor_is(bmc, 1, "0064c00000");
    text_write(watts_path, "100");
    now += S;
    sensor_is(bmc, 1, "0064c00000");
    command(bmc, "faults", "ok");
    sensor_is(bmc, 1, "0032c00000");
    /* Without a feed nothing is known, and that is said. */
    unlink(watts_path);
    now += S;
    sensor_is(bmc, 1, "0000e00000");
    command(bmc, "power", "error: cannot open");
    text_write(watts_path, "many");
    command(bmc, "power", "error: ");
    text_write(watts_path, "50");
    command(bmc, "power", "1002000000000 50000 50000");
    bmc_destroy(bmc);
    bmc_destroy(NULL);
}
END_TEST

static unsigned dcmi(struct bmc *bmc, unsigned cmd, unsigned a, unsigned b,
                     unsigned len, uint8_t *answer)
{
    const uint8_t request[4] = {0xDC, (uint8_t)a, (uint8_t)b, 0};
    unsigned answer_len;

    bmc_dcmi_answer(bmc, (uint8_t)cmd, request, len, answer, &answer_len);
    return answer_len;
}

START_TEST(bmc_dcmi)
{
    int64_t now = T0;
    const struct joule_clock clock = {fake_now, fake_now, &now};
    struct bmc *bmc = bmc_make(&clock);
    uint8_t a[BMC_ANSWER_MAX];

    ck_assert_uint_eq(dcmi(bmc, 0x05, 0, 0, 4, a), 1);
    ck_assert_uint_eq(a[0], 0xC1);
    dcmi(bmc, 0x02, 1, 0, 3, a);
    ck_assert_uint_eq(a[0], 0xC7);
    dcmi(bmc, 0x02, 3, 0, 4, a);
    ck_assert_uint_eq(a[0], 0xCC);
    dcmi(bmc, 0x02, 2, 0x07, 4, a); /* no such rolling average */
    ck_assert_uint_eq(a[0], 0xCC);
    dcmi(bmc, 0x01, 6, 0, 2, a);
    ck_assert_uint_eq(a[0], 0xCC);
    for (unsigned i = 1; i <= 5; i++) {
        ck_assert_uint_ge(dcmi(bmc, 0x01, i, 0, 2, a), 7);
        ck_assert_uint_eq(a[0], 0);
        ck_assert_uint_eq(a[1], 0xDC);
    }
    ck_assert_uint_eq(dcmi(bmc, 0x02, 1, 0, 4, a), 19);
    ck_assert_uint_eq(a[0], 0);
    ck_assert_uint_eq(a[2], 200);
    ck_assert_uint_eq(a[18], 0x40);
    text_write(watts_path, "300.6");
    now += 10 * S;
    dcmi(bmc, 0x02, 1, 0, 4, a);
    ck_assert_uint_eq(a[2] + 256u * a[3], 301);
    ck_assert_uint_eq(a[4], 200);
    ck_assert_uint_eq(a[6] + 256u * a[7], 301);
    ck_assert_uint_eq(a[14] + 256u * a[15], 10000);
    now += 10 * S;
    dcmi(bmc, 0x02, 2, 0x05, 4, a);
    ck_assert_uint_eq(a[4] + 256u * a[5], 301);
    ck_assert_uint_eq(a[8] + 256u * a[9], 301);
    command(bmc, "faults dcmi_w=65535 dcmi_active=0", "ok");
    dcmi(bmc, 0x02, 1, 0, 4, a);
    ck_assert_uint_eq(a[2], 0xff);
    ck_assert_uint_eq(a[3], 0xff);
    ck_assert_uint_eq(a[6] + 256u * a[7], 301); /* the statistics are true */
    ck_assert_uint_eq(a[18], 0);
    command(bmc, "faults dcmi_short=1", "ok");
    ck_assert_uint_eq(dcmi(bmc, 0x02, 1, 0, 4, a), 6);
    command(bmc, "faults dcmi_cc=0xD5", "ok");
    ck_assert_uint_eq(dcmi(bmc, 0x02, 1, 0, 4, a), 1);
    ck_assert_uint_eq(a[0], 0xD5);
    command(bmc, "faults dcmi_stuck=1", "ok");
    dcmi(bmc, 0x02, 1, 0, 4, a);
    text_write(watts_path, "10");
    now += S;
    dcmi(bmc, 0x02, 1, 0, 4, a);
    ck_assert_uint_eq(a[2] + 256u * a[3], 301);
    unlink(watts_path);
    now += S;
    command(bmc, "faults", "ok");
    ck_assert_uint_eq(dcmi(bmc, 0x02, 1, 0, 4, a), 1);
    ck_assert_uint_eq(a[0], 0xCE);
    bmc_destroy(bmc);
}
END_TEST

START_TEST(bmc_messages)
{
    struct bmc *bmc = bmc_make(&joule_clock_system);
    int ms, lost = 0;

    ck_assert_int_eq(bmc_answer_fate(bmc, 4, 0x2d, &ms), BMC_SEND);
    command(bmc, "faults netfn=4 cmd=0x2d delay_ms=30", "ok");
    ck_assert_int_eq(bmc_answer_fate(bmc, 4, 0x2d, &ms), BMC_DELAY);
    ck_assert_int_eq(ms, 30);
    ck_assert_int_eq(bmc_answer_fate(bmc, 4, 0x2e, &ms), BMC_SEND);
    ck_assert_int_eq(bmc_answer_fate(bmc, 6, 0x2d, &ms), BMC_SEND);
    command(bmc, "faults drop_n=2 block_ms=5", "ok");
    ck_assert_int_eq(bmc_answer_fate(bmc, 6, 1, &ms), BMC_DROP);
    ck_assert_int_eq(bmc_answer_fate(bmc, 6, 1, &ms), BMC_DROP);
    ck_assert_int_eq(bmc_answer_fate(bmc, 6, 1, &ms), BMC_BLOCK);
    ck_assert_int_eq(ms, 5);
    command(bmc, "faults drop_pct=30", "ok");
    for (int i = 0; i < 10000; i++)
        lost += bmc_answer_fate(bmc, 6, 1, &ms) == BMC_DROP;
    ck_assert_int_ge(lost, 2800);
    ck_assert_int_le(lost, 3200);
    command(bmc, "faults drop_pct=300", "error: drop_pct=300");
    command(bmc, "frob", "error: no command \"frob\"");
    command(bmc, "count", "total=0 sessions=0");
    bmc_count(bmc, 4, 0x2d);
    bmc_count(bmc, 4, 0x2d);
    bmc_count(bmc, 6, 1);
    command(bmc, "count", "total=3 sessions=0 04:2d=2 06:01=1");
    command(bmc, "count-reset", "ok");
    command(bmc, "count", "total=0 sessions=0");
    bmc_destroy(bmc);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bmcsim");
    TCase *parts = tcase_create("parts"), *whole = tcase_create("bmc");
    SRunner *runner;
    int failed;

    tcase_add_test(parts, faults_bad);
    tcase_add_test(parts, faults_good);
    tcase_add_test(parts, sensors_bad);
    tcase_add_test(parts, sensors_raw);
    tcase_add_test(parts, value_plain);
    tcase_add_test(parts, value_settles);
    tcase_add_test(parts, value_updates);
    tcase_add_test(parts, value_means);
    tcase_add_test(parts, value_noise);
    tcase_add_test(parts, window_spans);
    tcase_add_test(parts, queue_order);
    suite_add_tcase(suite, parts);
    tcase_add_checked_fixture(whole, bmc_setup, bmc_teardown);
    tcase_add_test(whole, bmc_bad_config);
    tcase_add_test(whole, bmc_sensors);
    tcase_add_test(whole, bmc_dcmi);
    tcase_add_test(whole, bmc_messages);
    suite_add_tcase(suite, whole);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
