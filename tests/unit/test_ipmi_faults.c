/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reader process against tests/sim/bmcsim: DCMI, answers that are no
 * measurement, sensor records that change with and without a new timestamp.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/asker.h"

#define READER JOULE_BUILD_DIR "/joule-ipmi-reader"
#define MODULE JOULE_BUILD_DIR "/tests/sim/bmcsim/powerbmc.so"
#define BMCSIM                                                                 \
    "JOULE_BUILD=" JOULE_BUILD_DIR " " JOULE_SOURCE_DIR                        \
    "/tests/sim/bmcsim/bmcsim "

#define SKIP_CODE 77

/* base/bmc-XXXXXX is the BMC's of one test; what is left is ended by main. */
static char base[] = "/tmp/joule-faults-XXXXXX";
static char dir[64];
static struct asker a;

/* BMCSIM before DIR after; what it says goes to DIR.out. */
static void bmcsim(const char *before, const char *after)
{
    char command[1024];

    snprintf(command, sizeof(command), BMCSIM "%s %s %s >%s.out 2>&1", before,
             dir, after, dir);
    if (system(command) != 0)
        ck_abort_msg("failed: %s", command);
}

static void watts(int w)
{
    char path[80];
    FILE *f;

    snprintf(path, sizeof(path), "%s.watts", dir);
    f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%d\n", w);
    fclose(f);
}

static void faults(const char *words)
{
    char command[256];

    snprintf(command, sizeof(command), "'faults %s'", words);
    bmcsim("ask", command);
}

static void setup(void)
{
    char line[128] = "", path[80], start[128], *at;
    FILE *f;

    snprintf(dir, sizeof(dir), "%s/bmc-XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    watts(300);
    asker_start(&a, READER, NULL);
    snprintf(start, sizeof(start), "start --watts %s.watts", dir);
    bmcsim(start, "");
    snprintf(path, sizeof(path), "%s.out", dir);
    f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
    fclose(f);
    ck_assert_msg(strncmp(line, "ready ", 6) == 0, "%s", line);
    at = strrchr(line, ':');
    ck_assert_ptr_nonnull(at);
    asker_config(&a.config, (unsigned)strtoul(at + 1, NULL, 10));
    strcpy(a.config.username, "mon");
    strcpy(a.config.password, "monpw");
}

static void teardown(void)
{
    int status = asker_stop(&a);

    bmcsim("stop", "");
    ck_assert_int_eq(status, 0);
}

static void want_name(const char *name)
{
    strcpy(asker_sensor(&a.config, JOULE_IPMI_SENSOR_NAME)->name, name);
}

static void open_works(void)
{
    int rc = asker_open(&a);

    ck_assert_msg(rc == 0, "%s: %s", strerror(rc), a.opened.head.text);
}

static void reads(uint32_t i, enum joule_power_status status, double w,
                  unsigned code)
{
    int rc = asker_read(&a);

    ck_assert_msg(rc == 0, "%s: %s", strerror(rc), a.values.head.text);
    ck_assert_int_eq(a.values.value[i].status, status);
    ck_assert_msg(a.values.value[i].watts == w, "%g W",
                  a.values.value[i].watts);
    ck_assert_uint_eq(a.values.value[i].code, code);
}

START_TEST(dcmi)
{
    asker_sensor(&a.config, JOULE_IPMI_SENSOR_DCMI);
    open_works();
    ck_assert_int_eq(a.opened.found[0].kind, JOULE_IPMI_SENSOR_DCMI);
    ck_assert_str_eq(a.opened.found[0].name, "DCMI");
    ck_assert(a.opened.found[0].step_w == 1.0);
    reads(0, JOULE_POWER_OK, 300.0, 0);
    watts(301);
    reads(0, JOULE_POWER_OK, 301.0, 0);
    faults("dcmi_active=0");
    reads(0, JOULE_POWER_NOT_ACTIVE, 0.0, 0);
    faults("dcmi_w=0");
    reads(0, JOULE_POWER_ZERO, 0.0, 0);
    faults("dcmi_w=65535");
    reads(0, JOULE_POWER_SATURATED, 0.0, 0);
    faults("dcmi_cc=0xD5");
    reads(0, JOULE_POWER_REFUSED, 0.0, 0xD5);
    faults("dcmi_cc=0xC0");
    reads(0, JOULE_POWER_REFUSED, 0.0, 0xC0);
    faults("dcmi_short=1");
    reads(0, JOULE_POWER_FAILED, 0.0, 0);
    faults("");
    reads(0, JOULE_POWER_OK, 301.0, 0);
}
END_TEST

START_TEST(dcmi_not_there)
{
    faults("dcmi_cc=0xC1");
    asker_sensor(&a.config, JOULE_IPMI_SENSOR_DCMI);
    ck_assert_int_eq(asker_open(&a), ENOTSUP);
    ck_assert_ptr_nonnull(strstr(a.opened.head.text, "C1h"));
    faults("dcmi_active=0");
    open_works();
    ck_assert_ptr_nonnull(strstr(a.opened.head.text, "not active"));
    ck_assert_ptr_nonnull(
        strstr(a.opened.head.text, "JouleIPMIIgnoreInactive=yes"));
    a.config.ignore_inactive = true;
    open_works();
    ck_assert_str_eq(a.opened.head.text, "");
    reads(0, JOULE_POWER_OK, 300.0, 0);
}
END_TEST

START_TEST(dcmi_enhanced)
{
    asker_sensor(&a.config, JOULE_IPMI_SENSOR_DCMI_ENHANCED);
    open_works();
    ck_assert_int_eq(a.opened.found[0].kind, JOULE_IPMI_SENSOR_DCMI_ENHANCED);
    ck_assert_int_eq(asker_read(&a), 0);
    ck_assert_int_eq(a.values.value[0].status, JOULE_POWER_OK);
    ck_assert(a.values.value[0].watts == 300.0);
}
END_TEST

START_TEST(sensor)
{
    want_name("Node");
    want_name("DRAM");
    open_works();
    reads(0, JOULE_POWER_OK, 300.0, 0);
    faults("sens_unavail=1 sens_num=1");
    reads(0, JOULE_POWER_UNAVAILABLE, 0.0, 0);
    ck_assert_int_eq(a.values.value[1].status, JOULE_POWER_OK);
    faults("sens_noscan=1");
    reads(0, JOULE_POWER_NOT_SCANNED, 0.0, 0);
    a.config.ignore_scanning = true;
    open_works();
    reads(0, JOULE_POWER_OK, 300.0, 0);
    a.config.ignore_scanning = false;
    open_works();
    faults("sens_cc=0xC3");
    reads(0, JOULE_POWER_REFUSED, 0.0, 0xC3);
    faults("sens_raw=255");
    reads(0, JOULE_POWER_SATURATED, 0.0, 0);
    faults("sens_raw=0");
    reads(0, JOULE_POWER_ZERO, 0.0, 0);
    faults("");
    reads(0, JOULE_POWER_OK, 300.0, 0);
}
END_TEST

/* The BMC is well but takes its time for readings: longer than the time after
 * which FreeIPMI asks again, shorter than what it may take. */
START_TEST(slow_readings)
{
    int failed = 0;

    a.config.answer_ns = 2 * JOULE_NS_PER_S;
    want_name("Node");
    open_works();
    faults("netfn=4 cmd=0x2d delay_ms=1200");
    while (asker_read(&a) != 0)
        ck_assert_int_lt(++failed, 4);
    for (int i = 0; i < 3; i++)
        reads(0, JOULE_POWER_OK, 300.0, 0);
}
END_TEST

static void restarted_with(const char *records)
{
    char restart[64];
    struct joule_ipmi_sensor *s =
        asker_sensor(&a.config, JOULE_IPMI_SENSOR_RECORD);

    s->record_id = 3;
    open_works();
    ck_assert_str_eq(a.opened.found[0].name, "Node");
    reads(0, JOULE_POWER_OK, 300.0, 0);
    snprintf(restart, sizeof(restart), "restart --sdr %s", records);
    bmcsim(restart, "");
    ck_assert_int_eq(asker_read(&a), ESTALE);
    strcpy(s->found_name, "Node");
    open_works();
    ck_assert_str_eq(a.opened.found[0].name, "Node");
    ck_assert_ptr_nonnull(strstr(a.opened.head.text, "have changed"));
    reads(0, JOULE_POWER_OK, 300.0, 0);
}

START_TEST(rescaled)
{
    restarted_with("rescaled");
    ck_assert(a.opened.found[0].step_w == 4.0);
}
END_TEST

START_TEST(rescaled_with_timestamp)
{
    restarted_with("rescaled,new");
    ck_assert(a.opened.found[0].step_w == 4.0);
}
END_TEST

START_TEST(reordered)
{
    restarted_with("reordered");
    ck_assert_uint_ne(a.opened.found[0].record_id, 3);
}
END_TEST

START_TEST(reordered_with_timestamp)
{
    restarted_with("reordered,new");
    ck_assert_uint_ne(a.opened.found[0].record_id, 3);
}
END_TEST

/* A test that fails leaves its BMC running. */
static int clean_up(void)
{
    char command[512];

    snprintf(command, sizeof(command),
             "for d in %s/bmc-??????; do " BMCSIM
             "stop \"$d\" >/dev/null 2>&1; done; rm -rf %s",
             base, base);
    return system(command);
}

int main(void)
{
    Suite *s = suite_create("ipmi_faults");
    TCase *t = tcase_create("ipmi_faults");
    SRunner *runner;
    int failed;

    if (access("/usr/bin/ipmi_sim", X_OK) < 0 || access(MODULE, R_OK) < 0) {
        printf("skip - ipmi_faults: no ipmi_sim, or no module for it (Debian: "
               "openipmi, libopenipmi-dev)\n");
        return SKIP_CODE;
    }
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, dcmi);
    tcase_add_test(t, dcmi_not_there);
    tcase_add_test(t, dcmi_enhanced);
    tcase_add_test(t, sensor);
    tcase_add_test(t, slow_readings);
    tcase_add_test(t, rescaled);
    tcase_add_test(t, rescaled_with_timestamp);
    tcase_add_test(t, reordered);
    tcase_add_test(t, reordered_with_timestamp);
    suite_add_tcase(s, t);
    if (!mkdtemp(base))
        return 1;
    runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (clean_up() != 0)
        printf("%s stays\n", base);
    return failed ? 1 : 0;
}
