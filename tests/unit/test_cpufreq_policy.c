/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/process.h"
#include "common/cpufreq/policy.h"
#include "tests/unit/freqtree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static struct tree tree;

static void setup(void)
{
    tree_create(&tree);
}

static void teardown(void)
{
    tree_destroy(&tree);
}

static const struct {
    const char *name, *text; /* NULL: the file is not there */
    int errnum;
} bad[] = {
    {"affected_cpus", "", EBUSY},
    {"affected_cpus", " ", EBUSY},
    {"affected_cpus", "0 x", EBADMSG},
    {"affected_cpus", "70000", EBADMSG},
    {"affected_cpus", "8192", EBADMSG},
    {"scaling_driver", "", EBADMSG},
    {"scaling_driver", "two words", EBADMSG},
    {"scaling_driver", "a-name-that-is-longer-than-the-kernel-allows", EBADMSG},
    {"scaling_governor", "", EBADMSG},
    {"scaling_governor", "on\x1b[31mdemand", EBADMSG},
    {"scaling_governor", "../ondemand", EBADMSG},
    {"scaling_min_freq", "", EBADMSG},
    {"scaling_min_freq", "-1", EBADMSG},
    {"scaling_min_freq", "1e6", EBADMSG},
    {"scaling_max_freq", "4294967296", EBADMSG},
    {"cpuinfo_min_freq", "3000001", EBADMSG},
    {"cpuinfo_max_freq", "fast", EBADMSG},
    {"scaling_available_frequencies", "1500000 x", EBADMSG},
    {"scaling_available_frequencies", "1500000 0", EBADMSG},
    {"energy_performance_preference", "a b", EBADMSG},
    {"scaling_driver", NULL, ENOENT},
    {"scaling_governor", NULL, ENOENT},
    {"scaling_available_governors", NULL, ENOENT},
    {"scaling_max_freq", NULL, ENOENT},
    {"cpuinfo_max_freq", NULL, ENOENT},
};

START_TEST(refused)
{
    struct joule_cpufreq_policy p;
    struct joule_error err = {""};
    char path[160] = JOULE_CPUFREQ_DIR "/policy0/";
    unsigned fds = tree_open_fds();

    freqtree_acpi(&tree, 0, 0, 1);
    if (bad[_i].text)
        freqtree_write(&tree, 0, bad[_i].name, bad[_i].text);
    else
        tree_remove(&tree, strcat(path, bad[_i].name));
    ck_assert_int_eq(joule_cpufreq_read(tree.fd, 0, &p, &err), -1);
    ck_assert_msg(errno == bad[_i].errnum, "%s", err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "policy0"));
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

START_TEST(good)
{
    struct joule_cpufreq_policy p;

    freqtree_acpi(&tree, 3, 2, 5);
    /* A list that is not in order, with one of them twice. */
    freqtree_write(&tree, 3, "scaling_available_frequencies",
                   "2000000 3000000 1500000 2000000 ");
    ck_assert_int_eq(joule_cpufreq_read(tree.fd, 3, &p, NULL), 0);
    ck_assert_str_eq(p.driver, "acpi-cpufreq");
    ck_assert_uint_eq(p.step_count, 3);
    ck_assert_uint_eq(p.step_khz[0], 1500000);
    ck_assert_uint_eq(p.step_khz[2], 3000000);
    ck_assert_uint_eq(joule_cpus_count(&p.cpus), 4);
    ck_assert(joule_cpus_has(&p.cpus, 5));
    ck_assert_uint_eq(p.now.setspeed_khz, 0);
    ck_assert_str_eq(p.now.epp, "");
    freqtree_write(&tree, 3, "scaling_governor", "userspace");
    freqtree_write(&tree, 3, "scaling_setspeed", "2000000");
    ck_assert_int_eq(joule_cpufreq_read_state(tree.fd, 3, JOULE_CPUFREQ_FIELDS,
                                              &p.now, NULL),
                     0);
    ck_assert_uint_eq(p.now.setspeed_khz, 2000000);
    ck_assert_uint_eq(joule_cpufreq_current_khz(tree.fd, 3), 2000000);
    ck_assert_uint_eq(joule_cpufreq_current_khz(tree.fd, 4), 0);
}
END_TEST

START_TEST(which_policies)
{
    struct joule_cpus ids;
    unsigned id;

    ck_assert_int_eq(joule_cpufreq_list(tree.fd, &ids, NULL), 0);
    ck_assert_uint_eq(joule_cpus_count(&ids), 0);
    ck_assert_int_eq(joule_cpufreq_policy_of(tree.fd, 0, &id), -1);
    ck_assert_int_eq(errno, ENOENT);
    freqtree_acpi(&tree, 0, 0, 1);
    freqtree_pstate(&tree, 12, 12, 12);
    tree_mkdir(&tree, JOULE_CPUFREQ_DIR "/policyx");
    tree_mkdir(&tree, JOULE_CPUFREQ_DIR "/policy99999");
    tree_mkdir(&tree, JOULE_CPUFREQ_DIR "/ondemand");
    ck_assert_int_eq(joule_cpufreq_list(tree.fd, &ids, NULL), 0);
    ck_assert_uint_eq(joule_cpus_count(&ids), 2);
    ck_assert_int_eq(joule_cpufreq_policy_of(tree.fd, 1, &id), 0);
    ck_assert_uint_eq(id, 0);
    ck_assert_int_eq(joule_cpufreq_policy_of(tree.fd, 12, &id), 0);
    ck_assert_uint_eq(id, 12);
}
END_TEST

START_TEST(words)
{
    ck_assert(joule_cpufreq_has_word("a bc d", "bc"));
    ck_assert(joule_cpufreq_has_word("a bc d ", "d"));
    ck_assert(!joule_cpufreq_has_word("a bc d", "b"));
    ck_assert(!joule_cpufreq_has_word("a bc d", ""));
    ck_assert(!joule_cpufreq_has_word("", "a"));
    ck_assert(!joule_cpufreq_is_word(""));
    ck_assert(!joule_cpufreq_is_word("a b"));
    ck_assert(!joule_cpufreq_is_word("a/b"));
    ck_assert(joule_cpufreq_is_word("amd-pstate_2.0+"));
}
END_TEST

START_TEST(writing)
{
    struct joule_error err = {""};

    freqtree_acpi(&tree, 0, 0, 0);
    ck_assert_int_eq(
        joule_cpufreq_write(tree.fd, 0, JOULE_CPUFREQ_MIN, "2000000", &err), 0);
    ck_assert_str_eq(freqtree_read(&tree, 0, "scaling_min_freq"), "2000000");
    /* Nothing is made where nothing is. */
    ck_assert_int_eq(
        joule_cpufreq_write(tree.fd, 0, JOULE_CPUFREQ_EPP, "power", &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "energy_performance_preference"));
    /* EBUSY passes. */
    freqtree_arm(1, EBUSY);
    ck_assert_int_eq(
        joule_cpufreq_write(tree.fd, 0, JOULE_CPUFREQ_MIN, "1500000", &err), 0);
    freqtree_arm(0, 0);
    ck_assert_str_eq(freqtree_read(&tree, 0, "scaling_min_freq"), "1500000");
}
END_TEST

static const struct {
    const char *stat;
    int errnum;
} bad_stats[] = {
    {"", EBADMSG},
    {"7", EBADMSG},
    {"7 (x)", EBADMSG},
    {"7 (x) S 1 2 3", EBADMSG},
    {"7 (x) S 1 1 1 0 -1 0 1 1 0 0 0 0 0 0 20 0 1 0 x 1", EBADMSG},
    {"7 (x) Z 1 1 1 0 -1 0 1 1 0 0 0 0 0 0 20 0 1 0 5 1", ESRCH},
    {"7 (x) X 1 1 1 0 -1 0 1 1 0 0 0 0 0 0 20 0 1 0 5 1", ESRCH},
    {"7 (x S) Z 1 1 1 0 -1 0 1 1 0 0 0 0 0 0 20 0 1 0 5 1", ESRCH},
};

START_TEST(processes)
{
    uint64_t start = 42;

    ck_assert_int_eq(joule_process_start(tree.fd, 7, &start), -1);
    ck_assert_int_eq(errno, ESRCH);
    for (int i = 0; i < COUNT(bad_stats); i++) {
        tree_write(&tree, "proc/7/stat", bad_stats[i].stat);
        ck_assert_int_eq(joule_process_start(tree.fd, 7, &start), -1);
        ck_assert_msg(errno == bad_stats[i].errnum, "%s", bad_stats[i].stat);
    }
    ck_assert_uint_eq(start, 42);
    freqtree_process(&tree, 7, 123456789012345);
    ck_assert_int_eq(joule_process_start(tree.fd, 7, &start), 0);
    ck_assert_uint_eq(start, 123456789012345);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq policy");
    TCase *c = tcase_create("policy");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, refused, 0, COUNT(bad));
    tcase_add_test(c, good);
    tcase_add_test(c, which_policies);
    tcase_add_test(c, words);
    tcase_add_test(c, writing);
    tcase_add_test(c, processes);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
