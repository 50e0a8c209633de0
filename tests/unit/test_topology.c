/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/sensors/topology.h"
#include "tests/unit/tree.h"

#define CPU "sys/devices/system/cpu/"

static struct tree tree;
static struct joule_topology topology;
static struct joule_error err;

static void setup(void)
{
    tree_create(&tree);
    memset(&topology, 0, sizeof(topology));
    memset(&err, 0, sizeof(err));
}

static void teardown(void)
{
    joule_topology_free(&topology);
    tree_destroy(&tree);
}

static void must_fail(int errnum, const char *sentence)
{
    unsigned fds = tree_open_fds();

    topology.packages = 4711;
    errno = 0;
    ck_assert_int_eq(joule_topology_read(tree.fd, &topology, &err), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_msg(strstr(err.text, sentence), "%s", err.text);
    ck_assert_uint_eq(topology.packages, 4711);
    ck_assert_int_eq(joule_topology_read(tree.fd, &topology, NULL), -1);
    ck_assert_uint_eq(tree_open_fds(), fds);
}

static void must_read(size_t cpus, unsigned packages, unsigned dies)
{
    unsigned fds = tree_open_fds();

    ck_assert_msg(joule_topology_read(tree.fd, &topology, &err) == 0, "%s",
                  err.text);
    ck_assert_uint_eq(topology.cpu_count, cpus);
    ck_assert_uint_eq(topology.packages, packages);
    ck_assert_uint_eq(topology.dies, dies);
    ck_assert_uint_eq(tree_open_fds(), fds);
}

/* The CPUs that speak for a scope, as "0,4,8". */
static void must_choose(enum joule_topology_scope scope, const char *expected)
{
    struct joule_topology_cpu *cpus;
    char text[256] = "";
    size_t n;

    cpus = joule_topology_first_cpus(&topology, scope, &n);
    ck_assert_ptr_nonnull(cpus);
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u",
                 i ? "," : "", cpus[i].cpu);
    free(cpus);
    ck_assert_str_eq(text, expected);
}

START_TEST(no_sysfs)
{
    must_fail(ENOENT, "mount sysfs");
}
END_TEST

static const char *const bad_lists[] = {
    "x\n", "0-\n", "3-1\n", "0,,1\n", "65536\n", "0 1\n", "-1\n", "\n\n",
};

START_TEST(bad_list)
{
    tree_write(&tree, CPU "online", bad_lists[_i]);
    must_fail(EINVAL, "/" CPU "online says");
}
END_TEST

START_TEST(list_with_nul)
{
    tree_bytes(&tree, CPU "online", "0\0001", 3);
    must_fail(EINVAL, CPU "online");
}
END_TEST

START_TEST(empty_list)
{
    tree_write(&tree, CPU "online", "\n");
    must_fail(EINVAL, "no online CPU");
}
END_TEST

START_TEST(no_topology)
{
    tree_write(&tree, CPU "online", "0-3\n");
    must_fail(EINVAL, "no online CPU");
}
END_TEST

static const char *const bad_ids[] = {
    "",        "x\n",   "-2\n",
    "65536\n", " 1\n",  "1 2\n",
    "0x1\n",   "1\n\n", "99999999999999999999999999999999999999999\n",
};

START_TEST(bad_package)
{
    tree_write(&tree, CPU "online", "0\n");
    tree_write(&tree, CPU "cpu0/topology/physical_package_id", bad_ids[_i]);
    must_fail(EINVAL, "/" CPU "cpu0/topology/physical_package_id");
}
END_TEST

START_TEST(bad_die)
{
    tree_write(&tree, CPU "online", "0\n");
    tree_cpu(&tree, 0, 0, -1, 0);
    tree_write(&tree, CPU "cpu0/topology/die_id", bad_ids[_i]);
    must_fail(EINVAL, "/" CPU "cpu0/topology/die_id");
}
END_TEST

START_TEST(bad_core)
{
    tree_write(&tree, CPU "online", "0\n");
    tree_cpu(&tree, 0, 0, 0, -1);
    tree_write(&tree, CPU "cpu0/topology/core_id", "core\n");
    must_fail(EINVAL, "/" CPU "cpu0/topology/core_id");
}
END_TEST

START_TEST(unreadable)
{
    tree_write(&tree, CPU "online", "0\n");
    tree_mkdir(&tree, CPU "cpu0/topology/physical_package_id");
    must_fail(EISDIR, "/" CPU "cpu0/topology/physical_package_id");
}
END_TEST

START_TEST(two_packages)
{
    tree_write(&tree, CPU "online", "0-7\n");
    for (unsigned cpu = 0; cpu < 8; cpu++)
        tree_cpu(&tree, cpu, cpu % 2, 0, (int)cpu / 2 % 2);
    must_read(8, 2, 2);
    must_choose(JOULE_TOPOLOGY_PACKAGE, "0,1");
    must_choose(JOULE_TOPOLOGY_DIE, "0,1");
    must_choose(JOULE_TOPOLOGY_CORE, "0,2,1,3");
}
END_TEST

START_TEST(sparse_numbers)
{
    tree_write(&tree, CPU "online", "3,17,1000,65535\n");
    tree_cpu(&tree, 3, 0, 0, 0);
    tree_cpu(&tree, 17, 0, 0, 1);
    tree_cpu(&tree, 1000, 5, 0, 0);
    tree_cpu(&tree, 65535, 5, 0, 1);
    must_read(4, 2, 2);
    must_choose(JOULE_TOPOLOGY_PACKAGE, "3,1000");
}
END_TEST

START_TEST(offline_first_cpus)
{
    /* 0 and 4 are off; the kernel has removed their topology. */
    tree_write(&tree, CPU "online", "1-3,5-7\n");
    tree_write(&tree, CPU "cpu0/online", "0\n");
    tree_write(&tree, CPU "cpu4/online", "0\n");
    for (unsigned cpu = 0; cpu < 8; cpu++)
        if (cpu % 4 != 0)
            tree_cpu(&tree, cpu, (int)cpu / 4, 0, (int)cpu % 4);
    must_read(6, 2, 2);
    must_choose(JOULE_TOPOLOGY_PACKAGE, "1,5");
}
END_TEST

START_TEST(gone_since_the_list)
{
    tree_write(&tree, CPU "online", "0-1\n");
    tree_cpu(&tree, 1, 0, 0, 0);
    must_read(1, 1, 1);
    must_choose(JOULE_TOPOLOGY_PACKAGE, "1");
}
END_TEST

START_TEST(list_of_present)
{
    tree_write(&tree, CPU "present", "0-2\n");
    tree_write(&tree, CPU "possible", "garbage\n");
    for (unsigned cpu = 0; cpu < 3; cpu++)
        tree_cpu(&tree, cpu, 0, 0, (int)cpu);
    tree_write(&tree, CPU "cpu1/online", "1\n");
    tree_write(&tree, CPU "cpu2/online", "0\n");
    must_read(2, 1, 1);
}
END_TEST

START_TEST(list_of_possible)
{
    tree_write(&tree, CPU "possible", "0-255\n");
    tree_cpu(&tree, 200, 3, 0, 0);
    must_read(1, 1, 1);
    must_choose(JOULE_TOPOLOGY_CORE, "200");
    joule_topology_free(&topology);
    tree_write(&tree, CPU "cpu200/online", "maybe\n");
    must_fail(EINVAL, "cpu200/online");
    memset(&topology, 0, sizeof(topology));
}
END_TEST

START_TEST(sixteen_packages)
{
    tree_write(&tree, CPU "online", "0-63\n");
    for (unsigned cpu = 0; cpu < 64; cpu++)
        tree_cpu(&tree, cpu, (int)cpu / 4, 0, (int)cpu % 4);
    must_read(64, 16, 16);
    must_choose(JOULE_TOPOLOGY_PACKAGE,
                "0,4,8,12,16,20,24,28,32,36,40,44,48,52,56,60");
}
END_TEST

START_TEST(many_dies)
{
    tree_write(&tree, CPU "online", "0-15\n");
    for (unsigned cpu = 0; cpu < 16; cpu++)
        tree_cpu(&tree, cpu, (int)cpu / 8, (int)cpu / 2 % 4, (int)cpu % 2);
    must_read(16, 2, 8);
    must_choose(JOULE_TOPOLOGY_PACKAGE, "0,8");
    must_choose(JOULE_TOPOLOGY_DIE, "0,2,4,6,8,10,12,14");
}
END_TEST

START_TEST(no_die_no_core)
{
    tree_write(&tree, CPU "online", "0-3\n");
    for (unsigned cpu = 0; cpu < 4; cpu++)
        tree_cpu(&tree, cpu, (int)cpu / 2, -1, -1);
    must_read(4, 2, 2);
    /* Cores that are not known are not taken for one core. */
    must_choose(JOULE_TOPOLOGY_CORE, "0,1,2,3");
}
END_TEST

START_TEST(unknown_ids)
{
    tree_write(&tree, CPU "online", "0-1\n");
    for (unsigned cpu = 0; cpu < 2; cpu++) {
        tree_cpu(&tree, cpu, 0, 0, 0);
        tree_write(&tree,
                   cpu ? CPU "cpu1/topology/physical_package_id"
                       : CPU "cpu0/topology/physical_package_id",
                   "-1\n");
        tree_write(&tree,
                   cpu ? CPU "cpu1/topology/die_id"
                       : CPU "cpu0/topology/die_id",
                   "-1\n");
        tree_write(&tree,
                   cpu ? CPU "cpu1/topology/core_id"
                       : CPU "cpu0/topology/core_id",
                   "-1\n");
    }
    must_read(2, 1, 1);
    ck_assert_uint_eq(topology.cpus[0].package, 0);
    ck_assert_uint_eq(topology.cpus[0].die, 0);
    must_choose(JOULE_TOPOLOGY_CORE, "0,1");
}
END_TEST

START_TEST(order_of_ids)
{
    /* The lowest CPU speaks, the packages come in the order of their ids. */
    tree_write(&tree, CPU "online", "0-3\n");
    tree_cpu(&tree, 0, 65535, 65535, 7);
    tree_cpu(&tree, 1, 65535, 0, 7);
    tree_cpu(&tree, 2, 1, 0, 2147483647);
    tree_cpu(&tree, 3, 1, 0, 7);
    must_read(4, 2, 3);
    must_choose(JOULE_TOPOLOGY_PACKAGE, "2,0");
    must_choose(JOULE_TOPOLOGY_DIE, "2,1,0");
    must_choose(JOULE_TOPOLOGY_CORE, "3,2,1,0");
}
END_TEST

/* Only the list is looked at, until it changes. */
START_TEST(refresh)
{
    tree_write(&tree, CPU "online", "0-1\n");
    for (unsigned cpu = 0; cpu < 3; cpu++)
        tree_cpu(&tree, cpu, (int)cpu, 0, 0);
    must_read(2, 2, 2);
    tree_remove(&tree, CPU "cpu1/topology/physical_package_id");
    ck_assert_int_eq(joule_topology_refresh(tree.fd, &topology, &err), 0);
    ck_assert_uint_eq(topology.cpu_count, 2);
    tree_write(&tree, CPU "online", "0,2\n");
    ck_assert_int_eq(joule_topology_refresh(tree.fd, &topology, &err), 0);
    ck_assert_uint_eq(topology.cpu_count, 2);
    ck_assert_uint_eq(topology.cpus[1].cpu, 2);
    ck_assert(!joule_topology_is_same(&topology.cpus[0], &topology.cpus[1],
                                      JOULE_TOPOLOGY_PACKAGE));
    tree_remove(&tree, CPU "cpu2/topology/physical_package_id");
    tree_write(&tree, CPU "online", "2\n");
    ck_assert_int_eq(joule_topology_refresh(tree.fd, &topology, &err), -1);
    ck_assert_uint_eq(topology.cpu_count, 2);
    tree_remove(&tree, CPU "online");
    ck_assert_int_eq(joule_topology_refresh(tree.fd, &topology, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_uint_eq(topology.cpu_count, 2);
}
END_TEST

/* Two packages of two cores with two threads, numbered as kernels do: all
 * packages, then all cores, then all threads in turn; the package with the
 * lowest CPU has the higher id. */
static struct joule_topology_cpu two[] = {
    {.cpu = 0, .package = 1, .core = 0}, {.cpu = 1, .package = 0, .core = 0},
    {.cpu = 2, .package = 1, .core = 4}, {.cpu = 3, .package = 0, .core = 4},
    {.cpu = 4, .package = 1, .core = 0}, {.cpu = 5, .package = 0, .core = 0},
    {.cpu = 6, .package = 1, .core = 4}, {.cpu = 7, .package = 0, .core = 4},
};

static int cpus_of(const unsigned *cores, size_t count, uint64_t *ret)
{
    const struct joule_topology t = {.cpus = two, .cpu_count = 8};

    *ret = 0x100;
    return joule_topology_core_cpus(&t, cores, count, ret, 1);
}

START_TEST(slurms_cores)
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
    ck_assert_uint_eq(cpus, 0);
}
END_TEST

START_TEST(cores_that_are_not_there)
{
    struct joule_topology_cpu far[] = {{.cpu = 0}, {.cpu = 64, .core = 1}};
    struct joule_topology t = {.cpus = far, .cpu_count = 2};
    const unsigned both[] = {0, 1};
    uint64_t cpus[2];

    ck_assert_int_eq(cpus_of((unsigned[]){3, 4}, 2, cpus), -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_uint_eq(cpus[0], 0);
    errno = 0;
    ck_assert_int_eq(joule_topology_core_cpus(&t, both, 2, cpus, 1), -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_uint_eq(cpus[0], 0);
    ck_assert_int_eq(joule_topology_core_cpus(&t, both, 2, cpus, 2), 2);
    ck_assert_uint_eq(cpus[0], 1);
    ck_assert_uint_eq(cpus[1], 1);
}
END_TEST

START_TEST(free_twice)
{
    tree_write(&tree, CPU "online", "0\n");
    tree_cpu(&tree, 0, 0, 0, 0);
    must_read(1, 1, 1);
    joule_topology_free(&topology);
    joule_topology_free(&topology);
    ck_assert_uint_eq(topology.cpu_count, 0);
}
END_TEST

START_TEST(this_machine)
{
    int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ck_assert_msg(joule_topology_read(root, &topology, &err) == 0, "%s",
                  err.text);
    ck_assert_uint_ge(topology.packages, 1);
    ck_assert_uint_ge(topology.dies, topology.packages);
    ck_assert_uint_ge(topology.cpu_count, topology.dies);
    close(root);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

int main(void)
{
    Suite *suite = suite_create("topology");
    TCase *tc = tcase_create("topology");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, no_sysfs);
    tcase_add_loop_test(tc, bad_list, 0, COUNT(bad_lists));
    tcase_add_test(tc, list_with_nul);
    tcase_add_test(tc, empty_list);
    tcase_add_test(tc, no_topology);
    tcase_add_loop_test(tc, bad_package, 0, COUNT(bad_ids));
    tcase_add_loop_test(tc, bad_die, 0, COUNT(bad_ids));
    tcase_add_test(tc, bad_core);
    tcase_add_test(tc, unreadable);
    tcase_add_test(tc, two_packages);
    tcase_add_test(tc, sparse_numbers);
    tcase_add_test(tc, offline_first_cpus);
    tcase_add_test(tc, gone_since_the_list);
    tcase_add_test(tc, list_of_present);
    tcase_add_test(tc, list_of_possible);
    tcase_add_test(tc, sixteen_packages);
    tcase_add_test(tc, many_dies);
    tcase_add_test(tc, no_die_no_core);
    tcase_add_test(tc, unknown_ids);
    tcase_add_test(tc, order_of_ids);
    tcase_add_test(tc, refresh);
    tcase_add_test(tc, slurms_cores);
    tcase_add_test(tc, cores_that_are_not_there);
    tcase_add_test(tc, free_twice);
    tcase_add_test(tc, this_machine);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
