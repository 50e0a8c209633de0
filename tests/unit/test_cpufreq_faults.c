/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every system call of a history of steps fails once, and is once the last of
 * its process; whatever was, recovery brings back what was before.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cpufreq/control.h"
#include "tests/unit/dice.h"
#include "tests/unit/freqtree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct joule_control_config config = {
    .rules = {.governors = JOULE_GOVERNORS_ALL},
    .lock_wait_ns = 20000000,
};

static struct tree tree;
static struct joule_control control;
static char before[FREQTREE_TEXT];

static void setup(void)
{
    tree_create(&tree);
    freqtree_acpi(&tree, 0, 0, 1);
    freqtree_acpi(&tree, 1, 2, 2);
    freqtree_pstate(&tree, 2, 3, 3);
    freqtree_dump(&tree, 3, before);
}

static void teardown(void)
{
    tree_destroy(&tree);
}

static void take(unsigned pid, const char *cpus, const char *request,
                 struct joule_control_grant *g)
{
    struct joule_control_claim claim = {
        .job = pid, .step = "0", .pid = (pid_t)pid};

    joule_request_parse(request, &claim.request, NULL);
    joule_cpus_parse(&claim.cpus, cpus);
    joule_control_hold(&control, &claim, g, NULL);
}

/* Two jobs that overlap, and a third that dies in between: every part of the
 * library is in it.  What fails, fails. */
static void history(void)
{
    struct joule_control_grant a, b, c;

    for (unsigned pid = 101; pid <= 103; pid++)
        freqtree_process(&tree, pid, pid);
    take(101, "0-3", "1500000-2000000:conservative", &a);
    take(102, "0,3", "performance", &b);
    take(103, "1-2", "1600000-1600000:powersave", &c);
    freqtree_process(&tree, 103, 0);
    joule_control_recover(&control, NULL, NULL);
    joule_control_release(&control, &a, NULL);
    joule_control_release(&control, &b, NULL);
}

/* All of the history's processes are gone; another one looks after them. */
static void check_recovery(unsigned n)
{
    struct joule_control other;
    struct joule_error err = {""};
    char now[FREQTREE_TEXT];
    struct stat st;
    int rc;

    for (unsigned pid = 101; pid <= 103; pid++) {
        freqtree_process(&tree, pid, 1);
        freqtree_process(&tree, pid, 0);
    }
    joule_control_init(&other, tree.fd, &config);
    rc = joule_control_recover(&other, NULL, &err);
    joule_control_destroy(&other);
    ck_assert_msg(rc >= 0, "call %u: %s", n, err.text);
    freqtree_dump(&tree, 3, now);
    ck_assert_msg(strcmp(now, before) == 0, "call %u:\n%s\nnot\n%s", n, now,
                  before);
    ck_assert_msg(fstatat(tree.fd, "run/slurm-joule/cpufreq/journal", &st, 0) <
                      0,
                  "call %u: there is a journal", n);
}

static unsigned count_calls(void)
{
    unsigned calls;

    joule_control_init(&control, tree.fd, &config);
    freqtree_arm(0, 0);
    history();
    calls = freqtree_calls();
    joule_control_destroy(&control);
    check_recovery(0);
    return calls;
}

static const int errors[] = {EIO, ENOSPC, EBUSY, EINVAL, EROFS, ENODEV};

/* With one of the errors, or (--all) with each. */
START_TEST(each_call_fails)
{
    unsigned calls = count_calls(), step = dice_is_long() ? 1 : COUNT(errors);

    ck_assert_uint_gt(calls, 60);
    for (unsigned n = 1 + (unsigned)_i % step; n <= calls; n += step) {
        joule_control_init(&control, tree.fd, &config);
        freqtree_arm(n, errors[_i]);
        history();
        freqtree_arm(0, 0);
        joule_control_destroy(&control);
        check_recovery(n);
    }
}
END_TEST

START_TEST(killed_at_each_call)
{
    unsigned calls = count_calls(), killed = 0;

    for (unsigned n = 1; n <= calls; n++) {
        int status;
        pid_t pid = fork();

        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            joule_control_init(&control, tree.fd, &config);
            freqtree_arm(n, 0);
            history();
            _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        killed += WEXITSTATUS(status) == FREQTREE_KILLED;
        check_recovery(n);
    }
    ck_assert_uint_eq(killed, calls);
}
END_TEST

/* Killed in recovery too, again and again, each time some calls later. */
START_TEST(killed_in_recovery)
{
    for (unsigned n = 1; n < 40; n += 13) {
        struct joule_control_grant g;
        bool done = false;

        freqtree_process(&tree, 101, 5);
        joule_control_init(&control, tree.fd, &config);
        take(101, "0-3", "1500000-2000000:powersave", &g);
        joule_control_destroy(&control);
        freqtree_process(&tree, 101, 0);
        for (unsigned step = n; !done && step < 200; step++) {
            pid_t pid = fork();
            int status;

            ck_assert_int_ge(pid, 0);
            if (pid == 0) {
                joule_control_init(&control, tree.fd, &config);
                freqtree_arm(step, 0);
                joule_control_recover(&control, NULL, NULL);
                _exit(0);
            }
            ck_assert_int_eq(waitpid(pid, &status, 0), pid);
            done = WEXITSTATUS(status) == 0;
        }
        ck_assert(done);
        check_recovery(n);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq faults");
    TCase *c = tcase_create("faults");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, each_call_fails, 0, COUNT(errors));
    tcase_add_test(c, killed_at_each_call);
    tcase_add_test(c, killed_in_recovery);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
