/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joule probe on built trees.  JOULE_PLUGIN_DIR is /opt/slurm-joule here;
 * JOULE_SOURCE_DIR is where etc/ and doc/ are.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/node/ledger_file.h"
#include "common/sensors/rapl.h"
#include "tests/unit/tree.h"
#include "tools/joule/command.h"
#include "tools/joule/json.h"
#include "tools/joule/probe.h"
#include "tools/joule/slurmconf.h"
#include "tools/joule/text.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

#define UNIT 0x606
#define PKG  0x611
#define DRAM 0x619

#define PLUGIN      "acct_gather_energy_joule_rapl.so"
#define IPMI_PLUGIN "acct_gather_energy_joule_ipmi.so"

/* A configuration that has nothing to be said of. */
#define GOOD_PLUGIN_DIR "PluginDir=/opt/slurm-joule:/usr/lib/slurm\n"
#define GOOD_REST                                                              \
    "JobAcctGatherType=jobacct_gather/cgroup\n"                                \
    "JobAcctGatherFrequency=task=30,energy=1\n"                                \
    "AcctGatherNodeFreq=30\n"                                                  \
    "PrologFlags=Alloc,contain\n"                                              \
    "AccountingStorageType=accounting_storage/slurmdbd\n"
#define GOOD_TYPE "AcctGatherEnergyType=acct_gather_energy/joule_rapl\n"
#define IPMI_TYPE "AcctGatherEnergyType=acct_gather_energy/joule_ipmi\n"
#define GOOD      GOOD_PLUGIN_DIR GOOD_TYPE GOOD_REST

static struct tree tree;
static struct joule_probe *probe;
static struct joule_error err;

static void setup(void)
{
    tree_create(&tree);
    probe = calloc(1, sizeof(*probe));
    ck_assert_ptr_nonnull(probe);
    memset(&err, 0, sizeof(err));
}

static void teardown(void)
{
    free(probe);
    tree_destroy(&tree);
}

static const struct joule_finding *finding(const struct joule_findings *list,
                                           const char *id)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->list[i].id, id) == 0)
            return &list->list[i];
    return NULL;
}

/* ---- text ---- */

static const struct {
    const char *bytes;
    size_t length;
} characters[] = {
    {"a", 1},
    {" ", 1},
    {"\n", 0},
    {"\x1b[31m", 0},
    {"\x7f", 0},
    {"\xc2\x9b", 0}, /* C1: the other way to begin an escape sequence */
    {"\xc2\xa0", 2},
    {"\xc3\xa9", 2},
    {"\xc0\xaf", 0}, /* overlong */
    {"\xe0\x80\x80", 0},
    {"\xe2\x82\xac", 3},
    {"\xe2\x80\xae", 0}, /* right-to-left override */
    {"\xed\xa0\x80", 0}, /* surrogate */
    {"\xf0\x9f\x94\x8b", 4},
    {"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
    {"\xf0\x9f\x94", 0},     /* ends too early */
    {"\xe2", 0},
    {"\x80", 0},
    {"\xff", 0},
};

START_TEST(text_char)
{
    ck_assert_uint_eq(joule_text_char(characters[_i].bytes),
                      characters[_i].length);
}
END_TEST

START_TEST(text_unit)
{
    static const struct {
        struct joule_unit unit;
        const char *text;
    } units[] = {
        {{15625, 8}, "61.03515625"},
        {{15625, 10}, "15.2587890625"},
        {{1000000, 0}, "1000000"},
        {{32, 0}, "32"},
        {{1, 31}, "0.0000000004656612873077392578125"},
        {{UINT32_MAX, 31}, "1.9999999995343387126922607421875"},
    };
    char buf[JOULE_UNIT_TEXT_MAX];

    for (int i = 0; i < COUNT(units); i++) {
        joule_text_unit(units[i].unit, buf);
        ck_assert_str_eq(buf, units[i].text);
    }
}
END_TEST

START_TEST(text_seconds)
{
    char buf[32];

    joule_text_seconds(65.536, buf, sizeof(buf));
    ck_assert_str_eq(buf, "65.5 s");
    joule_text_seconds(7200, buf, sizeof(buf));
    ck_assert_str_eq(buf, "2.0 h");
    joule_text_seconds(86400 * 3, buf, sizeof(buf));
    ck_assert_str_eq(buf, "3.0 d");
    joule_text_seconds(1e300, buf, sizeof(buf));
    ck_assert_str_eq(buf, "years");
}
END_TEST

/* ---- JSON ---- */

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \n\r\t");
}

static const char *skip_string(const char *p)
{
    if (*p++ != '"')
        return NULL;
    while (*p != '"') {
        size_t len = joule_text_char(p);

        if (*p == '\\') {
            p++;
            if (*p == 'u') {
                if (strspn(p + 1, "0123456789abcdefABCDEF") < 4)
                    return NULL;
                p += 5;
                continue;
            }
            if (!*p || !strchr("\"\\/bfnrt", *p))
                return NULL;
        }
        if (len == 0)
            return NULL;
        p += len;
    }
    return p + 1;
}

static const char *skip_number(const char *p)
{
    p += *p == '-';
    if (*p == '0')
        p++;
    else if (strspn(p, "0123456789"))
        p += strspn(p, "0123456789");
    else
        return NULL;
    if (*p == '.') {
        p++;
        if (!strspn(p, "0123456789"))
            return NULL;
        p += strspn(p, "0123456789");
    }
    return p;
}

/* The end of the JSON value at [p], or NULL. */
static const char *skip_value(const char *p)
{
    static const char *const words[] = {"null", "true", "false"};
    char close;

    p = skip_blanks(p);
    if (*p == '"')
        return skip_string(p);
    for (int i = 0; i < COUNT(words); i++)
        if (strncmp(p, words[i], strlen(words[i])) == 0)
            return p + strlen(words[i]);
    if (*p != '{' && *p != '[')
        return skip_number(p);
    close = *p == '{' ? '}' : ']';
    p = skip_blanks(p + 1);
    if (*p == close)
        return p + 1;
    for (;;) {
        if (close == '}') {
            p = skip_string(skip_blanks(p));
            if (!p || *(p = skip_blanks(p)) != ':')
                return NULL;
            p++;
        }
        p = skip_value(p);
        if (!p)
            return NULL;
        p = skip_blanks(p);
        if (*p == close)
            return p + 1;
        if (*p++ != ',')
            return NULL;
    }
}

static void must_be_json(const char *text)
{
    const char *end = skip_value(text);

    ck_assert_msg(end && *skip_blanks(end) == '\0', "no JSON: %s", text);
}

static char *memory;
static size_t memory_size;

START_TEST(json_document)
{
    struct joule_json j;
    FILE *out = open_memstream(&memory, &memory_size);

    joule_json_begin(&j, out);
    joule_json_string(&j, "quo\"te", "back\\slash \x1b[0m \xff \xc3\xa9\n");
    joule_json_string(&j, "nothing", NULL);
    joule_json_array(&j, "empty");
    joule_json_close(&j);
    joule_json_array(&j, "list");
    joule_json_u64(&j, NULL, UINT64_MAX);
    joule_json_i64(&j, NULL, INT64_MIN);
    joule_json_milli(&j, NULL, 65536);
    joule_json_object(&j, NULL);
    joule_json_close(&j);
    joule_json_close(&j);
    joule_json_bool(&j, "yes", true);
    joule_json_end(&j);
    fclose(out);
    must_be_json(memory);
    ck_assert_str_eq(memory,
                     "{\n"
                     "  \"quo\\\"te\": \"back\\\\slash \\ufffd[0m \\ufffd "
                     "\xc3\xa9\\ufffd\",\n"
                     "  \"nothing\": null,\n"
                     "  \"empty\": [],\n"
                     "  \"list\": [\n"
                     "    18446744073709551615,\n"
                     "    -9223372036854775808,\n"
                     "    65.536,\n"
                     "    {}\n"
                     "  ],\n"
                     "  \"yes\": true\n"
                     "}\n");
    free(memory);
}
END_TEST

/* ---- slurm.conf ---- */

static struct joule_findings findings;

static int load(struct joule_slurmconf *conf)
{
    memset(&findings, 0, sizeof(findings));
    errno = 0;
    return joule_slurmconf_load(tree.fd, "/etc/slurm/slurm.conf", conf,
                                &findings, &err);
}

START_TEST(slurmconf_missing)
{
    struct joule_slurmconf conf;

    ck_assert_int_eq(load(&conf), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/etc/slurm/slurm.conf"));
    ck_assert_uint_eq(conf.count, 0);
}
END_TEST

START_TEST(slurmconf_no_text)
{
    struct joule_slurmconf conf;

    tree_bytes(&tree, "etc/slurm/slurm.conf", "A=b\0C=d\n", 8);
    ck_assert_int_eq(load(&conf), -1);
    ck_assert_int_eq(errno, EINVAL);
    tree_remove(&tree, "etc/slurm/slurm.conf");
    ck_assert_int_eq(mkfifoat(tree.fd, "etc/slurm/slurm.conf", 0600), 0);
    ck_assert_int_eq(load(&conf), -1);
    ck_assert_int_eq(errno, EINVAL);
    tree_remove(&tree, "etc/slurm/slurm.conf");
    tree_mkdir(&tree, "etc/slurm/slurm.conf");
    ck_assert_int_eq(load(&conf), -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(slurmconf_too_long)
{
    struct joule_slurmconf conf;

    tree_write(&tree, "etc/slurm/slurm.conf", "A=b\n");
    tree_truncate(&tree, "etc/slurm/slurm.conf", 64 << 20);
    ck_assert_int_eq(load(&conf), -1);
    ck_assert_int_eq(errno, EFBIG);
}
END_TEST

START_TEST(slurmconf_last_counts)
{
    struct joule_slurmconf conf;
    const struct joule_slurmconf_setting *s;

    tree_write(&tree, "etc/slurm/slurm.conf",
               "# PluginDir=/no\nPluginDir=/a\nOther=1\nplugindir=/b\n");
    ck_assert_int_eq(load(&conf), 0);
    ck_assert_uint_eq(conf.count, 2);
    s = joule_slurmconf_find(&conf, "PLUGINDIR");
    ck_assert_ptr_nonnull(s);
    ck_assert_str_eq(s->value, "/b");
    ck_assert_str_eq(s->place.file, "/etc/slurm/slurm.conf");
    ck_assert_uint_eq(s->place.line, 4);
    ck_assert_ptr_null(joule_slurmconf_find(&conf, "PluginDi"));
    joule_slurmconf_free(&conf);
    joule_slurmconf_free(&conf);
}
END_TEST

START_TEST(slurmconf_include)
{
    struct joule_slurmconf conf;
    const struct joule_slurmconf_setting *s;

    tree_write(&tree, "etc/slurm/slurm.conf",
               "ClusterName=alpha\nInclude %c.conf\nA=main\n"
               "Include /srv/slurm/b.conf\n");
    tree_write(&tree, "etc/slurm/alpha.conf", "A=included\n\nC=3\n");
    /* Relative to the main file, not to the including one. */
    tree_write(&tree, "srv/slurm/b.conf", "Include sub/d.conf\n");
    tree_write(&tree, "etc/slurm/sub/d.conf", "D=4\n");
    ck_assert_int_eq(load(&conf), 0);
    ck_assert_uint_eq(findings.count, 0);
    ck_assert_str_eq(joule_slurmconf_find(&conf, "A")->value, "main");
    s = joule_slurmconf_find(&conf, "C");
    ck_assert_str_eq(s->place.file, "/etc/slurm/alpha.conf");
    ck_assert_uint_eq(s->place.line, 3);
    ck_assert_str_eq(joule_slurmconf_find(&conf, "D")->value, "4");
    joule_slurmconf_free(&conf);
}
END_TEST

START_TEST(slurmconf_bad_include)
{
    struct joule_slurmconf conf;
    char text[2048];

    tree_write(&tree, "etc/slurm/slurm.conf",
               "Include nowhere.conf\nA=1\nInclude slurm.conf\n");
    ck_assert_int_eq(load(&conf), 0);
    ck_assert_uint_gt(findings.total[JOULE_FAULT], 1);
    ck_assert_ptr_nonnull(strstr(findings.list[0].text.text, "nowhere.conf"));
    ck_assert_uint_eq(findings.list[0].place.line, 1);
    ck_assert_str_eq(joule_slurmconf_find(&conf, "A")->value, "1");
    joule_slurmconf_free(&conf);

    memset(text, 'x', sizeof(text));
    memcpy(text, "Include ", 8);
    text[sizeof(text) - 1] = '\0';
    tree_write(&tree, "etc/slurm/slurm.conf", text);
    ck_assert_int_eq(load(&conf), 0);
    ck_assert_uint_eq(findings.total[JOULE_FAULT], 1);
    joule_slurmconf_free(&conf);
}
END_TEST

/* A tree of files that include each other twice would be read 2^8 times. */
START_TEST(slurmconf_include_bomb)
{
    struct joule_slurmconf conf;

    tree_write(&tree, "etc/slurm/slurm.conf",
               "Include slurm.conf\nInclude slurm.conf\n"
               "Include slurm.conf\nInclude slurm.conf\n");
    ck_assert_int_eq(load(&conf), 0);
    ck_assert_uint_ge(findings.total[JOULE_FAULT], 1);
    ck_assert_uint_le(findings.count, JOULE_FINDINGS_MAX);
    joule_slurmconf_free(&conf);
}
END_TEST

START_TEST(slurmconf_many_settings)
{
    struct joule_slurmconf conf;
    char *text = malloc(5000 * 16), *p = text;

    for (int i = 0; i < 5000; i++)
        p += sprintf(p, "Key%d=1\n", i);
    tree_write(&tree, "etc/slurm/slurm.conf", text);
    free(text);
    ck_assert_int_eq(load(&conf), 0);
    ck_assert_uint_eq(conf.count, 1024);
    ck_assert_ptr_nonnull(finding(&findings, "too-many-settings"));
    joule_slurmconf_free(&conf);
}
END_TEST

/* ---- checks of the configuration ---- */

static struct joule_confcheck check;

static void check_conf(const char *slurm_conf, const char *gather)
{
    static const char *const paths[] = {"/etc/slurm/slurm.conf", NULL};

    tree_write(&tree, "etc/slurm/slurm.conf", slurm_conf);
    if (gather)
        tree_write(&tree, "etc/slurm/acct_gather.conf", gather);
    tree_write(&tree, "opt/slurm-joule/" PLUGIN, "");
    tree_write(&tree, "opt/slurm-joule/" IPMI_PLUGIN, "");
    tree_write(&tree, "var/p/README", "");
    memset(&findings, 0, sizeof(findings));
    joule_confcheck_init(&check);
    joule_confcheck_run(&check, tree.fd, paths, &findings);
}

static const struct {
    const char *slurm_conf, *gather;
    const char *id; /* NULL: no finding */
    enum joule_level level;
    unsigned line;
    const char *advice, *text;
} confs[] = {
    {GOOD, NULL, NULL, 0, 0, NULL, NULL},
    {GOOD_PLUGIN_DIR GOOD_REST "AcctGatherEnergyType=joule_rapl\n", NULL, NULL,
     0, 0, NULL, NULL},
    {"PluginDir=\"/x:/opt/slurm-joule/\"\n" GOOD_TYPE GOOD_REST, NULL, NULL, 0,
     0, NULL, NULL},

    {GOOD_TYPE GOOD_REST, NULL, "plugin-dir", JOULE_FAULT, 0,
     "PluginDir=/opt/slurm-joule:SLURMS_OWN_PLUGIN_DIRECTORY", "is not set"},
    {"PluginDir=/usr/lib/slurm\n" GOOD_TYPE GOOD_REST, NULL, "plugin-dir",
     JOULE_FAULT, 1, "PluginDir=/opt/slurm-joule:/usr/lib/slurm",
     "does not name /opt/slurm-joule"},
    {"PluginDir=::opt/slurm-joule:\n" GOOD_TYPE GOOD_REST, NULL, "plugin-dir",
     JOULE_FAULT, 1, NULL, NULL},
    {"PluginDir=/opt/slurm-joule\n" GOOD_TYPE GOOD_REST, NULL,
     "plugin-dir-alone", JOULE_FAULT, 1, NULL, NULL},

    {GOOD_PLUGIN_DIR GOOD_REST, NULL, "energy-type", JOULE_FAULT, 0,
     "AcctGatherEnergyType=acct_gather_energy/joule_rapl", "is not set"},
    {GOOD_PLUGIN_DIR GOOD_REST "AcctGatherEnergyType=\n", NULL, "energy-type",
     JOULE_FAULT, 0, NULL, NULL},
    {GOOD_PLUGIN_DIR GOOD_REST "AcctGatherEnergyType=acct_gather_energy/None\n",
     NULL, "energy-type", JOULE_FAULT, 7, NULL, "\"none\""},
    {GOOD_PLUGIN_DIR GOOD_REST "AcctGatherEnergyType=acct_gather_energy/rapl\n",
     NULL, "energy-type", JOULE_FAULT, 7, NULL, "acct_gather_energy/rapl"},
    {GOOD_PLUGIN_DIR GOOD_REST
     "AcctGatherEnergyType=acct_gather_energy/joule_rapl,ipmi\n",
     NULL, "energy-type-list", JOULE_FAULT, 7, NULL, "again at every poll"},

    {GOOD "JobAcctGatherType=\"\"\n", NULL, "job-gather", JOULE_FAULT, 8,
     "JobAcctGatherType=jobacct_gather/cgroup", "not set"},
    {GOOD "JobAcctGatherType=jobacct_gather/none\n"
          "ProctrackType=proctrack/linuxproc\n",
     NULL, "job-gather", JOULE_FAULT, 8,
     "JobAcctGatherType=jobacct_gather/linux", "jobacct_gather/none"},

    /* whose energy */
    {GOOD "JobAcctGatherType=jobacct_gather/linux\n", NULL, "cpu-time",
     JOULE_WARNING, 8, "JouleAttribution=alloc", "do not bill"},
    {GOOD "JobAcctGatherType=jobacct_gather/linux\n"
          "ProctrackType=proctrack/linuxproc\n",
     NULL, "cpu-time", JOULE_WARNING, 9, "JouleAttribution=alloc", "linuxproc"},
    {GOOD "ProctrackType=proctrack/linuxproc\n", NULL, "cpu-time",
     JOULE_WARNING, 8, "JouleAttribution=alloc", "do not bill"},
    {GOOD "ProctrackType=proctrack/linuxproc\n", "JouleAttribution=alloc\n",
     NULL, 0, 0, NULL, NULL},
    {GOOD "JobAcctGatherType=jobacct_gather/linux\n",
     "JouleAttribution=alloc\n", NULL, 0, 0, NULL, NULL},
    {GOOD "JobAcctGatherType=jobacct_gather/linux\n"
          "ProctrackType=proctrack/cgroup\n",
     NULL, NULL, 0, 0, NULL, NULL},
    {GOOD "SelectType=select/cons_tres\nPartitionName=p Nodes=n\n", NULL, NULL,
     0, 0, NULL, NULL},
    {GOOD "SelectType=select/cons_tres\nPartitionName=p Nodes=n\n",
     "JouleAttribution=node\n", "whole-node", JOULE_WARNING, 9,
     "JouleAttribution=cputime", "partition p "},
    {GOOD "PartitionName=a OverSubscribe=EXCLUSIVE\n"
          "PartitionName=b Shared=yes:2\nSelectType=select/cons_res\n",
     "JouleAttribution=node\n", "whole-node", JOULE_WARNING, 9, NULL,
     "partition b "},
    {GOOD "SelectType=select/cons_tres\n"
          "PartitionName=default OverSubscribe=Exclusive\n"
          "PartitionName=a Nodes=n\nPartitionName=b shared=exclusive:1\n",
     "JouleAttribution=node\n", NULL, 0, 0, NULL, NULL},
    {GOOD "SelectType=select/linear\nPartitionName=p Nodes=n\n",
     "JouleAttribution=node\n", NULL, 0, 0, NULL, NULL},
    {GOOD, "JouleAttribution=jobs\n", "bad-value", JOULE_WARNING, 1,
     "JouleAttribution=cputime", "cputime, alloc or node"},

    {GOOD "JobAcctGatherFrequency=task=0\n", NULL, "task-frequency", JOULE_NOTE,
     8, NULL, NULL},
    {GOOD "JobAcctGatherFrequency=0\n", NULL, "task-frequency", JOULE_NOTE, 8,
     NULL, NULL},
    {GOOD "JobAcctGatherFrequency=task=,energy=x,,=\n", NULL, NULL, 0, 0, NULL,
     NULL},
    {GOOD "AcctGatherProfileType=acct_gather_profile/hdf5\n"
          "JobAcctGatherFrequency=30\n",
     NULL, "energy-frequency", JOULE_WARNING, 9, NULL, NULL},
    {GOOD "AcctGatherProfileType=acct_gather_profile/hdf5\n"
          "JobAcctGatherFrequency=task=30,energy=0\n",
     NULL, "energy-frequency", JOULE_WARNING, 9, NULL, NULL},
    {GOOD "AcctGatherProfileType=acct_gather_profile/hdf5\n",
     "ProfileHDF5Dir=/var/p\n", NULL, 0, 0, NULL, NULL},
    {GOOD "AcctGatherProfileType=acct_gather_profile/hdf5\n", NULL,
     "profile-dir", JOULE_WARNING, 0, "ProfileHDF5Dir=/shared/profiles",
     "is not set"},
    {GOOD "AcctGatherProfileType=acct_gather_profile/joule_hdf5\n",
     "JouleIdleWatts=5\n", "profile-dir", JOULE_WARNING, 0, NULL, "is not set"},
    {GOOD "AcctGatherProfileType=joule_hdf5\n", "\nProfileHDF5Dir=/var/q\n",
     "profile-dir", JOULE_WARNING, 2, NULL, "/var/q is not there"},
    {GOOD "AcctGatherProfileType=joule_hdf5\n", "ProfileHDF5Dir=var/p\n",
     "profile-dir", JOULE_WARNING, 1, NULL, "absolute"},
    {GOOD "AcctGatherProfileType=acct_gather_profile/joule_hdf5\n",
     "ProfileHDF5Dir=/var/p\nProfileHDF5Default=All\n"
     "JouleProfilePeriod=100ms\nJouleProfileCompression=shuffle,3\n",
     NULL, 0, 0, NULL, NULL},
    {GOOD "AcctGatherProfileType=acct_gather_profile/joule_hdf5\n",
     "ProfileHDF5Dir=/var/p\nJouleProfilePeriod=1ms\n", "bad-value",
     JOULE_WARNING, 2, "JouleProfilePeriod=0s", "JouleProfilePeriod=1ms"},
    {GOOD "AcctGatherProfileType=acct_gather_profile/hdf5\n",
     "ProfileHDF5Dir=/var/p\nJouleProfilePeriod=100ms\n",
     "option-without-plugin", JOULE_FAULT, 2, NULL,
     "AcctGatherProfileType is no plugin of slurm-joule"},
    {GOOD, "JouleProfileWhat=1\n", "unknown-option", JOULE_FAULT, 1, NULL,
     "JouleProfileFlush"},

    {GOOD "AcctGatherNodeFreq=0\n", NULL, "node-frequency", JOULE_WARNING, 8,
     "AcctGatherNodeFreq=30", NULL},
    {GOOD "AcctGatherNodeFreq=\"\"\n", NULL, "node-frequency", JOULE_WARNING, 8,
     NULL, "not set"},

    {GOOD "PrologFlags=\"\"\n", NULL, "contain", JOULE_WARNING, 8,
     "PrologFlags=Contain", NULL},
    {GOOD "PrologFlags=Alloc,Contained\n", NULL, "contain", JOULE_WARNING, 8,
     "PrologFlags=Alloc,Contained,Contain", NULL},
    {GOOD "PrologFlags=X11\n", NULL, NULL, 0, 0, NULL, NULL},

    {GOOD "AccountingStorageType=accounting_storage/none\n", NULL, "storage",
     JOULE_WARNING, 8, "AccountingStorageType=accounting_storage/slurmdbd",
     NULL},

    /* what Slurm's parser refuses, in any of the files */
    {GOOD "MaxJobCount=1 MinJobAge=2\n", NULL, "stray-text", JOULE_FAULT, 8,
     "MinJobAge=2", "a line of its own"},
    {GOOD "NodeName=a CPUs=2 \\\n b\n", NULL, "stray-text", JOULE_FAULT, 9,
     NULL, "\"b\" is no setting"},
    {GOOD "Include more.conf\n", NULL, "include", JOULE_FAULT, 8, NULL,
     "more.conf"},
    {GOOD, "# x\nJouleSamplePeriod 1s\n", "stray-text", JOULE_FAULT, 2,
     "JouleSamplePeriod=1s", "\"JouleSamplePeriod 1s\" is no setting"},
    {GOOD, "JouleSamplePeriod: 1s\n", "stray-text", JOULE_FAULT, 1,
     "JouleSamplePeriod=1s", NULL},
    {GOOD, "JouleSamplePeriod=\n", "stray-text", JOULE_FAULT, 1, NULL, NULL},
    {GOOD, "JouleIdleWatts=5 W\n", "stray-text", JOULE_FAULT, 1, NULL,
     "\"W\" is no setting"},
    {GOOD, "\xef\xbb\xbfJouleIdleWatts=5\n", "stray-text", JOULE_FAULT, 1, NULL,
     "byte-order mark"},
    {GOOD, "hello\n", "stray-text", JOULE_FAULT, 1, "", "\"hello\""},

    /* acct_gather.conf */
    {GOOD, "", NULL, 0, 0, NULL, NULL},
    {GOOD, "joulesampleperiod=10s\nJouleRAPLDomains=psys\n", NULL, 0, 0, NULL,
     NULL},
    {GOOD, "\nJouleSamplePeriod=61s\n", "bad-value", JOULE_WARNING, 2,
     "JouleSamplePeriod=1s", "10ms to 60s"},
    {GOOD, "JouleRAPLDomains=package,psys\n", "bad-value", JOULE_WARNING, 1,
     "JouleRAPLDomains=package,dram", "package,dram or package or psys"},
    {GOOD, "JouleSamplePerod=1s\n", "unknown-option", JOULE_FAULT, 1, NULL,
     "JouleSamplePeriod, JouleRAPLDomains"},
    {GOOD_PLUGIN_DIR GOOD_REST "AcctGatherEnergyType=acct_gather_energy/rapl\n",
     "JouleSamplePeriod=1s\n", "option-without-plugin", JOULE_FAULT, 1, NULL,
     "do not start"},
    {GOOD_PLUGIN_DIR GOOD_REST "AcctGatherEnergyType=acct_gather_energy/rapl\n",
     "#\nEnergyIPMIFrequency=10\n", "option-without-plugin", JOULE_FAULT, 2,
     NULL, "Parsing error at unrecognized key"},
    {GOOD, "energyipmiFrequency=10\n", NULL, 0, 0, NULL, NULL},
    {GOOD, "EnergyIPMIFrequency=0\n", "bad-value", JOULE_WARNING, 1,
     "EnergyIPMIFrequency=1s", "10ms to 60s"},
    {GOOD, "EnergyIPMIFrequenzy=1\n", "option-without-plugin", JOULE_FAULT, 1,
     NULL, NULL},
    {GOOD, "EnergyIPMIRereadSdrCache=yes\n", "notice", JOULE_NOTE, 1, NULL,
     "EnergyIPMIRereadSdrCache has no meaning here: "},
    {GOOD, "JouleQuietPeriod=10s\n", "notice", JOULE_NOTE, 1, NULL,
     "JouleQuietPeriod is no longer used: "},
    {GOOD, "EnergyIPMIPassword=geheim\n", "notice", JOULE_WARNING, 1, NULL,
     "JouleIPMICredentialsFile"},
    {GOOD, "EnergyIPMIPassword=geheimgeheimgeheimgeheim\n", "bad-value",
     JOULE_WARNING, 1, "EnergyIPMIPassword=", "EnergyIPMIPassword=*** is not"},
    {GOOD_PLUGIN_DIR IPMI_TYPE GOOD_REST, "EnergyIPMIPowerSensors=Node=DCMI\n",
     NULL, 0, 0, NULL, NULL},
    {GOOD_PLUGIN_DIR GOOD_REST "AcctGatherEnergyType=joule_ipmi\n", NULL, NULL,
     0, 0, NULL, NULL},
    {IPMI_TYPE GOOD_REST, NULL, "plugin-dir", JOULE_FAULT, 0, NULL,
     IPMI_PLUGIN},
    {GOOD_PLUGIN_DIR GOOD_REST "AcctGatherEnergyType=acct_gather_energy/ipmi\n",
     NULL, "energy-type", JOULE_FAULT, 7,
     "AcctGatherEnergyType=acct_gather_energy/joule_ipmi", NULL},
    {GOOD, "ProfileHDF5Dir=/x\n", "option-without-plugin", JOULE_FAULT, 1, NULL,
     "hdf5"},
    {GOOD "AcctGatherProfileType=acct_gather_profile/hdf5x\n",
     "ProfileHDF5Dir=/x\n", "option-without-plugin", JOULE_FAULT, 1, NULL,
     NULL},
    {GOOD, "Watt=1\n", "unknown-option", JOULE_WARNING, 1, NULL, "Watt"},
};

START_TEST(conf_checks)
{
    const struct joule_finding *f;

    check_conf(confs[_i].slurm_conf, confs[_i].gather);
    if (!confs[_i].id) {
        ck_assert_msg(findings.count == 0, "%s", findings.list[0].text.text);
        ck_assert_str_eq(check.plugin[0] ? "found" : "", "found");
        return;
    }
    f = finding(&findings, confs[_i].id);
    ck_assert_msg(f != NULL, "no %s, but %s", confs[_i].id,
                  findings.list[0].id ? findings.list[0].id : "nothing");
    ck_assert_int_eq(f->level, confs[_i].level);
    if (confs[_i].line)
        ck_assert_uint_eq(f->place.line, confs[_i].line);
    if (confs[_i].advice)
        ck_assert_str_eq(f->advice.text, confs[_i].advice);
    if (confs[_i].text)
        ck_assert_msg(strstr(f->text.text, confs[_i].text), "%s", f->text.text);
}
END_TEST

START_TEST(conf_values_are_used)
{
    check_conf(GOOD, "JouleSamplePeriod=250ms\nJouleRAPLDomains=package\n");
    ck_assert_int_eq(check.config.sample_period_ns, 250 * JOULE_NS_PER_MS);
    ck_assert_uint_eq(check.config.rapl_total_kinds,
                      JOULE_DOMAIN_BIT(JOULE_DOMAIN_PACKAGE));
    ck_assert_uint_eq(check.period_place.line, 1);
    ck_assert_str_eq(check.acct_gather_conf, "/etc/slurm/acct_gather.conf");
    ck_assert_str_eq(check.plugin, "/opt/slurm-joule/" PLUGIN);
}
END_TEST

/* Slurm's key gives way to ours, wherever it stands. */
START_TEST(conf_two_keys_of_the_period)
{
    static const char *const texts[] = {
        "EnergyIPMIFrequency=10\nJouleSamplePeriod=2\n",
        "\nJouleSamplePeriod=2\nEnergyIPMIFrequency=10\n"};

    for (int i = 0; i < COUNT(texts); i++) {
        check_conf(GOOD, texts[i]);
        ck_assert_int_eq(check.config.sample_period_ns, 2 * JOULE_NS_PER_S);
        ck_assert_uint_eq(check.period_place.line, 2);
    }
    check_conf(GOOD, "EnergyIPMIFrequency=10\nEnergyIPMIBridgeSensors=yes\n");
    ck_assert_int_eq(check.config.sample_period_ns, 10 * JOULE_NS_PER_S);
    ck_assert_uint_eq(check.period_place.line, 1);
}
END_TEST

START_TEST(conf_plugin_not_installed)
{
    static const char *const paths[] = {"/etc/slurm/slurm.conf", NULL};

    tree_write(&tree, "etc/slurm/slurm.conf", GOOD);
    memset(&findings, 0, sizeof(findings));
    joule_confcheck_init(&check);
    joule_confcheck_run(&check, tree.fd, paths, &findings);
    ck_assert_ptr_nonnull(finding(&findings, "plugin-missing"));
}
END_TEST

/* Where packages install it, and where Slurm looks without a PluginDir. */
START_TEST(conf_plugin_among_slurms_own)
{
    tree_write(&tree, "usr/lib/slurm/" PLUGIN, "");
    check_conf(GOOD_TYPE GOOD_REST, NULL);
    ck_assert_str_eq(check.plugin, "/usr/lib/slurm/" PLUGIN);
    ck_assert_uint_eq(findings.count, 0);
    check_conf("PluginDir=/usr/lib/slurm/\n" GOOD_TYPE GOOD_REST, NULL);
    ck_assert_uint_eq(findings.count, 0);
    /* Set to another place, that is where Slurm looks. */
    check_conf("PluginDir=/x\n" GOOD_TYPE GOOD_REST, NULL);
    ck_assert_str_eq(check.plugin, "");
    ck_assert_str_eq(finding(&findings, "plugin-dir")->advice.text,
                     "PluginDir=/opt/slurm-joule:/x");
}
END_TEST

/* Long values and odd bytes are cut and replaced, nothing else. */
START_TEST(conf_hostile)
{
    size_t size = 300000;
    char *text = malloc(size);

    for (size_t i = 0; i < size - 1; i++)
        text[i] = (char)(1 + (i * 7919 + i / 251) % 255);
    text[size - 1] = '\0';
    for (size_t i = 0; i + 40 < size; i += 2003)
        memcpy(text + i, "\nPluginDir=\x1b]0;x\x07:\nJouleX\n=\"", 28);
    check_conf(text, text);
    ck_assert_uint_gt(findings.count, 0);
    for (size_t i = 0; i < findings.count; i++)
        for (const char *c = findings.list[i].text.text; *c; c++)
            ck_assert((unsigned char)*c >= 0x20);
    free(text);
}
END_TEST

/* ---- the whole ---- */

static void poke(off_t reg, uint64_t value)
{
    tree_poke(&tree, "dev/cpu/0/msr", reg, &value, sizeof(value));
}

static void machine(void)
{
    tree_write(&tree, "proc/cpuinfo",
               "processor\t: 0\nvendor_id\t: GenuineIntel\n"
               "cpu family\t: 6\nmodel\t\t: 85\n"
               "model name\t: Test\x1b[2J CPU\nflags\t\t: fpu\n\n");
    tree_write(&tree, "sys/devices/system/cpu/online", "0");
    tree_cpu(&tree, 0, 0, 0, 0);
    poke(UNIT, 0xA0E03);
    poke(PKG, 1000);
    poke(DRAM, 1000);
    tree_truncate(&tree, "dev/cpu/0/msr", DRAM + 8);
    tree_write(&tree, "proc/sys/kernel/random/boot_id",
               "0f0e0d0c-0000-4000-8000-000000000001\n");
    tree_write(&tree, "proc/sys/kernel/hostname", "node7.example.org\n");
}

static atomic_bool running;

/* The counters of a machine that does something. */
static void *move_counters(void *arg)
{
    int fd = openat(tree.fd, "dev/cpu/0/msr", O_WRONLY | O_CLOEXEC);

    (void)arg;
    for (uint64_t i = 1; running; i++) {
        uint64_t pkg = 1000 + i * 100, dram = 1000 + i * 10;

        if (pwrite(fd, &pkg, sizeof(pkg), PKG) < 0 ||
            pwrite(fd, &dram, sizeof(dram), DRAM) < 0)
            break;
        usleep(1000);
    }
    close(fd);
    return NULL;
}

static void collect(bool moving, bool no_conf)
{
    struct joule_probe_options opt = {
        .root = tree.path,
        .measure_ns = 50 * JOULE_NS_PER_MS,
        .no_conf = no_conf,
    };
    pthread_t thread;
    int rc;

    running = moving;
    if (moving)
        ck_assert_int_eq(pthread_create(&thread, NULL, move_counters, NULL), 0);
    rc = joule_probe_collect(probe, &opt, &joule_clock_system, &err);
    running = false;
    if (moving)
        pthread_join(thread, NULL);
    ck_assert_int_eq(rc, 0);
}

static void text_report(void)
{
    FILE *out = open_memstream(&memory, &memory_size);

    joule_probe_print_text(out, probe);
    fclose(out);
}

/* Both reports, the JSON document left in [memory]. */
static void reports(void)
{
    FILE *out;

    text_report();
    for (const char *c = memory; *c; c++)
        ck_assert((unsigned char)*c >= 0x20 || *c == '\n');
    free(memory);
    out = open_memstream(&memory, &memory_size);
    joule_probe_print_json(out, probe);
    fclose(out);
    must_be_json(memory);
}

static void must_say(const char *text)
{
    ck_assert_msg(strstr(memory, text), "no %s in %s", text, memory);
}

START_TEST(probe_nothing)
{
    unsigned fds = tree_open_fds();

    collect(false, false);
    ck_assert(!joule_probe_good(probe));
    ck_assert(!probe->sensor.opened);
    ck_assert_ptr_nonnull(finding(&probe->findings, "no-counters"));
    ck_assert_ptr_nonnull(finding(&probe->findings, "slurm-conf"));
    ck_assert_ptr_nonnull(
        strstr(finding(&probe->findings, "slurm-conf")->text.text,
               "/etc/slurm/slurm.conf and /run/slurm/conf/slurm.conf"));
    reports();
    must_say("\"job_would_be_measured\": false");
    must_say("\"domains\": []");
    free(memory);
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

START_TEST(probe_still)
{
    machine();
    collect(false, true);
    ck_assert(probe->sensor.opened);
    ck_assert(!joule_probe_good(probe));
    ck_assert_ptr_nonnull(finding(&probe->findings, "counters-still"));
    reports();
    must_say("\"state\": \"still\"");
    must_say("\"node_power_mw\": null");
    free(memory);
}
END_TEST

START_TEST(probe_no_msr)
{
    machine();
    tree_remove(&tree, "dev/cpu/0/msr");
    collect(false, true);
    ck_assert_int_eq(probe->access.msr_error, ENOENT);
    ck_assert_str_eq(probe->sensor.info.cpu.vendor, "GenuineIntel");
    ck_assert_str_eq(probe->access.msr, "/dev/cpu/0/msr");
    ck_assert_ptr_nonnull(strstr(
        finding(&probe->findings, "no-counters")->text.text, "modprobe"));
    reports();
    free(memory);
}
END_TEST

START_TEST(probe_good)
{
    unsigned fds = tree_open_fds();

    machine();
    tree_write(&tree, "sys/kernel/security/lockdown",
               "none [integrity] confidentiality\n");
    tree_write(&tree, "etc/slurm/slurm.conf", GOOD);
    tree_write(&tree, "opt/slurm-joule/" PLUGIN, "");
    collect(true, false);
    ck_assert(joule_probe_good(probe));
    ck_assert_uint_eq(probe->sensor.count, 2);
    ck_assert_uint_gt(probe->sensor.node_mw, 0);
    ck_assert_str_eq(probe->access.lockdown, "integrity");
    ck_assert_str_eq(probe->node.name, "node7");
    ck_assert_uint_eq(probe->findings.total[JOULE_NOTE], 1); /* no ledger */
    ck_assert_ptr_nonnull(finding(&probe->findings, "no-total"));
    reports();
    must_say("\"job_would_be_measured\": true");
    must_say("\"unit_uj_per_tick\": 61.03515625");
    must_say("\"wrap_at_1000_w_s\": 262.144");
    must_say("\"name\": \"Test?[2J CPU\"");
    must_say("\"kernel_lockdown\": \"integrity\"");
    free(memory);
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

START_TEST(probe_error_in_conf)
{
    machine();
    tree_write(&tree, "etc/slurm/slurm.conf", GOOD_PLUGIN_DIR GOOD_REST);
    tree_write(&tree, "opt/slurm-joule/" PLUGIN, "");
    collect(true, false);
    ck_assert(probe->sensor.moves);
    ck_assert(!joule_probe_good(probe));
}
END_TEST

/* The copy of the configuration that a node has fetched. */
START_TEST(probe_configless)
{
    machine();
    tree_write(&tree, "run/slurm/conf/slurm.conf", GOOD);
    tree_write(&tree, "opt/slurm-joule/" PLUGIN, "");
    collect(true, false);
    ck_assert(joule_probe_good(probe));
    ck_assert_str_eq(probe->conf.slurm_conf, "/run/slurm/conf/slurm.conf");
}
END_TEST

START_TEST(probe_long_period)
{
    const struct joule_finding *f;

    machine();
    tree_write(&tree, "etc/slurm/slurm.conf", GOOD);
    tree_write(&tree, "etc/slurm/acct_gather.conf", "\nJouleSamplePeriod=30\n");
    tree_write(&tree, "opt/slurm-joule/" PLUGIN, "");
    collect(true, false);
    /* DRAM of this model: 65,536 J, 65.5 s at 1000 W. */
    f = finding(&probe->findings, "sample-period");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->level, JOULE_WARNING);
    ck_assert_uint_eq(f->place.line, 2);
    ck_assert_str_eq(f->advice.text, "JouleSamplePeriod=21s");
    ck_assert(joule_probe_good(probe));
}
END_TEST

static void publish(const char *node, int64_t age_ns, bool valid)
{
    struct joule_ledger *ledger = joule_ledger_create(tree.fd, node, 1, &err);
    struct joule_snapshot *s = calloc(1, sizeof(*s));
    struct joule_sensor_state *state = calloc(1, sizeof(*state));

    ck_assert_msg(ledger != NULL, "%s", err.text);
    s->period_ns = JOULE_NS_PER_S;
    s->samples = 12;
    s->total.mw = 50123;
    s->average_mw = JOULE_MW_UNKNOWN;
    s->total.mono_ns = joule_clock_mono_ns(&joule_clock_system) - age_ns;
    s->since_ns = s->total.mono_ns - 100 * JOULE_NS_PER_S;
    s->total.node_uj = 5012345678;
    s->total.valid = valid;
    s->total.count = 2;
    s->total.reading[1].errors = 4;
    state->counters = 2;
    state->counter[0].wraps = 3;
    joule_ledger_stage_node(ledger, s, state);
    joule_ledger_publish(ledger, NULL);
    joule_ledger_destroy(ledger);
    free(s);
    free(state);
}

START_TEST(probe_total)
{
    machine();
    publish("cn-01", 0, true);
    collect(true, true);
    /* The only ledger there is says which node this is. */
    ck_assert_str_eq(probe->node.name, "cn-01");
    ck_assert(probe->node.present);
    ck_assert(probe->node.fresh);
    ck_assert_uint_eq(probe->findings.count, 0);
    reports();
    must_say("\"node_total_uj\": 5012345678");
    must_say("\"node_power_mw\": 50123");
    must_say("\"average_power_mw\": null");
    must_say("\"wraps\": 3");
    must_say("\"read_errors\": 4");
    free(memory);
    publish("cn-02", 0, true);
    collect(false, true);
    ck_assert_str_eq(probe->node.name, "node7");
    ck_assert_ptr_nonnull(
        strstr(finding(&probe->findings, "no-total")->text.text, "--node"));
}
END_TEST

/* A state with more counters than there can be. */
START_TEST(probe_spoiled_total)
{
    const struct joule_finding *f;
    const uint64_t huge = UINT64_MAX;
    off_t at = (off_t)(offsetof(struct ledger_head, state[1]) +
                       offsetof(struct joule_sensor_state, counters));

    machine();
    publish("cn-01", 0, true);
    tree_poke(&tree, "run/slurm-joule/cn-01/ledger", at, &huge, sizeof(huge));
    collect(true, true);
    ck_assert(!probe->node.present);
    f = finding(&probe->findings, "no-total");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->level, JOULE_WARNING);
    ck_assert_ptr_nonnull(strstr(f->text.text, "makes no sense"));
}
END_TEST

/* What a node with BMC and counters has learned, and what it has not. */
static void publish_fused(const char *node, bool learned)
{
    struct joule_ledger *ledger = joule_ledger_create(tree.fd, node, 1, &err);
    struct joule_snapshot *s = calloc(1, sizeof(*s));
    struct joule_sensor_state *state = calloc(1, sizeof(*state));
    struct joule_fused_state *fused = &state->fused;

    ck_assert_msg(ledger != NULL, "%s", err.text);
    s->period_ns = JOULE_NS_PER_S;
    s->samples = 1;
    s->total.mono_ns = joule_clock_mono_ns(&joule_clock_system);
    s->total.valid = 1;
    s->total.count = 2;
    state->is_fused = 1;
    state->integrators = 2;
    for (int i = 0; i < (learned ? 1200 : 40); i++) {
        double w = i / 20 % 2 ? 100 : 200;

        joule_lag_model_rapl(&fused->lag_model, w, JOULE_NS_PER_S);
        joule_lag_model_bmc(&fused->lag_model, 1.2 * w + 80);
    }
    fused->mono_ns = s->total.mono_ns;
    fused->basis = learned ? JOULE_FUSED_BOTH : JOULE_FUSED_BMC;
    fused->basis_ns[JOULE_FUSED_BMC] = 125 * JOULE_NS_PER_S;
    fused->basis_ns[JOULE_FUSED_BOTH] = learned ? 7200 * JOULE_NS_PER_S : 0;
    joule_ledger_stage_node(ledger, s, state);
    joule_ledger_publish(ledger, NULL);
    joule_ledger_destroy(ledger);
    free(s);
    free(state);
}

START_TEST(probe_fused)
{
    machine();
    publish_fused("cn-01", true);
    collect(true, true);
    ck_assert(probe->node.is_fused);
    text_report();
    must_say("BMC and RAPL for 2.0 h, BMC for 125.0 s\n");
    must_say("lag of the BMC");
    must_say("x RAPL +");
    free(memory);
    reports();
    must_say("\"bmc_and_rapl_ns\": 7200000000000");
    must_say("\"learned\": true");
    must_say("\"lag\": \"none\"");
    free(memory);
    publish_fused("cn-01", false);
    collect(true, true);
    text_report();
    must_say("not yet: ");
    free(memory);
    reports();
    must_say("\"learned\": false");
    must_say("\"lag\": null");
    free(memory);
    publish("cn-01", 0, true);
    collect(true, true);
    reports();
    must_say("\"fused\": null");
    free(memory);
}
END_TEST

/* A ledger that divides by another rule than the file says. */
static void publish_ledger(const char *node, uint64_t multiple_uj)
{
    struct joule_ledger *ledger = joule_ledger_create(tree.fd, node, 1, &err);
    struct joule_ledger_totals totals = {
        .mono_ns = joule_clock_mono_ns(&joule_clock_system),
        .begun_ns = 1,
        .charged_uj = 9000001,
        .jobs_uj = 5000001 + multiple_uj,
        .unallocated_uj = 4000000,
        .multiple_uj = multiple_uj,
        .how = JOULE_ATTRIBUTION_NODE + 1,
        .part_count = 1,
        .part = {{.idle_power = {.idle_power_uw = 40000000}}},
    };

    ck_assert_msg(ledger != NULL, "%s", err.text);
    for (unsigned i = 0; i < 3; i++)
        joule_ledger_stage(ledger, i,
                           &(struct joule_row){.owner = 1 + i,
                                               .job = i / 2,
                                               .state = JOULE_ROW_RUNNING});
    joule_ledger_publish(ledger, &totals);
    joule_ledger_destroy(ledger);
}

START_TEST(probe_ledger)
{
    const struct joule_finding *f;

    machine();
    tree_write(&tree, "etc/slurm/slurm.conf", GOOD);
    tree_write(&tree, "etc/slurm/acct_gather.conf", "JouleIdleWatts=50\n");
    tree_write(&tree, "opt/slurm-joule/" PLUGIN, "");
    publish("cn-01", 0, true);
    collect(true, false);
    ck_assert(!probe->share.present);
    ck_assert_uint_eq(probe->findings.count, 0);
    publish_ledger("cn-01", 0);
    collect(true, false);
    ck_assert(probe->share.present);
    ck_assert_uint_eq(probe->share.rows, 3);
    ck_assert_uint_eq(probe->share.jobs, 2);
    ck_assert_ptr_null(finding(&probe->findings, "charged-twice"));
    f = finding(&probe->findings, "attribution");
    ck_assert_ptr_nonnull(f);
    ck_assert_str_eq(f->text.text,
                     "slurmd divides by JouleAttribution=node, but "
                     "acct_gather.conf says cputime: run 'scontrol "
                     "reconfigure'");
    f = finding(&probe->findings, "idle-watts");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(strstr(f->text.text, "lowest minute (40.0 W)"));
    ck_assert_int_eq(f->level, JOULE_WARNING);
    reports();
    must_say("\"node_uj\": 9000001");
    must_say("\"learned_idle_mw\": 40000");
    must_say("\"attribution\": \"node\"");
    free(memory);
    publish_ledger("cn-01", 1600000);
    collect(true, true);
    ck_assert_ptr_null(finding(&probe->findings, "attribution"));
    f = finding(&probe->findings, "charged-twice");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(strstr(f->text.text, "2 J were charged"));
}
END_TEST

START_TEST(probe_total_old)
{
    machine();
    publish("cn-01", 100 * JOULE_NS_PER_S, true);
    collect(false, true);
    ck_assert(!probe->node.fresh);
    ck_assert_ptr_nonnull(finding(&probe->findings, "total-old"));
    publish("cn-01", 0, false);
    collect(false, true);
    ck_assert_ptr_nonnull(finding(&probe->findings, "total-unknown"));
    reports();
    must_say("\"node_total_uj\": null");
    free(memory);
}
END_TEST

/* ---- the BMC, as it might be ---- */

static void add_candidate(const char *name, uint16_t id, double w)
{
    struct joule_wire_reply *list = &probe->bmc.list;
    struct joule_wire_found *f = &list->found[list->count];

    f->kind = JOULE_IPMI_SENSOR_RECORD;
    f->record_id = id;
    snprintf(f->name, sizeof(f->name), "%s", name);
    list->value[list->count].status = w > 0 ? JOULE_POWER_OK : JOULE_POWER_ZERO;
    list->value[list->count++].watts = w;
}

/* Two labels that read their sensors, and a list with more. */
static void fake_bmc(void)
{
    struct joule_bmc *b = &probe->bmc;

    probe->ipmi = true;
    joule_confcheck_init(&probe->conf);
    b->in_order = b->connected = b->listed = b->measures = true;
    b->driver = JOULE_IPMI_DRIVER_OPENIPMI;
    strcpy(b->device, "/dev/ipmi0");
    b->label_count = b->sensor_count = 2;
    strcpy(b->labels[0].name, "Node");
    strcpy(b->labels[1].name, "CPU");
    add_candidate("PSU1 PIN", 7, 120);
    add_candidate("CPU", 8, 30);
    for (uint32_t i = 0; i < 2; i++) {
        b->labels[i].readings[JOULE_POWER_OK] = 9;
        b->sensors[i].label = i;
        b->sensors[i].found = b->list.found[i];
    }
    b->readings = 9;
    b->latency_ns = JOULE_NS_PER_MS;
    b->measured_ns = 5 * JOULE_NS_PER_S;
}

static const struct joule_finding *judge_bmc(const char *id)
{
    memset(&probe->findings, 0, sizeof(probe->findings));
    joule_bmc_judge(probe);
    return finding(&probe->findings, id);
}

/* The line can be read by Slurm and by us, and keeps what there was. */
START_TEST(bmc_candidates)
{
    static const char key[] = "EnergyIPMIPowerSensors=";
    static struct joule_ipmi_config config;
    const struct joule_finding *f;
    char value[JOULE_ERROR_MAX];
    size_t len;

    fake_bmc();
    ck_assert_ptr_null(judge_bmc("bmc-candidates"));
    add_candidate("17", 9, 1);     /* looks like a record id */
    add_candidate("a;b=c", 10, 1); /* has what separates */
    add_candidate("a'b\"", 11, 1); /* cannot be quoted */
    add_candidate("FAN", 12, 1);   /* there are two */
    add_candidate("FAN", 13, 1);
    add_candidate("", 14, 1);
    add_candidate("dcmi", 15, 1);
    add_candidate("node", 16, 1); /* the label is taken */
    f = judge_bmc("bmc-candidates");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->level, JOULE_NOTE);
    ck_assert_str_eq(
        f->advice.text,
        "EnergyIPMIPowerSensors=\"Node=PSU1 PIN;CPU=CPU;17='17';"
        "abc='a;b=c';ab=11;FAN=12;record-13=13;record-14=14;dcmi='dcmi';"
        "record-16=node\"");
    len = strlen(f->advice.text) - sizeof(key) - 1;
    memcpy(value, f->advice.text + sizeof(key), len);
    value[len] = '\0';
    ck_assert_msg(joule_ipmi_sensors_parse(value, &config, &err) == 0, "%s",
                  err.text);
    ck_assert_uint_eq(config.label_count, 10);
}
END_TEST

/* A line that is cut would be a wrong one. */
START_TEST(bmc_many_candidates)
{
    const struct joule_finding *f;
    char name[JOULE_IPMI_NAME_SIZE];

    fake_bmc();
    for (uint16_t i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "a sensor with a long name, no. %02u", i);
        add_candidate(name, (uint16_t)(100 + i), 1);
    }
    f = judge_bmc("bmc-candidates");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->advice.text[strlen(f->advice.text) - 1], '"');
    ck_assert_ptr_null(strstr(f->advice.text, "..."));
}
END_TEST

START_TEST(bmc_period)
{
    const struct joule_finding *f;

    fake_bmc();
    probe->bmc.changes = 5;
    probe->bmc.refresh_ns = JOULE_NS_PER_S + JOULE_NS_PER_S / 10;
    ck_assert_ptr_null(judge_bmc("bmc-refresh"));
    probe->bmc.refresh_ns = 10 * JOULE_NS_PER_S;
    f = judge_bmc("bmc-refresh");
    ck_assert_ptr_nonnull(f);
    ck_assert_str_eq(f->advice.text, "JouleSamplePeriod=10s");
    probe->bmc.changes = 2; /* by chance */
    ck_assert_ptr_null(judge_bmc("bmc-refresh"));
    probe->bmc.latency_ns = 2 * JOULE_NS_PER_S;
    f = judge_bmc("bmc-slow");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->level, JOULE_WARNING);
    ck_assert_str_eq(f->advice.text, "JouleSamplePeriod=4s");
}
END_TEST

START_TEST(bmc_not_there)
{
    const struct joule_finding *f;

    fake_bmc();
    probe->bmc.connected = probe->bmc.measures = false;
    probe->bmc.list.count = 0;
    f = judge_bmc("bmc-no-power");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->level, JOULE_FAULT);
    probe->bmc.listed = false;
    probe->bmc.device_error = ENOENT;
    strcpy(probe->bmc.error.text, "no device");
    f = judge_bmc("bmc-device");
    ck_assert_ptr_nonnull(f);
    ck_assert_msg(strstr(f->advice.text, "modprobe ipmi_devintf"), "%s",
                  f->advice.text);
    probe->bmc.lan = true;
    probe->bmc.has_credentials = true;
    ck_assert_ptr_nonnull(judge_bmc("bmc"));
    ck_assert(!joule_probe_good(probe));
    reports();
    must_say("\"connected\": false");
    free(memory);
}
END_TEST

START_TEST(bmc_reports)
{
    fake_bmc();
    probe->bmc.labels[0].readings[JOULE_POWER_SATURATED] = 3;
    probe->bmc.labels[1].readings[JOULE_POWER_OK] = 0;
    probe->bmc.labels[1].readings[JOULE_POWER_NOT_SCANNED] = 3;
    add_candidate("\x1b[2J", 9, 0);
    strcpy(probe->conf.config.ipmi.password, "hush-hush");
    ck_assert_ptr_nonnull(judge_bmc("bmc-no-measurement"));
    ck_assert(joule_probe_good(probe));
    reports();
    must_say("\"not scanned\": 3");
    must_say("\"last_power_mw\": null");
    must_say("\"driver\": \"in-band, OPENIPMI\"");
    must_say("\"EnergyIPMIPassword\": \"***\"");
    ck_assert_ptr_null(strstr(memory, "hush"));
    free(memory);
}
END_TEST

static const struct {
    const char *argv[4];
    int status;
} commands[] = {
    {{"probe", "--help", NULL}, 0},
    {{"probe", "--nonsense", NULL}, 2},
    {{"probe", "argument", NULL}, 2},
    {{"probe", "--seconds=0", NULL}, 2},
    {{"probe", "--seconds=1e3", NULL}, 2},
    {{"probe", "--root=/no/such/directory", NULL}, 2},
    {{"probe", "--no-conf", "--conf=x", NULL}, 2},
    {{"probe", "--conf=", NULL}, 2},
    {{"probe", "--ipmi", "--conf=x", NULL}, 2},
    {{"probe", "--set=JouleSamplePeriod", NULL}, 2},
    {{"probe", "--set==1s", NULL}, 2},
    {{"probe", "--set=JouleSamplePerod=1s", NULL}, 2},
    {{"probe", "--set=JouleSamplePeriod=1h", NULL}, 2},
    {{"probe", "--ipmi", "--set=EnergyIPMIPassword=hush", NULL}, 2},
    {{"probe", "--ipmi", "--set=JouleIPMIReader=/no/such/file", NULL}, 1},
    {{"probe", "--conf=/no/such/file", "--seconds=0.1", NULL}, 1},
};

START_TEST(probe_commands)
{
    int argc = 0;

    while (commands[_i].argv[argc])
        argc++;
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stdout));
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
    ck_assert_int_eq(joule_probe_main(argc, (char **)commands[_i].argv),
                     commands[_i].status);
}
END_TEST

/* ---- what is shipped ---- */

static char *shipped(const char *name)
{
    int fd = open(JOULE_SOURCE_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *text = joule_file_load(fd, name, 1 << 20, NULL);

    ck_assert_msg(text != NULL, "cannot read %s/%s", JOULE_SOURCE_DIR, name);
    close(fd);
    return text;
}

START_TEST(examples)
{
    char *conf = shipped("etc/slurm.conf.example");
    char *gather = shipped("etc/acct_gather.conf.example");
    struct joule_energy_config defaults;

    tree_write(&tree, "usr/local/lib/slurm-joule/" PLUGIN, "");
    check_conf(conf, gather);
    ck_assert_msg(findings.count == 0, "%s", findings.list[0].text.text);
    joule_option_defaults(joule_energy_config_options, &defaults);
    ck_assert_int_eq(check.config.sample_period_ns, defaults.sample_period_ns);
    ck_assert_uint_eq(check.config.rapl_total_kinds, defaults.rapl_total_kinds);
    free(conf);
    free(gather);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("probe");
    TCase *t = tcase_create("words");

    tcase_add_loop_test(t, text_char, 0, COUNT(characters));
    tcase_add_test(t, text_unit);
    tcase_add_test(t, text_seconds);
    tcase_add_test(t, json_document);
    suite_add_tcase(s, t);

    t = tcase_create("slurm.conf");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, slurmconf_missing);
    tcase_add_test(t, slurmconf_no_text);
    tcase_add_test(t, slurmconf_too_long);
    tcase_add_test(t, slurmconf_last_counts);
    tcase_add_test(t, slurmconf_include);
    tcase_add_test(t, slurmconf_bad_include);
    tcase_add_test(t, slurmconf_include_bomb);
    tcase_add_test(t, slurmconf_many_settings);
    tcase_add_loop_test(t, conf_checks, 0, COUNT(confs));
    tcase_add_test(t, conf_values_are_used);
    tcase_add_test(t, conf_two_keys_of_the_period);
    tcase_add_test(t, conf_plugin_not_installed);
    tcase_add_test(t, conf_plugin_among_slurms_own);
    tcase_add_test(t, conf_hostile);
    suite_add_tcase(s, t);

    t = tcase_create("probe");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, probe_nothing);
    tcase_add_test(t, probe_still);
    tcase_add_test(t, probe_no_msr);
    tcase_add_test(t, probe_good);
    tcase_add_test(t, probe_error_in_conf);
    tcase_add_test(t, probe_configless);
    tcase_add_test(t, probe_long_period);
    tcase_add_test(t, probe_total);
    tcase_add_test(t, probe_spoiled_total);
    tcase_add_test(t, probe_fused);
    tcase_add_test(t, probe_ledger);
    tcase_add_test(t, probe_total_old);
    tcase_add_test(t, bmc_candidates);
    tcase_add_test(t, bmc_many_candidates);
    tcase_add_test(t, bmc_period);
    tcase_add_test(t, bmc_not_there);
    tcase_add_test(t, bmc_reports);
    tcase_add_loop_test(t, probe_commands, 0, COUNT(commands));
    suite_add_tcase(s, t);

    t = tcase_create("shipped");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, examples);
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
