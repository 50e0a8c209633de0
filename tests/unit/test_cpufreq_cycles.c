/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <string.h>

#include "common/cpufreq/average.h"
#include "tests/unit/tree.h"

#define S INT64_C(1000000000)

/* A machine whose time stamp counter is at 2.4 GHz; counters that begin
 * anywhere, and wrap. */
static const struct joule_cycles_reading first = {
    .tsc = 1000, .mperf = 500, .aperf = 700, .ns = 5 * S};

static struct joule_cycles_reading after(double seconds, double busy,
                                         double ghz)
{
    struct joule_cycles_reading r = first;

    r.ns += (int64_t)(seconds * 1e9);
    r.tsc += (uint64_t)(seconds * 2.4e9);
    r.mperf += (uint64_t)(busy * 2.4e9);
    r.aperf += (uint64_t)(busy * ghz * 1e9);
    return r;
}

static uint32_t khz_of(struct joule_cycles_reading now)
{
    struct joule_cycles_sum sum = {0};

    joule_cycles_add(&sum, &first, &first, &now);
    return joule_cycles_khz(&sum);
}

START_TEST(nothing)
{
    struct joule_cycles_reading r = after(1, 0.5, 1.2);

    /* It slept all the time. */
    ck_assert_uint_eq(khz_of(after(1, 0, 1.2)), 0);
    ck_assert_uint_eq(khz_of(first), 0);
    /* Counters that began anew, or a clock. */
    r.mperf = 3;
    ck_assert_uint_eq(khz_of(r), 0);
    r = after(1, 0.5, 1.2);
    r.aperf = 3;
    ck_assert_uint_eq(khz_of(r), 0);
    r = after(1, 0.5, 1.2);
    r.tsc = 3;
    ck_assert_uint_eq(khz_of(r), 0);
    r = after(1, 0.5, 1.2);
    r.ns = first.ns - 1;
    ck_assert_uint_eq(khz_of(r), 0);
    /* No CPU has that. */
    ck_assert_uint_eq(khz_of(after(1, 0.5, 1e6)), 0);
}
END_TEST

START_TEST(one_cpu)
{
    ck_assert_uint_eq(khz_of(after(1, 1, 1.2)), 1200000);
    ck_assert_uint_eq(khz_of(after(1, 0.01, 1.2)), 1200000);
    ck_assert_uint_eq(khz_of(after(3600, 3000, 3.7)), 3700000);
    ck_assert_uint_eq(khz_of(after(0.05, 0.05, 2.4)), 2400000);
}
END_TEST

/* By the time that each of them ran. */
START_TEST(several)
{
    struct joule_cycles_reading a = after(10, 1, 1.2), b = after(10, 3, 2.4);
    struct joule_cycles_sum sum = {0};

    joule_cycles_add(&sum, &first, &first, &a);
    joule_cycles_add(&sum, &first, &first, &b);
    ck_assert_uint_eq(joule_cycles_khz(&sum), 2100000);
    /* The interval from a to b alone, at the rate since the first. */
    memset(&sum, 0, sizeof(sum));
    b = after(20, 3, 1.2);
    joule_cycles_add(&sum, &first, &a, &b);
    ck_assert_uint_eq(joule_cycles_khz(&sum), 1200000);
}
END_TEST

/* 2 % of the interval for both readings together. */
START_TEST(sharp)
{
    struct joule_cycles_reading now = after(1, 1, 1.2), before = first;

    ck_assert(joule_cycles_is_sharp(&before, &now));
    before.spread_ns = S / 100;
    now.spread_ns = S / 100;
    ck_assert(joule_cycles_is_sharp(&before, &now));
    now.spread_ns++;
    ck_assert(!joule_cycles_is_sharp(&before, &now));
    now.ns = before.ns;
    ck_assert(!joule_cycles_is_sharp(&before, &now));
}
END_TEST

START_TEST(no_device)
{
    struct tree tree;
    struct joule_average_options opt = {.tell = NULL};
    struct joule_average_result result;
    struct joule_average *average;

    tree_create(&tree);
    opt.root_fd = tree.fd;
    joule_cpus_add(&opt.cpus, 0);
    average = joule_average_create(&opt, NULL);
    ck_assert_ptr_nonnull(average);
    joule_average_destroy(average, &result);
    ck_assert(!result.is_counted);
    ck_assert_uint_eq(result.khz, 0);
    tree_destroy(&tree);
    joule_average_destroy(NULL, &result);
}
END_TEST

START_TEST(thin)
{
    struct joule_cpus s;

    memset(&s, 0xff, sizeof(s));
    joule_cpus_thin(&s, 16);
    ck_assert_uint_eq(joule_cpus_count(&s), 16);
    ck_assert_uint_eq(joule_cpus_next(&s, 0), 511);
    joule_cpus_thin(&s, 16);
    ck_assert_uint_eq(joule_cpus_count(&s), 16);
    joule_cpus_thin(&s, 3);
    ck_assert_uint_eq(joule_cpus_count(&s), 3);
    joule_cpus_thin(&s, 0);
    ck_assert(joule_cpus_is_empty(&s));
    joule_cpus_thin(&s, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq cycles");
    TCase *c = tcase_create("cycles");
    SRunner *runner;
    int failed;

    tcase_add_test(c, nothing);
    tcase_add_test(c, one_cpu);
    tcase_add_test(c, several);
    tcase_add_test(c, sharp);
    tcase_add_test(c, no_device);
    tcase_add_test(c, thin);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
