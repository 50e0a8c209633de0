/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JOULE_SOURCE_DIR is where etc/ is. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/conffile.h"
#include "common/base/file.h"
#include "common/sensors/energy_config.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static struct tree tree;
static struct joule_error err;
static struct joule_energy_config config;
static struct joule_ipmi_config ipmi;

static void setup(void)
{
    tree_create(&tree);
    memset(&err, 0, sizeof(err));
    memset(&config, 0, sizeof(config));
    memset(&ipmi, 0xA5, sizeof(ipmi));
    joule_option_defaults(joule_energy_config_options, &config);
}

static void teardown(void)
{
    tree_destroy(&tree);
}

static int set(const char *key, const char *value)
{
    const struct joule_option *row =
        joule_option_find(joule_energy_config_options, key);

    ck_assert_msg(row != NULL, "%s", key);
    return joule_option_set(row, &config, value, &err);
}

static void must_set(const char *key, const char *value)
{
    ck_assert_msg(set(key, value) == 0, "%s", err.text);
}

static int make(void)
{
    return joule_ipmi_config_make(&config, tree.fd, "n7.example.org", "node7",
                                  &ipmi, &err);
}

static const struct {
    const char *key, *value, *sentence;
} bad_values[] = {
    {"JouleSamplePeriod", "9ms", "10ms to 60s"},
    {"EnergyIPMIFrequency", "0", "10ms to 60s"},
    {"EnergyIPMIFrequency", "-1", "is not a duration"},
    {"EnergyIPMITimeout", "0", "1s to 600s"},
    {"JouleIPMIAnswerTimeout", "61", "100ms to 60s"},
    {"EnergyIPMIVariable", "Temp", "allowed are Watts"},
    {"EnergyIPMIDriverType", "3", "OPENIPMI (2)"},
    {"EnergyIPMIDriverType", "KCS,SSIF", "OPENIPMI (2)"},
    {"EnergyIPMIDriverAddress", "0x10000", "0x0 to 0xffff"},
    {"EnergyIPMIRegisterSpacing", "256", "0 to 255"},
    {"EnergyIPMIDriverDevice", "ipmi0", "an absolute path"},
    {"EnergyIPMIDisableAutoProbe", "2", "yes or no"},
    {"EnergyIPMIProtocolVersion", "3", "2.0 (1) or 1.5 (0)"},
    {"EnergyIPMIPrivilegeLevel", "3", "ADMIN (2)"},
    {"EnergyIPMIAuthenticationType", "4", "MD5 (3)"},
    {"EnergyIPMICipherSuiteId", "4", "0 to 3, 6 to 8"},
    {"EnergyIPMICipherSuiteId", "18", "0 to 3, 6 to 8"},
    {"EnergyIPMISessionTimeout", "20s", "0 to 600000"},
    {"EnergyIPMIRetransmissionTimeout", "60001", "0 to 60000"},
    {"EnergyIPMIWorkaroundFlags", "0x80", "0 to 0x7F"},
    {"EnergyIPMIWorkaroundFlags", "opensess", "neither a number nor words"},
    {"EnergyIPMIWorkaroundFlags", "idzero,idzero", "neither a number nor"},
    {"EnergyIPMIUsername", "12345678901234567", "EnergyIPMIUsername=***"},
    {"EnergyIPMIPassword", "geheim-geheim-geheim-geheim",
     "EnergyIPMIPassword=***"},
    {"JouleIPMIHost", "bmc-%x", "only %h, %n and %% may stand in"},
    {"JouleIPMIHost", "bmc 7", "is not a host name"},
    {"JouleIPMICredentialsFile", "etc/bmc", "an absolute path"},
    {"JouleIPMIReader", "./reader", "an absolute path"},
};

START_TEST(bad_value)
{
    struct joule_energy_config before = config;

    ck_assert_int_eq(set(bad_values[_i].key, bad_values[_i].value), -1);
    ck_assert_msg(strstr(err.text, bad_values[_i].sentence), "%s", err.text);
    ck_assert_ptr_null(strstr(err.text, "geheim"));
    ck_assert_mem_eq(&before, &config, sizeof(config));
}
END_TEST

/* Each key of Slurm's plugin, with a value that Slurm takes. */
static const struct {
    const char *key, *value;
} slurm_keys[] = {
    {"EnergyIPMIDriverType", "2"},
    {"EnergyIPMIDisableAutoProbe", "0"},
    {"EnergyIPMIDriverAddress", "3234"},
    {"EnergyIPMIRegisterSpacing", "1"},
    {"EnergyIPMIDriverDevice", "/dev/ipmi0"},
    {"EnergyIPMIProtocolVersion", "1"},
    {"EnergyIPMIUsername", "admin"},
    {"EnergyIPMIPassword", "geheim"},
    {"EnergyIPMIPrivilegeLevel", "0"},
    {"EnergyIPMIAuthenticationType", "3"},
    {"EnergyIPMICipherSuiteId", "3"},
    {"EnergyIPMISessionTimeout", "20000"},
    {"EnergyIPMIRetransmissionTimeout", "1000"},
    {"EnergyIPMIWorkaroundFlags", "0"},
    {"EnergyIPMIRereadSdrCache", "yes"},
    {"EnergyIPMIIgnoreNonInterpretableSensors", "no"},
    {"EnergyIPMIBridgeSensors", "no"},
    {"EnergyIPMIInterpretOemData", "no"},
    {"EnergyIPMISharedSensors", "no"},
    {"EnergyIPMIDiscreteReading", "no"},
    {"EnergyIPMIIgnoreScanningDisabled", "yes"},
    {"EnergyIPMIAssumeBmcOwner", "no"},
    {"EnergyIPMIEntitySensorNames", "no"},
    {"EnergyIPMIFrequency", "10"},
    {"EnergyIPMICalcAdjustment", "yes"},
    {"EnergyIPMIPowerSensors", "Node=16,19,23,26;Socket0=16,23"},
    {"EnergyIPMITimeout", "10"},
    {"EnergyIPMIVariable", "Watts"},
};

START_TEST(keys_of_slurm)
{
    unsigned ours = 0;

    for (int i = 0; i < COUNT(slurm_keys); i++)
        must_set(slurm_keys[i].key, slurm_keys[i].value);
    for (const struct joule_option *o = joule_energy_config_options; o->key;
         o++) {
        ck_assert_ptr_nonnull(o->help);
        if (strncmp(o->key, "EnergyIPMI", 10) != 0) {
            ours++;
            continue;
        }
        if (o->type == JOULE_OPTION_IGNORED)
            ck_assert_ptr_nonnull(strstr(o->notice, "has no meaning here: "));
        for (int i = 0;; i++) {
            ck_assert_msg(i < COUNT(slurm_keys), "%s", o->key);
            if (strcmp(slurm_keys[i].key, o->key) == 0)
                break;
        }
    }
    ck_assert_uint_eq(ours, 14);
    ck_assert_int_eq(config.sample_period_ns, 10 * JOULE_NS_PER_S);
    ck_assert_int_eq(make(), 0);
    ck_assert_int_eq(ipmi.driver, JOULE_IPMI_DRIVER_OPENIPMI);
    ck_assert_uint_eq(ipmi.driver_address, 0xCA2);
    ck_assert_uint_eq(ipmi.register_spacing, 1);
    ck_assert_str_eq(ipmi.device, "/dev/ipmi0");
    ck_assert_int_eq(ipmi.connect_ns, 10 * JOULE_NS_PER_S);
    ck_assert_uint_eq(ipmi.label_count, 2);
    ck_assert_uint_eq(ipmi.sensor_count, 6);
    ck_assert_int_eq(ipmi.period_ns, 10 * JOULE_NS_PER_S);
    ck_assert(ipmi.ignore_scanning && !ipmi.ignore_inactive);
    /* In-band nobody asks for them. */
    ck_assert_str_eq(ipmi.password, "");
}
END_TEST

/* It is taken whatever it says, and a sentence tells the admin. */
START_TEST(quiet_period_is_ignored)
{
    static const char *const values[] = {"10s", "61s", "often"};
    struct joule_energy_config before = config;

    for (int i = 0; i < COUNT(values); i++) {
        must_set("JouleQuietPeriod", values[i]);
        ck_assert_mem_eq(&before, &config, sizeof(config));
    }
    ck_assert_ptr_nonnull(strstr(
        joule_option_find(joule_energy_config_options, "jouleQuietPeriod")
            ->notice,
        "is no longer used: "));
}
END_TEST

START_TEST(secrets_are_not_shown)
{
    char text[JOULE_OPTION_TEXT_MAX + 1];

    must_set("EnergyIPMIUsername", "admin");
    must_set("EnergyIPMIPassword", "geheim");
    for (const struct joule_option *o = joule_energy_config_options; o->key;
         o++) {
        joule_option_format(o, &config, text, sizeof(text));
        ck_assert_ptr_null(strstr(text, "geheim"));
        ck_assert_ptr_null(strstr(text, "admin"));
        ck_assert_int_eq(strcmp(text, "***") == 0, o->secret);
    }
}
END_TEST

START_TEST(make_defaults)
{
    ck_assert_msg(make() == 0, "%s", err.text);
    ck_assert_int_eq(ipmi.driver, JOULE_IPMI_DRIVER_ANY);
    ck_assert_str_eq(ipmi.host, "");
    ck_assert_str_eq(ipmi.username, "");
    ck_assert_str_eq(ipmi.device, "");
    ck_assert_uint_eq(ipmi.privilege, 2);
    ck_assert_uint_eq(ipmi.authentication, 2);
    ck_assert_uint_eq(ipmi.cipher_suite, 3);
    ck_assert_uint_eq(ipmi.session_timeout_ms, 0);
    ck_assert_uint_eq(ipmi.workaround_flags, 0);
    ck_assert_int_eq(ipmi.period_ns, JOULE_NS_PER_S);
    ck_assert_int_eq(ipmi.answer_ns, 5 * JOULE_NS_PER_S);
    ck_assert_int_eq(ipmi.connect_ns, 180 * JOULE_NS_PER_S);
    ck_assert_uint_eq(ipmi.label_count, 1);
    ck_assert_int_eq(ipmi.sensor[0].kind, JOULE_IPMI_SENSOR_DEFAULT);
    ck_assert(!ipmi.ignore_scanning && !ipmi.ignore_inactive);
    ck_assert(config.ipmi_adjust);
}
END_TEST

static const struct {
    const char *host, *type, *protocol;
    enum joule_ipmi_driver driver;
    const char *sentence;
} drivers[] = {
    {"", "auto", "2.0", JOULE_IPMI_DRIVER_ANY, NULL},
    {"", "0", "2.0", JOULE_IPMI_DRIVER_KCS, NULL},
    {"", "1", "2.0", JOULE_IPMI_DRIVER_SSIF, NULL},
    {"", "openipmi", "2.0", JOULE_IPMI_DRIVER_OPENIPMI, NULL},
    {"bmc", "auto", "2.0", JOULE_IPMI_DRIVER_LAN_2_0, NULL},
    {"bmc", "auto", "0", JOULE_IPMI_DRIVER_LAN, NULL},
    {"bmc", "auto", "1.5", JOULE_IPMI_DRIVER_LAN, NULL},
    {"bmc", "auto", "1", JOULE_IPMI_DRIVER_LAN_2_0, NULL},
    {"bmc", "LAN", "2.0", JOULE_IPMI_DRIVER_LAN, NULL},
    {"bmc", "lan_2_0", "1.5", JOULE_IPMI_DRIVER_LAN_2_0, NULL},
    {"", "LAN", "2.0", 0, "JouleIPMIHost is not set"},
    {"", "LAN_2_0", "2.0", 0, "JouleIPMIHost is not set"},
    {"bmc", "KCS", "2.0", 0, "leave one of them out"},
    {"bmc", "2", "2.0", 0, "leave one of them out"},
};

/* Nothing is left behind by a failure. */
static void must_not_make(int errnum, const char *sentence)
{
    struct joule_ipmi_config zero;
    int rc, seen;

    memset(&zero, 0, sizeof(zero));
    rc = make();
    seen = errno;
    ck_assert_int_eq(rc, -1);
    ck_assert_msg(strstr(err.text, sentence), "%s", err.text);
    ck_assert_msg(seen == errnum, "%s: %s", strerror(seen), err.text);
    ck_assert_mem_eq(&ipmi, &zero, sizeof(zero));
}

START_TEST(make_driver)
{
    must_set("JouleIPMIHost", drivers[_i].host);
    must_set("EnergyIPMIDriverType", drivers[_i].type);
    must_set("EnergyIPMIProtocolVersion", drivers[_i].protocol);
    if (drivers[_i].sentence) {
        must_not_make(EINVAL, drivers[_i].sentence);
        return;
    }
    ck_assert_msg(make() == 0, "%s", err.text);
    ck_assert_int_eq(ipmi.driver, drivers[_i].driver);
}
END_TEST

static const struct {
    const char *host, *protocol, *words;
    uint32_t flags;
    const char *sentence;
} workarounds[] = {
    {"", "2.0", "", 0, NULL},
    {"", "2.0", "none", 0, NULL},
    {"", "2.0", "0", 0, NULL},
    {"", "2.0", "assumeio,spinpoll", 3, NULL},
    {"", "2.0", "2", 2, NULL},
    {"bmc", "2.0", "opensesspriv", 0x10, NULL},
    {"bmc", "2.0", "authcap,OpenSessPriv,intel20", 0x13, NULL},
    {"bmc", "2.0", "0x10", 0x10, NULL},
    {"bmc", "2.0", "16", 0x10, NULL},
    {"bmc", "2.0", "idzero,nochecksumcheck", 0x40, NULL},
    {"bmc", "1.5", "idzero,nochecksumcheck", 0x42, NULL},
    {"bmc", "1.5", "127", 0x7F, NULL},
    {"", "2.0", "4", 0, "EnergyIPMIWorkaroundFlags: the driver has"},
    {"", "2.0", "opensesspriv", 0, "none of the work-arounds is one of"},
    {"bmc", "1.5", "opensesspriv", 0, "none of the work-arounds is one of"},
    {"bmc", "2.0", "idzero", 0, "none of the work-arounds is one of"},
};

START_TEST(make_workarounds)
{
    must_set("JouleIPMIHost", workarounds[_i].host);
    must_set("EnergyIPMIProtocolVersion", workarounds[_i].protocol);
    must_set("EnergyIPMIWorkaroundFlags", workarounds[_i].words);
    if (workarounds[_i].sentence) {
        must_not_make(EINVAL, workarounds[_i].sentence);
        return;
    }
    ck_assert_msg(make() == 0, "%s", err.text);
    ck_assert_uint_eq(ipmi.workaround_flags, workarounds[_i].flags);
}
END_TEST

START_TEST(make_host)
{
    must_set("JouleIPMIHost", "%h-%n:9001");
    ck_assert_int_eq(make(), 0);
    ck_assert_str_eq(ipmi.host, "n7-node7:9001");
    ck_assert_int_eq(
        joule_ipmi_config_make(&config, tree.fd, "", "node7", &ipmi, &err), -1);
    ck_assert_str_eq(err.text,
                     "JouleIPMIHost: the host name for %h is not known");
}
END_TEST

#define CREDENTIALS "etc/slurm/bmc.credentials"

START_TEST(make_credentials)
{
    must_set("JouleIPMIHost", "bmc");
    must_set("EnergyIPMIUsername", "admin");
    must_set("EnergyIPMIPassword", "12345678901234567");
    ck_assert_int_eq(make(), 0);
    ck_assert_str_eq(ipmi.username, "admin");
    ck_assert_str_eq(ipmi.password, "12345678901234567");
    must_set("EnergyIPMIProtocolVersion", "1.5");
    must_not_make(EINVAL, "more than 16 bytes, which IPMI 1.5");

    /* The file counts. */
    must_set("JouleIPMICredentialsFile", "/" CREDENTIALS);
    must_not_make(ENOENT, "JouleIPMICredentialsFile: cannot open /etc: No");
    tree_write(&tree, CREDENTIALS, "username monitor\npassword geheim\n");
    ck_assert_int_eq(fchmodat(tree.fd, CREDENTIALS, 0640, 0), 0);
    must_not_make(EPERM, "JouleIPMICredentialsFile: /etc/slurm/bmc.credentials "
                         "may be read by others");
    ck_assert_int_eq(fchmodat(tree.fd, CREDENTIALS, 0600, 0), 0);
    ck_assert_msg(make() == 0, "%s", err.text);
    /* The reader's alone. */
    ck_assert_str_eq(ipmi.username, "");
    ck_assert_str_eq(ipmi.password, "");
}
END_TEST

START_TEST(make_timeouts)
{
    must_set("EnergyIPMIRetransmissionTimeout", "2000");
    ck_assert_int_eq(make(), 0);
    must_set("EnergyIPMISessionTimeout", "1999");
    must_not_make(EINVAL, "is more than EnergyIPMISessionTimeout");
    must_set("EnergyIPMISessionTimeout", "2000");
    ck_assert_int_eq(make(), 0);
    ck_assert_uint_eq(ipmi.session_timeout_ms, 2000);
    ck_assert_uint_eq(ipmi.retransmission_timeout_ms, 2000);
}
END_TEST

static const char *const example_files[] = {
    "etc/acct_gather.conf.example", "etc/acct_gather-ipmi.conf.example",
    "etc/acct_gather-ipmi-lan.conf.example"};

static int must_take(const char *key, const char *value, unsigned line,
                     void *arg)
{
    ck_assert_msg(key != NULL, "line %u: %s", line, value);
    (*(unsigned *)arg)++;
    must_set(key, value);
    return 0;
}

/* As they are, and with what is behind a single '#': there stand defaults. */
START_TEST(examples)
{
    int root = open(JOULE_SOURCE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *text = joule_file_load(root, example_files[_i], 1 << 16, NULL);
    struct joule_energy_config plain;
    unsigned settings = 0, more = 0;

    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(
        joule_conffile_walk(text, strlen(text), must_take, &settings), 0);
    ck_assert_uint_ge(settings, 2);
    ck_assert_int_eq(mkdirat(tree.fd, "etc", 0755), 0);
    ck_assert_int_eq(mkdirat(tree.fd, "etc/slurm", 0755), 0);
    tree_write(&tree, CREDENTIALS, "username a\npassword b\n");
    ck_assert_int_eq(fchmodat(tree.fd, CREDENTIALS, 0600, 0), 0);
    ck_assert_msg(make() == 0, "%s", err.text);
    plain = config;

    for (char *p = text; (p = strstr(p, "\n#")); p++)
        if (strncmp(p + 2, "Joule", 5) == 0 ||
            strncmp(p + 2, "EnergyIPMI", 10) == 0)
            p[1] = ' ';
    ck_assert_int_eq(joule_conffile_walk(text, strlen(text), must_take, &more),
                     0);
    ck_assert(more > settings || _i == 0);
    /* Where the device is by default FreeIPMI knows. */
    memset(config.ipmi.device, 0, sizeof(config.ipmi.device));
    memset(config.ipmi_workarounds, 0, sizeof(config.ipmi_workarounds));
    ck_assert_mem_eq(&config, &plain, sizeof(config));
    free(text);
    close(root);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("energy config");
    TCase *t = tcase_create("options");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, bad_value, 0, COUNT(bad_values));
    tcase_add_test(t, keys_of_slurm);
    tcase_add_test(t, quiet_period_is_ignored);
    tcase_add_test(t, secrets_are_not_shown);
    tcase_add_loop_test(t, examples, 0, COUNT(example_files));
    suite_add_tcase(s, t);

    t = tcase_create("make");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, make_defaults);
    tcase_add_loop_test(t, make_driver, 0, COUNT(drivers));
    tcase_add_loop_test(t, make_workarounds, 0, COUNT(workarounds));
    tcase_add_test(t, make_host);
    tcase_add_test(t, make_credentials);
    tcase_add_test(t, make_timeouts);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
