/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/sensors/cpu_states.h"
#include "tests/unit/dice.h"
#include "tests/unit/tree.h"

#define CPU "sys/devices/system/cpu"
#define MS  JOULE_NS_PER_MS
#define US  INT64_C(1000)

static struct tree tree;
static struct joule_error err;
static struct joule_cpu_states *states;
static int64_t clock_ns;
static unsigned fds_before;

static int64_t test_clock_ns(void *arg)
{
    (void)arg;
    return clock_ns;
}

static const struct joule_clock test_clock = {.mono_ns = test_clock_ns,
                                              .wall_ns = test_clock_ns};

static void setup(void)
{
    tree_create(&tree);
    memset(&err, 0, sizeof(err));
    states = NULL;
    clock_ns = 1000 * MS;
    fds_before = tree_open_fds();
}

static void teardown(void)
{
    joule_cpu_states_close(states);
    ck_assert_uint_eq(tree_open_fds(), fds_before);
    tree_destroy(&tree);
}

static void put_online(const char *list)
{
    tree_write(&tree, CPU "/online", list);
}

static void put_time(unsigned cpu, unsigned state, unsigned long long us)
{
    char path[96], text[32];

    snprintf(path, sizeof(path), CPU "/cpu%u/cpuidle/state%u/time", cpu, state);
    snprintf(text, sizeof(text), "%llu\n", us);
    tree_write(&tree, path, text);
}

/* CPU with idle states, the first of them POLL; all at 0. */
static void put_cpu(unsigned cpu, unsigned count)
{
    char path[96];

    for (unsigned i = 0; i < count; i++) {
        put_time(cpu, i, 0);
        snprintf(path, sizeof(path), CPU "/cpu%u/cpuidle/state%u/name", cpu, i);
        tree_write(&tree, path, i == 0 ? "POLL\n" : "C1\n");
    }
}

static void put_freqs(unsigned cpu, const char *text)
{
    char path[96];

    snprintf(path, sizeof(path), CPU "/cpu%u/cpufreq/stats/time_in_state", cpu);
    tree_write(&tree, path, text);
}

static void must_open(enum joule_cpu_states_kind kind, unsigned first,
                      unsigned count)
{
    states =
        joule_cpu_states_open(tree.fd, kind, first, count, &test_clock, &err);
    ck_assert_msg(states != NULL, "%s", err.text);
}

static void must_not_open(enum joule_cpu_states_kind kind, int errnum,
                          const char *sentence)
{
    errno = 0;
    ck_assert_ptr_null(
        joule_cpu_states_open(tree.fd, kind, 0, 4, &test_clock, &err));
    ck_assert_int_eq(errno, errnum);
    ck_assert_msg(strstr(err.text, sentence), "%s", err.text);
    ck_assert_uint_eq(tree_open_fds(), fds_before);
}

static void must_read(int64_t passed_ns)
{
    clock_ns += passed_ns;
    ck_assert_msg(joule_cpu_states_read(states, &err) == 0, "%s", err.text);
    ck_assert_int_eq(joule_cpu_states_time(states), clock_ns);
}

/* In ms. */
static void must_be(unsigned cpu, int a, int b, int c, int d)
{
    const struct joule_cpu_times *t = joule_cpu_states_of(states, cpu);

    ck_assert_int_eq(t->group_ns[0], a * MS);
    ck_assert_int_eq(t->group_ns[1], b * MS);
    ck_assert_int_eq(t->group_ns[2], c * MS);
    ck_assert_int_eq(t->group_ns[3], d * MS);
}

static int64_t known(unsigned cpu)
{
    return joule_cpu_states_of(states, cpu)->known_ns;
}

START_TEST(not_there)
{
    must_not_open(JOULE_CSTATES, ENOENT, "online");
    put_online("x\n");
    must_not_open(JOULE_CSTATES, EINVAL, "not a list of CPUs");
    put_online("0-3\n");
    must_not_open(JOULE_CSTATES, ENODEV, "no driver for idle states");
    must_not_open(JOULE_PSTATES, ENODEV, "no times of frequencies");
    /* States of CPUs that nobody has asked for. */
    put_cpu(4, 3);
    must_not_open(JOULE_CSTATES, ENODEV, "no driver");
    put_freqs(0, "");
    must_not_open(JOULE_PSTATES, ENODEV, "no times");
    put_freqs(0, "2000000 x\n");
    must_not_open(JOULE_PSTATES, ENODEV, "no times");
    joule_cpu_states_close(NULL);
}
END_TEST

START_TEST(limit)
{
    ck_assert_int_eq(joule_cpu_states_limit(tree.fd, &err), -1);
    tree_write(&tree, CPU "/possible", "0-3,64-127\n");
    ck_assert_int_eq(joule_cpu_states_limit(tree.fd, &err), 128);
    tree_write(&tree, CPU "/possible", "many\n");
    ck_assert_int_eq(joule_cpu_states_limit(tree.fd, &err), -1);
}
END_TEST

/* POLL and C1 together, those between together; what is left is C0. */
START_TEST(groups_of_c_states)
{
    put_online("0-1\n");
    put_cpu(0, 6);
    put_cpu(1, 2);
    put_time(0, 3, 77777);
    must_open(JOULE_CSTATES, 0, 2);
    for (unsigned i = 0; i < 6; i++)
        put_time(0, i, (i == 3 ? 77777 : 0) + (i + 1) * 1000);
    put_time(1, 1, 30000);
    must_read(100 * MS);
    must_be(0, 79, 3, 12, 6);
    must_be(1, 70, 30, 0, 0);
    ck_assert_int_eq(known(0), 100 * MS);
    ck_assert_int_eq(known(2), 0);
    must_be(4711, 0, 0, 0, 0);
}
END_TEST

START_TEST(two_states_without_poll)
{
    put_online("0\n");
    put_time(0, 0, 0);
    put_time(0, 1, 0);
    must_open(JOULE_CSTATES, 0, 1);
    put_time(0, 0, 10000);
    put_time(0, 1, 20000);
    must_read(50 * MS);
    must_be(0, 20, 10, 0, 20);
}
END_TEST

/* A stay of 250 ms is told when it is over: of three intervals it has the last,
 * and the next ones that are idle in truth, too. */
START_TEST(long_stays)
{
    put_online("0\n");
    put_cpu(0, 3);
    must_open(JOULE_CSTATES, 0, 1);
    must_read(100 * MS);
    must_read(100 * MS);
    must_be(0, 200, 0, 0, 0);
    put_time(0, 2, 250000);
    must_read(100 * MS);
    must_be(0, 200, 0, 0, 100);
    must_read(100 * MS);
    must_be(0, 200, 0, 0, 200);
    must_read(100 * MS);
    must_be(0, 250, 0, 0, 250);
    must_read(100 * MS);
    must_be(0, 350, 0, 0, 250);
}
END_TEST

/* What lies before the first reading is not told later. */
START_TEST(stay_from_before)
{
    put_online("0\n");
    put_cpu(0, 3);
    must_open(JOULE_CSTATES, 0, 1);
    put_time(0, 2, 60000000);
    must_read(100 * MS);
    must_be(0, 0, 0, 0, 100);
    must_read(100 * MS);
    must_be(0, 100, 0, 0, 100);
}
END_TEST

START_TEST(time_goes_back)
{
    put_online("0\n");
    put_cpu(0, 3);
    put_time(0, 1, 50000);
    must_open(JOULE_CSTATES, 0, 1);
    put_time(0, 1, 1000);
    must_read(100 * MS);
    must_be(0, 100, 0, 0, 0);
    put_time(0, 1, 21000);
    must_read(100 * MS);
    must_be(0, 180, 20, 0, 0);
    put_time(0, 1, 18446744073709551615ull);
    must_read(100 * MS);
    ck_assert_int_eq(known(0), 300 * MS);
    ck_assert_int_eq(joule_cpu_states_of(states, 0)->group_ns[1], 120 * MS);
}
END_TEST

START_TEST(hotplug)
{
    put_online("0-1\n");
    put_cpu(0, 3);
    put_cpu(1, 3);
    must_open(JOULE_CSTATES, 0, 64);
    put_time(1, 2, 40000);
    must_read(100 * MS);
    must_be(1, 60, 0, 0, 40);
    put_online("0\n");
    put_time(1, 2, 90000);
    must_read(100 * MS);
    must_be(1, 60, 0, 0, 40);
    must_be(0, 200, 0, 0, 0);
    /* Back, and one that was not there before. */
    put_cpu(63, 2);
    put_online("0-1,63\n");
    must_read(100 * MS);
    put_time(1, 2, 100000);
    put_time(63, 1, 5000);
    must_read(100 * MS);
    must_be(1, 150, 0, 0, 50);
    must_be(63, 95, 5, 0, 0);
    ck_assert_int_eq(known(1), 200 * MS);
    ck_assert_int_eq(known(0), 400 * MS);
}
END_TEST

/* Off and on between two readings: the file can no longer be read, and there is
 * another one. */
START_TEST(unreadable_once)
{
    put_online("0\n");
    put_cpu(0, 3);
    must_open(JOULE_CSTATES, 0, 1);
    must_read(100 * MS);
    tree_truncate(&tree, CPU "/cpu0/cpuidle/state1/time", 0);
    must_read(100 * MS);
    must_be(0, 100, 0, 0, 0);
    tree_remove(&tree, CPU "/cpu0/cpuidle/state1/time");
    put_time(0, 1, 7000);
    must_read(100 * MS);
    put_time(0, 1, 17000);
    must_read(100 * MS);
    must_be(0, 190, 10, 0, 0);
    tree_truncate(&tree, CPU "/online", 0);
    must_read(100 * MS);
    put_online("0-\n");
    ck_assert_int_eq(joule_cpu_states_read(states, &err), -1);
    ck_assert_msg(strstr(err.text, "not a list"), "%s", err.text);
}
END_TEST

START_TEST(p_states)
{
    put_online("0-2\n");
    put_freqs(0, "2000000 100\n1800000 100\n1600000 100\n1400000 0\n"
                 "1000000 50\n");
    put_freqs(1, "1000000 0\n2000000 0\n"); /* in no order */
    put_freqs(2, "2000000 0\n");
    must_open(JOULE_PSTATES, 0, 3);
    put_freqs(0, "2000000 102\n1800000 101\n1600000 103\n1400000 2\n"
                 "1000000 51\n");
    put_freqs(1, "1000000 3\n2000000 7\n");
    put_freqs(2, "2000000 11\n");
    must_read(100 * MS);
    must_be(0, 20, 10, 50, 10);
    must_be(1, 70, 0, 0, 30);
    must_be(2, 100, 0, 0, 0);
    ck_assert_int_eq(known(0), 100 * MS);
    /* Another number of lines is another driver. */
    put_freqs(0, "2000000 102\n");
    must_read(100 * MS);
    must_be(0, 20, 10, 50, 10);
    must_read(100 * MS);
    put_freqs(0, "2000000 112\n");
    must_read(100 * MS);
    must_be(0, 120, 10, 50, 10);
}
END_TEST

/* Whatever the kernel says: nothing falls, and groups are no more than the time. */
START_TEST(anything)
{
    uint64_t seed = dice_seed();
    struct joule_cpu_times before = {0}, now;

    put_online("0\n");
    put_cpu(0, 5);
    must_open(JOULE_CSTATES, 0, 1);
    for (int i = 0; i < 300; i++) {
        int64_t sum = 0;

        put_time(0, (unsigned)dice(&seed, 5), dice(&seed, 400000));
        must_read((int64_t)dice(&seed, 200) * MS + 7 * US);
        now = *joule_cpu_states_of(states, 0);
        for (int g = 0; g < JOULE_CPU_STATE_GROUPS; g++) {
            ck_assert_int_ge(now.group_ns[g], before.group_ns[g]);
            sum += now.group_ns[g];
        }
        ck_assert_int_eq(sum, now.known_ns);
        ck_assert_int_eq(now.known_ns, clock_ns - 1000 * MS);
        before = now;
    }
}
END_TEST

START_TEST(many_cpus)
{
    put_online("0-1023\n");
    for (unsigned i = 0; i < 1024; i += 64)
        put_cpu(i, 3);
    must_open(JOULE_CSTATES, 0, 1024);
    put_time(960, 1, 10000);
    must_read(100 * MS);
    must_be(960, 90, 10, 0, 0);
    must_be(961, 0, 0, 0, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_states");
    TCase *tc = tcase_create("cpu_states");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, not_there);
    tcase_add_test(tc, limit);
    tcase_add_test(tc, groups_of_c_states);
    tcase_add_test(tc, two_states_without_poll);
    tcase_add_test(tc, long_stays);
    tcase_add_test(tc, stay_from_before);
    tcase_add_test(tc, time_goes_back);
    tcase_add_test(tc, hotplug);
    tcase_add_test(tc, unreadable_once);
    tcase_add_test(tc, p_states);
    tcase_add_test(tc, anything);
    tcase_add_test(tc, many_cpus);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
