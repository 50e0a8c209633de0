/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>

#include "common/sensors/cores.h"
#include "tests/unit/fail.h"

/* Two packages of two cores with two threads, numbered as kernels do: all
 * packages, then all cores, then all threads in turn; the package with the
 * lowest CPU has the higher id. */
static struct joule_topology_cpu two[] = {
    {.cpu = 0, .package = 1, .core = 0}, {.cpu = 1, .package = 0, .core = 0},
    {.cpu = 2, .package = 1, .core = 4}, {.cpu = 3, .package = 0, .core = 4},
    {.cpu = 4, .package = 1, .core = 0}, {.cpu = 5, .package = 0, .core = 0},
    {.cpu = 6, .package = 1, .core = 4}, {.cpu = 7, .package = 0, .core = 4},
};

static const struct joule_topology topology = {.cpus = two, .cpu_count = 8};

static int cpus_of(const unsigned *cores, size_t count, uint64_t *ret)
{
    *ret = 0;
    return joule_cores_cpus(&topology, cores, count, ret, 1);
}

START_TEST(test_slurms_order)
{
    static const uint64_t expect[] = {0x11, 0x44, 0x22, 0x88};
    uint64_t cpus;

    for (unsigned core = 0; core < 4; core++) {
        ck_assert_int_eq(cpus_of(&core, 1, &cpus), 2);
        ck_assert_uint_eq(cpus, expect[core]);
    }
    ck_assert_int_eq(cpus_of((unsigned[]){1, 3}, 2, &cpus), 4);
    ck_assert_uint_eq(cpus, 0xcc);
    ck_assert_int_eq(cpus_of((unsigned[]){0, 1, 2, 3}, 4, &cpus), 8);
    ck_assert_uint_eq(cpus, 0xff);
    ck_assert_int_eq(cpus_of(NULL, 0, &cpus), 0);
}
END_TEST

START_TEST(test_what_the_machine_has_not)
{
    struct joule_topology_cpu far[] = {{.cpu = 0}, {.cpu = 64, .core = 1}};
    struct joule_topology t = {.cpus = far, .cpu_count = 2};
    uint64_t cpus[2] = {8, 0};

    ck_assert_int_eq(
        joule_cores_cpus(&topology, (unsigned[]){3, 4}, 2, cpus, 1), -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_int_eq(joule_cores_cpus(&t, (unsigned[]){0, 1}, 2, cpus, 1), -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_uint_eq(cpus[0], 8);
    /* Added to what is there. */
    ck_assert_int_eq(joule_cores_cpus(&t, (unsigned[]){0, 1}, 2, cpus, 2), 2);
    ck_assert_uint_eq(cpus[0], 9);
    ck_assert_uint_eq(cpus[1], 1);
}
END_TEST

START_TEST(test_no_memory)
{
    unsigned core = 0;
    uint64_t cpus;

    for (int n = 1; n <= 2; n++) {
        fail_calloc = n;
        ck_assert_int_eq(cpus_of(&core, 1, &cpus), -1);
        ck_assert_int_eq(errno, ENOMEM);
    }
    fail_calloc = 0;
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cores");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_test(tc, test_slurms_order);
    tcase_add_test(tc, test_what_the_machine_has_not);
    tcase_add_test(tc, test_no_memory);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
