/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The power of a process that waits. */
#include <check.h>
#include <math.h>

#include "common/waits/power_fit.h"
#include "tests/unit/dice.h"

static struct joule_power_fit fit;

static void setup(void)
{
    fit = (struct joule_power_fit){0};
}

/* Four processes: 10 W each while they compute, 6 W while they wait, 100 W of the
 * node beside them. */
static double watts_of(double waiting)
{
    return 100 + 10 * (4 - waiting) + 6 * waiting;
}

START_TEST(exact)
{
    struct joule_wait_power p;

    for (int i = 0; i < 40; i++)
        joule_power_fit_add(&fit, 0.1 + i % 3, watts_of(i % 5), i % 5);
    p = joule_power_fit_solve(&fit, 4);
    ck_assert(p.is_known && p.is_fitted);
    /* Its part of the node, and its own. */
    ck_assert_double_eq_tol(p.watts, 100 / 4.0 + 6, 1e-9);
    ck_assert_double_le(p.uncertain, 1e-5);
}
END_TEST

/* Noise of 5 W: the truth is within two standard errors in 95 of 100 runs. */
START_TEST(noise)
{
    uint64_t seed = dice_seed();
    int within = 0;

    for (int run = 0; run < 200; run++) {
        struct joule_wait_power p;

        setup();
        for (int i = 0; i < 100; i++) {
            double waiting = (double)dice(&seed, 401) / 100, off = 0;

            for (int k = 0; k < 12; k++)
                off += (double)dice(&seed, 1000000) / 1e6 - 0.5;
            joule_power_fit_add(&fit, 1, watts_of(waiting) + 5 * off, waiting);
        }
        p = joule_power_fit_solve(&fit, 4);
        ck_assert(p.is_fitted);
        within += fabs(p.watts - 31) <= p.uncertain;
    }
    ck_assert_int_ge(within, 175);
    ck_assert_int_lt(within, 200);
}
END_TEST

START_TEST(no_line)
{
    struct joule_wait_power p = joule_power_fit_solve(&fit, 4);

    ck_assert(!p.is_known);
    /* Too few rows. */
    joule_power_fit_add(&fit, 1, 100, 0);
    p = joule_power_fit_solve(&fit, 4);
    ck_assert(p.is_known && !p.is_fitted);
    ck_assert_double_eq_tol(p.watts, 25, 1e-9);
    ck_assert_double_eq_tol(p.uncertain, 12.5, 1e-9);
    joule_power_fit_add(&fit, 3, 140, 4);
    p = joule_power_fit_solve(&fit, 4);
    ck_assert(p.is_known && !p.is_fitted);
    ck_assert_double_eq_tol(p.watts, 130 / 4.0, 1e-9);
    ck_assert_double_eq_tol(p.uncertain, 5, 1e-9);
    ck_assert(!joule_power_fit_solve(&fit, 0).is_known);
    /* They wait all the time. */
    setup();
    for (int i = 0; i < 100; i++)
        joule_power_fit_add(&fit, 1, 100 + i % 2, 2);
    p = joule_power_fit_solve(&fit, 4);
    ck_assert(!p.is_fitted);
    ck_assert_double_eq_tol(p.watts, 100.5 / 4, 1e-9);
    /* What is no row. */
    setup();
    joule_power_fit_add(&fit, 0, 1, 1);
    joule_power_fit_add(&fit, -1, 1, 1);
    joule_power_fit_add(&fit, 1, NAN, 1);
    joule_power_fit_add(&fit, 1, -1, 1);
    joule_power_fit_add(&fit, 1, 1, INFINITY);
    ck_assert(!joule_power_fit_solve(&fit, 1).is_known);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("power fit");
    TCase *tc = tcase_create("core");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, exact);
    tcase_add_test(tc, noise);
    tcase_add_test(tc, no_line);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
