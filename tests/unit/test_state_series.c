/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables CStates and PStates of a profile, with a writer of this test's own. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/step/state_series.h"
#include "tests/unit/tree.h"

#define CPU "sys/devices/system/cpu"
#define S   JOULE_NS_PER_S

struct row {
    int table;
    uint64_t cpu;
    double percent[4];
    int64_t mono_ns;
};

static struct tree tree;
static struct joule_error err;
static int64_t clock_ns;
static char tables[4][16];
static int table_count;
static struct row rows[64];
static size_t row_count;
static bool is_behind;

static int64_t test_clock_ns(void *arg)
{
    (void)arg;
    return clock_ns;
}

static const struct joule_clock test_clock = {.mono_ns = test_clock_ns,
                                              .wall_ns = test_clock_ns};

/* ---- in place of writer.c ---- */

int joule_writer_add_table(struct joule_writer *writer, const char *name,
                           const struct joule_field *fields, size_t count,
                           int64_t period_ns)
{
    (void)writer;
    ck_assert_uint_eq(count, 5);
    ck_assert_str_eq(fields[0].name, "CPU");
    ck_assert_str_eq(fields[4].name, "Percent3");
    ck_assert_int_eq(period_ns, 3600 * S);
    snprintf(tables[table_count], sizeof(tables[0]), "%s", name);
    return table_count++;
}

int joule_writer_append(struct joule_writer *writer, int table,
                        const void *cells, int64_t epoch_s, int64_t mono_ns)
{
    struct row *row = &rows[row_count++];

    (void)writer;
    (void)epoch_s;
    ck_assert_uint_le(row_count, 64);
    row->table = table;
    row->mono_ns = mono_ns;
    memcpy(&row->cpu, cells, sizeof(row->cpu));
    memcpy(row->percent, (const char *)cells + 8, sizeof(row->percent));
    return 0;
}

bool joule_writer_is_behind(struct joule_writer *writer)
{
    (void)writer;
    return is_behind;
}

/* ---- a node ---- */

static void put(unsigned cpu, const char *file, const char *text)
{
    char path[96];

    snprintf(path, sizeof(path), CPU "/cpu%u/%s", cpu, file);
    tree_write(&tree, path, text);
}

static void put_idle(unsigned cpu, const char *c1, const char *c6)
{
    put(cpu, "cpuidle/state0/name", "C1\n");
    put(cpu, "cpuidle/state0/time", c1);
    put(cpu, "cpuidle/state1/name", "C6\n");
    put(cpu, "cpuidle/state1/time", c6);
}

static void setup(void)
{
    tree_create(&tree);
    tree_write(&tree, CPU "/online", "0-3\n");
    tree_write(&tree, CPU "/possible", "0-3\n");
    clock_ns = 100 * S;
    table_count = 0;
    row_count = 0;
    is_behind = false;
    *err.text = '\0';
}

static void teardown(void)
{
    tree_destroy(&tree);
}

static struct joule_state_series *create(const char *list)
{
    struct joule_cpus cpus;
    const struct joule_state_series_options opt = {.root_fd = tree.fd,
                                                   .clock = &test_clock,
                                                   .cpus = &cpus,
                                                   .period_ns = 3600 * S};

    ck_assert_int_eq(joule_cpus_parse(&cpus, list), 0);
    return joule_state_series_create(&opt, &err);
}

static void is_row(size_t i, const char *table, uint64_t cpu, double p0,
                   double p1, double p2, double p3)
{
    const double want[] = {p0, p1, p2, p3};

    ck_assert_uint_lt(i, row_count);
    ck_assert_str_eq(tables[rows[i].table], table);
    ck_assert_uint_eq(rows[i].cpu, cpu);
    for (int k = 0; k < 4; k++)
        ck_assert_double_eq_tol(rows[i].percent[k], want[k], 1e-9);
}

/* Of the step's CPUs alone, which need not lie beside one another. */
START_TEST(both_tables)
{
    struct joule_state_series *series;

    for (unsigned cpu = 0; cpu < 4; cpu++) {
        put_idle(cpu, "0\n", "0\n");
        put(cpu, "cpufreq/stats/time_in_state", "2000000 0\n1000000 0\n");
    }
    series = create("1,3");
    ck_assert_msg(series != NULL, "%s", err.text);
    clock_ns += 10 * S;
    put_idle(0, "10000000\n", "0\n");
    put_idle(1, "1000000\n", "6000000\n");
    put_idle(3, "0\n", "0\n");
    put(1, "cpufreq/stats/time_in_state", "2000000 250\n1000000 750\n");
    put(3, "cpufreq/stats/time_in_state", "2000000 1000\n1000000 0\n");
    joule_state_series_destroy(series);
    ck_assert_uint_eq(row_count, 4);
    is_row(0, "CStates", 1, 30, 10, 0, 60);
    is_row(1, "CStates", 3, 100, 0, 0, 0);
    is_row(2, "PStates", 1, 25, 0, 0, 75);
    is_row(3, "PStates", 3, 100, 0, 0, 0);
    ck_assert_int_eq(rows[0].mono_ns, 110 * S);
}
END_TEST

/* A virtual machine that has C-states alone. */
START_TEST(one_table)
{
    struct joule_state_series *series;

    put_idle(0, "0\n", "0\n");
    series = create("0");
    ck_assert_msg(series != NULL, "%s", err.text);
    ck_assert_int_eq(table_count, 1);
    clock_ns += S;
    joule_state_series_destroy(series);
    ck_assert_uint_eq(row_count, 1);
    is_row(0, "CStates", 0, 100, 0, 0, 0);
}
END_TEST

START_TEST(the_disk_is_behind)
{
    struct joule_state_series *series;

    put_idle(0, "0\n", "0\n");
    series = create("0");
    ck_assert_ptr_nonnull(series);
    clock_ns += S;
    is_behind = true;
    joule_state_series_destroy(series);
    ck_assert_uint_eq(row_count, 0);
}
END_TEST

START_TEST(nothing_to_read)
{
    ck_assert_ptr_null(create("0"));
    ck_assert_int_eq(errno, ENODEV);
    ck_assert_ptr_nonnull(strstr(err.text, "; "));
    ck_assert_int_eq(table_count, 0);
    put_idle(0, "0\n", "0\n");
    ck_assert_ptr_null(create(""));
    ck_assert_ptr_nonnull(strstr(err.text, "no CPU"));
    joule_state_series_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("state series");
    TCase *c = tcase_create("tables");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, both_tables);
    tcase_add_test(c, one_table);
    tcase_add_test(c, the_disk_is_behind);
    tcase_add_test(c, nothing_to_read);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
