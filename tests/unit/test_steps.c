/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/meter/split.h"
#include "tests/unit/dice.h"

__extension__ typedef unsigned __int128 u128;

#define S   INT64_C(1000000000)
#define J   UINT64_C(1000000)
#define MAX JOULE_CLAIMS_MAX

START_TEST(test_apportion_gives_the_largest_remainders)
{
    uint64_t w[] = {1, 1, 1}, v[] = {47, 16, 158, 12, 64, 3}, r[6];

    ck_assert(joule_split_apportion(10, w, 3, r));
    ck_assert_uint_eq(r[0], 4); /* the same remainder: the first */
    ck_assert_uint_eq(r[1], 3);
    ck_assert_uint_eq(r[2], 3);
    /* 1.57 0.53 5.27 0.4 2.13 0.1 of 10: the text book's way. */
    ck_assert(joule_split_apportion(10, v, 6, r));
    ck_assert_uint_eq(r[0], 2);
    ck_assert_uint_eq(r[1], 1);
    ck_assert_uint_eq(r[2], 5);
    ck_assert_uint_eq(r[3], 0);
    ck_assert_uint_eq(r[4], 2);
    ck_assert_uint_eq(r[5], 0);
    memset(w, 0, sizeof(w));
    ck_assert(!joule_split_apportion(10, w, 3, r));
    ck_assert_uint_eq(r[0] + r[1] + r[2], 0);
}
END_TEST

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* Against sorting, the slow way. */
START_TEST(test_apportion_at_random)
{
    static uint64_t w[MAX + 2], r[MAX + 2], rem[MAX + 2], sorted[MAX + 2];
    uint64_t seed = dice_seed();

    for (int round = 0; round < 3000; round++) {
        size_t n = 1 + (size_t)dice(&seed, round % 50 ? 40 : MAX + 2);
        uint64_t total = dice64(&seed), sum = 0, given = 0, fewest;
        uint64_t span = UINT64_C(1) << dice(&seed, 54);

        total >>= dice(&seed, 64);
        for (size_t i = 0; i < n; i++)
            sum += w[i] = dice(&seed, span);
        if (!joule_split_apportion(total, w, n, r)) {
            ck_assert_uint_eq(sum, 0);
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            u128 product = (u128)total * w[i];

            given += r[i];
            rem[i] = sorted[i] = (uint64_t)(product % sum);
            ck_assert_uint_ge(r[i], (uint64_t)(product / sum));
            ck_assert_uint_le(r[i] - (uint64_t)(product / sum), 1);
        }
        ck_assert_uint_eq(given, total);
        qsort(sorted, n, sizeof(*sorted), descending);
        fewest = UINT64_MAX;
        for (size_t i = 0; i < n; i++)
            if (r[i] > (uint64_t)((u128)total * w[i] / sum) && rem[i] < fewest)
                fewest = rem[i];
        for (size_t i = 0; i < n && fewest != UINT64_MAX; i++)
            if (r[i] == (uint64_t)((u128)total * w[i] / sum))
                ck_assert_uint_le(rem[i], fewest);
    }
}
END_TEST

static uint64_t step_uj[8];

static void run_steps(struct joule_share s, const struct joule_step_claim *c,
                      size_t count)
{
    uint64_t sum = 0;

    joule_split_steps(&s, c, count, step_uj);
    for (size_t i = 0; i < count; i++)
        sum += step_uj[i];
    ck_assert_uint_eq(sum, s.floor_uj + s.active_uj);
}

static struct joule_step_claim step(enum joule_step_kind kind, uint32_t cpus,
                                    uint64_t cpu_ns)
{
    return (struct joule_step_claim){
        .kind = kind, .cpu_count = cpus, .present_ns = S, .cpu_ns = cpu_ns};
}

START_TEST(test_steps_share_what_the_job_has)
{
    struct joule_share s = {
        .floor_uj = 40 * J, .active_uj = 30 * J, .capacity_ns = 4 * S};
    struct joule_step_claim c[] = {
        step(JOULE_STEP_EXTERN, 4, 0), step(JOULE_STEP_OTHER, 4, 0),
        step(JOULE_STEP_NUMBERED, 1, S), step(JOULE_STEP_NUMBERED, 1, S / 2)};

    run_steps(s, c, 4);
    ck_assert_uint_eq(step_uj[0], 25 * J); /* 2.5 CPUs that nobody used */
    ck_assert_uint_eq(step_uj[1], 0);
    ck_assert_uint_eq(step_uj[2], 10 * J + 20 * J);
    ck_assert_uint_eq(step_uj[3], 5 * J + 10 * J);
    /* Without an extern step the numbered ones have it, not the script. */
    run_steps(s, c + 1, 3);
    ck_assert_uint_eq(step_uj[0], 0);
    ck_assert_uint_eq(step_uj[1], 30 * J + 25 * J / 2);
    ck_assert_uint_eq(step_uj[2], 15 * J + 25 * J / 2);
    /* A script alone has all. */
    run_steps(s, c + 1, 1);
    ck_assert_uint_eq(step_uj[0], 70 * J);
    /* More CPU time than the job's CPUs have: nothing is left. */
    c[2].cpu_ns = 6 * S;
    c[3].cpu_ns = 2 * S;
    run_steps(s, c, 4);
    ck_assert_uint_eq(step_uj[0], 0);
    ck_assert_uint_eq(step_uj[3], 70 * J / 4);
}
END_TEST

START_TEST(test_steps_of_which_little_is_known)
{
    struct joule_share s = {.floor_uj = 40 * J,
                            .active_uj = 30 * J,
                            .capacity_ns = 4 * S,
                            .estimated_ns = S};
    struct joule_step_claim c[] = {step(JOULE_STEP_NUMBERED, 3, 0),
                                   step(JOULE_STEP_NUMBERED, 3, S)};

    c[0].cpu_unknown = true;
    run_steps(s, c, 2);
    ck_assert_uint_eq(step_uj[0], 35 * J);
    /* No CPUs, no time, and nobody there any more. */
    memset(&s, 0, sizeof(s));
    s.floor_uj = 5;
    s.active_uj = 2;
    c[0] = step(JOULE_STEP_NUMBERED, 0, 0);
    c[1] = step(JOULE_STEP_OTHER, 0, 0);
    run_steps(s, c, 2);
    ck_assert_uint_eq(step_uj[0], 7);
    c[0].present_ns = c[1].present_ns = -1;
    run_steps(s, c, 2);
    ck_assert_uint_eq(step_uj[0], 4);
    /* Far too much of everything. */
    s.floor_uj = INT64_MAX;
    s.active_uj = INT64_MAX;
    s.capacity_ns = UINT64_MAX >> 11;
    c[0] = step(JOULE_STEP_NUMBERED, UINT32_MAX, UINT64_MAX);
    c[0].present_ns = INT64_MAX;
    run_steps(s, c, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("steps");
    TCase *tc = tcase_create("steps");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tc, test_apportion_gives_the_largest_remainders);
    tcase_add_test(tc, test_apportion_at_random);
    tcase_add_test(tc, test_steps_share_what_the_job_has);
    tcase_add_test(tc, test_steps_of_which_little_is_known);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
