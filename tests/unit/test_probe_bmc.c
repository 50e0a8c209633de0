/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joule probe with a BMC: tests/sim/bmcsim on a free loopback port, asked
 * through the real reader process.
 */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/tree.h"
#include "tools/joule/probe.h"

#define READER JOULE_BUILD_DIR "/joule-ipmi-reader"
#define MODULE JOULE_BUILD_DIR "/tests/sim/bmcsim/powerbmc.so"
#define BMCSIM                                                                 \
    "JOULE_BUILD=" JOULE_BUILD_DIR " " JOULE_SOURCE_DIR                        \
    "/tests/sim/bmcsim/bmcsim "

#define COUNT(a)  ((int)(sizeof(a) / sizeof((a)[0])))
#define MS        JOULE_NS_PER_MS
#define SKIP_CODE 77

#define SLURM_CONF                                                             \
    "PluginDir=/opt/slurm-joule:/usr/lib/slurm\n"                              \
    "AcctGatherEnergyType=acct_gather_energy/joule_ipmi\n"                     \
    "JobAcctGatherType=jobacct_gather/cgroup\n"                                \
    "JobAcctGatherFrequency=task=30,energy=1\n"                                \
    "AcctGatherNodeFreq=30\n"                                                  \
    "PrologFlags=Contain\n"                                                    \
    "AccountingStorageType=accounting_storage/slurmdbd\n"

static struct tree tree;
static struct joule_probe *probe;
static struct joule_error err;
static bool running;     /* the BMC */
static char bmc_dir[96]; /* below the tree */
static char host[64];
static char *text, *json; /* the reports */

static void setup(void)
{
    tree_create(&tree);
    probe = calloc(1, sizeof(*probe));
    ck_assert_ptr_nonnull(probe);
    snprintf(bmc_dir, sizeof(bmc_dir), "%s/bmc", tree.path);
    strcpy(host, "127.0.0.1:1");
    text = json = NULL;
    running = false;
}

/* BMCSIM WORDS DIR AFTER */
static void bmcsim(const char *words, const char *after)
{
    char command[512];

    snprintf(command, sizeof(command), BMCSIM "%s %s %s >%s.out 2>&1", words,
             bmc_dir, after, bmc_dir);
    if (system(command) != 0)
        ck_abort_msg("failed: %s", command);
}

static void start_bmc(int watts, const char *options)
{
    char words[256], number[16], line[128] = "", path[128];
    FILE *f;

    snprintf(number, sizeof(number), "%d\n", watts);
    tree_write(&tree, "watts", number);
    snprintf(words, sizeof(words), "start %s --watts %s/watts", options,
             tree.path);
    bmcsim(words, "");
    running = true;
    snprintf(path, sizeof(path), "%s.out", bmc_dir);
    f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
    fclose(f);
    ck_assert_msg(sscanf(line, "ready %63s", host) == 1, "%s", line);
}

static void teardown(void)
{
    if (running)
        bmcsim("stop", "");
    free(text);
    free(json);
    free(probe);
    tree_destroy(&tree);
}

static void credentials(const char *content)
{
    tree_write(&tree, "etc/bmc", content);
    ck_assert_int_eq(fchmodat(tree.fd, "etc/bmc", 0600, 0), 0);
}

static void make_reports(void)
{
    size_t size;
    FILE *out;

    free(text);
    free(json);
    out = open_memstream(&text, &size);
    joule_probe_print_text(out, probe);
    fclose(out);
    out = open_memstream(&json, &size);
    joule_probe_print_json(out, probe);
    fclose(out);
}

/* With the BMC's host, and up to three more settings. */
static void collect(bool ipmi, int64_t measure_ns, const char *a, const char *b,
                    const char *c)
{
    char host_setting[96];
    const char *const settings[] = {
        "JouleIPMIReader=" READER,
        host_setting,
        "EnergyIPMIWorkaroundFlags=opensesspriv",
        "EnergyIPMITimeout=5s",
        "JouleIPMIAnswerTimeout=1s",
        a,
        b,
        c,
    };
    struct joule_probe_options opt = {
        .root = tree.path,
        .measure_ns = measure_ns,
        .ipmi = ipmi,
        .settings = settings,
        .setting_count = (size_t)(5 + !!a + !!b + !!c),
    };
    int rc;

    snprintf(host_setting, sizeof(host_setting), "JouleIPMIHost=%s", host);
    rc = joule_probe_collect(probe, &opt, &joule_clock_system, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    make_reports();
}

static const struct joule_finding *finding(const char *id)
{
    for (size_t i = 0; i < probe->findings.count; i++)
        if (strcmp(probe->findings.list[i].id, id) == 0)
            return &probe->findings.list[i];
    return NULL;
}

static const struct joule_finding *must_find(const char *id,
                                             enum joule_level level)
{
    const struct joule_finding *f = finding(id);

    ck_assert_msg(f != NULL, "no %s in %s", id, text);
    ck_assert_msg(f->level == level, "%s", text);
    return f;
}

static void must_say(const char *words)
{
    ck_assert_msg(strstr(text, words) != NULL, "no \"%s\" in %s", words, text);
}

#define CREDENTIALS "JouleIPMICredentialsFile=/etc/bmc"

START_TEST(no_host)
{
    const char *const settings[] = {"EnergyIPMIDriverType=LAN_2_0",
                                    "JouleIPMIReader=" READER};
    struct joule_probe_options opt = {
        .root = tree.path,
        .measure_ns = 100 * MS,
        .ipmi = true,
        .settings = settings,
        .setting_count = COUNT(settings),
    };

    ck_assert_int_eq(
        joule_probe_collect(probe, &opt, &joule_clock_system, &err), 0);
    make_reports();
    ck_assert_str_eq(must_find("bmc-host", JOULE_FAULT)->advice.text,
                     "JouleIPMIHost=%n-bmc");
    ck_assert(!joule_probe_good(probe));
}
END_TEST

START_TEST(no_credentials)
{
    start_bmc(200, "");
    collect(true, 100 * MS, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(
        strstr(must_find("bmc-credentials", JOULE_FAULT)->advice.text,
               "JouleIPMICredentialsFile=/"));
    ck_assert(!probe->bmc.connected);
    ck_assert(!joule_probe_good(probe));
}
END_TEST

START_TEST(bad_credentials_file)
{
    collect(true, 100 * MS, CREDENTIALS, NULL, NULL);
    must_find("bmc-credentials", JOULE_FAULT);
    credentials("username admin\npassword hush-hush\n");
    ck_assert_int_eq(fchmodat(tree.fd, "etc/bmc", 0644, 0), 0);
    collect(true, 100 * MS, CREDENTIALS, NULL, NULL);
    must_find("bmc-credentials", JOULE_FAULT);
    must_say("0600");
    ck_assert_ptr_null(strstr(text, "hush"));
    ck_assert_ptr_null(strstr(json, "hush"));
    credentials("username admin\nhush-hush\n");
    collect(true, 100 * MS, CREDENTIALS, NULL, NULL);
    must_find("bmc-credentials", JOULE_FAULT);
    must_say("JouleIPMICredentialsFile: /etc/bmc: line 2: neither");
    ck_assert_ptr_null(strstr(text, "hush"));
    ck_assert_ptr_null(strstr(json, "hush"));
}
END_TEST

START_TEST(wrong_password)
{
    start_bmc(200, "");
    credentials("username admin\npassword hush-hush\n");
    collect(true, 100 * MS, CREDENTIALS, NULL, NULL);
    must_find("bmc", JOULE_FAULT);
    ck_assert(!joule_probe_good(probe));
    ck_assert_ptr_null(strstr(text, "hush"));
    ck_assert_ptr_null(strstr(json, "hush"));
}
END_TEST

/* What slurmd would refuse to run is not run here either. */
START_TEST(reader_of_anybody)
{
    char conf[512];

    tree_write(&tree, "reader", "#!/bin/sh\ntouch ran\n");
    ck_assert_int_eq(fchmodat(tree.fd, "reader", 0777, 0), 0);
    tree_write(&tree, "etc/slurm/slurm.conf", SLURM_CONF);
    snprintf(conf, sizeof(conf), "JouleIPMIReader=%s/reader\n", tree.path);
    tree_write(&tree, "etc/slurm/acct_gather.conf", conf);
    struct joule_probe_options opt = {.root = tree.path,
                                      .measure_ns = 100 * MS};
    ck_assert_int_eq(
        joule_probe_collect(probe, &opt, &joule_clock_system, &err), 0);
    make_reports();
    ck_assert_ptr_nonnull(
        strstr(must_find("bmc-configuration", JOULE_FAULT)->text.text,
               "JouleIPMIReader: "));
    ck_assert(!joule_probe_good(probe));
}
END_TEST

START_TEST(no_such_sensor)
{
    start_bmc(200, "");
    credentials("username admin\npassword secret\n");
    collect(true, 100 * MS, CREDENTIALS, "EnergyIPMIPowerSensors=Node=Nude",
            NULL);
    ck_assert_str_eq(must_find("bmc-sensors", JOULE_FAULT)->advice.text,
                     "EnergyIPMIPowerSensors=Node=DCMI");
    must_say("the BMC has no sensor \"Nude\"");
    must_say("PSU2 (record 8): zero");
    must_say("DCMI: 200.0 W");
    ck_assert(!joule_probe_good(probe));
}
END_TEST

START_TEST(not_active)
{
    start_bmc(200, "");
    credentials("username admin\npassword secret\n");
    bmcsim("ask", "'faults dcmi_active=0'");
    collect(true, 200 * MS, CREDENTIALS, "EnergyIPMIPowerSensors=Node=DCMI",
            NULL);
    ck_assert(probe->bmc.connected);
    ck_assert_str_eq(must_find("bmc-no-measurement", JOULE_FAULT)->advice.text,
                     "EnergyIPMIPowerSensors=Node=Node");
    must_say(" not active");
    ck_assert(!joule_probe_good(probe));
    /* Nothing else measures: the option that believes it is the line. */
    bmcsim("ask", "'faults dcmi_active=0 sens_cc=0xC0'");
    collect(true, 100 * MS, CREDENTIALS, NULL, NULL);
    ck_assert_str_eq(must_find("bmc-sensors", JOULE_FAULT)->advice.text,
                     "JouleIPMIIgnoreInactive=yes");
    collect(true, 100 * MS, CREDENTIALS, "JouleIPMIIgnoreInactive=yes", NULL);
    ck_assert_msg(joule_probe_good(probe), "%s", text);
    ck_assert_double_eq(probe->bmc.labels[0].last_w, 200);
    bmcsim("ask", "'faults sens_noscan=1 dcmi_cc=0xC1'");
    collect(true, 100 * MS, CREDENTIALS, NULL, NULL);
    ck_assert_str_eq(must_find("bmc-sensors", JOULE_FAULT)->advice.text,
                     "EnergyIPMIIgnoreScanningDisabled=yes");
    collect(true, 100 * MS, CREDENTIALS, "EnergyIPMIIgnoreScanningDisabled=yes",
            NULL);
    ck_assert_msg(joule_probe_good(probe), "%s", text);
    ck_assert_str_eq(probe->bmc.sensors[0].found.name, "Node");
}
END_TEST

START_TEST(good)
{
    const struct joule_bmc *b = &probe->bmc;
    unsigned fds = tree_open_fds();

    start_bmc(202, "");
    credentials("username admin\npassword secret\n");
    collect(true, 500 * MS, CREDENTIALS,
            "EnergyIPMIPowerSensors=Node=PSU1,PSU2;Mem=DRAM", NULL);
    ck_assert_msg(joule_probe_good(probe), "%s", text);
    ck_assert_uint_eq(b->label_count, 2);
    ck_assert_uint_eq(b->sensor_count, 3);
    /* PSU1 counts in steps of 4 W. */
    ck_assert_double_eq_tol(b->labels[0].last_w, 202, 2.01);
    ck_assert_str_eq(b->sensors[2].found.name, "DRAM");
    ck_assert_uint_eq(b->sensors[2].found.record_id, 6);
    ck_assert_double_eq(b->sensors[2].found.step_w, 0.5);
    ck_assert_double_eq(b->sensors[2].found.max_w, 127.5);
    ck_assert_uint_gt(b->readings, 10);
    ck_assert_uint_eq(b->failures, 0);
    ck_assert_int_gt(b->latency_ns, 0);
    ck_assert_int_lt(b->latency_ns, 100 * MS);
    ck_assert_int_gt(b->connect_ns, 0);
    ck_assert_uint_eq(b->changes, 0);
    must_say("LAN_2_0");
    must_say(host);
    must_say("did not change");
    must_say("Node (record 3): 202.0 W");
    ck_assert_str_eq(must_find("bmc-candidates", JOULE_NOTE)->advice.text,
                     "EnergyIPMIPowerSensors=Node=PSU1,PSU2;Mem=DRAM;"
                     "record-3=Node;CPU0=CPU0;CPU1=CPU1;DCMI=DCMI");
    /* RAPL is told of, and is no error. */
    must_find("no-counters", JOULE_NOTE);
    ck_assert_ptr_null(strstr(text, "secret"));
    ck_assert_ptr_null(strstr(json, "secret"));
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

/* Without EnergyIPMIPowerSensors: not the first sensor (the second supply, 0
 * W), but what covers the node; and none where that is not certain. */
START_TEST(nothing_configured)
{
    start_bmc(136, "--sdr reordered");
    credentials("username admin\npassword secret\n");
    bmcsim("ask", "'faults dcmi_cc=0xC1'");
    collect(true, 100 * MS, CREDENTIALS, NULL, NULL);
    ck_assert_msg(joule_probe_good(probe), "%s", text);
    ck_assert_uint_eq(probe->bmc.sensor_count, 1);
    ck_assert_str_eq(probe->bmc.sensors[0].found.name, "Node");
    bmcsim("ask", "'faults dcmi_w=322'");
    collect(true, 100 * MS, CREDENTIALS, NULL, NULL);
    ck_assert(!joule_probe_good(probe));
    ck_assert_ptr_nonnull(
        strstr(must_find("bmc-sensors", JOULE_FAULT)->text.text,
               "(DCMI 322 W, Node 136 W, PSU2 + PSU1 136 W)"));
    /* Two agree. */
    ck_assert_str_eq(finding("bmc-sensors")->advice.text,
                     "EnergyIPMIPowerSensors=Node=Node");
    collect(true, 100 * MS, CREDENTIALS, "EnergyIPMIPowerSensors=Node=DCMI",
            NULL);
    ck_assert_msg(joule_probe_good(probe), "%s", text);
    ck_assert_double_eq(probe->bmc.labels[0].last_w, 322);
}
END_TEST

/* slurm.conf says who measures. */
START_TEST(configured)
{
    start_bmc(202, "");
    credentials("username mon\npassword monpw\n");
    tree_write(&tree, "opt/slurm-joule/acct_gather_energy_joule_ipmi.so", "");
    tree_write(&tree, "etc/slurm/slurm.conf", SLURM_CONF);
    tree_write(&tree, "etc/slurm/acct_gather.conf",
               CREDENTIALS "\nJouleIPMIHost=127.0.0.1:1\n");
    collect(false, 200 * MS, NULL, NULL, NULL);
    ck_assert_msg(joule_probe_good(probe), "%s", text);
    ck_assert(probe->ipmi);
    ck_assert(probe->conf.ipmi);
    ck_assert_str_eq(probe->bmc.sensors[0].found.name, "DCMI");
    ck_assert_double_eq(probe->bmc.labels[0].last_w, 202);
    ck_assert_uint_eq(probe->findings.total[JOULE_WARNING], 0);
    tree_write(&tree, "etc/slurm/slurm.conf",
               SLURM_CONF "JobAcctGatherType=jobacct_gather/none\n");
    collect(false, 200 * MS, NULL, NULL, NULL);
    ck_assert(probe->bmc.measures);
    ck_assert(!joule_probe_good(probe));
}
END_TEST

/* The counters count too, and that there are none is worth a warning. */
START_TEST(configured_fused)
{
    start_bmc(202, "");
    credentials("username mon\npassword monpw\n");
    tree_write(&tree, "opt/slurm-joule/acct_gather_energy_joule_fused.so", "");
    tree_write(&tree, "etc/slurm/slurm.conf",
               SLURM_CONF
               "AcctGatherEnergyType=acct_gather_energy/joule_fused\n");
    tree_write(&tree, "etc/slurm/acct_gather.conf",
               CREDENTIALS "\nJouleIPMIHost=127.0.0.1:1\n");
    collect(false, 200 * MS, NULL, NULL, NULL);
    ck_assert(probe->ipmi && probe->fused);
    ck_assert_msg(joule_probe_good(probe), "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "RAPL: "));
    ck_assert_uint_ge(probe->findings.total[JOULE_WARNING], 1);
}
END_TEST

START_TEST(refresh)
{
    start_bmc(200, "--update 400ms --noise 20000");
    credentials("username admin\npassword secret\n");
    collect(true, 3000 * MS, CREDENTIALS, "EnergyIPMIPowerSensors=Node=DCMI",
            "JouleSamplePeriod=100ms");
    ck_assert_uint_ge(probe->bmc.changes, 5);
    ck_assert_int_ge(probe->bmc.refresh_ns, 330 * MS);
    ck_assert_int_le(probe->bmc.refresh_ns, 450 * MS);
    ck_assert_ptr_nonnull(
        strstr(must_find("bmc-refresh", JOULE_NOTE)->advice.text,
               "JouleSamplePeriod="));
    ck_assert(joule_probe_good(probe));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("probe_bmc");
    TCase *t = tcase_create("probe_bmc");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, no_host);
    tcase_add_test(t, no_credentials);
    tcase_add_test(t, bad_credentials_file);
    tcase_add_test(t, wrong_password);
    tcase_add_test(t, reader_of_anybody);
    tcase_add_test(t, no_such_sensor);
    tcase_add_test(t, not_active);
    tcase_add_test(t, good);
    tcase_add_test(t, nothing_configured);
    tcase_add_test(t, configured);
    tcase_add_test(t, configured_fused);
    tcase_add_test(t, refresh);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *runner;
    int failed;

    if (system("command -v ipmi_sim sdrcomp > /dev/null") != 0 ||
        access(MODULE, R_OK) < 0) {
        printf("SKIP: needs ipmi_sim and its module powerbmc "
               "(libopenipmi-dev)\n");
        return SKIP_CODE;
    }
    runner = srunner_create(suite());
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
