/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/nodefile.h"
#include "tests/unit/nodefile.h"
#include "tools/sh5util/extract.h"
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

static int merge_with(const char *steps, bool save, bool unfinished)
{
    struct joule_job *jobs;
    struct joule_merge_request r = {.dir = ".",
                                    .user = "u",
                                    .output = "out.h5",
                                    .id = 7,
                                    .save = save,
                                    .unfinished = unfinished,
                                    .readers = 2};
    size_t count;
    int status;

    ck_assert_int_eq(joule_job_rows_parse(steps, &jobs, &count, NULL), 0);
    r.job = jobs;
    status = joule_merge(&r);
    free(jobs);
    return status;
}

static int merge(const char *steps, bool save)
{
    return merge_with(steps, save, false);
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

static uint64_t rows_of(const char *path)
{
    struct joule_plan plan;
    struct joule_error err;
    int fd = open(path, O_RDONLY);
    uint64_t rows = 0;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(joule_plan_read(fd, &plan, &err), 0);
    for (size_t i = 0; i < plan.tables; i++)
        rows += plan.table[i].rows;
    joule_plan_free(&plan);
    close(fd);
    return rows;
}

/* A node-step file as our plugin has it while the step runs. */
struct live {
    int fd;
    struct joule_nodefile *file;
    struct joule_table *table;
};

static void live_add(struct live *live, int rows)
{
    const uint64_t row[4] = {0};

    for (int i = 0; i < rows; i++)
        ck_assert_int_eq(joule_table_append(live->table, row), 0);
    ck_assert_int_eq(joule_nodefile_commit(live->file), 0);
}

/* Its last flush was an hour ago, by the clock of the file server. */
static struct live live_begin(const char *path, const char *node)
{
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct joule_nodefile_facts facts = {.node = node, .writer = "test"};
    const struct joule_field field = {"Power", JOULE_FIELD_U64};
    const struct joule_table_options opt = {
        .fields = &field, .count = 1, .chunk_rows = 64};
    struct live live = {.fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600)};
    int table;

    ck_assert_int_ge(live.fd, 0);
    live.file = joule_nodefile_create(live.fd, &facts, NULL);
    ck_assert_ptr_nonnull(live.file);
    table = joule_nodefile_add_table(live.file, "Energy", &opt);
    ck_assert_int_ge(table, 0);
    live.table = joule_nodefile_table(live.file, table);
    live_add(&live, 10);
    ck_assert_int_eq(futimens(live.fd, long_ago), 0);
    return live;
}

static void live_end(struct live *live)
{
    joule_nodefile_destroy(live->file);
    close(live->fd);
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

static void check_heads(const char *want)
{
    const struct joule_job job = {.text = "7", .id = 7};
    const struct joule_extract_request r = {.input = "out.h5",
                                            .output = "out.csv",
                                            .job = &job,
                                            .series = "Tasks",
                                            .item = "Power",
                                            .readers = 1};
    char line[256] = "";
    FILE *f;

    ck_assert_int_eq(joule_extract_item(&r), JOULE_EXIT_ALL);
    f = fopen("out.csv", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
    fclose(f);
    ck_assert_ptr_nonnull(strstr(line, ",NumNodes,"));
    ck_assert_str_eq(strstr(line, ",NumNodes,") + strlen(",NumNodes,"), want);
}

/* By the node, as Slurm's, and by the task where that is not enough. */
START_TEST(heads_of_tasks)
{
    struct nodefile n = {.rows = 3, .rate_hz = 1, .tasks = 1};

    n.node = "n1";
    ck_assert_int_eq(nodefile_write("u/7_0_n1.h5", &n), 0);
    n.node = "n2";
    ck_assert_int_eq(nodefile_write("u/7_0_n2.h5", &n), 0);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    check_heads("n1,n2\n");
    n.tasks = 2;
    ck_assert_int_eq(nodefile_write("u/7_0_n2.h5", &n), 0);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    check_heads("n1,0 n2,1 n2\n");
}
END_TEST

/* Nobody else reads what nobody else could read. */
START_TEST(a_merged_file_is_as_private)
{
    struct stat st;

    write_node("u/7_0_n1.h5", "n1", true);
    write_node("u/7_0_n2.h5", "n2", true);
    ck_assert_int_eq(chmod("u/7_0_n1.h5", 0644), 0);
    ck_assert_int_eq(chmod("u/7_0_n2.h5", 0600), 0);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    ck_assert_int_eq(stat("out.h5", &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    /* What is in it keeps it so. */
    write_node("u/7_0_n3.h5", "n3", true);
    ck_assert_int_eq(chmod("u/7_0_n3.h5", 0644), 0);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    ck_assert_int_eq(stat("out.h5", &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
}
END_TEST

/* Whatever its age: never removed, and merged only if that is asked for. */
START_TEST(a_file_that_is_written)
{
    struct live live = live_begin("u/7_0_n1.h5", "n1");
    struct stat st;

    ck_assert_int_eq(merge("7", false), JOULE_EXIT_NOTHING);
    ck_assert_int_eq(access("out.h5", F_OK), -1);
    write_node("u/7_0_n2.h5", "n2", false);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_PART);
    ck_assert_uint_eq(tables_of("out.h5"), 3);
    ck_assert_int_eq(access("u/7_0_n2.h5", F_OK), -1);
    ck_assert_int_eq(merge_with("7", false, true), JOULE_EXIT_PART);
    ck_assert_uint_eq(tables_of("out.h5"), 4);
    /* What was asked for once stays in the merged file. */
    write_node("u/7_0_n3.h5", "n3", true);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_PART);
    ck_assert_uint_eq(tables_of("out.h5"), 7);
    ck_assert_uint_eq(rows_of("out.h5"), 610);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_NOTHING);
    /* Later rows have a file to go to, which is removed when it is closed. */
    live_add(&live, 90);
    ck_assert_int_eq(fstat(live.fd, &st), 0);
    ck_assert_uint_eq(st.st_nlink, 1);
    ck_assert_int_eq(joule_nodefile_finish(live.file, 1, 1), 0);
    live_end(&live);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    ck_assert_int_eq(access("u/7_0_n1.h5", F_OK), -1);
    ck_assert_uint_eq(rows_of("out.h5"), 700);
}
END_TEST

/* Killed, or where the file system has no locks: nobody can tell. */
START_TEST(a_file_that_nobody_closed)
{
    struct live live = live_begin("u/7_0_n1.h5", "n1");

    live_end(&live);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_PART);
    ck_assert_uint_eq(rows_of("out.h5"), 10);
    ck_assert_int_eq(access("u/7_0_n1.h5", F_OK), 0);
}
END_TEST

/* libhdf5 without its locks, as it may be set for Slurm's plugin: until the
 * file is closed, nobody can read it. */
START_TEST(a_file_that_libhdf5_writes)
{
    const hsize_t none = 0, chunk = 10;
    hid_t file, list, space, table;

    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
    file = H5Fcreate("u/7_0_n1.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    list = H5Pcreate(H5P_DATASET_CREATE);
    space = H5Screate_simple(1, &none, (hsize_t[]){H5S_UNLIMITED});
    ck_assert_int_ge(H5Pset_chunk(list, 1, &chunk), 0);
    H5Gclose(H5Gcreate2(file, "n1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    table = H5Dcreate2(file, "n1/Energy", H5T_NATIVE_UINT64, space, H5P_DEFAULT,
                       list, H5P_DEFAULT);
    for (uint64_t i = 0; i < 20000; i++) {
        const hsize_t one = 1, rows = i + 1, at = i;
        hid_t memory = H5Screate_simple(1, &one, NULL), in_file;

        ck_assert_int_ge(H5Dset_extent(table, &rows), 0);
        in_file = H5Dget_space(table);
        H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &at, NULL, &one, NULL);
        ck_assert_int_ge(H5Dwrite(table, H5T_NATIVE_UINT64, memory, in_file,
                                  H5P_DEFAULT, &i),
                         0);
        H5Sclose(in_file);
        H5Sclose(memory);
        if (i % 5000 > 0)
            continue;
        ck_assert_int_eq(merge_with("7", false, i > 5000), JOULE_EXIT_NOTHING);
        ck_assert_int_eq(access("u/7_0_n1.h5", F_OK), 0);
    }
    H5Dclose(table);
    H5Sclose(space);
    H5Pclose(list);
    H5Fclose(file);
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
    tcase_add_test(files, heads_of_tasks);
    tcase_add_test(files, a_merged_file_is_as_private);
    tcase_add_test(files, a_file_that_is_written);
    tcase_add_test(files, a_file_that_nobody_closed);
    tcase_add_test(files, a_file_that_libhdf5_writes);
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
