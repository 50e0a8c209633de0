/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options behind the plugin in plugstack.conf: the parser, and what the
 * manual and the example say of them.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/cpufreq/keeper.h"
#include "plugins/spank/joule/spank_joule.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct {
    const char *text;
    int errnum;
} bad[] = {
    {"", EINVAL},
    {"core", EINVAL},
    {"core=", EINVAL},
    {"core=maybe", EINVAL},
    {"=on", EINVAL},
    {"corre=on", EINVAL},
    {"core =on", EINVAL},
    {"limits=none", EINVAL},
    {"limits=site,hardware", EINVAL},
    {"lock_wait=0", ERANGE},
    {"lock_wait=61s", ERANGE},
    {"lock_wait=-1s", EINVAL},
    {"keeper_period=99ms", ERANGE},
    {"keeper=relative", EINVAL},
    {"keeper=", EINVAL},
    {"hooks=libjoule_hooks.so", EINVAL},
    {"a-key-that-is-longer-than-any-key-there-is=1", EINVAL},
};

/* The default holds, and the others are read all the same. */
START_TEST(refused)
{
    struct joule_spank_options plain, o;
    struct joule_error err = {""};
    char first[64], last[] = "batch=yes";
    char *argv[] = {first, last};

    snprintf(first, sizeof(first), "%s", bad[_i].text);
    ck_assert_int_eq(joule_spank_options_parse(&plain, 0, NULL, NULL), 0);
    ck_assert_int_eq(joule_spank_options_parse(&o, 2, argv, &err), -1);
    ck_assert_int_eq(errno, bad[_i].errnum);
    ck_assert(*err.text);
    ck_assert(o.batch);
    o.batch = false;
    ck_assert_mem_eq(&o, &plain, sizeof(o));
}
END_TEST

START_TEST(accepted)
{
    char *argv[] = {(char *)"core=ON", (char *)"strict=yes",
                    (char *)"limits=hardware", (char *)"lock_wait=250ms",
                    (char *)"keeper=/x"};
    struct joule_spank_options o;

    /* No step lifts an administrator's limits unless the site says so. */
    ck_assert_int_eq(joule_spank_options_parse(&o, 0, NULL, NULL), 0);
    ck_assert_uint_eq(o.limits, JOULE_LIMITS_SITE);
    ck_assert_int_eq(joule_spank_options_parse(&o, COUNT(argv), argv, NULL), 0);
    ck_assert(o.core && o.strict && !o.batch);
    ck_assert_uint_eq(o.limits, JOULE_LIMITS_HARDWARE);
    ck_assert_int_eq(o.lock_wait_ns, 250000000);
    ck_assert_int_eq(o.keeper_period_ns, 2000000000);
    ck_assert_str_eq(o.keeper, "/x");
}
END_TEST

static char *shipped(const char *name)
{
    int fd = open(JOULE_SOURCE_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *text = joule_file_load(fd, name, 1 << 20, NULL);

    ck_assert_msg(text != NULL, "cannot read %s", name);
    close(fd);
    return text;
}

/* Where it is installed is not known to the page. */
static const char *default_in_manual(const struct joule_option *o)
{
    static const char *const installed[][2] = {
        {"keeper", "joule-cpufreq-keeper in libexec/slurm-joule"},
        {"hooks", "libjoule_hooks.so in lib/slurm-joule"},
        {"waits", "libjoule_waits.so in lib/slurm-joule"},
        {"report", "joule-report in libexec/slurm-joule"},
    };

    for (size_t i = 0; i < sizeof(installed) / sizeof(installed[0]); i++)
        if (strcmp(o->key, installed[i][0]) == 0)
            return installed[i][1];
    return o->default_text;
}

START_TEST(manual)
{
    char *page = shipped("doc/joule-cpufreq.7");
    const struct joule_option *o = joule_spank_option_table;

    for (; o->key; o++) {
        char item[64], line[256], range[128], *entry;

        snprintf(item, sizeof(item), "\n.It Cm %s\n", o->key);
        entry = strstr(page, item);
        ck_assert_msg(entry != NULL, "%s", o->key);
        joule_option_range(o, range, sizeof(range));
        snprintf(line, sizeof(line), "\nAllowed: %s.\nDefault: %s.\n", range,
                 default_in_manual(o));
        ck_assert_msg(strstr(entry, line) != NULL, "%s:%s", o->key, line);
    }
    free(page);
}
END_TEST

/* The second line has all the defaults; the first one is a good one. */
START_TEST(example)
{
    char *text = shipped("etc/plugstack.conf.example");
    unsigned lines = 0;

    for (char *line, *rest = text; (line = strsep(&rest, "\n"));) {
        bool defaults = strncmp(line, "#optional ", 10) == 0;
        char *argv[16], *word;
        struct joule_spank_options o, plain;
        int argc = 0;

        if (!defaults && strncmp(line, "optional ", 9) != 0)
            continue;
        lines++;
        strsep(&line, " ");
        ck_assert_str_eq(strsep(&line, " "), "spank_joule.so");
        while ((word = strsep(&line, " ")))
            argv[argc++] = word;
        ck_assert_int_eq(joule_spank_options_parse(&o, argc, argv, NULL), 0);
        joule_spank_options_parse(&plain, 0, NULL, NULL);
        ck_assert_int_eq(memcmp(&o, &plain, sizeof(o)) == 0, defaults);
        ck_assert_int_eq(argc, defaults ? 7 : 1);
    }
    ck_assert_uint_eq(lines, 2);
    free(text);
}
END_TEST

START_TEST(log_path)
{
    static const struct {
        const char *pattern, *path;
    } good[] = {
        {"", ""},
        {"/var/log/slurmd.log", "/var/log/slurmd.log"},
        {"/log/%h/%n.log", "/log/host/node7.log"},
        {"%n%n", "node7node7"},
        {"/log/%%n", "/log/%node7"},
        {"/log/%x%", "/log/%x%"},
        {"1234567890123456789", "1234567890123456789"},
    };
    char buf[20];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ck_assert_int_eq(joule_keeper_log_path(good[i].pattern, "host", "node7",
                                               buf, sizeof(buf)),
                         0);
        ck_assert_str_eq(buf, good[i].path);
    }
    ck_assert_int_eq(joule_keeper_log_path("12345678901234567890", "host",
                                           "node7", buf, sizeof(buf)),
                     -1);
    ck_assert_str_eq(buf, "");
    ck_assert_int_eq(joule_keeper_log_path("/log/1234567890%n", "host", "node7",
                                           buf, sizeof(buf)),
                     -1);
    ck_assert_str_eq(buf, "");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq options");
    TCase *c = tcase_create("options");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(c, refused, 0, COUNT(bad));
    tcase_add_test(c, accepted);
    tcase_add_test(c, log_path);
    tcase_add_test(c, manual);
    tcase_add_test(c, example);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
