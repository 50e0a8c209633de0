/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/profile/config.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static struct joule_profile_config config;
static struct joule_error err;

static void setup(void)
{
    memset(&err, 0, sizeof(err));
    joule_option_defaults(joule_profile_options, &config);
}

static int set(const char *key, const char *value)
{
    const struct joule_option *row =
        joule_option_find(joule_profile_options, key);

    ck_assert_msg(row != NULL, "%s", key);
    return joule_option_set(row, &config, value, &err);
}

static void must_set(const char *key, const char *value)
{
    ck_assert_msg(set(key, value) == 0, "%s", err.text);
}

static const struct {
    const char *key, *value;
    int errnum;
    const char *sentence; /* a part of it */
} bad_values[] = {
    {"ProfileHDF5Dir", "profiles", EINVAL, "it is not an absolute path"},
    {"ProfileHDF5Dir", "./profiles", EINVAL, "it is not an absolute path"},
    {"ProfileHDF5Dir", "/a\nb", EINVAL, "control characters"},
    {"ProfileHDF5Default", "", EINVAL, "allowed are All, None"},
    {"ProfileHDF5Default", "Energie", EINVAL, "allowed are All, None"},
    {"ProfileHDF5Default", "Energy,", EINVAL, "allowed are All, None"},
    {"ProfileHDF5Default", "None,Energy", EINVAL, "an allowed choice"},
    {"JouleProfileChunk", "-64", EINVAL, "a power of two from 64"},
    {"JouleProfileChunk", "32", EINVAL, "a power of two from 64"},
    {"JouleProfileChunk", "100", EINVAL, "a power of two from 64"},
    {"JouleProfileChunk", "131072", ERANGE, "a power of two from 64"},
    {"JouleProfileChunk", "64k", EINVAL, "a power of two from 64"},
    {"JouleProfileCompression", "", EINVAL, "a level from 1 to 9"},
    {"JouleProfileCompression", "0", EINVAL, "a level from 1 to 9"},
    {"JouleProfileCompression", "10", EINVAL, "a level from 1 to 9"},
    {"JouleProfileCompression", "shuffle", EINVAL, "a level from 1 to 9"},
    {"JouleProfileCompression", "1,2", EINVAL, "a level from 1 to 9"},
    {"JouleProfileCompression", "none,3", EINVAL, "a level from 1 to 9"},
    {"JouleProfileCompression", "shuffle,none", EINVAL, "a level from 1 to 9"},
    {"JouleProfileFlush", "0", ERANGE, "500ms to 600s"},
    {"JouleProfileFlush", "499ms", ERANGE, "500ms to 600s"},
    {"JouleProfileFlush", "601", ERANGE, "500ms to 600s"},
    {"JouleProfileFlush", "5 apples", EINVAL, "500ms to 600s"},
    {"JouleProfileExtern", "2", EINVAL, "yes or no"},
    {"JouleProfilePeriod", "-1", EINVAL, "10ms to 1s, or 0"},
    {"JouleProfilePeriod", "9ms", ERANGE, "10ms to 1s, or 0"},
    {"JouleProfilePeriod", "1ns", ERANGE, "10ms to 1s, or 0"},
    {"JouleProfilePeriod", "1001ms", ERANGE, "10ms to 1s, or 0"},
    {"JouleProfilePeriodMin", "0", ERANGE, "10ms to 1s"},
    {"JouleProfilePeriodMin", "9999us", ERANGE, "10ms to 1s"},
    {"JouleProfilePeriodMin", "2s", ERANGE, "10ms to 1s"},
    {"JouleProfileStates", "99ms", ERANGE, "100ms to 1h, or 0"},
    {"JouleProfileStates", "2h", ERANGE, "100ms to 1h, or 0"},
    {"JouleProfileStates", "often", EINVAL, "100ms to 1h, or 0"},
    {"JouleProfileConverter", "joule-profile-convert", EINVAL, "an absolute path"},
};

START_TEST(bad_value)
{
    struct joule_profile_config before = config;

    ck_assert_int_eq(set(bad_values[_i].key, bad_values[_i].value), -1);
    ck_assert_int_eq(errno, bad_values[_i].errnum);
    ck_assert_msg(strstr(err.text, bad_values[_i].sentence) != NULL, "%s",
                  err.text);
    ck_assert_mem_eq(&config, &before, sizeof(config));
}
END_TEST

START_TEST(too_long_a_directory)
{
    char path[JOULE_PROFILE_DIR_SIZE + 1];

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    ck_assert_int_eq(set("ProfileHDF5Dir", path), -1);
    ck_assert_int_eq(errno, ERANGE);
    path[sizeof(path) - 2] = '\0';
    must_set("ProfileHDF5Dir", path);
    ck_assert_str_eq(config.dir, path);
}
END_TEST

START_TEST(defaults)
{
    struct joule_pack pack = joule_profile_pack(&config);

    ck_assert_str_eq(config.dir, "");
    ck_assert_uint_eq(config.default_bits, JOULE_PROFILE_NONE);
    ck_assert_uint_eq(config.chunk_rows, 0);
    ck_assert(pack.shuffle && pack.level == 1);
    ck_assert_int_eq(config.flush_ns, 10 * JOULE_NS_PER_S);
    ck_assert(!config.extern_step);
    ck_assert_int_eq(config.period_ns, 0);
    ck_assert_int_eq(config.period_min_ns, JOULE_NS_PER_S);
}
END_TEST

START_TEST(series)
{
    must_set("ProfileHDF5Default", "all");
    ck_assert_uint_eq(config.default_bits, JOULE_PROFILE_ALL);
    must_set("ProfileHDF5Default", "Energy,task");
    ck_assert_uint_eq(config.default_bits,
                      JOULE_PROFILE_ENERGY | JOULE_PROFILE_TASK);
    must_set("ProfileHDF5Default", "Lustre");
    ck_assert_uint_eq(config.default_bits, JOULE_PROFILE_FILESYSTEM);
    must_set("ProfileHDF5Default", "None");
    ck_assert_uint_eq(config.default_bits, JOULE_PROFILE_NONE);
}
END_TEST

static const struct {
    const char *text;
    bool shuffle;
    int level;
} packs[] = {
    {"none", false, 0},     {"1", false, 1},        {"9", false, 9},
    {"shuffle,6", true, 6}, {"4,Shuffle", true, 4},
};

START_TEST(compression)
{
    struct joule_pack pack;

    must_set("JouleProfileCompression", packs[_i].text);
    pack = joule_profile_pack(&config);
    ck_assert(pack.shuffle == packs[_i].shuffle);
    ck_assert_int_eq(pack.level, packs[_i].level);
}
END_TEST

static const struct {
    const char *period, *least, *wish; /* wish: NULL, there is none */
    int64_t ms;
} wishes[] = {
    {"0", "1s", NULL, 0},          {"0", "1s", "100ms", 1000},
    {"0", "1s", "1s", 1000},       {"0", "50ms", "100ms", 100},
    {"0", "50ms", "10ms", 50},     {"0", "10ms", "0.01", 10},
    {"100ms", "1s", NULL, 100},    {"100ms", "1s", "100ms", 100},
    {"100ms", "1s", "20ms", 100},  {"100ms", "20ms", "20ms", 20},
    {"100ms", "1s", "500ms", 500}, /* a job may have less than all others */
    {"0", "100ms", "101ms", 200},  {"0", "100ms", "150ms", 200},
    {"0", "100ms", "200ms", 200},  {"0", "600ms", "0.7", 1200},
    {"100ms", "1s", "110ms", 200}, {"300ms", "200ms", "300ms", 400},
    {"300ms", "200ms", "301ms", 400}, {"150ms", "100ms", NULL, 200},
};

START_TEST(wish)
{
    int64_t ns = -1;

    must_set("JouleProfilePeriod", wishes[_i].period);
    must_set("JouleProfilePeriodMin", wishes[_i].least);
    ck_assert_int_eq(joule_profile_period(&config, wishes[_i].wish, &ns, &err),
                     0);
    ck_assert_int_eq(ns, wishes[_i].ms * JOULE_NS_PER_MS);
}
END_TEST

static const struct {
    const char *admin, *least, *wish;
    int64_t ms;
} state_wishes[] = {
    {"0", "1s", NULL, 0},         {"0", "1s", "100ms", 1000},
    {"0", "1s", "5s", 5000},      {"0", "100ms", "150ms", 150},
    {"10s", "1s", NULL, 10000},   {"10s", "1s", "2s", 2000},
    {"200ms", "1s", "1s", 1000},  {"200ms", "1s", "100ms", 200},
    {"200ms", "10ms", NULL, 200},
};

START_TEST(states)
{
    int64_t ns = -1;

    must_set("JouleProfileStates", state_wishes[_i].admin);
    must_set("JouleProfilePeriodMin", state_wishes[_i].least);
    ck_assert_int_eq(
        joule_profile_states(&config, state_wishes[_i].wish, &ns, &err), 0);
    ck_assert_int_eq(ns, state_wishes[_i].ms * JOULE_NS_PER_MS);
    ck_assert_int_eq(joule_profile_states(&config, "50ms", &ns, &err), -1);
    ck_assert_int_eq(errno, ERANGE);
}
END_TEST

static const char *const bad_wishes[] = {
    "", "0", "-1", "9ms", "2s", "1001ms", "fast", "100 apples", "100ms\n",
};

/* The admin's period counts, and the sentence fits on one line. */
START_TEST(bad_wish)
{
    int64_t ns = -1;

    must_set("JouleProfilePeriod", "200ms");
    must_set("JouleProfilePeriodMin", "10ms");
    ck_assert_int_eq(joule_profile_period(&config, bad_wishes[_i], &ns, &err),
                     -1);
    ck_assert(errno == EINVAL || errno == ERANGE);
    ck_assert_int_eq(ns, 200 * JOULE_NS_PER_MS);
    ck_assert_msg(strstr(err.text, "is not a period from 10ms to 1s") != NULL &&
                      !strchr(err.text, '\n'),
                  "%s", err.text);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("profile_config");
    TCase *t = tcase_create("options");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_loop_test(t, bad_value, 0, COUNT(bad_values));
    tcase_add_test(t, too_long_a_directory);
    tcase_add_test(t, defaults);
    tcase_add_test(t, series);
    tcase_add_loop_test(t, compression, 0, COUNT(packs));
    tcase_add_loop_test(t, wish, 0, COUNT(wishes));
    tcase_add_loop_test(t, states, 0, COUNT(state_wishes));
    tcase_add_loop_test(t, bad_wish, 0, COUNT(bad_wishes));
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
