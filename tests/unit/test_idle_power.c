/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/energy/idle_power.h"
#include "tests/unit/dice.h"

#define S   INT64_C(1000000000)
#define W   UINT64_C(1000000)
#define DAY 86400

static struct joule_idle_power f;
static uint64_t seed;

static void setup(void)
{
    memset(&f, 0, sizeof(f));
    seed = dice_seed();
}

/* [seconds] of [uw], each second up to [noise] more or less. */
static void feed(int seconds, uint64_t uw, uint64_t noise)
{
    for (int i = 0; i < seconds; i++)
        joule_idle_power_add(&f, uw - noise + dice(&seed, 2 * noise + 1), S);
}

static void expect(uint64_t low, uint64_t high)
{
    ck_assert_uint_ge(f.idle_power_uw, low);
    ck_assert_uint_le(f.idle_power_uw, high);
}

START_TEST(test_not_known_before_a_minute)
{
    joule_idle_power_add(&f, 100 * W, 0);
    joule_idle_power_add(&f, 100 * W, -S);
    feed(59, 100 * W, 0);
    ck_assert_uint_eq(f.idle_power_uw, 0);
    feed(1, 100 * W, 0);
    ck_assert_uint_eq(f.idle_power_uw, 100 * W);
    ck_assert_uint_eq(joule_idle_power_uj(&f, 3 * S), 300 * W);
    ck_assert_uint_eq(joule_idle_power_uj(&f, -S), 0);
    ck_assert_uint_eq(joule_idle_power_uj(&f, INT64_MAX),
                      UINT64_C(922337203685477580));
}
END_TEST

/* Before that, the lowest second there was; before that, everything. */
START_TEST(test_a_second_stands_in)
{
    ck_assert_uint_eq(joule_idle_power_uj(&f, S), UINT64_MAX);
    ck_assert_uint_eq(joule_idle_power_uj(&f, -S), 0);
    joule_idle_power_add(&f, 120 * W * 4 / 10, 4 * S / 10);
    ck_assert_uint_eq(joule_idle_power_uj(&f, S), UINT64_MAX);
    joule_idle_power_add(&f, 80 * W * 6 / 10, 6 * S / 10);
    ck_assert_uint_eq(joule_idle_power_uj(&f, S), 96 * W);
    ck_assert_uint_eq(joule_idle_power_uj(&f, S / 2), 48 * W);
    joule_idle_power_add(&f, 100 * W * 5, 5 * S);
    ck_assert_uint_eq(joule_idle_power_uj(&f, S), 96 * W);
    joule_idle_power_add(&f, 90 * W * 2, 2 * S);
    ck_assert_uint_eq(joule_idle_power_uj(&f, S), 90 * W);
    /* A part of a second, and then one of which nothing is known. */
    joule_idle_power_add(&f, 10 * W * 9 / 10, 9 * S / 10);
    joule_idle_power_gap(&f);
    joule_idle_power_add(&f, 90 * W / 10, S / 10);
    ck_assert_uint_eq(joule_idle_power_uj(&f, S), 90 * W);
    /* None of these is one. */
    joule_idle_power_add(&f, 0, 2 * S);
    joule_idle_power_add(&f, UINT64_MAX, S);
    joule_idle_power_add(&f, UINT64_MAX, 2 * S);
    ck_assert_uint_eq(joule_idle_power_uj(&f, S), 90 * W);
    ck_assert_uint_eq(f.idle_power_uw, 0);
    /* Lower than the minute that is the floor from then on. */
    joule_idle_power_gap(&f);
    feed(60, 110 * W, 0);
    ck_assert_uint_eq(joule_idle_power_uj(&f, S), 110 * W);
}
END_TEST

/* From a load down to idle: a fall by far is believed in six minutes. */
START_TEST(test_converges_on_an_idle_node)
{
    feed(600, 300 * W, 50 * W);
    expect(280 * W, 310 * W);
    feed(300 + 60, 100 * W, 10 * W);
    expect(97 * W, 103 * W);
    feed(600, 290 * W, 50 * W);
    expect(97 * W, 103 * W);
    /* A little lower is taken within a minute. */
    feed(70, 90 * W, 0);
    expect(90 * W, 90 * W);
}
END_TEST

/* Idle for a minute, whenever that is. */
START_TEST(test_one_idle_minute_is_enough)
{
    feed(600, 110 * W, 0);
    feed(70, 100 * W, 0);
    feed(600, 110 * W, 0);
    expect(100 * W, 100 * W);
}
END_TEST

START_TEST(test_always_busy_rises_at_the_stated_rate)
{
    feed(120, 100 * W, 0);
    feed(DAY, 300 * W, 20 * W);
    expect(100900000, 101100000);
    for (int day = 1; day < 10; day++)
        feed(DAY, 300 * W, 20 * W);
    expect(110 * W, 111 * W);
    /* Not above what was seen. */
    feed(DAY / 2, 111 * W, 0);
    expect(110 * W, 111 * W);
    feed(20 * DAY, 111 * W, 0);
    expect(111 * W, 111 * W);
}
END_TEST

/* A sensor that says 4 W for three minutes. */
START_TEST(test_nonsense_makes_no_floor)
{
    feed(600, 100 * W, 5 * W);
    feed(180, 4 * W, 0);
    feed(300, 100 * W, 5 * W);
    feed(200, 4 * W, 0);
    feed(600, 100 * W, 5 * W);
    expect(97 * W, 103 * W);
    feed(600, 0, 0);
    expect(97 * W, 103 * W);
    feed(600, JOULE_IDLE_POWER_MOST_UW + 1, 0);
    expect(97 * W, 103 * W);
    /* A node that does use far less is believed after five minutes. */
    feed(280, 40 * W, 0);
    expect(97 * W, 103 * W);
    feed(90, 40 * W, 0);
    expect(40 * W, 45 * W);
}
END_TEST

/* 4 W steps below a power that is between them. */
START_TEST(test_quantised_power)
{
    for (int i = 0; i < 1200; i++) {
        uint64_t uw = 102 * W - 3 * W + dice(&seed, 6 * W + 1);

        joule_idle_power_add(&f, (uw + 2 * W) / (4 * W) * (4 * W), S);
    }
    expect(100 * W, 104 * W);
}
END_TEST

START_TEST(test_gaps_and_long_intervals)
{
    for (int i = 0; i < 100; i++) {
        feed(55, 100 * W, 0);
        joule_idle_power_gap(&f);
    }
    ck_assert_uint_eq(f.idle_power_uw, 0);
    joule_idle_power_add(&f, 120 * W * 300, 300 * S);
    expect(120 * W, 120 * W);
    joule_idle_power_add(&f, 110 * W * 59, 59 * S);
    expect(120 * W, 120 * W);
    joule_idle_power_add(&f, UINT64_MAX, 59 * S);
    joule_idle_power_add(&f, UINT64_MAX, 59 * S);
    expect(120 * W, 120 * W);
    joule_idle_power_add(&f, UINT64_MAX, INT64_MAX);
    feed(120, 118 * W, 0);
    expect(118 * W, 118 * W);
    /* Fast sampling. */
    for (int i = 0; i < 6200; i++)
        joule_idle_power_add(&f, 117 * W / 100, S / 100);
    expect(117 * W - 100, 117 * W);
}
END_TEST

START_TEST(test_any_content_is_survived)
{
    for (int round = 0; round < 20000; round++) {
        uint64_t words[sizeof(f) / 8];

        for (size_t i = 0; i < sizeof(f) / 8; i++)
            words[i] = dice64(&seed) >> dice(&seed, 64);
        memcpy(&f, words, sizeof(f));
        for (int i = 0; i < 20; i++) {
            joule_idle_power_add(&f, dice64(&seed) >> dice(&seed, 64),
                                 (int64_t)(dice64(&seed) >> dice(&seed, 64)));
            joule_idle_power_uj(&f, INT64_MAX);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("idle power");
    TCase *tc = tcase_create("floor");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, test_not_known_before_a_minute);
    tcase_add_test(tc, test_a_second_stands_in);
    tcase_add_test(tc, test_converges_on_an_idle_node);
    tcase_add_test(tc, test_one_idle_minute_is_enough);
    tcase_add_test(tc, test_always_busy_rises_at_the_stated_rate);
    tcase_add_test(tc, test_nonsense_makes_no_floor);
    tcase_add_test(tc, test_quantised_power);
    tcase_add_test(tc, test_gaps_and_long_intervals);
    tcase_add_test(tc, test_any_content_is_survived);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
