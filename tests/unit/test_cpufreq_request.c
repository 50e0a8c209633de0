/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpufreq/request.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct {
    const char *text;
    int errnum;
} bad[] = {
    {"", EINVAL},
    {" ", EINVAL},
    {"2000000 ", EINVAL},
    {" 2000000", EINVAL},
    {"+2000000", EINVAL},
    {"-2000000", EINVAL},
    {"2000000-", EINVAL},
    {"-", EINVAL},
    {":", EINVAL},
    {":ondemand", EINVAL},
    {"2000000:", EINVAL},
    {"2.4GHz", EINVAL},
    {"2000000kHz", EINVAL},
    {"0x1E8480", EINVAL},
    {"1e6", EINVAL},
    {"0", ERANGE},
    {"100000001", ERANGE},
    {"18446744073709551616", ERANGE},
    {"1-100000001", ERANGE},
    {"2000000-1000000", EINVAL},
    {"high-low", EINVAL},
    {"1000000-2000000-3000000", EINVAL},
    {"1000000-2000000:userspace", EINVAL},
    {"ondemand:performance", EINVAL},
    {"1000000:ondemand:performance", EINVAL},
    {"ondemand-performance", EINVAL},
    {"1000000-ondemand", EINVAL},
    {"lower", EINVAL},
    {"on demand", EINVAL},
    {"../../etc/passwd", EINVAL},
    {"userspace\nroot", EINVAL},
    {"1000000,2000000", EINVAL},
    {"00000000000000000000000000000000000000000000000000000000000000000001",
     EINVAL},
};

START_TEST(refused)
{
    struct joule_request r, before;
    struct joule_error err = {""};

    memset(&r, 0x5a, sizeof(r));
    before = r;
    ck_assert_int_eq(joule_request_parse(bad[_i].text, &r, &err), -1);
    ck_assert_int_eq(errno, bad[_i].errnum);
    ck_assert_mem_eq(&r, &before, sizeof(r));
    ck_assert_ptr_nonnull(strstr(err.text, "--cpu-freq="));
    ck_assert_ptr_null(strchr(err.text, '\n'));
}
END_TEST

static const struct {
    const char *text, *canonical;
    bool pin;
} good[] = {
    {"2000000", "2000000", true},
    {"002000000", "2000000", true},
    {"LOW", "low", true},
    {"Medium", "medium", true},
    {"highm1", "highm1", true},
    {"High", "high", true},
    {"2000000-2000000", "2000000", true},
    {"low-low", "low", true},
    {"2000000:UserSpace", "2000000", true},
    {"2000000-2000000:userspace", "2000000", true},
    {"1500000-2600000", "1500000-2600000", false},
    {"low-2600000", "low-2600000", false},
    {"3000000-highm1", "3000000-highm1", false},
    {"low-high", "low-high", false},
    {"1500000-2600000:Performance", "1500000-2600000:performance", false},
    {"2000000-2000000:ondemand", "2000000-2000000:ondemand", false},
    {"2600000:OnDemand", "2600000:ondemand", false},
    {"PowerSave", "powersave", false},
    {"UserSpace", "userspace", false},
    {"SchedUtil", "schedutil", false},
    {"Conservative", "conservative", false},
    {"Performance", "performance", false},
};

START_TEST(accepted)
{
    char text[JOULE_REQUEST_TEXT_MAX];
    struct joule_request r, again;

    ck_assert_int_eq(joule_request_parse(good[_i].text, &r, NULL), 0);
    ck_assert_int_eq(r.pin, good[_i].pin);
    joule_request_format(&r, text);
    ck_assert_str_eq(text, good[_i].canonical);
    ck_assert_int_eq(joule_request_parse(text, &again, NULL), 0);
    ck_assert_mem_eq(&r, &again, sizeof(r));
}
END_TEST

/* Pieces in any order: what is taken comes back the same from its own text. */
START_TEST(pieces)
{
    static const char *const piece[] = {
        "low",       "medium",   "HighM1", "high", "1", "100000000",
        "2400000",   "0",        "-",      "-",    ":", ":",
        "userspace", "OnDemand", "",       " ",    "x", "\x80"};
    unsigned taken = 0;

    srand(1);
    for (int n = 0; n < 200000; n++) {
        char text[128] = "", canonical[JOULE_REQUEST_TEXT_MAX];
        struct joule_request r, again;
        struct joule_error err = {""};

        for (int i = rand() % 6; i >= 0; i--)
            strcat(text, piece[rand() % COUNT(piece)]);
        if (joule_request_parse(text, &r, &err) < 0) {
            ck_assert_msg(errno == EINVAL || errno == ERANGE, "%s", text);
            ck_assert_msg(*err.text, "%s", text);
            continue;
        }
        taken++;
        joule_request_format(&r, canonical);
        ck_assert_msg(joule_request_parse(canonical, &again, NULL) == 0, "%s",
                      text);
        ck_assert_mem_eq(&r, &again, sizeof(r));
    }
    ck_assert_uint_gt(taken, 1000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq request");
    TCase *c = tcase_create("request");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(c, refused, 0, COUNT(bad));
    tcase_add_loop_test(c, accepted, 0, COUNT(good));
    tcase_add_test(c, pieces);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
