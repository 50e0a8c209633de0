/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Steps that hold policies: alone, over one another, dead.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/dice.h"
#include "tests/unit/freqsteps.h"

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

/* A governor that keeps the frequency it finds asks for no lower one. */
START_TEST(userspace_beside_a_range)
{
    struct joule_control_grant a, b;

    take(101, 1, "0", "userspace", &a);
    take(102, 2, "1", "1500000-2000000", &b);
    governor_is(0, "userspace");
    ck_assert_str_eq(freqtree_read(&tree, 0, "scaling_max_freq"), "3000000");
    release(&a);
    governor_is(0, "ondemand");
    ck_assert_str_eq(freqtree_read(&tree, 0, "scaling_max_freq"), "2000000");
    release(&b);
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

/* From here on this process is of another namespace. */
static void move(void)
{
    tree_write(&tree, "proc/self/ns/other", "");
    ck_assert_int_eq(
        renameat(tree.fd, "proc/self/ns/other", tree.fd, "proc/self/ns/pid"),
        0);
}

/* A process that takes policy 0 as [pid], and lives until *ret_fd closes. */
static pid_t other_holder(unsigned pid, unsigned job, int *ret_fd)
{
    struct joule_control_grant g;
    int held[2], end[2];
    char byte;
    pid_t child;

    ck_assert(pipe(held) == 0 && pipe(end) == 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(end[1]);
        take(pid, job, "0", "performance", &g);
        close(held[1]);
        _exit(read(end[0], &byte, 1) != 0);
    }
    close(end[0]);
    close(held[1]);
    ck_assert_int_eq(read(held[0], &byte, 1), 0);
    close(held[0]);
    *ret_fd = end[1];
    return child;
}

/* Processes of another namespace are not judged by their numbers, here of
 * nobody or of a process that began later, but by the lock that they hold. */
START_TEST(other_namespace)
{
    static const uint64_t starts[] = {0, 5};
    int fd, status;
    pid_t pid;

    tree_write(&tree, "proc/self/ns/pid", "");
    pid = other_holder(101, 1, &fd);
    freqtree_process(&tree, 101, starts[_i]);
    move();
    ck_assert_int_eq(recover(), 0);
    governor_is(0, "performance");
    ck_assert(has_journal());
    close(fd);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(recover(), 1);
    check_clean();
}
END_TEST

/* It is dead, and the number and start time are here somebody else's. */
START_TEST(other_namespace_number_used)
{
    struct joule_control_grant g;
    int fd;
    pid_t pid;

    tree_write(&tree, "proc/self/ns/pid", "");
    pid = other_holder(101, 1, &fd);
    close(fd);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    move();
    take(101, 2, "0", "powersave", &g);
    governor_is(0, "powersave");
    release(&g);
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

START_TEST(many_holders)
{
    unsigned holders = dice_is_long() ? 300 : 60; /* all look at all */
    struct joule_control_grant *g = calloc(holders, sizeof(*g));

    for (unsigned i = 0; i < holders; i++)
        take(101 + i % 4, i % 7, i % 2 ? "0-1" : "1-3",
             i % 3 ? "1500000-2600000" : "powersave", &g[i]);
    for (unsigned i = 0; i < holders; i++)
        release(&g[i * 77 % holders]);
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
    tcase_add_test(c, one_step);
    tcase_add_test(c, own_policies_only);
    tcase_add_loop_test(c, steps_of_a_job, 0, 6);
    tcase_add_loop_test(c, jobs_on_a_policy, 0, 6);
    tcase_add_test(c, userspace_beside_a_range);
    tcase_add_test(c, dead_holders);
    tcase_add_test(c, next_step_recovers);
    tcase_add_loop_test(c, other_namespace, 0, 2);
    tcase_add_test(c, other_namespace_number_used);
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
