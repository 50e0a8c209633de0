/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/sensors/ipmi_config.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static struct tree tree;
static struct joule_error err;
static struct joule_ipmi_config config, before;
static unsigned fds_before;

static void setup(void)
{
    tree_create(&tree);
    memset(&err, 0, sizeof(err));
    memset(&config, 0xA5, sizeof(config));
    before = config;
    fds_before = tree_open_fds();
}

static void teardown(void)
{
    ck_assert_uint_eq(tree_open_fds(), fds_before);
    tree_destroy(&tree);
}

/* What failed: the errno value, the sentence, and nothing has changed. */
static void must_have_failed(int rc, int errnum, const char *sentence)
{
    int seen = errno;

    ck_assert_int_eq(rc, -1);
    ck_assert_msg(strstr(err.text, sentence), "%s, not %s", err.text, sentence);
    ck_assert_msg(seen == errnum, "%s: %s", strerror(seen), err.text);
    ck_assert_mem_eq(&config, &before, sizeof(config));
}

#define NAME63  "123456789-123456789-123456789-123456789-123456789-123456789-123"
#define LABEL31 "abcdefghi-abcdefghi-abcdefghi_A"

static const struct {
    const char *text, *sentence;
} bad_sensors[] = {
    {"16", "\"16\" is not of the form LABEL=SENSOR"},
    {"Node", "\"Node\" is not of the form"},
    {"Node,A=1", "\"Node\" is not of the form"},
    {";Node=1", "\"\" is not of the form"},
    {"Node=1;;A=2", "\"\" is not of the form"},
    {"=1", "a label is missing before \"=\""},
    {" =1", "a label is missing before \"=\""},
    {"A=1", "there is no label \"Node\""},
    {"Nod=1;Nodes=2", "there is no label \"Node\""},
    {"Node=1;A=2;A=3", "label \"A\" stands twice"},
    {"Node=1;NODE=2", "label \"Node\" stands twice"},
    {"Node=1;A B=2", "label \"A B\" has characters other than"},
    {"Node=1;\xC3\xA9=2", "has characters other than"},
    {"Node=1;" LABEL31 "B=1", "has more than 31 characters"},
    {"Node=", "label \"Node\" has an empty place"},
    {"Node=;A=1", "label \"Node\" has an empty place"},
    {"Node=1;A=", "label \"A\" has an empty place"},
    {"Node=1,", "label \"Node\" has an empty place"},
    {"Node=1,,2", "label \"Node\" has an empty place"},
    {"Node= ,2", "label \"Node\" has an empty place"},
    {"Node=0", "0 is no record id (1 to 65534"},
    {"Node=65535", "65535 is no record id"},
    {"Node=99999999999999999999999", "is no record id"},
    {"Node=123456789012345678901234567890123456", "is no record id"},
    {"Node=16=17", "\"16=17\" has a quote or a \"=\" in it"},
    {"Node=a\"b", "has a quote or a \"=\" in it"},
    {"Node=it's", "has a quote or a \"=\" in it"},
    {"Node=\"", "a quote is opened and not closed: \""},
    {"Node=\"a'", "a quote is opened and not closed: \"a'"},
    {"Node=\"a\"b", "\",\" or \";\" is missing before b"},
    {"Node=\"a\"\"b\"", "\",\" or \";\" is missing before \"b\""},
    {"Node=\"\"", "the name of a sensor is empty"},
    {"Node=''", "the name of a sensor is empty"},
    {"Node=a\tb", "control character"},
    {"Node=\"a\nb\"", "control character"},
    {"Node=" NAME63 "4x", "has more than 63 characters"},
    {"Node='" NAME63 "4'", "has more than 63 characters"},
    {"Node=1,2,1", "sensor 1 stands twice in label \"Node\""},
    {"Node=PSU,\"PSU\"", "sensor PSU stands twice"},
    {"Node=DCMI,dcmi", "sensor dcmi stands twice"},
};

START_TEST(sensors_bad)
{
    int rc = joule_ipmi_sensors_parse(bad_sensors[_i].text, &config, &err);

    must_have_failed(rc, EINVAL, bad_sensors[_i].sentence);
    ck_assert_int_eq(
        joule_ipmi_sensors_parse(bad_sensors[_i].text, &config, NULL), -1);
}
END_TEST

START_TEST(sensors_too_many)
{
    char text[2048] = "Node=1";
    int rc;

    for (int i = 2; i <= JOULE_IPMI_SENSORS_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%d", i);
    ck_assert_int_eq(joule_ipmi_sensors_parse(text, &config, &err), 0);
    ck_assert_uint_eq(config.sensor_count, JOULE_IPMI_SENSORS_MAX);
    before = config;
    strcat(text, ",1000");
    rc = joule_ipmi_sensors_parse(text, &config, &err);
    must_have_failed(rc, EINVAL, "more than 64 sensors");

    strcpy(text, "Node=1");
    for (int i = 1; i < JOULE_IPMI_LABELS_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ";L%d=1", i);
    ck_assert_int_eq(joule_ipmi_sensors_parse(text, &config, &err), 0);
    ck_assert_uint_eq(config.label_count, JOULE_IPMI_LABELS_MAX);
    before = config;
    strcat(text, ";X=1");
    rc = joule_ipmi_sensors_parse(text, &config, &err);
    must_have_failed(rc, EINVAL, "more than 16 labels");
}
END_TEST

/* [expected]: "LABEL=" and, for each of its sensors, a letter and what it is
 * looked for by. */
static const struct {
    const char *text, *expected;
} good_sensors[] = {
    {"", "Node=first"},
    {"  ", "Node=first"},
    {"Node=16", "Node=#16"},
    {"node=65534", "Node=#65534"},
    {"Node=0016", "Node=#16"},
    {"Node=16,19,23,26;Socket0=16,23;Socket1=19,26;SSUP=23,26;KNC=16,19",
     "Node=#16#19#23#26;Socket0=#16#23;Socket1=#19#26;SSUP=#23#26;KNC=#16#19"},
    {"SSUP0=29;Node=29,32;SSUP1=32", "Node=#29#32;SSUP0=#29;SSUP1=#32"},
    {"A=1;B=2;NODE=3", "Node=#3;A=#1;B=#2"},
    {"Node=DCMI", "Node=dcmi"},
    {"Node=dcmi_Enhanced,dcmi", "Node=enhanced,dcmi"},
    {"Node=PSU1 PIN,PSU2 PIN", "Node='PSU1 PIN'PSU2 PIN"},
    {" Node = PSU1 PIN , 7 ; A = \"x\" ; ", "Node='PSU1 PIN#7;A='x"},
    {"Node='16',\"DCMI\",'a,b;c=d\"e',\"it's\"",
     "Node='16'DCMI'a,b;c=d\"e'it's"},
    {"Node=16a,-5,+3,0x10", "Node='16a'-5'+3'0x10"},
    {"Node=\xC2\xB5W", "Node='\xC2\xB5W"},
    {"Node=' blank '", "Node=' blank "},
    {"Node=1;", "Node=#1"},
    {"'Node=4'", "Node=#4"},
    {" 'Node=PSU1;A=\"x,y\",'z''\t", "Node='PSU1;A='x,y'z"},
};

static void describe(char *text, size_t size)
{
    text[0] = '\0';
    for (uint32_t l = 0; l < config.label_count; l++) {
        snprintf(text + strlen(text), size - strlen(text),
                 "%s%s=", l ? ";" : "", config.label[l]);
        for (uint32_t i = 0; i < config.sensor_count; i++) {
            const struct joule_ipmi_sensor *s = &config.sensor[i];
            char *end = text + strlen(text);
            size_t left = size - strlen(text);

            if (s->label != l)
                continue;
            ck_assert_str_eq(s->found_name, "");
            switch (s->kind) {
            case JOULE_IPMI_SENSOR_DEFAULT:
                snprintf(end, left, "first");
                break;
            case JOULE_IPMI_SENSOR_RECORD:
                snprintf(end, left, "#%d", s->record_id);
                break;
            case JOULE_IPMI_SENSOR_NAME:
                snprintf(end, left, "'%s", s->name);
                break;
            case JOULE_IPMI_SENSOR_DCMI:
                snprintf(end, left, "%sdcmi", end[-1] == '=' ? "" : ",");
                break;
            case JOULE_IPMI_SENSOR_DCMI_ENHANCED:
                snprintf(end, left, "enhanced");
                break;
            }
        }
    }
}

START_TEST(sensors_good)
{
    char text[512];
    int rc = joule_ipmi_sensors_parse(good_sensors[_i].text, &config, &err);

    ck_assert_msg(rc == 0, "%s", err.text);
    describe(text, sizeof(text));
    ck_assert_str_eq(text, good_sensors[_i].expected);
    /* Nothing else is touched. */
    ck_assert_int_eq((unsigned char)config.password[0], 0xA5);
    ck_assert_int_eq(config.period_ns, before.period_ns);
}
END_TEST

START_TEST(sensors_longest_name)
{
    ck_assert_int_eq(joule_ipmi_sensors_parse("Node='" NAME63 "';" LABEL31
                                              "=" NAME63,
                                              &config, &err),
                     0);
    ck_assert_str_eq(config.sensor[0].name, NAME63);
    ck_assert_str_eq(config.sensor[1].name, NAME63);
    ck_assert_str_eq(config.label[1], LABEL31);
}
END_TEST

static const struct {
    const char *pattern, *hostname, *node, *sentence;
} bad_hosts[] = {
    {"", "h", "n", "there is no host name"},
    {":623", "h", "n", "there is no host name"},
    {"%", "h", "n", "only %h, %n and %% may stand in"},
    {"bmc-%x", "h", "n", "only %h, %n and %% may stand in"},
    {"bmc-%h", "", "n", "the host name for %h is not known"},
    {"bmc-%h", NULL, "n", "the host name for %h is not known"},
    {"bmc-%n", "h", "", "the NodeName for %n is not known"},
    {"%%", "h", "n", "is not a host name"},
    {"bmc 1", "h", "n", "is not a host name"},
    {"bmc;1", "h", "n", "is not a host name"},
    {"bmc/1", "h", "n", "is not a host name"},
    {"%n", "h", "a\nb", "is not a host name"},
    {"bmc:", "h", "n", "no port behind \":\""},
    {"bmc:0", "h", "n", "no port behind \":\""},
    {"bmc:65536", "h", "n", "no port behind \":\""},
    {"bmc:ipmi", "h", "n", "no port behind \":\""},
    {"[::1]x", "h", "n", "no port behind \"]\""},
    {"[::1]:", "h", "n", "no port behind \":\""},
};

START_TEST(host_bad)
{
    int rc =
        joule_ipmi_host_expand(bad_hosts[_i].pattern, bad_hosts[_i].hostname,
                               bad_hosts[_i].node, &config, &err);

    must_have_failed(rc, EINVAL, bad_hosts[_i].sentence);
}
END_TEST

START_TEST(host_too_long)
{
    char name[300];
    int rc;

    memset(name, 'a', sizeof(name));
    name[256] = '\0';
    rc = joule_ipmi_host_expand("%n", "h", name, &config, &err);
    must_have_failed(rc, EINVAL, "of more than 255 characters");
    rc = joule_ipmi_host_expand(name, "h", "n", &config, &err);
    must_have_failed(rc, EINVAL, "of more than 255 characters");
    name[255] = '\0';
    ck_assert_int_eq(joule_ipmi_host_expand("%n", "h", name, &config, &err), 0);
    ck_assert_str_eq(config.host, name);
}
END_TEST

static const struct {
    const char *pattern, *expected;
} good_hosts[] = {
    {"bmc7", "bmc7"},
    {"%h-bmc", "node7-bmc"},
    {"bmc-%n.example.org:623", "bmc-n7.example.org:623"},
    {"%h%n", "node7n7"},
    {"10.1.2.3:9001", "10.1.2.3:9001"},
    {"fe80::1", "fe80::1"},
    {"[fe80::1]:623", "[fe80::1]:623"},
    {"[::1]", "[::1]"},
};

START_TEST(host_good)
{
    ck_assert_msg(joule_ipmi_host_expand(good_hosts[_i].pattern,
                                         "node7.example.org", "n7", &config,
                                         &err) == 0,
                  "%s", err.text);
    ck_assert_str_eq(config.host, good_hosts[_i].expected);
}
END_TEST

#define LINES(text) text, sizeof(text) - 1

static const struct {
    const char *text;
    size_t len;
    const char *sentence;
} bad_credentials[] = {
    {LINES(""), "there is no line \"username NAME\""},
    {LINES("\n\n# nothing\n"), "there is no line \"username NAME\""},
    {LINES("username admin\n"), "there is no line \"password WORDS\""},
    {LINES("password s3cret\n"), "there is no line \"username NAME\""},
    {LINES("username admin\npassword\n"), "line 2: password has no value"},
    {LINES("username \t \npassword s3cret\n"), "line 1: username has no value"},
    {LINES("username a\nusername b\npassword s3cret"),
     "line 2: a second username"},
    {LINES("username a\npassword b\n\npassword s3cret"),
     "line 4: a second password"},
    {LINES("username 12345678901234567\npassword s3cret\n"),
     "line 1: username has more than 16 bytes"},
    {LINES("username a\npassword 123456789012345678901\n"),
     "line 2: password has more than 20 bytes"},
    {LINES("admin s3cret\n"), "line 1: neither"},
    {LINES("username=admin\npassword s3cret\n"), "line 1: neither"},
    {LINES("username admin\npasswords3cret\n"), "line 2: neither"},
    {LINES("username admin\npassword s3\0cret\n"), "line 2: a NUL byte"},
    {LINES("username admin\npassword s3cret\n\0"), "line 3: a NUL byte"},
    {LINES("username admin\npassword s3\rcret\n"), "line 2: a control char"},
    {LINES("username ad\x1Bmin\npassword s3cret\n"), "line 1: a control char"},
    {LINES("\xEF\xBB\xBFusername a\npassword s3cret\n"), "line 1: neither"},
};

START_TEST(credentials_bad)
{
    int rc = joule_ipmi_credentials_parse(
        bad_credentials[_i].text, bad_credentials[_i].len, &config, &err);

    must_have_failed(rc, EINVAL, bad_credentials[_i].sentence);
    ck_assert_ptr_null(strstr(err.text, "s3"));
    ck_assert_ptr_null(strstr(err.text, "cret"));
}
END_TEST

static const struct {
    const char *text, *username, *password;
} good_credentials[] = {
    {"username admin\npassword s3cret\n", "admin", "s3cret"},
    {"password s3cret\nusername admin", "admin", "s3cret"},
    {"# BMC\r\nUserName admin\r\npassword two words \r\n", "admin",
     "two words"},
    {"  username\tadmin  \n\n\tpassword \t #s3=cret# \n", "admin", "#s3=cret#"},
    {"username 1234567890123456\npassword 12345678901234567890",
     "1234567890123456", "12345678901234567890"},
    {"username j\xC3\xBCrgen\npassword \"q\"", "j\xC3\xBCrgen", "\"q\""},
};

START_TEST(credentials_good)
{
    const char *text = good_credentials[_i].text;

    ck_assert_msg(
        joule_ipmi_credentials_parse(text, strlen(text), &config, &err) == 0,
        "%s", err.text);
    ck_assert_str_eq(config.username, good_credentials[_i].username);
    ck_assert_str_eq(config.password, good_credentials[_i].password);
    ck_assert_int_eq(config.period_ns, before.period_ns);
}
END_TEST

#define PATH "etc/slurm/bmc"

static void write_credentials(void)
{
    tree_write(&tree, PATH, "username admin\npassword s3cret\n");
    ck_assert_int_eq(fchmodat(tree.fd, PATH, 0600, 0), 0);
}

static int load(const char *path)
{
    int fd = joule_ipmi_credentials_open(tree.fd, path, &err);
    int rc = fd < 0 ? -1 : joule_ipmi_credentials_read(fd, path, &config, &err);
    int errnum = errno;

    if (fd >= 0)
        close(fd);
    errno = errnum;
    return rc;
}

static void must_not_load(const char *path, int errnum, const char *sentence)
{
    must_have_failed(load(path), errnum, sentence);
    ck_assert_ptr_nonnull(strstr(err.text, "JouleIPMICredentialsFile: "));
    ck_assert_ptr_null(strstr(err.text, "s3cret"));
}

START_TEST(file_bad_path)
{
    write_credentials();
    must_not_load("", EINVAL, "is not an absolute path");
    must_not_load(PATH, EINVAL, "is not an absolute path");
    must_not_load("/", EINVAL, "is not a plain absolute path");
    must_not_load("/" PATH "/", ENOTDIR, "cannot open /etc/slurm/bmc: Not a");
}
END_TEST

START_TEST(file_missing)
{
    char longest[5000];

    must_not_load("/etc/slurm/bmc", ENOENT, "cannot open /etc: No such file");
    write_credentials();
    must_not_load("/etc/slurm/bmd", ENOENT,
                  "cannot open /etc/slurm/bmd: No such file");
    must_not_load("/etc/../etc/slurm/bmc", EINVAL, "not a plain absolute path");
    must_not_load("/./etc/slurm/bmc", EINVAL, "not a plain absolute path");
    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    longest[300] = '\0';
    must_not_load(longest, EINVAL, "not a plain absolute path");
    longest[300] = 'a';
    longest[sizeof(longest) - 1] = '\0';
    must_not_load(longest, EINVAL, "");
}
END_TEST

START_TEST(file_modes)
{
    static const mode_t modes[] = {0640, 0604, 0644, 0620, 0602,
                                   0610, 0601, 0666, 0777};

    for (int i = 0; i < COUNT(modes); i++) {
        write_credentials();
        ck_assert_int_eq(fchmodat(tree.fd, PATH, modes[i], 0), 0);
        must_not_load("/" PATH, EPERM,
                      modes[i] & 022 ? "may be written by others"
                                     : "may be read by others");
    }
}
END_TEST

START_TEST(file_in_open_directory)
{
    static const mode_t modes[] = {0775, 0757, 0777};

    write_credentials();
    for (int i = 0; i < COUNT(modes); i++) {
        ck_assert_int_eq(fchmodat(tree.fd, "etc", modes[i], 0), 0);
        must_not_load("/" PATH, EPERM, "/etc may be written by others");
    }
    /* In a directory like /tmp nobody can replace what root has made. */
    ck_assert_int_eq(fchmodat(tree.fd, "etc", 01777, 0), 0);
    ck_assert_int_eq(load("/" PATH), 0);
}
END_TEST

START_TEST(file_of_somebody_else)
{
    if (geteuid() != 0)
        return;
    write_credentials();
    ck_assert_int_eq(fchownat(tree.fd, PATH, 4711, 0, 0), 0);
    must_not_load("/" PATH, EPERM, "/etc/slurm/bmc belongs to user 4711");
    ck_assert_int_eq(fchownat(tree.fd, PATH, 0, 0, 0), 0);
    ck_assert_int_eq(fchownat(tree.fd, "etc/slurm", 4711, 0, 0), 0);
    must_not_load("/" PATH, EPERM, "/etc/slurm belongs to user 4711");
}
END_TEST

START_TEST(file_is_something_else)
{
    write_credentials();
    ck_assert_int_eq(linkat(tree.fd, PATH, tree.fd, "second", 0), 0);
    must_not_load("/" PATH, EPERM, "has more than one name");
    tree_remove(&tree, "second");
    ck_assert_int_eq(symlinkat("bmc", tree.fd, "etc/slurm/link"), 0);
    must_not_load("/etc/slurm/link", EPERM,
                  "/etc/slurm/link is a symbolic link");
    ck_assert_int_eq(symlinkat("etc", tree.fd, "link"), 0);
    must_not_load("/link/slurm/bmc", EPERM, "/link is a symbolic link");
    must_not_load("/etc/slurm", EPERM, "/etc/slurm is not a regular file");
    must_not_load("/" PATH "/bmc", ENOTDIR, "cannot open /etc/slurm/bmc");
    /* Nobody writes into it: opening it must not wait for that. */
    ck_assert_int_eq(mkfifoat(tree.fd, "etc/fifo", 0600), 0);
    must_not_load("/etc/fifo", EPERM, "/etc/fifo is not a regular file");
}
END_TEST

START_TEST(file_contents)
{
    static const char nul[] = "username admin\npassword s3\0cret\n";

    write_credentials();
    tree_truncate(&tree, PATH, 64 << 20);
    must_not_load("/" PATH, EFBIG, "/etc/slurm/bmc: more than 4096 bytes");
    tree_truncate(&tree, PATH, 4097);
    must_not_load("/" PATH, EFBIG, "/etc/slurm/bmc: more than 4096 bytes");
    tree_truncate(&tree, PATH, 4096);
    must_not_load("/" PATH, EINVAL, "/etc/slurm/bmc: line 3: a NUL byte");
    tree_bytes(&tree, PATH, nul, sizeof(nul) - 1);
    must_not_load("/" PATH, EINVAL, "/etc/slurm/bmc: line 2: a NUL byte");
    tree_write(&tree, PATH, "");
    must_not_load("/" PATH, EINVAL, "there is no line");
    tree_write(&tree, PATH, "username a\npassword s3cret-s3cret-s3c\n");
    config.driver = before.driver = JOULE_IPMI_DRIVER_LAN;
    must_not_load("/" PATH, EINVAL,
                  "/etc/slurm/bmc: the BMC's password has more than 16 bytes");
}
END_TEST

START_TEST(file_good)
{
    write_credentials();
    ck_assert_msg(load("//etc/slurm//bmc") == 0, "%s", err.text);
    ck_assert_str_eq(config.username, "admin");
    ck_assert_str_eq(config.password, "s3cret");
    ck_assert_int_eq(fchmodat(tree.fd, PATH, 0400, 0), 0);
    ck_assert_int_eq(load("/" PATH), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("ipmi_config");
    TCase *t = tcase_create("sensors");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, sensors_bad, 0, COUNT(bad_sensors));
    tcase_add_test(t, sensors_too_many);
    tcase_add_loop_test(t, sensors_good, 0, COUNT(good_sensors));
    tcase_add_test(t, sensors_longest_name);
    suite_add_tcase(s, t);

    t = tcase_create("host");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, host_bad, 0, COUNT(bad_hosts));
    tcase_add_test(t, host_too_long);
    tcase_add_loop_test(t, host_good, 0, COUNT(good_hosts));
    suite_add_tcase(s, t);

    t = tcase_create("credentials");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, credentials_bad, 0, COUNT(bad_credentials));
    tcase_add_loop_test(t, credentials_good, 0, COUNT(good_credentials));
    tcase_add_test(t, file_bad_path);
    tcase_add_test(t, file_missing);
    tcase_add_test(t, file_modes);
    tcase_add_test(t, file_in_open_directory);
    tcase_add_test(t, file_of_somebody_else);
    tcase_add_test(t, file_is_something_else);
    tcase_add_test(t, file_contents);
    tcase_add_test(t, file_good);
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
