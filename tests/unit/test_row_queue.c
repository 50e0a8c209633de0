/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A step's share in rows that are read more often than the ledger: each row
 * gets its part of the interval that it lies in, all together what the ledger
 * says. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/step/row_queue.h"
#include "tests/unit/dice.h"

#define S     JOULE_NS_PER_S
#define DEPTH 8
#define J     UINT64_C(1000000)

static struct joule_row_queue *queue;

static void setup(void)
{
    queue = joule_row_queue_create(DEPTH, sizeof(int));
    ck_assert_ptr_nonnull(queue);
    joule_row_queue_begin(queue, 0, 0);
}

static void teardown(void)
{
    joule_row_queue_destroy(queue);
}

static void add(int64_t ns, uint64_t uj)
{
    int cell = (int)(ns / (S / 10));

    ck_assert_int_eq(joule_row_queue_add(queue, ns, uj, ns / S + 7, &cell), 0);
}

/* The next row is the one that ended at [ns]. */
static void is_next(int64_t ns, uint64_t uj, double mw)
{
    struct joule_row_queue_row row;

    ck_assert(joule_row_queue_next(queue, false, &row));
    ck_assert_int_eq(row.mono_ns, ns);
    ck_assert_int_eq(row.epoch_s, ns / S + 7);
    ck_assert_int_eq(*(int *)row.cells, ns / (S / 10));
    ck_assert_uint_eq(row.uj, uj);
    ck_assert_double_eq_tol(row.mw, mw, 1e-6 * (mw + 1));
}

static void is_given_up(int64_t ns, uint64_t uj)
{
    struct joule_row_queue_row row;

    ck_assert(joule_row_queue_next(queue, true, &row));
    ck_assert_int_eq(row.mono_ns, ns);
    ck_assert_uint_eq(row.uj, uj);
    ck_assert(isnan(row.mw));
}

static void none_is_ready(void)
{
    struct joule_row_queue_row row;

    ck_assert(!joule_row_queue_next(queue, false, &row));
}

/* A step with half of a node whose power changes: so does its own. */
START_TEST(follows_the_node)
{
    add(1 * S, 100 * J);
    add(2 * S, 400 * J);
    none_is_ready();
    joule_row_queue_sample(queue, 0, 2 * S, 200 * J);
    is_next(1 * S, 50 * J, 50e3);
    is_next(2 * S, 200 * J, 150e3);
    none_is_ready();
}
END_TEST

/* A sample between two rows: the row that it lies in has some of both. */
START_TEST(samples_between_rows)
{
    add(1 * S, 100 * J);
    add(2 * S, 200 * J);
    joule_row_queue_sample(queue, 0, 3 * S / 2, 150 * J);
    is_next(1 * S, 100 * J, 100e3);
    none_is_ready();
    add(3 * S, 300 * J);
    joule_row_queue_sample(queue, 0, 3 * S, 225 * J);
    is_next(2 * S, 175 * J, 75e3);
    is_next(3 * S, 225 * J, 50e3);
}
END_TEST

/* What the node uses behind the last row may be less than in it, so the sample
 * waits for the next one; if there is none, it is taken for the same. */
START_TEST(a_sample_behind_the_last_row)
{
    struct joule_row_queue_row row;

    add(1 * S, 100 * J);
    joule_row_queue_sample(queue, 0, 3 * S / 2, 105 * J / 2);
    none_is_ready();
    add(2 * S, 110 * J);
    is_next(1 * S, 50 * J, 50e3);
    none_is_ready();
    /* One at a row and one behind it. */
    joule_row_queue_sample(queue, 0, 2 * S, 55 * J);
    joule_row_queue_sample(queue, 0, 3 * S, 105 * J);
    is_next(2 * S, 55 * J, 5e3);
    add(4 * S, 310 * J);
    joule_row_queue_sample(queue, 0, 5 * S, 205 * J);
    none_is_ready();
    ck_assert(joule_row_queue_next(queue, true, &row));
    ck_assert_uint_eq(row.uj, 155 * J);
    ck_assert_double_eq_tol(row.mw, 50e3, 1);
}
END_TEST

START_TEST(a_node_that_used_nothing)
{
    add(1 * S, 0);
    add(4 * S, 0);
    joule_row_queue_sample(queue, 0, 4 * S, 4 * J);
    is_next(1 * S, 1 * J, 1e3);
    is_next(4 * S, 4 * J, 1e3);
}
END_TEST

/* slurmd is away, and comes back: what was used meanwhile is not the power of
 * the next row. */
START_TEST(given_up)
{
    add(1 * S, 100 * J);
    joule_row_queue_sample(queue, 0, 1 * S, 50 * J);
    is_next(1 * S, 50 * J, 50e3);
    add(2 * S, 200 * J);
    add(3 * S, 300 * J);
    joule_row_queue_sample(queue, 0, 1 * S, 50 * J);
    none_is_ready();
    is_given_up(2 * S, 50 * J);
    is_given_up(3 * S, 50 * J);
    add(4 * S, 400 * J);
    joule_row_queue_sample(queue, 0, 4 * S, 200 * J);
    is_next(4 * S, 200 * J, 50e3);
}
END_TEST

/* A sample from the time of rows that were given up says nothing. */
START_TEST(a_sample_that_is_too_old)
{
    add(1 * S, 100 * J);
    add(2 * S, 200 * J);
    is_given_up(1 * S, 0);
    is_given_up(2 * S, 0);
    joule_row_queue_sample(queue, 0, 3 * S / 2, 75 * J);
    add(3 * S, 300 * J);
    none_is_ready();
    joule_row_queue_sample(queue, 0, 3 * S, 150 * J);
    is_next(3 * S, 150 * J, 50e3);
}
END_TEST

/* The profile begins when the step has already used something. */
START_TEST(begins_late)
{
    joule_row_queue_destroy(queue);
    queue = joule_row_queue_create(DEPTH, sizeof(int));
    joule_row_queue_begin(queue, 1 * S, 100 * J);
    joule_row_queue_begin(queue, 5 * S, 900 * J);
    add(2 * S, 200 * J);
    joule_row_queue_sample(queue, S / 2, 2 * S, 150 * J);
    is_next(2 * S, 150 * J, 100e3);
}
END_TEST

/* A ledger that was begun anew has less. */
START_TEST(never_falls)
{
    add(1 * S, 100 * J);
    joule_row_queue_sample(queue, 0, 1 * S, 80 * J);
    is_next(1 * S, 80 * J, 80e3);
    add(2 * S, 200 * J);
    joule_row_queue_sample(queue, 0, 2 * S, 10 * J);
    is_next(2 * S, 80 * J, 0);
}
END_TEST

START_TEST(a_full_one)
{
    int cell = 0;

    for (int i = 1; i <= DEPTH; i++) {
        ck_assert(!joule_row_queue_is_full(queue));
        add(i * S, (uint64_t)i * J);
    }
    ck_assert(joule_row_queue_is_full(queue));
    ck_assert_int_eq(joule_row_queue_add(queue, 9 * S, 9 * J, 0, &cell), -1);
    ck_assert_int_eq(errno, ENOBUFS);
    is_given_up(1 * S, 0);
    add(9 * S, 9 * J);
    joule_row_queue_sample(queue, 0, 9 * S, 9 * J);
    is_next(2 * S, 2 * J, 1e3);
}
END_TEST

/* Rows, samples and gaps in any order: energy never falls, and is the ledger's
 * where a sample falls on a row; its power adds up to it. */
START_TEST(any_order)
{
    uint64_t node_uj = 0, step_uj = 0, uj = 0, seed = 0x5eed + (uint64_t)_i;
    struct joule_row_queue_row row;
    int64_t now_ns = 0, before_ns = 0;
    double sum_uj = 0;

    for (int i = 0; i < 2000; i++) {
        uint64_t more = dice(&seed, 1000 * J);
        int64_t ns = 1 + (int64_t)dice(&seed, 2 * S);
        bool is_full = joule_row_queue_is_full(queue);

        now_ns += ns;
        node_uj += more;
        step_uj += more / 100 * dice(&seed, 101);
        if (is_full)
            joule_row_queue_sample(queue, 0, now_ns - ns / 2, step_uj);
        while (joule_row_queue_next(queue, is_full, &row)) {
            ck_assert_uint_ge(row.uj, uj);
            ck_assert(row.mw >= 0);
            uj = row.uj;
            sum_uj += row.mw * (double)(row.mono_ns - before_ns) / 1e6;
            before_ns = row.mono_ns;
        }
        ck_assert_int_eq(
            joule_row_queue_add(queue, now_ns, node_uj, 0, &(int){0}), 0);
        if (dice(&seed, 3) == 0)
            joule_row_queue_sample(queue, 0, now_ns, step_uj);
    }
    joule_row_queue_sample(queue, 0, now_ns, step_uj);
    while (joule_row_queue_next(queue, false, &row)) {
        uj = row.uj;
        sum_uj += row.mw * (double)(row.mono_ns - before_ns) / 1e6;
        before_ns = row.mono_ns;
    }
    ck_assert_uint_eq(uj, step_uj);
    ck_assert_double_eq_tol(sum_uj, (double)step_uj, (double)step_uj / 1e9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("row queue");
    TCase *tests = tcase_create("share");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, follows_the_node);
    tcase_add_test(tests, samples_between_rows);
    tcase_add_test(tests, a_sample_behind_the_last_row);
    tcase_add_test(tests, a_node_that_used_nothing);
    tcase_add_test(tests, given_up);
    tcase_add_test(tests, a_sample_that_is_too_old);
    tcase_add_test(tests, begins_late);
    tcase_add_test(tests, never_falls);
    tcase_add_test(tests, a_full_one);
    tcase_add_loop_test(tests, any_order, 0, 5);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
