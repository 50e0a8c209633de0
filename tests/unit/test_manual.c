/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The manual and the examples against the tables of options, so that none is
 * left out and none is told wrong.  JOULE_SOURCE_DIR is where doc/ and etc/
 * are.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/conffile.h"
#include "common/base/file.h"
#include "common/sensors/energy_config.h"
#include "common/profile/config.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct joule_option *const tables[] = {joule_energy_config_options,
                                                    joule_profile_options};

static char *shipped(const char *name)
{
    int fd = open(JOULE_SOURCE_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *text = joule_file_load(fd, name, 1 << 20, NULL);

    ck_assert_msg(text != NULL, "cannot read %s/%s", JOULE_SOURCE_DIR, name);
    close(fd);
    return text;
}

/* What roff takes as a blank is one here: sentences may go over a line. */
static void join_lines(char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            *text = ' ';
}

static const char item[] = " .It Cm ";

/* From the item of [key] up to the next one, with the blank in between; the
 * caller frees it. */
static char *entry_of(const char *page, const char *key)
{
    char head[96];
    const char *begin, *end;

    snprintf(head, sizeof(head), "%s%s ", item, key);
    begin = strstr(page, head);
    ck_assert_msg(begin != NULL, "%s is not in the page", key);
    ck_assert_msg(strstr(begin + 1, head) == NULL, "%s is there twice", key);
    end = strstr(begin + 1, item);
    return end ? strndup(begin, (size_t)(end - begin) + 1) : strdup(begin);
}

START_TEST(man_page_lists_the_options)
{
    char *page = shipped("doc/joule-acct_gather.conf.5");
    char range[256], line[320];
    unsigned options = 0, items = 0;

    join_lines(page);
    for (int i = 0; i < COUNT(tables); i++)
        for (const struct joule_option *o = tables[i]; o->key; o++, options++) {
            char *entry = entry_of(page, o->key);

            joule_option_range(o, range, sizeof(range));
            snprintf(line, sizeof(line), " Allowed: %s. Default: %s. ", range,
                     o->default_text && o->default_text[0] ? o->default_text
                                                           : "none");
            ck_assert_msg(o->type == JOULE_OPTION_IGNORED ||
                              strstr(entry, line),
                          "%s: the page does not say%s", o->key, line);
            free(entry);
        }
    for (char *p = page; (p = strstr(p, item)); p++)
        items++;
    ck_assert_uint_eq(items, options);
    free(page);
}
END_TEST

/* A time without a unit is one in seconds: that must be said. */
START_TEST(man_page_tells_the_unit)
{
    char *page = shipped("doc/joule-acct_gather.conf.5");

    join_lines(page);
    for (int i = 0; i < COUNT(tables); i++)
        for (const struct joule_option *o = tables[i]; o->key; o++) {
            char *entry;

            if (o->type != JOULE_OPTION_DURATION)
                continue;
            entry = entry_of(page, o->key);
            ck_assert_msg(strstr(entry, "seconds") != NULL, "%s", o->key);
            free(entry);
        }
    free(page);
}
END_TEST

static const struct {
    const char *name;
    const struct joule_option *table;
} examples[] = {
    {"etc/acct_gather.conf.example", joule_energy_config_options},
    {"etc/acct_gather-ipmi.conf.example", joule_energy_config_options},
    {"etc/acct_gather-ipmi-lan.conf.example", joule_energy_config_options},
    {"etc/acct_gather-profile.conf.example", joule_profile_options},
};

static bool is_for_tests(const struct joule_option *option)
{
    return strcmp(option->key, "JouleIPMIReader") == 0 ||
           strcmp(option->key, "JouleProfileConverter") == 0;
}

/* Each option stands in an example, but those for tests, those that mean
 * nothing, and secrets. */
START_TEST(examples_have_the_options)
{
    for (int i = 0; i < COUNT(tables); i++)
        for (const struct joule_option *o = tables[i]; o->key; o++) {
            bool found = false;

            for (int k = 0; k < COUNT(examples); k++) {
                char *text = shipped(examples[k].name);

                found |= strstr(text, o->key) != NULL;
                free(text);
            }
            ck_assert_msg(found || o->type == JOULE_OPTION_IGNORED ||
                              o->secret || is_for_tests(o),
                          "%s", o->key);
        }
}
END_TEST

struct taken {
    const struct joule_option *table;
    struct joule_profile_config config;
    unsigned settings;
};

static int take(const char *key, const char *value, unsigned line, void *arg)
{
    struct taken *t = arg;
    const struct joule_option *row;
    struct joule_error err;

    ck_assert_msg(key != NULL, "line %u: %s", line, value);
    row = joule_option_find(t->table, key);
    ck_assert_msg(row != NULL, "line %u: %s", line, key);
    ck_assert_msg(joule_option_set(row, &t->config, value, &err) == 0, "%s",
                  err.text);
    t->settings++;
    return 0;
}

/* What is behind a single '#' are the defaults. */
START_TEST(example_of_profiles)
{
    char *text = shipped(examples[3].name);
    struct taken t = {.table = joule_profile_options};
    struct joule_profile_config plain;
    unsigned settings, options = 0;

    for (const struct joule_option *o = joule_profile_options; o->key; o++)
        options += !is_for_tests(o);
    joule_option_defaults(t.table, &t.config);
    ck_assert_int_eq(joule_conffile_walk(text, strlen(text), take, &t), 0);
    settings = t.settings;
    ck_assert_uint_ge(settings, 1);
    ck_assert_str_eq(t.config.dir, "/shared/profiles");
    plain = t.config;
    for (char *p = text; (p = strstr(p, "\n#")); p++)
        if (strncmp(p + 2, "Joule", 5) == 0 ||
            strncmp(p + 2, "ProfileHDF5", 11) == 0)
            p[1] = ' ';
    ck_assert_int_eq(joule_conffile_walk(text, strlen(text), take, &t), 0);
    ck_assert_uint_eq(t.settings, settings + options);
    ck_assert_mem_eq(&t.config, &plain, sizeof(plain));
    free(text);
}
END_TEST

/* What becomes of each key that Slurm's own plugins have. */
START_TEST(migration_guide_has_slurms_keys)
{
    char *page = shipped("doc/migration.md"), quoted[96];
    unsigned keys = 0;

    for (int i = 0; i < COUNT(tables); i++)
        for (const struct joule_option *o = tables[i]; o->key; o++) {
            if (strncmp(o->key, "Joule", 5) == 0)
                continue;
            snprintf(quoted, sizeof(quoted), "`%s`", o->key);
            ck_assert_msg(strstr(page, quoted) != NULL, "%s", o->key);
            keys++;
        }
    ck_assert_uint_ge(keys, 20);
    free(page);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("manual");
    TCase *t = tcase_create("shipped");

    tcase_add_test(t, man_page_lists_the_options);
    tcase_add_test(t, man_page_tells_the_unit);
    tcase_add_test(t, examples_have_the_options);
    tcase_add_test(t, example_of_profiles);
    tcase_add_test(t, migration_guide_has_slurms_keys);
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
