/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What pm_print_data_* and their like write, byte by byte, of counters that no
 * server has made. */
#include <check.h>
#include <errno.h>
#include <time.h>

#include "lib/pmlib.h"
#include "tests/unit/tree.h"

#define CSTATES_LINES 40 /* of 10 CPUs */

static struct tree tree;
static char path[96], text[65536];
static line_t all;

/* Two sets: 3 samples in 1 s, 2 samples in 0.5 s. */
static int sets[] = {0, 3, 5};
static double timing[] = {1000, 1001, 1010, 1010.5};
static double sums[] = {10, 20, 30, 40, 50};
static double of_lines[] = {1, 2, 3, 4, 5, 10, 20, 30, 40, 50};
static pm_measures_wt measures;
static counter_t counter;

static void setup(void)
{
    tree_create(&tree);
    snprintf(path, sizeof(path), "%s/out", tree.path);
    LINE_SET_ALL(&all);
    measures = (pm_measures_wt){
        .next_timing = 2,
        .timing = timing,
        .energy = {.watts_size = 5,
                   .watts_sets_size = 3,
                   .watts_sets = sets,
                   .watts = sums,
                   .lines_len = 2},
    };
    counter = (counter_t){.sock = -1,
                          .aggregate = 1,
                          .num_lines = 8,
                          .interval = 2,
                          .measures = &measures};
    pm_set_lines("3-4", &counter.lines);
}

static void teardown(void)
{
    tree_destroy(&tree);
}

static void use_lines(void)
{
    counter.aggregate = 0;
    measures.energy.watts = of_lines;
    measures.energy.watts_size = 10;
}

static const char *written(void)
{
    FILE *in = fopen(path, "re");
    size_t n;

    ck_assert_ptr_nonnull(in);
    n = fread(text, 1, sizeof(text) - 1, in);
    text[n] = '\0';
    fclose(in);
    return text;
}

/* What a function prints to stdout goes to the file. */
static int begin_stdout(void)
{
    int saved = dup(STDOUT_FILENO);

    fflush(stdout);
    ck_assert_ptr_nonnull(freopen(path, "we", stdout));
    return saved;
}

static void end_stdout(int saved)
{
    fflush(stdout);
    ck_assert_int_ge(dup2(saved, STDOUT_FILENO), 0);
    close(saved);
}

START_TEST(aggregate)
{
    static const char expected[] = "Set_id\tTime\tValue_aggregate\n"
                                   "0\t0.000000\t10.000000\n"
                                   "0\t0.500000\t20.000000\n"
                                   "0\t1.000000\t30.000000\n"
                                   "1\t0.000000\t40.000000\n"
                                   "1\t0.500000\t50.000000\n";
    int saved;

    ck_assert_int_eq(pm_print_data_text(path, counter, all, -1), 1);
    ck_assert_str_eq(written(), expected);
    saved = begin_stdout();
    ck_assert_int_eq(pm_print_data_stdout(counter, all, -1), 1);
    end_stdout(saved);
    ck_assert_str_eq(written(), expected);
    ck_assert_int_eq(pm_print_data_csv(path, counter, all, 1), 1);
    ck_assert_str_eq(written(), "Set_id;Time;Value_aggregate\n"
                                "1;0.000000;40.000000\n"
                                "1;0.500000;50.000000\n");
}
END_TEST

START_TEST(lines)
{
    line_t fourth;

    use_lines();
    ck_assert_int_eq(pm_print_data_text(path, counter, all, -1), 1);
    ck_assert_str_eq(written(),
                     "Set_id\tTime\tLine 3\tLine 4\tSum\n"
                     "0\t0.000000\t1.000000\t10.000000\t11.000000\n"
                     "0\t0.500000\t2.000000\t20.000000\t22.000000\n"
                     "0\t1.000000\t3.000000\t30.000000\t33.000000\n"
                     "1\t0.000000\t4.000000\t40.000000\t44.000000\n"
                     "1\t0.500000\t5.000000\t50.000000\t55.000000\n");
    pm_set_lines("0,4,100", &fourth);
    ck_assert_int_eq(pm_print_data_csv(path, counter, fourth, 1), 1);
    ck_assert_str_eq(written(), "Set_id;Time;Line 4;Sum\n"
                                "1;0.000000;40.000000;40.000000\n"
                                "1;0.500000;50.000000;50.000000\n");
}
END_TEST

START_TEST(energy)
{
    int saved = begin_stdout();

    ck_assert_int_eq(pm_calculate_energy(counter, all, -1), 0);
    use_lines();
    ck_assert_int_eq(pm_calculate_energy(counter, all, 1), 0);
    end_stdout(saved);
    ck_assert_str_eq(written(), "1.000000\t20.000000\t20.000000\n"
                                "0.500000\t45.000000\t22.500000\n"
                                "0.500000\t49.500000\t24.750000\n");
}
END_TEST

/* The first line but its date, which is "(dd/mm/yyyy at HH:MM)". */
static const char *behind_date(void)
{
    struct tm tm = {0};
    const char *end;

    ck_assert_int_eq(strncmp(written(), "#Paraver (", 10), 0);
    end = strptime(text + 10, "%d/%m/%Y at %H:%M", &tm);
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(end - text, 10 + 19);
    ck_assert_int_eq(strncmp(end, "):", 2), 0);
    return end + 2;
}

START_TEST(paraver)
{
    char ms[] = "ms", none[] = "", us[] = "us", s[] = "s";

    ck_assert_int_eq(pm_print_data_paraver(path, counter, all, -1, ms), 1);
    ck_assert_str_eq(behind_date(),
                     "1500.000000_ms:1(1):1:1:(1:1)\n"
                     "2:0:1:1:1:0.000000:500000009:10.000000\n"
                     "2:0:1:1:1:375.000000:500000009:20.000000\n"
                     "2:0:1:1:1:750.000000:500000009:30.000000\n"
                     "2:0:1:1:1:1125.000000:500000009:40.000000\n"
                     "2:0:1:1:1:1500.000000:500000009:50.000000\n");
    use_lines();
    ck_assert_int_eq(pm_print_data_paraver(path, counter, all, 1, none), 1);
    ck_assert_str_eq(behind_date(),
                     "500000000.000000_ns:1(1):1:1:(1:1)\n"
                     "2:0:1:1:1:0.000000:500000013:4.000000\n"
                     "2:0:1:1:1:0.000000:500000014:40.000000\n"
                     "2:0:1:1:1:0.000000:500000009:44.000000\n"
                     "2:0:1:1:1:500000000.000000:500000013:5.000000\n"
                     "2:0:1:1:1:500000000.000000:500000014:50.000000\n"
                     "2:0:1:1:1:500000000.000000:500000009:55.000000\n");
    ck_assert_int_eq(pm_print_data_paraver(path, counter, all, 1, us), 1);
    ck_assert_int_eq(strncmp(behind_date(), "500000.000000_us:", 17), 0);
    ck_assert_int_eq(pm_print_data_paraver(path, counter, all, 1, s), -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* States of 10 CPUs in two samples of 1 s; of CPU 0 and CPU 9 something is set. */
static double *use_states(void)
{
    static double states[2 * CSTATES_LINES];
    static int one_set[] = {0, 2};

    memset(states, 0, sizeof(states));
    states[0] = 25;          /* line 0, sample 0 */
    states[2] = 75;          /* line 1 */
    states[2 * 36 + 1] = 40; /* line 36, sample 1 */
    states[2 * 39 + 1] = 60;
    counter.aggregate = 0;
    counter.num_lines = CSTATES_LINES;
    pm_set_lines("0-39", &counter.lines);
    measures.next_timing = 1;
    measures.energy = (pm_measures){.watts_size = 2 * CSTATES_LINES,
                                    .watts_sets_size = 2,
                                    .watts_sets = one_set,
                                    .watts = states,
                                    .lines_len = CSTATES_LINES};
    return states;
}

START_TEST(cstates)
{
    char ms[] = "ms";
    line_t some;

    use_states();
    pm_set_lines("0-1,36,39", &some);
    ck_assert_int_eq(
        pm_print_data_paraver_cstates(path, counter, some, 0, ms, 1), 1);
    ck_assert_str_eq(behind_date(),
                     "1000.000000_ms:0:1:1(10:0)\n"
                     "2:0:1:1:1:0.000000:900000010:25.000000\n"
                     "2:0:1:1:1:0.000000:900000011:75.000000\n"
                     "2:0:1:1:10:0.000000:900000010:0.000000\n"
                     "2:0:1:1:10:0.000000:900000013:0.000000\n"
                     "2:0:1:1:1:1000.000000:900000010:0.000000\n"
                     "2:0:1:1:1:1000.000000:900000011:0.000000\n"
                     "2:0:1:1:10:1000.000000:900000010:40.000000\n"
                     "2:0:1:1:10:1000.000000:900000013:60.000000\n");
    ck_assert_int_eq(
        pm_print_data_paraver_cstates(path, counter, all, 1, ms, 0), 1);
    ck_assert_str_eq(behind_date(), "1000.000000_ms:0:1:1(10:0)\n"
                                    "2:0:1:1:1:250.000000:90000000:0\n"
                                    "2:0:1:1:1:1000.000000:90000000:1\n"
                                    "2:0:1:1:10:1400.000000:90000000:0\n"
                                    "2:0:1:1:10:2000.000000:90000000:3\n");
    ck_assert_int_eq(pm_print_data_paraver_pstates(path, counter, some, 0, ms),
                     1);
    ck_assert_ptr_eq(strstr(behind_date(),
                            "1000.000000_ms:0:1:1(10:0)\n"
                            "2:0:1:1:1:0.000000:800000010:25.000000\n"),
                     behind_date());
    ck_assert_int_eq(
        pm_print_data_paraver_cstates(path, counter, all, 2, ms, 0), -1);
}
END_TEST

/* All 128 lines, which are 32 CPUs. */
START_TEST(many_cpus)
{
    static double states[2 * 128];
    char ns[] = "ns";

    use_states();
    for (int i = 0; i < 2 * 128; i++)
        states[i] = i % 100;
    measures.energy.watts = states;
    measures.energy.watts_size = 2 * 128;
    counter.num_lines = measures.energy.lines_len = 128;
    counter.lines = all;
    ck_assert_int_eq(
        pm_print_data_paraver_cstates(path, counter, all, 0, ns, 0), 1);
    ck_assert_ptr_nonnull(strstr(behind_date(), "_ns:0:1:1(32:0)\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n2:0:1:1:32:"));
    ck_assert_ptr_null(strstr(text, "\n2:0:1:1:33:"));
}
END_TEST

START_TEST(refused)
{
    char nowhere[] = "/nonexistent/file";
    line_t none;

    LINE_CLR_ALL(&none);
    ck_assert_int_eq(pm_print_data_text(path, counter, all, 2), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(pm_print_data_text(path, counter, all, -2), -1);
    ck_assert_int_eq(pm_print_data_text(nowhere, counter, all, 0), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(pm_print_data_text(NULL, counter, all, 0), -1);
    use_lines();
    ck_assert_int_eq(pm_print_data_text(path, counter, none, 0), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(pm_calculate_energy(counter, none, 0), -1);
    measures.energy = (pm_measures){0};
    ck_assert_int_eq(pm_print_data_csv(path, counter, all, 0), -1);
    ck_assert_int_eq(errno, ENODATA);
    counter.measures = NULL;
    ck_assert_int_eq(pm_calculate_energy(counter, all, 0), -1);
    ck_assert_int_eq(errno, ENODATA);
}
END_TEST

/* One sample has no time between it and the next. */
START_TEST(short_sets)
{
    static int odd[] = {0, 0, 1};

    measures.energy.watts_sets = odd;
    measures.energy.watts_size = 1;
    ck_assert_int_eq(pm_print_data_text(path, counter, all, -1), 1);
    ck_assert_str_eq(written(), "Set_id\tTime\tValue_aggregate\n"
                                "1\t0.000000\t10.000000\n");
}
END_TEST

START_TEST(full_disk)
{
    char full[] = "/dev/full";

    ck_assert_int_eq(pm_print_data_text(full, counter, all, -1), -1);
    ck_assert_int_eq(errno, ENOSPC);
}
END_TEST

START_TEST(info)
{
    ck_assert_int_eq(pm_fprint_counter_info(path, counter), 0);
    ck_assert_int_eq(pm_fprint_counter_info(path, counter), 0);
    written();
    ck_assert_ptr_nonnull(strstr(text, "Lines: 3,4 of 8\n"));
    ck_assert_ptr_nonnull(
        strstr(strstr(text, "Set 1: 0.500000 s\n"), "Frequency: 2 Hz\n"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pmlib_print");
    TCase *tc = tcase_create("pmlib_print");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, aggregate);
    tcase_add_test(tc, lines);
    tcase_add_test(tc, energy);
    tcase_add_test(tc, paraver);
    tcase_add_test(tc, cstates);
    tcase_add_test(tc, many_cpus);
    tcase_add_test(tc, refused);
    tcase_add_test(tc, short_sets);
    tcase_add_test(tc, full_disk);
    tcase_add_test(tc, info);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
