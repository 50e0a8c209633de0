/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/profile/log.h"
#include "tests/unit/dice.h"
#include "tests/unit/nodefile.h"
#include "tools/sh5util/extract.h"
#include "tools/sh5util/merge.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/jobtables.h"
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
    struct joule_sh5_options o = {.dir = ".",
                                  .user = "u",
                                  .save = save,
                                  .unfinished = unfinished,
                                  .readers = 2};
    size_t count;
    int status;

    ck_assert_int_eq(joule_jobs_parse(steps, &jobs, &count, NULL), 0);
    status = joule_merge(&o, jobs, "out.h5");
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

/* Rows of a node, or (NULL) of all. */
static uint64_t node_rows_of(const char *path, const char *node)
{
    struct joule_plan plan;
    struct joule_error err;
    int fd = open(path, O_RDONLY);
    uint64_t rows = 0;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(joule_plan_read(fd, &plan, &err), 0);
    for (size_t i = 0; i < plan.tables; i++)
        if (!node || strcmp(plan.node[plan.table[i].node].name, node) == 0)
            rows += plan.table[i].rows;
    joule_plan_free(&plan);
    close(fd);
    return rows;
}

static uint64_t rows_of(const char *path)
{
    return node_rows_of(path, NULL);
}

/* A profile log as our plugin has it while the step runs. */
struct live {
    int fd;
    struct joule_log *log;
    int rows;
};

static const struct joule_field power = {"Power", JOULE_FIELD_U64};

static void live_add(struct live *live, int rows)
{
    size_t size = joule_log_row_bytes(1);
    unsigned char *data = calloc((size_t)rows, size);

    for (int i = 0; i < rows; i++, live->rows++) {
        const uint64_t watts = 200 + (uint64_t)live->rows;

        joule_log_put_row(data + (size_t)i * size, 0, (uint64_t)live->rows,
                          1700000000 + (uint64_t)live->rows, &watts, 1,
                          (uint64_t)live->rows * JOULE_NS_PER_S);
    }
    ck_assert_int_eq(
        joule_log_flush(live->log, data, (size_t)rows * size, NULL), 0);
    free(data);
}

/* Its last flush was an hour ago, by the clock of the file server. */
static struct live live_begin(const char *path, const char *node)
{
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    const struct joule_profile_facts facts = {
        .node = node, .writer = "test", .start = "now", .pack = {.level = 1}};
    const struct joule_log_table table = {
        .name = "Energy", .fields = &power, .count = 1};
    struct live live = {.fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600)};

    ck_assert_int_ge(live.fd, 0);
    live.log = joule_log_create(live.fd, &facts, NULL);
    ck_assert_ptr_nonnull(live.log);
    ck_assert_int_eq(joule_log_add_table(live.log, &table), 0);
    live_add(&live, 10);
    ck_assert_int_eq(futimens(live.fd, long_ago), 0);
    return live;
}

/* The writer is gone; [ended]: not before it has said that there is no more. */
static void live_end(struct live *live, bool ended)
{
    const uint64_t none = 0;
    const struct joule_log_state end = {
        .end_ns = 1, .end_wall_ns = 1, .lost_of = &none, .table_count = 1};

    if (ended)
        ck_assert_int_eq(joule_log_flush(live->log, NULL, 0, &end), 0);
    joule_log_destroy(live->log);
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
    const struct joule_sh5_options o = {
        .series = "Tasks", .item = "Power", .readers = 1};
    char line[256] = "";
    FILE *f;

    ck_assert_int_eq(joule_extract_item(&o, &job, "out.h5", "out.csv"),
                     JOULE_EXIT_ALL);
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
START_TEST(a_log_that_is_written)
{
    struct live live = live_begin("u/7_0_n1.log", "n1");
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
    /* Later rows have a file to go to, which is removed when it is ended. */
    live_add(&live, 90);
    ck_assert_int_eq(fstat(live.fd, &st), 0);
    ck_assert_uint_eq(st.st_nlink, 1);
    live_end(&live, true);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    ck_assert_int_eq(access("u/7_0_n1.log", F_OK), -1);
    ck_assert_uint_eq(rows_of("out.h5"), 700);
}
END_TEST

/* Killed, or where the file system has no locks: nobody can tell. */
START_TEST(a_log_that_nobody_ended)
{
    struct live live = live_begin("u/7_0_n1.log", "n1");

    live_end(&live, false);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_PART);
    ck_assert_uint_eq(rows_of("out.h5"), 10);
    ck_assert_int_eq(access("u/7_0_n1.log", F_OK), 0);
}
END_TEST

/* Up to the first block that is not sound; of what is no log at all, nothing;
 * and the others are merged. */
START_TEST(damaged_logs)
{
    struct live live = live_begin("u/7_0_n1.log", "n1");
    struct stat st;
    char byte;

    fstat(live.fd, &st);
    live_add(&live, 20);
    live_add(&live, 30);
    live_end(&live, true);
    live.fd = open("u/7_0_n1.log", O_RDWR);
    /* In the rows of the second flush, which begin where the zeros did. */
    st.st_size -= JOULE_LOG_SPARE;
    ck_assert_int_eq(pread(live.fd, &byte, 1, st.st_size + 100), 1);
    byte ^= 4;
    ck_assert_int_eq(pwrite(live.fd, &byte, 1, st.st_size + 100), 1);
    close(live.fd);
    touch("u/7_0_n2.log");
    ck_assert_int_eq(system("echo a letter > u/7_0_n3.log"), 0);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_PART);
    ck_assert_uint_eq(tables_of("out.h5"), 1);
    ck_assert_uint_lt(rows_of("out.h5"), 60);
    ck_assert_uint_ge(rows_of("out.h5"), 10);
    for (int i = 1; i <= 3; i++) {
        char name[32];

        snprintf(name, sizeof(name), "u/7_0_n%d.log", i);
        ck_assert_int_eq(access(name, F_OK), 0);
    }
}
END_TEST

/* The converter was killed after it had made the file, or somebody has put the file
 * there: the log is not given up for a name. */
START_TEST(a_log_and_its_file)
{
    struct live live = live_begin("u/7_0_n1.log", "n1");

    live_end(&live, true);
    write_node("u/7_0_n1.h5", "n1", true);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    ck_assert_uint_eq(tables_of("out.h5"), 3);
    ck_assert_int_eq(access("u/7_0_n1.h5", F_OK), -1);
    ck_assert_int_eq(access("u/7_0_n1.log", F_OK), 0);
    /* It is of another run. */
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_NOTHING);
    ck_assert_uint_eq(tables_of("out.h5"), 3);
    ck_assert_int_eq(access("u/7_0_n1.log", F_OK), 0);
}
END_TEST

/* The same run once more: the merged file has its rows, and the log may go. */
START_TEST(a_log_once_more)
{
    struct live live = live_begin("u/7_0_n1.log", "n1");

    live_add(&live, 30);
    live_end(&live, true);
    ck_assert_int_eq(system("cp u/7_0_n1.log kept"), 0);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    ck_assert_int_eq(system("cp kept u/7_0_n1.log"), 0);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    ck_assert_uint_eq(rows_of("out.h5"), 40);
    ck_assert_int_eq(access("u/7_0_n1.log", F_OK), -1);
}
END_TEST

/* What cannot be read takes no merged node's place. */
static const char *const spoilt[] = {
    ": > u/7_0_n1.log",
    ": > u/7_0_n1.h5",
    "ln -s nowhere u/7_0_n1.h5",
    "head -c 3000 out.h5 > u/7_0_n1.h5",
    "echo a letter > u/7_0_n1.log",
};

START_TEST(merged_and_spoilt)
{
    uint64_t rows;

    write_node("u/7_0_n1.h5", "n1", true);
    write_node("u/7_0_n2.h5", "n2", true);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    rows = rows_of("out.h5");
    ck_assert_int_eq(system(spoilt[_i]), 0);
    write_node("u/7_0_n3.h5", "n3", true);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_PART);
    ck_assert_uint_eq(rows_of("out.h5"), rows + rows / 2);
    ck_assert_uint_eq(node_rows_of("out.h5", "n1"), rows / 2);
}
END_TEST

/* Of a version before there were logs, or of libhdf5: locked in one of two
 * ways. */
START_TEST(a_file_that_is_written)
{
    const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd;

    write_node("u/7_0_n1.h5", "n1", true);
    fd = open("u/7_0_n1.h5", O_RDWR);
    ck_assert_int_eq(_i ? flock(fd, LOCK_EX) : fcntl(fd, F_OFD_SETLK, &whole),
                     0);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_NOTHING);
    ck_assert_int_eq(merge_with("7", false, true), JOULE_EXIT_PART);
    ck_assert_uint_eq(tables_of("out.h5"), 3);
    ck_assert_int_eq(access("u/7_0_n1.h5", F_OK), 0);
    close(fd);
    ck_assert_int_eq(merge("7", false), JOULE_EXIT_ALL);
    ck_assert_int_eq(access("u/7_0_n1.h5", F_OK), -1);
}
END_TEST

/* Damaged in a hundred ways, some of which libhdf5 dies of: each costs itself
 * alone, and stays where it is. */
START_TEST(damaged_files_cost_themselves)
{
    static unsigned char data[1 << 17], bad[1 << 17];
    int fd, rounds = dice_is_long() ? 300 : 15, parts = 0;
    size_t len;

    write_node("good.h5", "n2", _i);
    fd = open("good.h5", O_RDONLY);
    len = (size_t)read(fd, data, sizeof(data));
    close(fd);
    for (int i = 0; i < rounds; i++) {
        size_t bytes = len;
        int status;

        unlink("out.h5");
        unlink("u/7_0_n2.h5");
        write_node("u/7_0_n1.h5", "n1", !_i);
        write_node("u/7_0_n3.h5", "n3", _i);
        memcpy(bad, data, len);
        bytes = nodefile_damage(bad, bytes, (uint64_t)i);
        fd = open("u/7_0_n2.h5", O_RDWR | O_CREAT, 0600);
        ck_assert_int_eq(write(fd, bad, bytes), (ssize_t)bytes);
        close(fd);
        status = merge("7", false);
        ck_assert_int_ne(status, JOULE_EXIT_NOTHING);
        parts += status == JOULE_EXIT_PART;
        ck_assert_int_eq(access("u/7_0_n1.h5", F_OK), -1);
        ck_assert_int_eq(access("u/7_0_n3.h5", F_OK), -1);
        ck_assert_int_eq(access("u/7_0_n2.h5", F_OK),
                         status == JOULE_EXIT_ALL ? -1 : 0);
        ck_assert_uint_eq(node_rows_of("out.h5", "n1"), 300);
        ck_assert_uint_eq(node_rows_of("out.h5", "n3"), 300);
    }
    ck_assert_int_gt(parts, rounds / 4);
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
    struct joule_source source = {0};
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
    tcase_add_loop_test(files, damaged_files_cost_themselves, 0, 2);
    tcase_add_test(files, damaged_logs);
    tcase_add_test(files, a_log_that_is_written);
    tcase_add_test(files, a_log_that_nobody_ended);
    tcase_add_test(files, a_log_and_its_file);
    tcase_add_test(files, a_log_once_more);
    tcase_add_loop_test(files, merged_and_spoilt, 0,
                        (int)(sizeof(spoilt) / sizeof(spoilt[0])));
    tcase_add_loop_test(files, a_file_that_is_written, 0, 2);
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
