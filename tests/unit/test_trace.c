/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What joule trace and joule regions --format=moneq write of power and regions that
 * this test has made. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "lib/segment.h"
#include "tools/report/moneq.h"
#include "tools/report/trace.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define S        UINT64_C(1000000000)

static const struct joule_node which[] = {
    {"0", "n1"}, {"0", "n2"}, {"1", "n1"}};
static struct joule_timeline_node node[COUNT(which)];
static struct joule_timeline timeline = {.node = node};
static char dir[64];
static struct joule_error err;

/* In place of nodes.c. */
size_t joule_nodes_count(const struct joule_nodes *nodes)
{
    (void)nodes;
    return timeline.nodes;
}

struct joule_node joule_nodes_get(const struct joule_nodes *nodes, size_t i)
{
    (void)nodes;
    return which[i];
}

int joule_timeline_column(const struct joule_timeline_node *n, const char *name)
{
    for (size_t i = 0; i < n->columns; i++)
        if (strcmp(n->column[i], name) == 0)
            return (int)i;
    return -1;
}

static joule_region_text names[] = {
    "outer", "inner", "a mark", "../../etc/x", "original", "b'\n", ""};

/* A node of four samples of a second, of 100, 200, 300 and 400 W. */
static void make_node(size_t i, struct joule_timeline_region *region,
                      size_t regions)
{
    static uint64_t ns[] = {S, 2 * S, 3 * S, 4 * S};
    static float watts[] = {100, 10, NAN, 200, 20, NAN,
                            300, 30, NAN, 400, 40, NAN};

    node[i] = (struct joule_timeline_node){
        .is_read = true,
        .start_wall_ns = 1795279470 * S + i * S / 2,
        .columns = 3,
        .column = {"node", "package_0", "dram_0"},
        .ns = ns,
        .watts = watts,
        .samples = 4,
        .region = region,
        .regions = regions,
        .name = names,
        .names = COUNT(names),
    };
    timeline.nodes = i + 1;
}

static void setup(void)
{
    setenv("TZ", "UTC", 1);
    strcpy(dir, "/tmp/joule-trace.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
}

static void teardown(void)
{
    char command[96];

    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

/* Without the newline at its end. */
static char *load(const char *path)
{
    char *text = joule_file_load(AT_FDCWD, path, 1 << 20, NULL);

    ck_assert_msg(text != NULL, "%s: %s", path, strerror(errno));
    return text;
}

/* By begin, the outer ones first, as timeline.c has them. */
static struct joule_timeline_region regions[] = {
    {.rank = 1, .count = 1, .begin_ns = S / 2, .end_ns = 3 * S, .name = 0},
    {.rank = 1,
     .depth = 1,
     .count = 1,
     .begin_ns = S / 2,
     .end_ns = S,
     .name = 1},
    {.rank = 1,
     .depth = 1,
     .count = 1,
     .begin_ns = S,
     .end_ns = 3 * S,
     .name = 1},
    {.rank = 1,
     .depth = 1,
     .begin_ns = 2 * S,
     .end_ns = 2 * S,
     .name = 2,
     .is_mark = true},
    {.rank = 1,
     .depth = 1,
     .count = 1,
     .begin_ns = 3 * S,
     .end_ns = 3 * S,
     .name = 3},
    {.process = 1,
     .rank = 0,
     .count = 1,
     .begin_ns = 3 * S,
     .end_ns = 4 * S,
     .name = 4},
    {.process = 1,
     .rank = 0,
     .thread = 1,
     .count = 1,
     .begin_ns = 3 * S,
     .end_ns = 4 * S,
     .name = 5},
};

/* At each moment ends come before begins, and regions within each other. */
START_TEST(order)
{
    struct joule_trace t;
    unsigned depth[8] = {0}, kinds[4] = {0};

    make_node(0, regions, COUNT(regions));
    ck_assert_int_eq(joule_trace_make(&timeline, NULL, &t), 0);
    ck_assert_uint_eq(t.lanes, 4); /* power, rank 0 with two threads, rank 1 */
    ck_assert_int_eq(t.lane[0].kind, JOULE_TRACE_POWER);
    ck_assert_uint_eq(t.lane[1].rank, 0);
    ck_assert_uint_eq(t.lane[2].thread, 1);
    ck_assert_uint_eq(t.lane[1].group, t.lane[2].group);
    ck_assert_uint_eq(t.lane[3].rank, 1);
    ck_assert_uint_eq(t.events, 5 + 6 * 2 + 1);
    ck_assert_uint_eq(t.end_ns, 4 * S);
    for (size_t i = 0; i < t.events; i++) {
        const struct joule_trace_event *e = &t.event[i];

        kinds[e->kind]++;
        ck_assert(i == 0 || t.event[i - 1].ns <= e->ns);
        if (e->kind == JOULE_TRACE_BEGIN) {
            ck_assert_uint_eq(e->region->depth, depth[e->lane]);
            depth[e->lane]++;
        } else if (e->kind == JOULE_TRACE_END) {
            ck_assert_uint_eq(e->region->depth + 1, depth[e->lane]);
            depth[e->lane]--;
        }
    }
    ck_assert_uint_eq(kinds[JOULE_TRACE_VALUES], 5);
    ck_assert_uint_eq(kinds[JOULE_TRACE_MARK], 1);
    joule_trace_free(&t);
}
END_TEST

/* CPU 5 is idle in the first second and the third, and nothing is known of the
 * second; then it is gone. */
static struct joule_timeline_states states[] = {
    {.cpu = 5,
     .ns = (uint64_t[]){S, 2 * S, 3 * S},
     .percent = (float[][4]){{0, 100, 0, 0},
                             {NAN, INFINITY, NAN, NAN},
                             {25, 0, 0, 75}},
     .samples = 3},
    {.cpu = 5,
     .is_p = true,
     .ns = (uint64_t[]){S},
     .percent = (float[][4]){{12.345F, 0, 0, 87.655F}},
     .samples = 1},
    {.cpu = 8191, .samples = 0},
};

START_TEST(states_of_cpus)
{
    struct joule_trace t;
    char *text;

    make_node(0, regions, 1);
    node[0].states = states;
    node[0].state_series = COUNT(states);
    ck_assert_int_eq(joule_trace_make(&timeline, NULL, &t), 0);
    ck_assert_uint_eq(t.lanes, 5);
    ck_assert_int_eq(t.lane[2].kind, JOULE_TRACE_PSTATES);
    ck_assert_uint_eq(t.lane[1].group, t.lane[3].group);
    ck_assert_int_eq(joule_trace_paraver(&t, "x", &err), 0);
    text = load("x.prv");
    ck_assert_ptr_nonnull(
        strstr(text, ":4000000000_ns:1(1):1:3(1:1,3:1,1:1)\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "\n2:0:1:2:1:0:900000010:0:900000011:10000:900000012:0:"
                     "900000013:0\n"));
    ck_assert_ptr_null(strstr(text, "\n2:0:1:2:1:1000000000:"));
    ck_assert_ptr_nonnull(
        strstr(text, "\n2:0:1:2:1:2000000000:900000010:2500:"));
    ck_assert_ptr_nonnull(strstr(text, "\n2:0:1:2:2:0:800000010:1235:"));
    ck_assert_ptr_nonnull(strstr(text, "\n2:0:1:2:2:1000000000:800000010:0:"));
    free(text);
    text = load("x.row");
    ck_assert_ptr_nonnull(strstr(text, "step 0 on n1: P-states of CPU 5\n"
                                       "step 0 on n1: C-states of CPU 8191\n"));
    free(text);
    ck_assert_int_eq(joule_trace_chrome(&t, "x.json", &err), 0);
    text = load("x.json");
    ck_assert_ptr_nonnull(strstr(text, "step 0 on n1: CPUs"));
    ck_assert_ptr_nonnull(strstr(text, "CPU 5 P-states %"));
    ck_assert_ptr_null(strstr(text, "inf"));
    free(text);
    joule_trace_free(&t);
    node[0].states = NULL;
    node[0].state_series = 0;
}
END_TEST

START_TEST(paraver)
{
    struct joule_trace t;
    char *text;

    for (size_t i = 0; i < COUNT(which); i++)
        make_node(i, regions, i == 1 ? 1 : 0);
    ck_assert_int_eq(joule_trace_make(&timeline, NULL, &t), 0);
    ck_assert_int_eq(joule_trace_paraver(&t, "x", &err), 0);
    text = load("x.prv");
    ck_assert_ptr_eq(
        strstr(text, "#Paraver (21/11/2026 at 16:44):5000000000_ns:2(1,1):2:"
                     "3(1:1,1:2,1:2):1(1:1)\n"),
        text);
    /* Watts hold from the row before; what is not known has no event. */
    ck_assert_ptr_nonnull(
        strstr(text, "\n2:0:1:1:1:0:501000001:100000:501000002:10000\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n2:0:1:3:1:1000000000:60000019:"));
    ck_assert_ptr_nonnull(strstr(text, "\n2:0:1:3:1:3500000000:60000019:0\n"));
    free(text);
    text = load("x.row");
    ck_assert_ptr_nonnull(strstr(text, "LEVEL THREAD SIZE 4\n"
                                       "step 0 on n1: power\n"
                                       "step 0 on n2: power\n"
                                       "step 0 on n2: rank 1, thread 0\n"
                                       "step 1 on n1: power"));
    free(text);
    ck_assert_int_eq(joule_trace_paraver(&t, "no/x", &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(joule_trace_chrome(&t, "/dev/full", &err), -1);
    ck_assert_int_eq(errno, ENOSPC);
    joule_trace_free(&t);
}
END_TEST

/* Of hostile names nothing leaves the directory, and no file has two tables. */
START_TEST(moneq_files)
{
    const struct joule_moneq_options o = {.dir = ".", .reduce = true};
    char *text;

    make_node(0, regions, 5); /* rank 1 alone */
    ck_assert_msg(joule_moneq_write(&timeline, NULL, &o, &err) == 0, "%s",
                  err.text);
    text = load("MonEQ-R0-C0-M0-N0.txt");
    ck_assert_str_eq(
        text,
        "---MonEQ_START_POWER_TAG=outer\n---MonEQ_START_POWER_TAG=inner\n"
        "2026-11-21 16:44:31,1795279471,1600000000,1.0000000,0,0,0,100.0000,"
        "10.0000,nan,nan,nan,nan,nan,nan\n"
        "---MonEQ_END_POWER_TAG=inner\n---MonEQ_START_POWER_TAG=inner\n"
        "2026-11-21 16:44:32,1795279472,3200000000,2.0000000,0,0,0,200.0000,"
        "20.0000,nan,nan,nan,nan,nan,nan\n"
        "2026-11-21 16:44:33,1795279473,4800000000,3.0000000,0,0,0,300.0000,"
        "30.0000,nan,nan,nan,nan,nan,nan\n"
        "---MonEQ_END_POWER_TAG=inner\n---MonEQ_END_POWER_TAG=outer\n"
        "---MonEQ_START_POWER_TAG=../../etc/x\n"
        "---MonEQ_END_POWER_TAG=../../etc/x\n"
        "2026-11-21 16:44:34,1795279474,6400000000,4.0000000,0,0,0,400.0000,"
        "40.0000,nan,nan,nan,nan,nan,nan");
    free(text);
    text = load("MonEQTags.txt");
    ck_assert_str_eq(text, "outer\ninner\ninner\n../../etc/x");
    free(text);
    text = load("moneq_output/outer.dat");
    ck_assert_str_eq(
        strchr(text, '\n'),
        "\n1.00\t100.000000\t10.000000\tnan\tnan\tnan\tnan\tnan\tnan"
        "\n2.00\t200.000000\t20.000000\tnan\tnan\tnan\tnan\tnan\tnan"
        "\n3.00\t300.000000\t30.000000\tnan\tnan\tnan\tnan\tnan\tnan");
    free(text);
    text = load("moneq_output/untagged.dat");
    ck_assert_ptr_nonnull(strstr(text, "\n4.00\t400.000000\t"));
    ck_assert_ptr_null(strstr(text, "\n3.00"));
    free(text);
    free(load("moneq_output/_._.._etc_x_tag2.dat"));
}
END_TEST

/* Two nodes: their mean, each at its own time since it began. */
START_TEST(moneq_means)
{
    const struct joule_moneq_options o = {.dir = ".", .reduce = true};
    struct joule_timeline_region tag[] = {
        {.rank = 0, .count = 1, .end_ns = 4 * S, .name = 4},
        {.rank = 0, .count = 1, .begin_ns = S, .end_ns = 2 * S, .name = 6}};
    char *text;

    make_node(0, tag, 2);
    make_node(1, tag, 1);
    ck_assert_msg(joule_moneq_write(&timeline, NULL, &o, &err) == 0, "%s",
                  err.text);
    text = load("moneq_output/original.dat");
    ck_assert_ptr_nonnull(strstr(text, "\n3.00\t300.000000\t30.000000\tnan"));
    free(text);
    free(load("moneq_output/original_tag0.dat"));
    text = load("moneq_output/_tag1.dat");
    ck_assert_ptr_nonnull(strstr(text, "\n2.00\t200.000000\t"));
    free(text);
    free(load("MonEQ-R0-C0-M0-N1.txt"));
}
END_TEST

START_TEST(moneq_refuses)
{
    struct joule_moneq_options o = {.dir = "nowhere/below"};

    make_node(0, regions, COUNT(regions));
    ck_assert_int_eq(joule_moneq_write(&timeline, NULL, &o, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    o.dir = ".";
    ck_assert_int_eq(symlink("elsewhere", "MonEQ-R0-C0-M0-N0.txt"), 0);
    ck_assert_int_eq(joule_moneq_write(&timeline, NULL, &o, &err), -1);
    ck_assert_int_eq(errno, ELOOP);
    ck_assert_int_eq(access("elsewhere", F_OK), -1);
    for (size_t i = 0; i < COUNT(which); i++)
        make_node(i, regions, 1);
    ck_assert_int_eq(joule_moneq_write(&timeline, NULL, &o, &err), -1);
    ck_assert_str_eq(err.text, "which step? There are 0 and 1");
    for (size_t i = 0; i < COUNT(which); i++)
        node[i].is_read = false;
    ck_assert_int_eq(joule_moneq_write(&timeline, NULL, &o, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace");
    TCase *c = tcase_create("files");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, order);
    tcase_add_test(c, states_of_cpus);
    tcase_add_test(c, paraver);
    tcase_add_test(c, moneq_files);
    tcase_add_test(c, moneq_means);
    tcase_add_test(c, moneq_refuses);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
