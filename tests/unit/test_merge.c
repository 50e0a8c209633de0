/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/nodefile.h"
#include "tools/sh5util/merge.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/plan.h"
#include "tools/sh5util/sources.h"

static char dir[64];

static void setup(void)
{
    strcpy(dir, "/tmp/joule-merge.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_int_eq(mkdir("u", 0700), 0);
}

static void teardown(void)
{
    char command[96];

    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static void touch(const char *path)
{
    close(open(path, O_WRONLY | O_CREAT, 0644));
}

static int merge(const char *steps, bool save)
{
    struct joule_job *jobs;
    struct joule_merge_request r = {.dir = ".",
                                    .user = "u",
                                    .output = "out.h5",
                                    .id = 7,
                                    .save = save,
                                    .readers = 2};
    size_t count;
    int status;

    ck_assert_int_eq(joule_jobs_parse(steps, &jobs, &count, NULL), 0);
    r.job = jobs;
    status = joule_merge(&r);
    free(jobs);
    return status;
}

static void write_node(const char *path, const char *node, bool ours)
{
    const struct nodefile n = {.node = node,
                               .rows = 100,
                               .rate_hz = 10,
                               .ours = ours,
                               .tasks = 2,
                               .seed = 5,
                               .start_ns = UINT64_C(1795279470000000000)};

    ck_assert_int_eq(nodefile_write(path, &n), 0);
}

static size_t tables_of(const char *path)
{
    struct joule_plan plan;
    struct joule_error err;
    int fd = open(path, O_RDONLY);
    size_t tables = 0;

    if (fd >= 0 && joule_plan_read(fd, &plan, &err) == 0) {
        tables = plan.tables;
        joule_plan_free(&plan);
    }
    close(fd);
    return tables;
}

START_TEST(merge_nothing)
{
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_NOTHING);
    ck_assert_int_eq(access("out.h5", F_OK), -1);
    touch("u/7_0_n1.h5");
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_NOTHING);
    ck_assert_int_eq(access("u/7_0_n1.h5", F_OK), 0);
    ck_assert_int_eq(access("out.h5", F_OK), -1);
    ck_assert_int_eq(access(".out.h5.tmp", F_OK), -1);
}
END_TEST

START_TEST(merge_goes_on)
{
    write_node("u/7_0_n1.h5", "n1", true);
    write_node("u/7_1_n1.h5", "n1", false);
    ck_assert_int_eq(merge("7.0", false), JOULE_EXIT_ALL);
    ck_assert_int_eq(access("u/7_0_n1.h5", F_OK), -1);
    ck_assert_int_eq(access("u/7_1_n1.h5", F_OK), 0);
    ck_assert_uint_eq(tables_of("out.h5"), 3);
    /* The other step, and a node that came late. */
    write_node("u/7_0_n2.h5", "n2", true);
    ck_assert_int_eq(merge("7", true), JOULE_EXIT_ALL);
    ck_assert_uint_eq(tables_of("out.h5"), 9);
    ck_assert_int_eq(access("u/7_0_n2.h5", F_OK), 0);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    ck_assert_uint_eq(tables_of("out.h5"), 9);
    ck_assert_int_eq(access("u/7_0_n2.h5", F_OK), -1);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL); /* all is there */
    ck_assert_uint_eq(tables_of("out.h5"), 9);
}
END_TEST

START_TEST(merge_keeps_what_is_bad)
{
    write_node("u/7_0_n1.h5", "n1", true);
    write_node("u/7_0_n2.h5", "other", true); /* not what its name says */
    touch("u/7_0_n3.h5");
    write_node("u/7_00_n1.h5", "n1", true); /* the same node again */
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_PART);
    ck_assert_uint_eq(tables_of("out.h5"), 3);
    ck_assert_int_eq(access("u/7_0_n2.h5", F_OK), 0);
    ck_assert_int_eq(access("u/7_0_n3.h5", F_OK), 0);
    ck_assert(access("u/7_00_n1.h5", F_OK) == 0 ||
              access("u/7_0_n1.h5", F_OK) == 0);
}
END_TEST

START_TEST(merge_does_not_write_over_others)
{
    FILE *f = fopen("out.h5", "w");

    fputs("a letter", f);
    fclose(f);
    write_node("u/7_0_n1.h5", "n1", true);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_NOTHING);
    ck_assert_int_eq(access("u/7_0_n1.h5", F_OK), 0);
    f = fopen("out.h5", "r");
    ck_assert_int_eq(fgetc(f), 'a');
    fclose(f);
}
END_TEST

/* A step that is nowhere is said to be missing, whatever else is merged. */
START_TEST(steps_that_are_nowhere)
{
    write_node("u/7_0_n1.h5", "n1", true);
    ck_assert_int_eq(merge("7.7", false), JOULE_EXIT_NOTHING);
    ck_assert_int_eq(access("out.h5", F_OK), -1);
    ck_assert_int_eq(merge("7.0,7.7", true), JOULE_EXIT_PART);
    ck_assert_uint_eq(tables_of("out.h5"), 3);
    ck_assert_int_eq(merge("7.0", false), JOULE_EXIT_ALL);
    ck_assert_int_eq(merge("7.0", false), JOULE_EXIT_ALL);
    ck_assert_int_eq(merge("7.7", false), JOULE_EXIT_NOTHING);
    ck_assert_int_eq(merge("7.0,7.7", false), JOULE_EXIT_PART);
    ck_assert_int_eq(merge("7.batch", false), JOULE_EXIT_NOTHING);
    ck_assert_uint_eq(tables_of("out.h5"), 3);
}
END_TEST

/* The hole at the end of a file that is being written is not read. */
START_TEST(a_hole_is_nothing_to_read)
{
    struct joule_source source = {.fd = -1};
    char block[8192];
    int fd = open("sparse", O_RDWR | O_CREAT, 0600);

    memset(block, 1, sizeof(block));
    ck_assert_int_eq(write(fd, block, sizeof(block)), sizeof(block));
    ck_assert_int_eq(fsync(fd), 0);
    ck_assert_int_eq(ftruncate(fd, 2 << 20), 0);
    ck_assert_int_eq(fstat(fd, &source.st), 0);
    ck_assert_uint_ge(joule_source_bytes(&source), sizeof(block));
    ck_assert_uint_lt(joule_source_bytes(&source), 1 << 20);
    /* In a file system that does not tell: the size. */
    source.st.st_blocks = 0;
    ck_assert_uint_eq(joule_source_bytes(&source), 2 << 20);
    close(fd);
}
END_TEST

/* A job of a moment is a small file: nothing is set aside in it. */
START_TEST(a_small_job_is_small)
{
    const struct nodefile n = {
        .node = "n1", .rows = 3, .rate_hz = 1, .tasks = 1, .ours = _i == 1};
    struct stat st;

    ck_assert_int_eq(nodefile_write("u/7_0_n1.h5", &n), 0);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    ck_assert_int_eq(stat("out.h5", &st), 0);
    ck_assert_int_lt(st.st_size, 16384);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("merge");
    TCase *files = tcase_create("files");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(files, setup, teardown);
    tcase_add_test(files, merge_nothing);
    tcase_add_test(files, merge_goes_on);
    tcase_add_test(files, merge_keeps_what_is_bad);
    tcase_add_test(files, merge_does_not_write_over_others);
    tcase_add_test(files, steps_that_are_nowhere);
    tcase_add_loop_test(files, a_small_job_is_small, 0, 2);
    tcase_add_test(files, a_hole_is_nothing_to_read);
    tcase_set_timeout(files, 60);
    suite_add_tcase(suite, files);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
