/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cpufreq/control.h"
#include "tests/unit/freqtree.h"

#define JOURNAL "run/slurm-joule/cpufreq/journal"
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct joule_control_config config = {
    .rules = {.governors = JOULE_GOVERNORS_ALL},
    .lock_wait_ns = 20000000,
};

static struct tree tree;
static struct joule_control control;
static char before[FREQTREE_TEXT];

/* Policy 0 of CPUs 0-1, policy 1 of CPUs 2-3; processes 101 to 104. */
static void setup(void)
{
    tree_create(&tree);
    freqtree_acpi(&tree, 0, 0, 1);
    freqtree_acpi(&tree, 1, 2, 3);
    for (unsigned pid = 101; pid <= 104; pid++)
        freqtree_process(&tree, pid, pid * 10);
    joule_control_init(&control, tree.fd, &config);
    freqtree_dump(&tree, 2, before);
}

static void teardown(void)
{
    joule_control_destroy(&control);
    tree_destroy(&tree);
}

static bool has_journal(void)
{
    struct stat st;

    return fstatat(tree.fd, JOURNAL, &st, 0) == 0;
}

/* As it was, and no journal. */
static void check_clean(void)
{
    char now[FREQTREE_TEXT];

    freqtree_dump(&tree, 2, now);
    ck_assert_str_eq(now, before);
    ck_assert(!has_journal());
}

static int try_take(unsigned pid, unsigned job, const char *cpus,
                    const char *request, struct joule_control_grant *g,
                    struct joule_error *err)
{
    struct joule_control_claim claim = {
        .job = job, .step = "0", .pid = (pid_t)pid};

    if (request)
        ck_assert_int_eq(joule_request_parse(request, &claim.request, NULL), 0);
    claim.is_watch = !request;
    ck_assert_int_eq(joule_cpus_parse(&claim.cpus, cpus), 0);
    return joule_control_take(&control, &claim, g, err);
}

static void take(unsigned pid, unsigned job, const char *cpus,
                 const char *request, struct joule_control_grant *g)
{
    struct joule_error err = {""};

    ck_assert_msg(try_take(pid, job, cpus, request, g, &err) == 0, "%s",
                  err.text);
}

static void release(const struct joule_control_grant *g)
{
    struct joule_error err = {""};

    ck_assert_msg(joule_control_release(&control, g, &err) == 0, "%s",
                  err.text);
}

static int recover(void)
{
    return joule_control_recover(&control, NULL, NULL);
}

static void governor_is(unsigned id, const char *governor)
{
    ck_assert_str_eq(freqtree_read(&tree, id, "scaling_governor"), governor);
}

static void speed_is(unsigned id, const char *khz)
{
    ck_assert_str_eq(freqtree_read(&tree, id, "scaling_setspeed"), khz);
}

START_TEST(one_step)
{
    struct joule_control_grant g;

    take(101, 1, "0-3", "2100000", &g);
    ck_assert_uint_eq(g.met, 2);
    ck_assert_uint_eq(g.unmet, 0);
    ck_assert_uint_eq(g.low_khz, 2600000);
    ck_assert_uint_eq(g.high_khz, 2600000);
    ck_assert_str_eq(g.governor, "userspace");
    governor_is(0, "userspace");
    speed_is(1, "2600000");
    ck_assert(has_journal());
    /* What a kernel does by itself, and plain files do not. */
    freqtree_write(&tree, 0, "scaling_setspeed", "<unsupported>");
    freqtree_write(&tree, 1, "scaling_setspeed", "<unsupported>");
    release(&g);
    check_clean();
    /* Twice does no harm. */
    release(&g);
    check_clean();
}
END_TEST

/* CPU 1 has policy 0 alone. */
START_TEST(own_policies_only)
{
    struct joule_control_grant g;

    take(101, 1, "1", "1500000-2000000:powersave", &g);
    ck_assert_uint_eq(g.met, 1);
    governor_is(0, "powersave");
    governor_is(1, "ondemand");
    release(&g);
    check_clean();
}
END_TEST

static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                 {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* Three steps of one job: the latest is served. */
START_TEST(steps_of_a_job)
{
    static const char *const max[] = {"2600000", "2000000", "1500000"};
    struct joule_control_grant g[3];
    bool held[3] = {true, true, true};

    take(101, 1, "0-1", "1500000-2600000", &g[0]);
    take(102, 1, "0-1", "1500000-2000000", &g[1]);
    take(103, 1, "0", "1500000-1500000:powersave", &g[2]);
    for (int i = 0; i < 3; i++) {
        int served = held[2] ? 2 : held[1] ? 1 : 0;

        ck_assert_str_eq(freqtree_read(&tree, 0, "scaling_max_freq"),
                         max[served]);
        governor_is(0, served == 2 ? "powersave" : "ondemand");
        release(&g[orders[_i][i]]);
        held[orders[_i][i]] = false;
    }
    check_clean();
}
END_TEST

/* Three jobs: whoever asks for the highest frequency is served. */
START_TEST(jobs_on_a_policy)
{
    static const char *const max[] = {"2000000", "2600000", "1500000"};
    struct joule_control_grant g[3];
    bool held[3] = {true, true, true};

    take(101, 1, "0", "1500000-2000000", &g[0]);
    take(102, 2, "1", "1500000-2600000", &g[1]);
    take(103, 3, "0-1", "1500000-1500000:ondemand", &g[2]);
    for (int i = 0; i < 3; i++) {
        int served = held[1] ? 1 : held[0] ? 0 : 2;

        ck_assert_str_eq(freqtree_read(&tree, 0, "scaling_max_freq"),
                         max[served]);
        release(&g[orders[_i][i]]);
        held[orders[_i][i]] = false;
    }
    check_clean();
}
END_TEST

/* A dead holder is found, whoever else lives; a number that is used again is
 * not mistaken for it. */
START_TEST(dead_holders)
{
    struct joule_control_grant a, b;

    take(101, 1, "0-1", "1500000-2000000", &a);
    take(102, 2, "0-3", "1500000-2600000", &b);
    ck_assert_int_eq(recover(), 0);
    freqtree_process(&tree, 102, 0);
    ck_assert_int_eq(recover(), 1);
    ck_assert_str_eq(freqtree_read(&tree, 0, "scaling_max_freq"), "2000000");
    ck_assert_str_eq(freqtree_read(&tree, 1, "scaling_max_freq"), "3000000");
    freqtree_process(&tree, 101, 999);
    ck_assert_int_eq(recover(), 1);
    check_clean();
    ck_assert_int_eq(recover(), 0);
    release(&a);
    check_clean();
}
END_TEST

/* The next step finds it, and does not take what it sees for the original. */
START_TEST(next_step_recovers)
{
    struct joule_control_grant g;

    take(101, 1, "0-3", "1500000-1500000:powersave", &g);
    freqtree_process(&tree, 101, 0);
    take(102, 2, "0", "performance", &g);
    governor_is(0, "performance");
    governor_is(1, "ondemand");
    ck_assert_str_eq(freqtree_read(&tree, 0, "scaling_max_freq"), "3000000");
    release(&g);
    check_clean();
}
END_TEST

/* Processes of another namespace are not judged by their numbers. */
START_TEST(other_namespace)
{
    struct joule_control_grant g;
    struct joule_error err;

    tree_write(&tree, "proc/self/ns/pid", "");
    take(101, 1, "0", "performance", &g);
    freqtree_process(&tree, 101, 0);
    tree_write(&tree, "proc/self/ns/other", "");
    tree_remove(&tree, "proc/self/ns/pid");
    ck_assert_int_eq(recover(), 0);
    governor_is(0, "performance");
    ck_assert_int_eq(joule_control_restore(&control, NULL, &err), 0);
    check_clean();
}
END_TEST

START_TEST(watch)
{
    struct joule_control_grant w, g;
    struct joule_cpus none = {{0}};

    /* The original is on record before somebody else writes. */
    take(101, 1, "0-3", NULL, &w);
    ck_assert(has_journal());
    freqtree_write(&tree, 0, "scaling_governor", "userspace");
    freqtree_write(&tree, 0, "scaling_max_freq", "2000000");
    take(101, 1, "0-1", "1500000-2600000:conservative", &g);
    ck_assert_int_eq(joule_control_narrow(&control, &w, &g.policies, NULL), 0);
    governor_is(0, "conservative");
    freqtree_write(&tree, 0, "scaling_governor", "powersave");
    release(&g);
    release(&w);
    check_clean();
    take(101, 1, "0-3", NULL, &w);
    ck_assert_int_eq(joule_control_narrow(&control, &w, &none, NULL), 0);
    check_clean();
}
END_TEST

START_TEST(unmet)
{
    struct joule_control_grant g;
    struct joule_error err = {""};

    freqtree_write(&tree, 1, "scaling_available_governors", "performance");
    take(101, 1, "0-3", "powersave", &g);
    ck_assert_uint_eq(g.met, 1);
    ck_assert_uint_eq(g.unmet, 1);
    ck_assert_uint_eq(g.notes.count, 1);
    ck_assert_ptr_nonnull(strstr(g.notes.first.text, "policy1"));
    release(&g);
    check_clean();
    ck_assert_int_eq(try_take(101, 1, "2", "powersave", &g, &err), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    ck_assert_ptr_nonnull(strstr(err.text, "has no governor powersave"));
    check_clean();
    ck_assert_int_eq(try_take(101, 1, "9", "powersave", &g, &err), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    ck_assert_ptr_nonnull(strstr(err.text, "CPU 9"));
    ck_assert_int_eq(try_take(109, 1, "0", "powersave", &g, &err), -1);
    ck_assert_int_eq(errno, ESRCH);
    check_clean();
}
END_TEST

/* The journal of another boot says nothing about this one. */
START_TEST(reboot)
{
    struct joule_control_grant g, h;
    char now[FREQTREE_TEXT];

    take(101, 1, "0-3", "powersave", &g);
    tree_write(&tree, "proc/sys/kernel/random/boot_id",
               "99999999-2222-3333-4444-555555555555\n");
    freqtree_write(&tree, 0, "scaling_governor", "schedutil");
    freqtree_write(&tree, 1, "scaling_governor", "schedutil");
    freqtree_dump(&tree, 2, before);
    ck_assert_int_eq(recover(), 0);
    check_clean();
    take(102, 1, "0", "performance", &h);
    release(&g);
    governor_is(0, "performance");
    release(&h);
    freqtree_dump(&tree, 2, now);
    ck_assert_str_eq(now, before);
}
END_TEST

static void must_refuse(int errnum, const char *word)
{
    struct joule_control_grant g;
    struct joule_error err = {""};

    ck_assert_int_eq(try_take(102, 2, "0-3", "performance", &g, &err), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_msg(strstr(err.text, word) != NULL, "%s", err.text);
    ck_assert_int_eq(joule_control_recover(&control, NULL, &err), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_int_eq(joule_control_restore(&control, NULL, &err), -1);
    ck_assert_int_eq(errno, errnum);
}

START_TEST(bad_journals)
{
    struct joule_control_grant g;
    char now[FREQTREE_TEXT];

    take(101, 1, "0-3", "powersave", &g);
    freqtree_dump(&tree, 2, now);
    ck_assert_int_eq(joule_control_discard(&control, NULL), -1);
    ck_assert_int_eq(errno, EINVAL);
    /* None of these is applied, none is replaced. */
    tree_write(&tree, JOURNAL, "");
    must_refuse(EBADMSG, "not one of this version");
    tree_write(&tree, JOURNAL,
               "slurm-joule cpufreq journal 1\nboot=1\ncrc32=00000000\n");
    must_refuse(EBADMSG, "damaged");
    tree_bytes(&tree, JOURNAL, "a\0b", 3);
    must_refuse(EBADMSG, "cannot read");
    tree_truncate(&tree, JOURNAL, JOULE_CPUFREQ_TEXT_MAX + 2);
    must_refuse(EBADMSG, "cannot read");
    tree_remove(&tree, JOURNAL);
    ck_assert_int_eq(symlinkat("../../../journal", tree.fd, JOURNAL), 0);
    must_refuse(EPERM, "cannot open");
    tree_remove(&tree, JOURNAL);
    tree_mkdir(&tree, JOURNAL);
    must_refuse(EPERM, "not a regular file");
    ck_assert_int_eq(unlinkat(tree.fd, JOURNAL, AT_REMOVEDIR), 0);
    tree_write(&tree, JOURNAL, "");
    ck_assert_int_eq(fchmodat(tree.fd, JOURNAL, 0660, 0), 0);
    must_refuse(EPERM, "may be written by others");
    ck_assert_int_eq(joule_control_discard(&control, NULL), 0);
    ck_assert(!has_journal());
    {
        char same[FREQTREE_TEXT];

        freqtree_dump(&tree, 2, same);
        ck_assert_str_eq(same, now);
    }
}
END_TEST

START_TEST(bad_places)
{
    struct joule_control_grant g;
    struct joule_error err;

    tree_mkdir(&tree, "run/slurm-joule");
    tree_mkdir(&tree, "elsewhere");
    ck_assert_int_eq(
        symlinkat("../../elsewhere", tree.fd, "run/slurm-joule/cpufreq"), 0);
    ck_assert_int_eq(try_take(101, 1, "0", "performance", &g, &err), -1);
    ck_assert_int_eq(errno, EPERM);
    tree_remove(&tree, "run/slurm-joule/cpufreq");
    tree_mkdir(&tree, "run/slurm-joule/cpufreq");
    fchmodat(tree.fd, "run/slurm-joule/cpufreq", 0777, 0);
    ck_assert_int_eq(try_take(101, 1, "0", "performance", &g, &err), -1);
    ck_assert_int_eq(errno, EPERM);
    check_clean();
}
END_TEST

START_TEST(lock_is_bounded)
{
    struct joule_control_grant g;
    struct joule_error err = {""};
    int fd;

    take(101, 1, "0", "performance", &g);
    fd = openat(tree.fd, "run/slurm-joule/cpufreq/lock", O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_int_eq(joule_control_release(&control, &g, &err), -1);
    ck_assert_int_eq(errno, EBUSY);
    governor_is(0, "performance");
    close(fd);
    release(&g);
    check_clean();
}
END_TEST

static const int refusals[] = {EBUSY, EINVAL, ENODEV, EROFS, EACCES, EIO};

/* What cannot be put back stays on record until it can. */
START_TEST(stays_on_record)
{
    struct joule_control_grant g, h;
    struct joule_control_notes notes = {.count = 0};
    struct joule_error err = {""};

    take(101, 1, "0-3", "performance", &g);
    freqtree_refuse(refusals[_i]);
    ck_assert_int_eq(joule_control_release(&control, &g, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "scaling_governor"));
    for (int i = 0; i < 3 * JOULE_CONTROL_TRIES; i++)
        ck_assert_int_eq(joule_control_recover(&control, &notes, &err), 0);
    ck_assert_uint_eq(notes.count, 6 * JOULE_CONTROL_TRIES);
    ck_assert(has_journal());
    /* A step that cannot be given its frequency does not hold it either. */
    ck_assert_int_eq(try_take(102, 2, "0", "powersave", &h, &err), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    freqtree_refuse(0);
    ck_assert_int_eq(recover(), 0);
    check_clean();
}
END_TEST

static void rename_policy(unsigned id, bool away)
{
    const char *from = id ? JOULE_CPUFREQ_DIR "/policy1"
                          : JOULE_CPUFREQ_DIR "/policy0";

    ck_assert_int_eq(away ? renameat(tree.fd, from, tree.fd, "gone")
                          : renameat(tree.fd, "gone", tree.fd, from),
                     0);
}

/* A policy goes while it is held, and comes back as it went. */
START_TEST(unplugged)
{
    struct joule_control_grant g;
    struct joule_error err = {""};

    take(101, 1, "0-3", "powersave", &g);
    rename_policy(1, true);
    ck_assert_int_eq(joule_control_release(&control, &g, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "policy1"));
    governor_is(0, "ondemand");
    ck_assert_int_eq(recover(), 0);
    ck_assert(has_journal());
    /* Meanwhile it cannot be taken. */
    ck_assert_int_eq(try_take(102, 1, "2", "powersave", &g, &err), -1);
    rename_policy(1, false);
    ck_assert_int_eq(recover(), 0);
    check_clean();
}
END_TEST

START_TEST(many_holders)
{
    struct joule_control_grant *g = calloc(300, sizeof(*g));

    for (unsigned i = 0; i < 300; i++)
        take(101 + i % 4, i % 7, i % 2 ? "0-1" : "1-3",
             i % 3 ? "1500000-2600000" : "powersave", &g[i]);
    for (unsigned i = 0; i < 300; i++)
        release(&g[i * 77 % 300]);
    check_clean();
    free(g);
}
END_TEST

/* A pstate machine: limits and preference. */
START_TEST(preferences)
{
    char was[FREQTREE_TEXT], now[FREQTREE_TEXT];
    struct joule_control_grant a, b;

    freqtree_pstate(&tree, 2, 4, 4);
    freqtree_dump(&tree, 3, was);
    take(101, 1, "4", "powersave", &a);
    ck_assert_str_eq(freqtree_read(&tree, 2, "energy_performance_preference"),
                     "power");
    take(102, 1, "4", "2000000", &b);
    ck_assert_str_eq(freqtree_read(&tree, 2, "energy_performance_preference"),
                     "balance_performance");
    ck_assert_str_eq(freqtree_read(&tree, 2, "scaling_min_freq"), "2000000");
    ck_assert_uint_eq(b.low_khz, 2000000);
    release(&a);
    release(&b);
    freqtree_dump(&tree, 3, now);
    ck_assert_str_eq(now, was);
    check_clean();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq control");
    TCase *c = tcase_create("control");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, bad_journals);
    tcase_add_test(c, bad_places);
    tcase_add_test(c, lock_is_bounded);
    tcase_add_test(c, unmet);
    tcase_add_loop_test(c, stays_on_record, 0, COUNT(refusals));
    tcase_add_test(c, unplugged);
    tcase_add_test(c, reboot);
    tcase_add_test(c, one_step);
    tcase_add_test(c, own_policies_only);
    tcase_add_loop_test(c, steps_of_a_job, 0, 6);
    tcase_add_loop_test(c, jobs_on_a_policy, 0, 6);
    tcase_add_test(c, dead_holders);
    tcase_add_test(c, next_step_recovers);
    tcase_add_test(c, other_namespace);
    tcase_add_test(c, watch);
    tcase_add_test(c, many_holders);
    tcase_add_test(c, preferences);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
