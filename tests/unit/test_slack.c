/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slack of a process: by hand, and random ones against all delays that there can be. */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/waits/slack.h"
#include "tests/unit/dice.h"

#define NONE JOULE_SLACK_NO_LIMIT

static struct joule_slack *s;

static void setup(void)
{
    s = joule_slack_create();
    ck_assert_ptr_nonnull(s);
}

static void teardown(void)
{
    joule_slack_destroy(s);
}

static uint32_t begin(void)
{
    uint32_t call;

    ck_assert_int_eq(joule_slack_begin(s, &call), 0);
    return call;
}

static void compute(uint32_t path, uint64_t ns)
{
    ck_assert_int_eq(joule_slack_compute(s, path, ns), 0);
}

static void call(uint64_t limit_ns, uint64_t wait_ns)
{
    joule_slack_release(s, begin(), limit_ns, wait_ns);
}

static const struct joule_slack_path *path_of(uint32_t path)
{
    size_t count;
    const struct joule_slack_path *p = joule_slack_paths(s, &count);

    for (size_t i = 0; i < count; i++)
        if (p[i].path == path)
            return &p[i];
    ck_abort_msg("no path %u", path);
}

static void is(uint32_t path, uint64_t computed_ns, uint64_t slack_ns)
{
    ck_assert_uint_eq(path_of(path)->computed_ns, computed_ns);
    ck_assert_uint_eq(path_of(path)->slack_ns, slack_ns);
}

/* An exchange with a neighbour: what others wait for bounds it, and not the wait
 * alone. */
START_TEST(exchange)
{
    call(NONE, 0); /* MPI_Irecv */
    compute(1, 100);
    call(30, 0); /* MPI_Isend: it is received 30 ns later */
    compute(2, 5);
    call(NONE, 50); /* MPI_Waitall */
    is(1, 100, 30);
    is(2, 5, 50);
    is(JOULE_SLACK_ALL, 105, 50);
}
END_TEST

/* The last one in a barrier has none, and what it did before it cannot go further. */
START_TEST(last_in_a_barrier)
{
    compute(1, 100);
    call(0, 0);
    compute(2, 10);
    call(40, 40);
    is(1, 100, 0);
    is(2, 10, 40);
    is(JOULE_SLACK_ALL, 110, 40);
}
END_TEST

/* What one wait has swallowed is not swallowed by the next one. */
START_TEST(several_waits)
{
    compute(1, 100);
    call(70, 20);
    call(60, 20);
    call(5, 20);
    call(NONE, 20);
    is(1, 100, 20 + 20 + 5);
}
END_TEST

START_TEST(nothing_computed)
{
    call(50, 50);
    is(JOULE_SLACK_ALL, 0, 0);
    compute(1, 7);
    is(1, 7, 0);
}
END_TEST

/* What is behind a call that is not known is told once it is. */
START_TEST(known_later)
{
    uint32_t first, second;

    compute(1, 100);
    first = begin();
    joule_slack_keep(s, first);
    second = begin();
    joule_slack_release(s, second, NONE, 50);
    joule_slack_release(s, first, NONE, 0);
    is(1, 100, 0);
    joule_slack_release(s, first, 20, 5);
    is(1, 100, 5 + 15);
    /* No call, and one that is over. */
    joule_slack_keep(s, JOULE_SLACK_NO_CALL);
    joule_slack_release(s, JOULE_SLACK_NO_CALL, 0, 0);
    joule_slack_release(s, first, 0, 1000);
    is(1, 100, 20);
}
END_TEST

START_TEST(never_known)
{
    uint32_t first;

    compute(1, 100);
    first = begin();
    for (size_t i = 0; i < 3 * JOULE_SLACK_OPEN_MAX; i++) {
        compute(2, 1);
        call(NONE, 2);
    }
    /* It must not move, as nothing is known of it. */
    is(1, 100, 0);
    ck_assert_uint_gt(path_of(2)->slack_ns, 4 * JOULE_SLACK_OPEN_MAX);
    joule_slack_release(s, first, NONE, 1000);
    is(1, 100, 0);
    begin();
    compute(3, 4);
    call(9, 8);
    joule_slack_finish(s);
    is(3, 4, 8);
}
END_TEST

/* ---- random ---- */

#define ITEMS   60
#define PATHS   3
#define CARRY   40 /* delays that are tried */
#define UNKNOWN (-1)

struct step {
    uint32_t path; /* that computes; PATHS: a call */
    uint64_t limit_ns, wait_ns;
};

/* The most that can be swallowed if only [path], or each of them, is delayed: of each
 * delay that may be under way, the best that came of it. */
static int64_t most(const struct step *step, size_t count, uint32_t path)
{
    int64_t best[CARRY + 1], next[CARRY + 1], all = 0;

    for (int d = 0; d <= CARRY; d++)
        best[d] = d == 0 ? 0 : UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        const struct step *t = &step[i];

        for (int d = 0; d <= CARRY; d++)
            next[d] = UNKNOWN;
        for (int d = 0; d <= CARRY; d++) {
            uint64_t used = (uint64_t)d < t->wait_ns ? (uint64_t)d : t->wait_ns;
            int to = d - (int)used;

            if (best[d] == UNKNOWN)
                continue;
            if (t->path < PATHS) {
                bool may = path == JOULE_SLACK_ALL || t->path == path;

                for (int more = d; more <= (may ? CARRY : d); more++)
                    if (next[more] < best[d])
                        next[more] = best[d];
            } else if ((uint64_t)d <= t->limit_ns &&
                       next[to] < best[d] + (int64_t)used) {
                next[to] = best[d] + (int64_t)used;
            }
        }
        memcpy(best, next, sizeof(best));
    }
    for (int d = 0; d <= CARRY; d++)
        all = all > best[d] ? all : best[d];
    return all;
}

START_TEST(random_processes)
{
    uint64_t seed = dice_seed();

    for (int round = 0; round < dice_rounds(2000); round++) {
        struct step step[ITEMS];
        size_t count = 1 + dice(&seed, ITEMS);

        for (size_t i = 0; i < count; i++) {
            step[i].path = (uint32_t)dice(&seed, 2 * PATHS);
            if (step[i].path >= PATHS)
                step[i].path = PATHS;
            step[i].limit_ns = dice(&seed, 3) ? dice(&seed, CARRY) : CARRY;
            step[i].wait_ns = dice(&seed, 2) ? dice(&seed, CARRY / 2) : 0;
            if (step[i].path < PATHS)
                compute(step[i].path, 1);
            else
                call(step[i].limit_ns, step[i].wait_ns);
        }
        for (uint32_t path = 0; path < PATHS; path++) {
            compute(path, 0);
            ck_assert_int_eq(path_of(path)->slack_ns, most(step, count, path));
        }
        ck_assert_int_eq(path_of(JOULE_SLACK_ALL)->slack_ns,
                         most(step, count, JOULE_SLACK_ALL));
        teardown();
        setup();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slack");
    TCase *tc = tcase_create("slack");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, exchange);
    tcase_add_test(tc, last_in_a_barrier);
    tcase_add_test(tc, several_waits);
    tcase_add_test(tc, nothing_computed);
    tcase_add_test(tc, known_later);
    tcase_add_test(tc, never_known);
    tcase_add_test(tc, random_processes);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
