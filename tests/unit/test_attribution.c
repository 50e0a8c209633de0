/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "common/energy/attribution.h"
#include "tests/unit/dice.h"

__extension__ typedef unsigned __int128 u128;

#define S       INT64_C(1000000000)
#define J       UINT64_C(1000000)
#define WHOLE   INT64_MAX
#define CPUTIME JOULE_ATTRIBUTION_CPUTIME
#define ALLOC   JOULE_ATTRIBUTION_ALLOC
#define NODE    JOULE_ATTRIBUTION_NODE
#define MAX     JOULE_JOBS_MAX

static struct joule_job_energy share[MAX];
static struct joule_attribution_rest rest;

/* A job of a second on the CPUs of the bitmap. */
static struct joule_job_use job(const uint64_t *cpus, uint64_t cpu_ns)
{
    return (struct joule_job_use){
        .cpus = cpus, .present_ns = S, .cpu_ns = cpu_ns};
}

static struct joule_node_part part(uint64_t delta, uint64_t floor,
                                   uint64_t busy_ns)
{
    return (struct joule_node_part){.delta_uj = delta,
                                    .idle_uj = floor,
                                    .busy_ns = busy_ns,
                                    .busy_known = true};
}

/* Split a second of a node of [cpus] CPUs in one part, and compare the sum. */
static void run(uint64_t cpus, enum joule_attribution how,
                struct joule_node_part p, const struct joule_job_use *claims,
                size_t count)
{
    struct joule_attributor *s = joule_attributor_create(1, &cpus, 1);
    u128 sum = 0;

    ck_assert_ptr_nonnull(s);
    joule_attribute(s, how, S, &p, claims, count, share, &rest);
    for (size_t i = 0; i < count; i++)
        sum += (u128)share[i].idle_uj + share[i].active_uj;
    sum += rest.unallocated_uj;
    sum += rest.system_uj;
    ck_assert(sum == (u128)p.delta_uj + rest.multiple_uj);
    joule_attributor_destroy(s);
}

START_TEST(test_bad_splitters_are_refused)
{
    uint64_t cpus = 1;

    ck_assert_ptr_null(joule_attributor_create(0, &cpus, 1));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(joule_attributor_create(1, &cpus, 0));
    ck_assert_ptr_null(joule_attributor_create(1, &cpus, JOULE_PARTS_MAX + 1));
    joule_attributor_destroy(NULL);
}
END_TEST

START_TEST(test_nobody_is_there)
{
    run(3, CPUTIME, part(100 * J, 60 * J, 0), NULL, 0);
    ck_assert_uint_eq(rest.unallocated_uj, 60 * J);
    ck_assert_uint_eq(rest.system_uj, 40 * J);
    run(3, ALLOC, part(100 * J, 60 * J, 0), NULL, 0);
    ck_assert_uint_eq(rest.unallocated_uj, 100 * J);
    run(3, NODE, part(100 * J, 60 * J, 0), NULL, 0);
    ck_assert_uint_eq(rest.unallocated_uj, 100 * J);
    run(3, CPUTIME, part(0, 60 * J, S), NULL, 0);
    ck_assert_uint_eq(rest.unallocated_uj + rest.system_uj, 0);
    /* A node of no CPUs, even. */
    run(0, CPUTIME, part(100, 60, 0), NULL, 0);
    ck_assert_uint_eq(rest.unallocated_uj, 60);
}
END_TEST

START_TEST(test_floor_by_cpus_and_the_rest_by_time)
{
    uint64_t all = 0xf, a = 0x3, b = 0x4;
    struct joule_job_use c[] = {job(&a, S), job(&b, S / 2)};

    run(all, CPUTIME, part(100 * J, 40 * J, 2 * S), c, 2);
    ck_assert_uint_eq(share[0].idle_uj, 20 * J);
    ck_assert_uint_eq(share[1].idle_uj, 10 * J);
    ck_assert_uint_eq(rest.unallocated_uj, 10 * J);
    ck_assert_uint_eq(share[0].active_uj, 30 * J);
    ck_assert_uint_eq(share[1].active_uj, 15 * J);
    ck_assert_uint_eq(rest.system_uj, 15 * J);
    run(all, ALLOC, part(100 * J, 40 * J, 2 * S), c, 2);
    ck_assert_uint_eq(share[0].idle_uj, 50 * J);
    ck_assert_uint_eq(share[1].idle_uj, 25 * J);
    ck_assert_uint_eq(rest.unallocated_uj, 25 * J);
    ck_assert_uint_eq(rest.system_uj, 0);
    run(all, NODE, part(100 * J, 40 * J, 2 * S), c, 2);
    ck_assert_uint_eq(share[0].idle_uj, 100 * J);
    ck_assert_uint_eq(share[1].idle_uj, 100 * J);
    ck_assert_uint_eq(rest.multiple_uj, 100 * J);
    /* A floor above what was used is what was used. */
    run(all, CPUTIME, part(40 * J, 100 * J, 2 * S), c, 2);
    ck_assert_uint_eq(share[0].idle_uj, 20 * J);
    ck_assert_uint_eq(share[0].active_uj + rest.system_uj, 0);
}
END_TEST

START_TEST(test_part_of_the_interval)
{
    uint64_t a = 1, none = 0;
    struct joule_job_use c[] = {job(&a, 0), job(&a, 0)};

    c[0].present_ns = S / 4;
    c[1].present_ns = S / 2;
    run(1, CPUTIME, part(100 * J, 100 * J, 0), c, 2);
    ck_assert_uint_eq(share[0].idle_uj, 25 * J);
    ck_assert_uint_eq(share[1].idle_uj, 50 * J);
    ck_assert_uint_eq(rest.unallocated_uj, 25 * J);
    run(1, NODE, part(100 * J, 0, 0), c, 2);
    ck_assert_uint_eq(share[0].idle_uj, 25 * J);
    ck_assert_uint_eq(rest.unallocated_uj, 25 * J);
    ck_assert_uint_eq(rest.multiple_uj, 0);
    /* Longer than the interval, and before it. */
    c[0].present_ns = WHOLE;
    c[1].present_ns = -S;
    run(1, CPUTIME, part(100 * J, 100 * J, 0), c, 2);
    ck_assert_uint_eq(share[0].idle_uj, 100 * J);
    /* No CPU at all: only CPU time counts. */
    c[0] = job(&none, S);
    run(1, CPUTIME, part(100 * J, 40 * J, S), c, 1);
    ck_assert_uint_eq(share[0].idle_uj, 0);
    ck_assert_uint_eq(share[0].active_uj, 60 * J);
    ck_assert_uint_eq(rest.unallocated_uj, 40 * J);
}
END_TEST

/* 8 jobs on the same 2 CPUs, which they use to the full. */
START_TEST(test_oversubscribed)
{
    uint64_t both = 3;
    struct joule_job_use c[8];

    for (int i = 0; i < 8; i++)
        c[i] = job(&both, (uint64_t)S / 4);
    run(both, CPUTIME, part(81 * J, 41 * J, 2 * S), c, 8);
    for (int i = 0; i < 8; i++) {
        ck_assert_uint_eq(share[i].idle_uj, 41 * J / 8);
        ck_assert_uint_eq(share[i].active_uj, 5 * J);
    }
    ck_assert_uint_eq(rest.unallocated_uj + rest.system_uj, 0);
    /* Of three, none of the floor is nobody's for want of a fraction. */
    run(both, CPUTIME, part(2000000 * J, 2000000 * J, 0), c, 3);
    ck_assert_uint_eq(rest.unallocated_uj, 0);
    /* More CPU time than CPUs: the proportions count. */
    c[0].cpu_ns = 30 * S;
    c[1].cpu_ns = 10 * S;
    run(both, CPUTIME, part(40 * J, 0, 2 * S), c, 2);
    ck_assert_uint_eq(share[0].active_uj, 30 * J);
    ck_assert_uint_eq(share[1].active_uj, 10 * J);
}
END_TEST

START_TEST(test_cpus_of_which_the_number_is_known)
{
    uint64_t all = 0xf, a = 0x3, beyond = UINT64_C(7) << 40;
    struct joule_job_use c[] = {job(&a, 0), job(NULL, 0)};

    c[1].cpu_count = 2;
    run(all, ALLOC, part(100 * J, 0, 0), c, 2);
    /* Two CPUs are asked for 1.5 times, two 0.5 times. */
    ck_assert_uint_eq(rest.unallocated_uj, 25 * J);
    ck_assert_uint_le(share[0].idle_uj - 100 * J / 3, 1);
    ck_assert_uint_eq(share[0].idle_uj + share[1].idle_uj, 75 * J);
    /* CPUs that the node does not have are like that. */
    c[1] = job(&beyond, 0);
    c[1].cpu_count = 4;
    run(all, ALLOC, part(100 * J, 0, 0), &c[1], 1);
    ck_assert_uint_eq(share[0].idle_uj, 100 * J);
    c[1].cpu_count = 4000;
    run(all, ALLOC, part(100 * J, 0, 0), &c[1], 1);
    ck_assert_uint_eq(share[0].idle_uj, 100 * J);
}
END_TEST

/* What no one else used, and no more than his CPUs could. */
START_TEST(test_cpu_time_that_is_not_known)
{
    uint64_t all = 0xf, a = 0x3, b = 0xc;
    struct joule_job_use c[] = {job(&a, S), job(&b, 0)};
    struct joule_node_part p = part(90 * J, 0, 3 * S);

    c[1].unknown_ns = UINT64_MAX;
    run(all, CPUTIME, p, c, 2);
    ck_assert_uint_eq(share[0].active_uj, 30 * J);
    ck_assert_uint_eq(share[1].active_uj, 60 * J);
    ck_assert_uint_eq(share[1].estimated_ns, 2 * S);
    c[0].cpu_ns = 0;
    run(all, CPUTIME, p, c, 2);
    ck_assert_uint_eq(share[1].active_uj, 60 * J);
    ck_assert_uint_eq(rest.system_uj, 30 * J);
    c[1].unknown_ns = S / 2;
    run(all, CPUTIME, p, c, 2);
    ck_assert_uint_eq(share[1].active_uj, 15 * J);
    ck_assert_uint_eq(rest.system_uj, 75 * J);
    c[1].unknown_ns = UINT64_MAX;
    /* The node's is not known either. */
    p.busy_known = false;
    c[0].cpu_ns = S;
    run(all, CPUTIME, p, c, 2);
    ck_assert_uint_eq(share[0].active_uj, 30 * J);
    ck_assert_uint_eq(share[1].active_uj, 60 * J);
    ck_assert_uint_eq(rest.system_uj, 0);
}
END_TEST

/* Two clocks that never quite agree do not make a system that works. */
START_TEST(test_steps_that_use_more_than_the_node)
{
    uint64_t a = 1;
    struct joule_job_use c = job(&a, 0);
    struct joule_attributor *s = joule_attributor_create(1, &a, 1);
    struct joule_node_part p = part(100 * J, 0, 0);
    uint64_t system_uj = 0;

    for (int i = 0; i < 100; i++) {
        c.cpu_ns = (uint64_t)S - 10;
        p.busy_ns = (uint64_t)(i % 2 ? S + 8000000 : S - 8000000);
        joule_attribute(s, CPUTIME, S, &p, &c, 1, share, &rest);
        system_uj += rest.system_uj;
    }
    ck_assert_uint_le(system_uj, 100);
    /* But no more than two ticks are owed. */
    p.busy_ns = 0;
    joule_attribute(s, CPUTIME, S, &p, &c, 1, share, &rest);
    ck_assert_uint_eq(p.debt_ns, 20000000);
    p.busy_ns = 2 * S;
    joule_attribute(s, CPUTIME, S, &p, &c, 1, share, &rest);
    ck_assert_uint_gt(rest.system_uj, 49 * J);
    joule_attributor_destroy(s);
}
END_TEST

START_TEST(test_packages)
{
    uint64_t sets[] = {0x3, 0xc}, a = 0x1, b = 0x6;
    uint64_t b_ns[] = {S / 4, S / 4 * 3};
    struct joule_job_use c[] = {job(&a, S), job(&b, S)};
    struct joule_attributor *s = joule_attributor_create(1, sets, 2);
    struct joule_node_part p[] = {part(50 * J, 20 * J, 2 * S),
                                  part(60 * J, 40 * J, S)};

    joule_attribute(s, CPUTIME, S, p, c, 2, share, &rest);
    ck_assert_uint_eq(joule_attributor_cpus(s, 1), 2);
    /* a: all in the first; b: a CPU and half of its time in each. */
    ck_assert_uint_eq(share[0].idle_uj, 10 * J);
    ck_assert_uint_eq(share[1].idle_uj, 10 * J + 20 * J);
    ck_assert_uint_eq(rest.unallocated_uj, 20 * J);
    ck_assert_uint_eq(share[0].active_uj, 15 * J);
    ck_assert_uint_eq(share[1].active_uj, 15 * J / 2 + 10 * J);
    ck_assert_uint_eq(rest.system_uj, 15 * J / 2 + 10 * J);
    /* Where it was used is known. */
    c[1].part_ns = b_ns;
    joule_attribute(s, CPUTIME, S, p, c, 2, share, &rest);
    ck_assert_uint_eq(share[1].active_uj, 15 * J / 4 + 15 * J);
    joule_attributor_destroy(s);
}
END_TEST

START_TEST(test_extremes)
{
    uint64_t all = UINT64_MAX;
    static struct joule_job_use c[MAX];
    struct joule_node_part p = part(UINT64_MAX, UINT64_MAX / 3, UINT64_MAX);

    for (size_t i = 0; i < MAX; i++) {
        c[i] = job(&all, UINT64_MAX);
        c[i].unknown_ns = i % 3 == 0 ? UINT64_MAX : 0;
        c[i].cpu_count = UINT32_MAX;
    }
    run(all, CPUTIME, p, c, MAX);
    run(all, ALLOC, p, c, MAX);
    p.delta_uj = INT64_MAX / MAX;
    run(all, NODE, p, c, MAX);
    p.busy_known = false;
    run(all, CPUTIME, p, c, MAX);
}
END_TEST

/* The sum is checked in run(); here also that nobody's loss is another's
 * gain beyond rounding when jobs are listed in another order. */
START_TEST(test_splits_at_random)
{
    static struct joule_job_use c[64];
    static uint64_t cpus[64];
    uint64_t seed = dice_seed();

    for (int round = 0; round < dice_rounds(20000); round++) {
        size_t n = (size_t)dice(&seed, 65);
        uint64_t node = dice64(&seed) >> dice(&seed, 64);
        struct joule_node_part p = part(dice64(&seed) >> dice(&seed, 64),
                                        dice64(&seed) >> dice(&seed, 64),
                                        dice64(&seed) >> dice(&seed, 64));
        enum joule_attribution how = (enum joule_attribution)dice(&seed, 3);

        if (how == NODE)
            p.delta_uj >>= 7;
        p.busy_known = dice(&seed, 4) > 0;
        for (size_t i = 0; i < n; i++) {
            cpus[i] = dice64(&seed) & dice64(&seed);
            c[i] = (struct joule_job_use){
                .cpus = dice(&seed, 5) ? &cpus[i] : NULL,
                .cpu_count = (uint32_t)dice(&seed, 80),
                .present_ns = (int64_t)dice(&seed, 2 * (uint64_t)S) - S / 4,
                .cpu_ns = dice64(&seed) >> dice(&seed, 64),
                .unknown_ns =
                    dice(&seed, 5) ? 0 : dice64(&seed) >> dice(&seed, 64),
            };
        }
        run(node, how, p, c, n);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("split");
    TCase *tc = tcase_create("split");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tc, test_bad_splitters_are_refused);
    tcase_add_test(tc, test_nobody_is_there);
    tcase_add_test(tc, test_floor_by_cpus_and_the_rest_by_time);
    tcase_add_test(tc, test_part_of_the_interval);
    tcase_add_test(tc, test_oversubscribed);
    tcase_add_test(tc, test_cpus_of_which_the_number_is_known);
    tcase_add_test(tc, test_cpu_time_that_is_not_known);
    tcase_add_test(tc, test_steps_that_use_more_than_the_node);
    tcase_add_test(tc, test_packages);
    tcase_add_test(tc, test_extremes);
    tcase_add_test(tc, test_splits_at_random);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
