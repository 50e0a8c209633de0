/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cgroup/cpuset.h"
#include "tests/unit/tree.h"

static struct tree tree;

static void setup(void)
{
    tree_create(&tree);
}

static void teardown(void)
{
    tree_destroy(&tree);
}

static void mounts(const char *line)
{
    char text[512];

    strcpy(text, "24 1 0:21 / /proc rw - proc proc rw\n");
    tree_write(&tree, "proc/self/mountinfo", strcat(text, line));
}

static void status(const char *list)
{
    char text[256] = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t";

    strcat(text, list);
    tree_write(&tree, "proc/7/status", strcat(text, "\nMems_allowed:\t1\n"));
}

static void cpus_are(const struct joule_cpus *cpus, const char *text)
{
    char buf[JOULE_CPUS_TEXT_MAX];

    ck_assert_int_ge(joule_cpus_format(cpus, buf, sizeof(buf)), 0);
    ck_assert_str_eq(buf, text);
}

START_TEST(sets)
{
    struct joule_cpus s = {{0}}, t;
    char buf[JOULE_CPUS_TEXT_MAX];

    cpus_are(&s, "");
    ck_assert_int_eq(joule_cpus_parse(&s, "0-3,8 11-10"), -1);
    ck_assert_int_eq(joule_cpus_parse(&s, "5 4 63-65 8191"), 0);
    cpus_are(&s, "4-5,63-65,8191");
    ck_assert_int_eq(joule_cpus_parse(&s, "8192"), -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_uint_eq(joule_cpus_count(&s), 6);
    ck_assert_uint_eq(joule_cpus_next(&s, 66), 8191);
    ck_assert_uint_eq(joule_cpus_next(&s, 8192), JOULE_CPUS_MAX);
    ck_assert(!joule_cpus_has(&s, 8192));
    joule_cpus_add(&s, 8192);
    ck_assert_int_eq(joule_cpus_parse(&t, "5,64"), 0);
    joule_cpus_intersect(&s, &t);
    cpus_are(&s, "5,64");
    joule_cpus_remove(&s, 5);
    cpus_are(&s, "64");
    ck_assert_int_eq(joule_cpus_format(&t, buf, 4), -1);
    ck_assert_int_eq(errno, ENOSPC);
    for (unsigned i = 0; i < JOULE_CPUS_MAX; i += 2)
        joule_cpus_add(&s, i);
    ck_assert_int_ge(joule_cpus_format(&s, buf, sizeof(buf)), 0);
    ck_assert_int_eq(joule_cpus_parse(&t, buf), 0);
    ck_assert_mem_eq(&s, &t, sizeof(s));
}
END_TEST

START_TEST(nothing_there)
{
    struct joule_cpus cpus;
    struct joule_error err = {""};

    ck_assert_int_eq(joule_cgroup_cpuset(tree.fd, 7, &cpus, &err), -1);
    ck_assert_int_eq(errno, ESRCH);
    ck_assert_int_eq(joule_cgroup_cpus_of(tree.fd, 7, &cpus, &err), -1);
    ck_assert_int_eq(errno, ESRCH);
    tree_write(&tree, "proc/7/cgroup", "garbage\n1:\n2:cpuset\n");
    mounts("");
    ck_assert_int_eq(joule_cgroup_cpuset(tree.fd, 7, &cpus, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    tree_write(&tree, "proc/7/status", "Name:\tx\n");
    ck_assert_int_eq(joule_cgroup_cpus_of(tree.fd, 7, &cpus, &err), -1);
    ck_assert_int_eq(errno, EBADMSG);
    status("0-x");
    ck_assert_int_eq(joule_cgroup_cpus_of(tree.fd, 7, &cpus, &err), -1);
    ck_assert_int_eq(errno, EBADMSG);
    /* Without a cpuset the binding counts. */
    status("0-3");
    ck_assert_int_eq(joule_cgroup_cpus_of(tree.fd, 7, &cpus, &err), 0);
    cpus_are(&cpus, "0-3");
}
END_TEST

START_TEST(version_1)
{
    struct joule_cpus cpus;

    tree_write(&tree, "proc/7/cgroup",
               "5:cpu,cpuacct:/\n4:freezer:/a\n3:cpuset:/slurm/uid_0/job_1\n");
    mounts("30 24 0:27 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup "
           "rw,cpuset\n");
    tree_write(&tree, "sys/fs/cgroup/cpuset/slurm/uid_0/job_1/cpuset.cpus",
               "2-5\n");
    ck_assert_int_eq(joule_cgroup_cpuset(tree.fd, 7, &cpus, NULL), 0);
    cpus_are(&cpus, "2-5");
    tree_write(&tree,
               "sys/fs/cgroup/cpuset/slurm/uid_0/job_1/cpuset.effective_cpus",
               "3-5\n");
    status("1-4");
    ck_assert_int_eq(joule_cgroup_cpus_of(tree.fd, 7, &cpus, NULL), 0);
    cpus_are(&cpus, "3-4");
    /* Nothing in common: it was another machine's. */
    status("0");
    ck_assert_int_eq(joule_cgroup_cpus_of(tree.fd, 7, &cpus, NULL), 0);
    cpus_are(&cpus, "0");
}
END_TEST

/* A namespace shows a part of the hierarchy. */
START_TEST(part_of_a_hierarchy)
{
    struct joule_cpus cpus;

    tree_write(&tree, "proc/7/cgroup", "3:memory,cpuset:/node1/job_1\n");
    mounts("30 24 0:27 /node1 /sys/fs/cgroup/x rw - cgroup cgroup "
           "rw,memory,cpuset\n");
    tree_write(&tree, "sys/fs/cgroup/x/job_1/cpuset.cpus", "6\n");
    ck_assert_int_eq(joule_cgroup_cpuset(tree.fd, 7, &cpus, NULL), 0);
    cpus_are(&cpus, "6");
    mounts("30 24 0:27 /node /sys/fs/cgroup/x rw - cgroup cgroup "
           "rw,memory,cpuset\n");
    ck_assert_int_eq(joule_cgroup_cpuset(tree.fd, 7, &cpus, NULL), -1);
}
END_TEST

START_TEST(version_2)
{
    struct joule_cpus cpus;
    struct joule_error err;

    tree_write(&tree, "proc/7/cgroup",
               "0::/system.slice/slurmstepd.scope/job_1/step_0/user/task_0\n");
    mounts("30 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
    tree_mkdir(&tree, "sys/fs/cgroup/system.slice");
    ck_assert_int_eq(joule_cgroup_cpuset(tree.fd, 7, &cpus, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    tree_write(&tree,
               "sys/fs/cgroup/system.slice/slurmstepd.scope/job_1/step_0/"
               "cpuset.cpus.effective",
               "8-9\n");
    ck_assert_int_eq(joule_cgroup_cpuset(tree.fd, 7, &cpus, &err), 0);
    cpus_are(&cpus, "8-9");
    tree_write(&tree,
               "sys/fs/cgroup/system.slice/slurmstepd.scope/job_1/step_0/user/"
               "task_0/cpuset.cpus.effective",
               "9-8\n");
    ck_assert_int_eq(joule_cgroup_cpuset(tree.fd, 7, &cpus, &err), -1);
    ck_assert_int_eq(errno, EBADMSG);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpuset");
    TCase *c = tcase_create("cpuset");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, nothing_there);
    tcase_add_test(c, sets);
    tcase_add_test(c, version_1);
    tcase_add_test(c, part_of_a_hierarchy);
    tcase_add_test(c, version_2);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
