/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/energy/attribution.h"
#include "tests/unit/dice.h"

__extension__ typedef unsigned __int128 u128;

#define S   INT64_C(1000000000)
#define J   UINT64_C(1000000)
#define MAX JOULE_JOBS_MAX

START_TEST(test_apportion_gives_the_largest_remainders)
{
    uint64_t w[] = {1, 1, 1}, v[] = {47, 16, 158, 12, 64, 3}, r[6];

    ck_assert(joule_apportion(10, w, 3, r));
    ck_assert_uint_eq(r[0], 4); /* the same remainder: the first */
    ck_assert_uint_eq(r[1], 3);
    ck_assert_uint_eq(r[2], 3);
    /* 1.57 0.53 5.27 0.4 2.13 0.1 of 10: the text book's way. */
    ck_assert(joule_apportion(10, v, 6, r));
    ck_assert_uint_eq(r[0], 2);
    ck_assert_uint_eq(r[1], 1);
    ck_assert_uint_eq(r[2], 5);
    ck_assert_uint_eq(r[3], 0);
    ck_assert_uint_eq(r[4], 2);
    ck_assert_uint_eq(r[5], 0);
    memset(w, 0, sizeof(w));
    ck_assert(!joule_apportion(10, w, 3, r));
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
        if (!joule_apportion(total, w, n, r)) {
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

/* A node of four CPUs in two packages, or in one. */
static const uint64_t packages[] = {0x3, 0xc}, all = 0xf;
static struct joule_attributor *splitter;
static struct joule_job_use job;
static struct joule_job_energy share;

/* A second: a job that has [cpus] alone, which cost 10 J each when idle, and
 * 30 J for its CPU time. */
static void split(const uint64_t *cpus, size_t parts)
{
    struct joule_node_part p[] = {
        {.delta_uj = 70 * J, .idle_uj = 40 * J, .busy_ns = S, .busy_known = 1},
        {.delta_uj = 0}};
    struct joule_attribution_rest rest;

    joule_attributor_destroy(splitter);
    splitter = joule_attributor_create(1, parts == 1 ? &all : packages, parts);
    ck_assert_ptr_nonnull(splitter);
    job = (struct joule_job_use){.cpus = cpus, .present_ns = S, .cpu_ns = S};
    /* A CPU of the second package costs three times one of the first. */
    if (parts == 2) {
        p[0].idle_uj = 10 * J;
        p[0].delta_uj = 40 * J;
        p[0].busy_ns = S / 2;
        p[1] = (struct joule_node_part){.delta_uj = 30 * J, .idle_uj = 30 * J};
    }
    joule_attribute(splitter, JOULE_ATTRIBUTION_CPUTIME, S, p, &job, 1, &share,
                    &rest);
}

static void run_steps(const struct joule_step_use *c, size_t count)
{
    uint64_t sum = 0;

    joule_attribute_steps(splitter, 0, &job, &share, c, count, step_uj);
    for (size_t i = 0; i < count; i++)
        sum += step_uj[i];
    ck_assert_uint_eq(sum, share.idle_uj + share.active_uj);
}

static void teardown(void)
{
    joule_attributor_destroy(splitter);
    splitter = NULL;
}

static struct joule_step_use step(enum joule_step_kind kind,
                                  const uint64_t *cpus, uint64_t cpu_ns)
{
    return (struct joule_step_use){
        .kind = kind,
        .cpus = cpus,
        .cpu_count = cpus ? (uint32_t)__builtin_popcountll(*cpus) : 0,
        .present_ns = S,
        .cpu_ns = cpu_ns};
}

/* srun sleep: who holds the CPUs pays for them, asleep or not. */
START_TEST(test_idle_cpus_are_the_steps_that_hold_them)
{
    uint64_t a = 0x1, bc = 0x6;
    struct joule_step_use c[] = {
        step(JOULE_STEP_EXTERN, &all, 0), step(JOULE_STEP_OTHER, &all, 0),
        step(JOULE_STEP_NUMBERED, &a, S), step(JOULE_STEP_NUMBERED, &bc, 0)};

    split(&all, 1);
    ck_assert_uint_eq(share.idle_uj, 40 * J);
    ck_assert_uint_eq(share.active_uj, 30 * J);
    run_steps(c, 4);
    ck_assert_uint_eq(step_uj[0], 0);
    ck_assert_uint_eq(step_uj[1], 10 * J); /* the CPU that no step took */
    ck_assert_uint_eq(step_uj[2], 10 * J + 30 * J);
    ck_assert_uint_eq(step_uj[3], 20 * J);
    /* One that holds all, and sleeps; the script waits for it. */
    c[2] = step(JOULE_STEP_NUMBERED, &all, 0);
    c[1].cpu_ns = 1;
    run_steps(c, 3);
    ck_assert_uint_eq(step_uj[1], 30 * J);
    ck_assert_uint_eq(step_uj[2], 40 * J);
    /* salloc, srun: what no step took is the extern step's. */
    c[1] = step(JOULE_STEP_NUMBERED, &bc, 0);
    run_steps(c, 2);
    ck_assert_uint_eq(step_uj[0], 20 * J + 30 * J);
    ck_assert_uint_eq(step_uj[1], 20 * J);
    run_steps(c, 1);
    ck_assert_uint_eq(step_uj[0], 70 * J);
}
END_TEST

/* srun --overlap, and srun within a step. */
START_TEST(test_steps_that_overlap_share)
{
    uint64_t ab = 0x3, b = 0x2;
    struct joule_step_use c[] = {
        step(JOULE_STEP_NUMBERED, &ab, S), step(JOULE_STEP_NUMBERED, &b, 0),
        step(JOULE_STEP_NUMBERED, &b, 0), step(JOULE_STEP_EXTERN, &all, 0)};

    split(&all, 1);
    run_steps(c, 4);
    ck_assert_uint_eq(step_uj[0], 10 * J + 30 * J + 3333334);
    ck_assert_uint_eq(step_uj[1], 3333333);
    ck_assert_uint_eq(step_uj[2], 3333333);
    ck_assert_uint_eq(step_uj[3], 20 * J);
    /* A CPU which the job shares with another costs it half. */
    {
        uint64_t a = 0x1;
        struct joule_job_use jobs[] = {job, {.cpus = &a, .present_ns = S}};
        struct joule_node_part p = {.delta_uj = 40 * J, .idle_uj = 40 * J};
        struct joule_attribution_rest rest;
        struct joule_job_energy shares[2];

        joule_attribute(splitter, JOULE_ATTRIBUTION_CPUTIME, S, &p, jobs, 2,
                        shares, &rest);
        ck_assert_uint_eq(shares[0].idle_uj, 35 * J);
        c[1].cpus = c[2].cpus = NULL;
        joule_attribute_steps(splitter, 0, &jobs[0], &shares[0], c, 1, step_uj);
        ck_assert_uint_eq(step_uj[0], 35 * J);
        joule_attribute_steps(splitter, 0, &jobs[0], &shares[0], &c[3], 1,
                              step_uj);
        ck_assert_uint_eq(step_uj[0], 35 * J);
        c[1] = c[3];
        joule_attribute_steps(splitter, 0, &jobs[0], &shares[0], c, 2, step_uj);
        ck_assert_uint_eq(step_uj[0], 15 * J);
        ck_assert_uint_eq(step_uj[1], 20 * J);
    }
}
END_TEST

/* For as long as they run. */
START_TEST(test_steps_for_a_part_of_the_interval)
{
    struct joule_step_use c[] = {
        step(JOULE_STEP_NUMBERED, &all, 0), step(JOULE_STEP_NUMBERED, &all, 0),
        step(JOULE_STEP_OTHER, &all, 1), step(JOULE_STEP_EXTERN, &all, 0)};

    c[0].present_ns = S / 4;
    c[1].present_ns = S / 2;
    split(&all, 1);
    run_steps(c, 4);
    ck_assert_uint_eq(step_uj[0], 10 * J);
    ck_assert_uint_eq(step_uj[1], 20 * J);
    ck_assert_uint_eq(step_uj[2], 10 * J + 30 * J);
    ck_assert_uint_eq(step_uj[3], 0);
    /* The script ended early, too. */
    c[2].present_ns = S / 8;
    run_steps(c, 4);
    ck_assert_uint_eq(step_uj[2], 5 * J + 30 * J);
    ck_assert_uint_eq(step_uj[3], 5 * J);
    /* More than there is: by how long they were there. */
    c[1].present_ns = INT64_MAX;
    run_steps(c, 4);
    ck_assert_uint_eq(step_uj[0], 8 * J);
    ck_assert_uint_eq(step_uj[1], 32 * J);
    ck_assert_uint_eq(step_uj[2], 30 * J);
    c[0].present_ns = -S;
    run_steps(c, 4);
    ck_assert_uint_eq(step_uj[0], 0);
    ck_assert_uint_eq(step_uj[1], 40 * J);
}
END_TEST

/* The idle power of a CPU is its package's. */
START_TEST(test_steps_in_packages)
{
    uint64_t first = 0x1, second = 0xc;
    struct joule_step_use c[] = {step(JOULE_STEP_NUMBERED, &first, S),
                                 step(JOULE_STEP_NUMBERED, &second, 0),
                                 step(JOULE_STEP_EXTERN, &all, 0)};
    struct joule_node_part p[] = {{.delta_uj = 20 * J}, {.delta_uj = 60 * J}};
    struct joule_attribution_rest rest;

    split(&all, 2);
    run_steps(c, 3);
    ck_assert_uint_eq(step_uj[0], 5 * J + 30 * J);
    ck_assert_uint_eq(step_uj[1], 30 * J);
    ck_assert_uint_eq(step_uj[2], 5 * J);
    /* By allocation it is the same, with all of the energy. */
    joule_attribute(splitter, JOULE_ATTRIBUTION_ALLOC, S, p, &job, 1, &share,
                    &rest);
    run_steps(c, 3);
    ck_assert_uint_eq(step_uj[0], 10 * J);
    ck_assert_uint_eq(step_uj[1], 60 * J);
    ck_assert_uint_eq(step_uj[2], 10 * J);
    /* And the whole node where each job is charged that: a package in which
     * the job has no CPU, by the others. */
    job.cpus = &second;
    joule_attribute(splitter, JOULE_ATTRIBUTION_NODE, S, p, &job, 1, &share,
                    &rest);
    ck_assert_uint_eq(share.idle_uj, 80 * J);
    run_steps(c + 1, 2);
    ck_assert_uint_eq(step_uj[0], 80 * J);
}
END_TEST

/* The number of CPUs alone is known, of the step or even of its job. */
START_TEST(test_steps_of_which_the_number_of_cpus_is_known)
{
    uint64_t beyond = 0xf0;
    struct joule_step_use c[] = {step(JOULE_STEP_NUMBERED, NULL, S),
                                 step(JOULE_STEP_NUMBERED, &beyond, 0),
                                 step(JOULE_STEP_EXTERN, &all, 0)};

    c[0].cpu_count = 1;
    c[1].cpu_count = 2;
    split(&all, 1);
    run_steps(c, 3);
    ck_assert_uint_eq(step_uj[0], 10 * J + 30 * J);
    ck_assert_uint_eq(step_uj[1], 20 * J);
    ck_assert_uint_eq(step_uj[2], 10 * J);
    c[1].cpu_count = UINT32_MAX;
    run_steps(c, 3);
    ck_assert_uint_eq(step_uj[0], 8 * J + 30 * J);
    ck_assert_uint_eq(step_uj[1], 32 * J);
    job.cpus = NULL;
    job.cpu_count = 2;
    {
        struct joule_node_part p = {.delta_uj = 40 * J, .idle_uj = 40 * J};
        struct joule_attribution_rest rest;

        joule_attribute(splitter, JOULE_ATTRIBUTION_CPUTIME, S, &p, &job, 1,
                        &share, &rest);
    }
    ck_assert_uint_eq(share.idle_uj, 20 * J);
    c[1].cpus = NULL;
    c[1].cpu_count = 0;
    run_steps(c, 3);
    ck_assert_uint_eq(step_uj[0], 10 * J);
    ck_assert_uint_eq(step_uj[2], 10 * J);
    c[1].cpu_count = 1;
    run_steps(c, 3);
    ck_assert_uint_eq(step_uj[1], 10 * J);
    ck_assert_uint_eq(step_uj[2], 0);
}
END_TEST

/* Where there is no extern step: what no step holds. */
START_TEST(test_steps_without_an_extern_step)
{
    uint64_t a = 0x1, b = 0x2;
    struct joule_step_use c[] = {step(JOULE_STEP_OTHER, &all, 0),
                                 step(JOULE_STEP_NUMBERED, &a, S),
                                 step(JOULE_STEP_NUMBERED, &b, 0)};

    split(&all, 1);
    run_steps(c, 1);
    ck_assert_uint_eq(step_uj[0], 70 * J);
    run_steps(c, 3);
    ck_assert_uint_eq(step_uj[0], 20 * J);
    ck_assert_uint_eq(step_uj[1], 10 * J + 30 * J);
    ck_assert_uint_eq(step_uj[2], 10 * J);
    /* salloc, and two steps in it. */
    run_steps(c + 1, 2);
    ck_assert_uint_eq(step_uj[0], 20 * J + 30 * J);
    ck_assert_uint_eq(step_uj[1], 20 * J);
}
END_TEST

START_TEST(test_steps_of_which_little_is_known)
{
    uint64_t abc = 0x7;
    struct joule_step_use c[] = {step(JOULE_STEP_NUMBERED, &abc, 0),
                                 step(JOULE_STEP_NUMBERED, &abc, S)};

    c[0].cpu_unknown = true;
    split(&all, 1);
    share.estimated_ns = S;
    run_steps(c, 2);
    ck_assert_uint_eq(step_uj[0], 35 * J);
    /* No CPUs, no time, and nobody there any more. */
    c[0] = step(JOULE_STEP_NUMBERED, NULL, 0);
    c[1] = step(JOULE_STEP_OTHER, NULL, 0);
    share.estimated_ns = 0;
    run_steps(c, 2);
    ck_assert_uint_eq(step_uj[0], 70 * J);
    c[0].present_ns = c[1].present_ns = -1;
    run_steps(c, 2);
    ck_assert_uint_eq(step_uj[0], 35 * J);
    /* Far too much of everything. */
    c[0] = step(JOULE_STEP_NUMBERED, NULL, UINT64_MAX);
    c[0].cpu_count = UINT32_MAX;
    c[0].present_ns = INT64_MAX;
    run_steps(c, 2);
    ck_assert_uint_eq(step_uj[0], 70 * J);
}
END_TEST

/* Whatever there is, each microjoule is some step's, and none of a CPU that
 * all hold is nobody's. */
START_TEST(test_steps_at_random)
{
    static struct joule_job_use jobs[4];
    static struct joule_job_energy shares[4];
    static struct joule_step_use c[64];
    static uint64_t cpus[64], job_cpus[4], uj[64];
    static const uint64_t sets[] = {0xff, 0xff00, 0xffff};
    uint64_t seed = dice_seed();

    splitter = joule_attributor_create(1, sets, 3);
    for (int round = 0; round < 20000; round++) {
        size_t n = 1 + (size_t)dice(&seed, 64), k = 1 + dice(&seed, 4);
        struct joule_node_part p[3];
        struct joule_attribution_rest rest;
        enum joule_attribution how;
        uint64_t sum = 0;

        for (size_t i = 0; i < 3; i++)
            p[i] = (struct joule_node_part){
                .delta_uj = (dice64(&seed) >> 8) >> dice(&seed, 56),
                .idle_uj = dice64(&seed) >> dice(&seed, 64),
                .busy_ns = dice64(&seed) >> dice(&seed, 64),
                .busy_known = true};
        for (size_t i = 0; i < k; i++) {
            job_cpus[i] = dice64(&seed) & dice64(&seed);
            jobs[i] = (struct joule_job_use){
                .cpus = dice(&seed, 5) ? &job_cpus[i] : NULL,
                .cpu_count = (uint32_t)dice(&seed, 20),
                .present_ns = (int64_t)dice(&seed, 2 * (uint64_t)S) - S / 8,
                .cpu_ns = dice64(&seed) >> dice(&seed, 64)};
        }
        how = (enum joule_attribution)dice(&seed, 3);
        joule_attribute(splitter, how, S, p, jobs, k, shares, &rest);
        for (size_t i = 0; i < n; i++) {
            cpus[i] = dice64(&seed) & (dice(&seed, 3) ? job_cpus[0] : ~0ULL);
            c[i] = (struct joule_step_use){
                .kind = (enum joule_step_kind)dice(&seed, 3),
                .cpus = dice(&seed, 5) ? &cpus[i] : NULL,
                .cpu_count = (uint32_t)dice(&seed, 20),
                .present_ns = (int64_t)dice(&seed, 2 * (uint64_t)S) - S / 8,
                .cpu_ns = dice64(&seed) >> dice(&seed, 64),
                .cpu_unknown = dice(&seed, 9) == 0};
        }
        joule_attribute_steps(splitter, 0, &jobs[0], &shares[0], c, n, uj);
        for (size_t i = 0; i < n; i++)
            sum += uj[i];
        ck_assert_uint_eq(sum, shares[0].idle_uj + shares[0].active_uj);
        /* All of it held: the extern step has no idle energy of its own. */
        for (size_t i = 0; i < 3; i++)
            c[i] = (struct joule_step_use){.kind = JOULE_STEP_NUMBERED,
                                           .cpus = jobs[0].cpus,
                                           .cpu_count = UINT32_MAX,
                                           .present_ns = S};
        c[3] = (struct joule_step_use){.kind = JOULE_STEP_EXTERN};
        shares[0].active_uj = 0;
        joule_attribute_steps(splitter, 0, &jobs[0], &shares[0], c, 4, uj);
        if (how != JOULE_ATTRIBUTION_NODE)
            ck_assert_uint_eq(uj[3], 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attribution of steps");
    TCase *tc = tcase_create("steps");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tc, test_apportion_gives_the_largest_remainders);
    tcase_add_test(tc, test_apportion_at_random);
    tcase_add_test(tc, test_idle_cpus_are_the_steps_that_hold_them);
    tcase_add_test(tc, test_steps_that_overlap_share);
    tcase_add_test(tc, test_steps_for_a_part_of_the_interval);
    tcase_add_test(tc, test_steps_in_packages);
    tcase_add_test(tc, test_steps_of_which_the_number_of_cpus_is_known);
    tcase_add_test(tc, test_steps_without_an_extern_step);
    tcase_add_test(tc, test_steps_at_random);
    tcase_add_test(tc, test_steps_of_which_little_is_known);
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
