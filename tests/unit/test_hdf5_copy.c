/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/profile/hdf5_copy.h"
#include "common/profile/hdf5_driver.h"
#include "tests/unit/dice.h"
#include "tests/unit/nodefile.h"

static char dir[64];
static int out_fd;
static struct joule_error err;
static struct nodefile node;

static void setup(void)
{
    node = (struct nodefile){.node = "n1",
                             .rows = 10237,
                             .rate_hz = 10,
                             .tasks = 2,
                             .seed = 3,
                             .start_ns = UINT64_C(1795279470000000000)};
    strcpy(dir, "/tmp/joule-copy.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
    out_fd = open("out.h5", O_RDWR | O_CREAT, 0600);
    joule_hdf5_prepare();
}

static void teardown(void)
{
    char command[96];

    close(out_fd);
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static struct joule_hdf5_copy *must_create(void)
{
    struct joule_hdf5_copy *copy = joule_hdf5_copy_create(out_fd, &err);

    ck_assert_msg(copy != NULL, "%s", err.text);
    return copy;
}

static int copy_as(struct joule_hdf5_copy *copy, const char *from,
                   const char *step, const char *name,
                   struct joule_hdf5_copied *ret)
{
    char path[256];
    const struct joule_hdf5_node n = {.fd = open(from, O_RDONLY),
                                      .path = path,
                                      .step = step,
                                      .name = name,
                                      .is_node_file = true};
    int rc, saved;

    snprintf(path, sizeof(path), "/%.200s", name);
    rc = joule_hdf5_copy_node(copy, &n, ret, &err);
    saved = errno;
    close(n.fd);
    errno = saved;
    return rc;
}

static hid_t finish(struct joule_hdf5_copy *copy)
{
    hid_t file;

    ck_assert_msg(joule_hdf5_copy_finish(copy, &err) == 0, "%s", err.text);
    joule_hdf5_copy_destroy(copy);
    file = H5Fopen("out.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_int_ge(file, 0);
    return file;
}

static int64_t number(hid_t file, const char *object, const char *name)
{
    hid_t id = H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
    int64_t value = 0;

    ck_assert_int_ge(id, 0);
    ck_assert_int_ge(H5Aread(id, H5T_NATIVE_INT64, &value), 0);
    H5Aclose(id);
    return value;
}

/* Rows of a table of the merged file, whose Power is checked. */
static uint64_t rows_of(hid_t file, const char *path)
{
    hid_t set = H5Dopen2(file, path, H5P_DEFAULT), space, type;
    uint64_t *power;
    hsize_t rows;

    ck_assert_int_ge(set, 0);
    space = H5Dget_space(set);
    ck_assert_int_eq(H5Sget_simple_extent_dims(space, &rows, NULL), 1);
    type = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(type, "Power", 0, H5T_NATIVE_UINT64);
    power = calloc(rows + 1, sizeof(*power));
    ck_assert_int_ge(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, power),
                     0);
    for (hsize_t i = 0; i < rows; i++)
        ck_assert_uint_eq(power[i], nodefile_power(&node, i));
    free(power);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(set);
    return rows;
}

START_TEST(what_is_no_node_file)
{
    struct joule_hdf5_copied r;
    struct joule_hdf5_copy *copy = must_create();
    FILE *f = fopen("text", "w");
    hid_t file;

    fputs("a letter", f);
    fclose(f);
    ck_assert_int_eq(copy_as(copy, "text", "0", "n1", &r), -1);
    ck_assert_int_eq(errno, EBADMSG);
    ck_assert_int_eq(copy_as(copy, "/dev/null", "0", "n1", &r), -1);
    ck_assert_int_eq(errno, EBADMSG);
    ck_assert_int_eq(copy_as(copy, "missing", "0", "n1", &r), -1);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_eq(nodefile_write("n1.h5", &node), 0);
    /* Of another node, which is said. */
    ck_assert_int_eq(copy_as(copy, "n1.h5", "0", "n2", &r), 0);
    ck_assert_int_eq(r.is_there, 0);
    ck_assert_uint_eq(r.left_out, 1);
    ck_assert_ptr_nonnull(strstr(r.note, "n1: it is not of the node"));
    ck_assert_int_eq(r.write_error, 0);
    file = finish(copy);
    ck_assert_int_eq(number(file, "/", "Number of Steps"), 0);
    H5Fclose(file);
}
END_TEST

START_TEST(what_is_there_twice)
{
    struct joule_hdf5_copied r;
    struct joule_hdf5_copy *copy = must_create();

    ck_assert_int_eq(nodefile_write("n1.h5", &node), 0);
    ck_assert_int_eq(copy_as(copy, "n1.h5", "0", "n1", &r), 0);
    ck_assert_int_eq(copy_as(copy, "n1.h5", "0", "n1", &r), -1);
    ck_assert_int_eq(errno, EEXIST);
    ck_assert_int_eq(copy_as(copy, "n1.h5", "1", "n1", &r), 0);
    ck_assert_int_eq(copy_as(copy, "n1.h5", "0", "n1", &r), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(copy_as(copy, "n1.h5", "a/b", "n1", &r), -1);
    ck_assert_int_eq(errno, EINVAL);
    joule_hdf5_copy_destroy(copy);
}
END_TEST

/* Not a file before it is finished; and no room is told. */
START_TEST(not_finished)
{
    struct joule_hdf5_copied r;
    struct joule_hdf5_copy *copy = must_create();
    int full = open("/dev/full", O_RDWR);

    ck_assert_int_eq(nodefile_write("n1.h5", &node), 0);
    close(open("busy", O_RDWR | O_CREAT, 0600));
    ck_assert_int_eq(copy_as(copy, "n1.h5", "0", "n1", &r), 0);
    joule_hdf5_copy_destroy(copy);
    ck_assert_int_eq(lseek(out_fd, 0, SEEK_END) > 0, true);
    ck_assert_ptr_null(joule_hdf5_copy_create(out_fd, &err));
    ck_assert_int_eq(errno, EINVAL);
    copy = joule_hdf5_copy_create(full, &err);
    ck_assert_ptr_nonnull(copy);
    node.rows = 200000; /* more than is buffered */
    node.ours = false;
    ck_assert_int_eq(nodefile_write("n1.h5", &node), 0);
    ck_assert_int_eq(copy_as(copy, "n1.h5", "0", "n1", &r), -1);
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_int_eq(r.write_error, ENOSPC);
    ck_assert_int_eq(joule_hdf5_copy_finish(copy, &err), -1);
    ck_assert_int_eq(errno, ENOSPC);
    joule_hdf5_copy_destroy(copy);
    close(full);
}
END_TEST

/* Links, data of other files and named types stay behind, and it is said. */
START_TEST(strangers_are_left_behind)
{
    struct joule_hdf5_copied r;
    struct joule_hdf5_copy *copy = must_create();
    hid_t file, group, list = H5Pcreate(H5P_DATASET_CREATE), type, space;
    hsize_t rows = 16;
    H5G_info_t info;

    ck_assert_int_eq(nodefile_write("n1.h5", &node), 0);
    file = H5Fopen("n1.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    group = H5Gopen2(file, "n1", H5P_DEFAULT);
    H5Lcreate_external("/etc/other.h5", "/", group, "x1", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_soft("/n1", group, "Tasks/x2", H5P_DEFAULT, H5P_DEFAULT);
    space = H5Screate_simple(1, &rows, NULL);
    ck_assert_int_ge(H5Pset_external(list, "/etc/passwd", 0, 128), 0);
    H5Dclose(H5Dcreate2(group, "x3", H5T_STD_U64LE, space, H5P_DEFAULT, list,
                        H5P_DEFAULT));
    type = H5Tcopy(H5T_STD_U64LE);
    H5Tcommit2(group, "x4", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Tclose(type);
    H5Sclose(space);
    H5Pclose(list);
    H5Gclose(group);
    H5Fclose(file);
    ck_assert_int_eq(copy_as(copy, "n1.h5", "0", "n1", &r), 0);
    ck_assert_uint_eq(r.rows, 3 * node.rows);
    ck_assert_uint_eq(r.left_out, 4);
    file = finish(copy);
    H5Gget_info_by_name(file, "/Steps/0/Nodes/n1", &info, H5P_DEFAULT);
    ck_assert_uint_eq(info.nlinks, 2); /* Energy and Tasks */
    H5Gget_info_by_name(file, "/Steps/0/Nodes/n1/Tasks", &info, H5P_DEFAULT);
    ck_assert_uint_eq(info.nlinks, 2);
    ck_assert_uint_eq(rows_of(file, "/Steps/0/Nodes/n1/Energy"), node.rows);
    H5Fclose(file);
}
END_TEST

/* Where the end is missing, rows are copied one by one, and their attributes;
 * the next node comes over as if nothing had been. */
START_TEST(what_can_be_read_is_kept)
{
    struct joule_hdf5_copied r;
    struct joule_hdf5_copy *copy = must_create();
    uint64_t kept;
    struct stat st;
    hid_t file;

    node.ours = _i > 0;
    node.plain = _i == 2;
    ck_assert_int_eq(nodefile_write("whole.h5", &node), 0);
    ck_assert_int_eq(nodefile_write("n1.h5", &node), 0);
    ck_assert_int_eq(stat("n1.h5", &st), 0);
    ck_assert_int_eq(truncate("n1.h5", st.st_size * 9 / 10), 0);
    ck_assert_int_eq(copy_as(copy, "n1.h5", "0", "n1", &r), 0);
    ck_assert_int_eq(r.is_cut, 1);
    ck_assert_uint_gt(r.rows, node.rows);
    ck_assert(r.lost_rows > 0 || r.left_out > 0);
    kept = r.rows;
    ck_assert_int_eq(copy_as(copy, "whole.h5", "1", "n1", &r), 0);
    ck_assert_uint_eq(r.rows, 3 * node.rows);
    ck_assert_uint_eq(r.lost_rows + r.left_out, 0);
    ck_assert_int_eq(r.is_cut, 0);
    file = finish(copy);
    ck_assert_int_eq(number(file, "/Steps/0/Nodes/n1", "Node Index"), 3);
    ck_assert_int_eq(number(file, "/Steps/0", "Number of Nodes"), 1);
    if (node.ours)
        ck_assert_int_eq(
            number(file, "/Steps/0/Nodes/n1/Energy", "Joule Period ns"),
            100000000);
    ck_assert_uint_le(rows_of(file, "/Steps/0/Nodes/n1/Energy"), kept);
    ck_assert_uint_eq(rows_of(file, "/Steps/1/Nodes/n1/Tasks/1"), node.rows);
    H5Fclose(file);
}
END_TEST

/* A file that its writer has not closed says so. */
START_TEST(not_closed_by_its_writer)
{
    struct joule_hdf5_copied r;
    struct joule_hdf5_copy *copy = must_create();
    hid_t file, group, id;
    uint64_t zero = 0;

    node.ours = true;
    ck_assert_int_eq(nodefile_write("n1.h5", &node), 0);
    ck_assert_int_eq(copy_as(copy, "n1.h5", "0", "n1", &r), 0);
    ck_assert_int_eq(r.is_open, 0);
    file = H5Fopen("n1.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    group = H5Gopen2(file, "n1", H5P_DEFAULT);
    id = H5Aopen(group, "Joule End ns", H5P_DEFAULT);
    ck_assert_int_ge(H5Awrite(id, H5T_NATIVE_UINT64, &zero), 0);
    H5Aclose(id);
    H5Gclose(group);
    H5Fclose(file);
    ck_assert_int_eq(copy_as(copy, "n1.h5", "1", "n1", &r), 0);
    ck_assert_int_eq(r.is_open, 1);
    joule_hdf5_copy_destroy(copy);
}
END_TEST

/* From one job file into the next; many nodes, in any order. */
/* What joule waits has written of a step stays with its nodes, unless there is what
 * leads elsewhere. */
START_TEST(waits_of_a_step)
{
    struct joule_hdf5_copied r;
    struct joule_hdf5_copy *copy = must_create();
    const struct joule_hdf5_node again = {
        .fd = out_fd, .path = "/Steps/0/Nodes/n1", .step = "0", .name = "n1"};
    hid_t file, group;
    int fd = open("second.h5", O_RDWR | O_CREAT, 0600);

    node.rows = 20;
    ck_assert_int_eq(nodefile_write("n.h5", &node), 0);
    ck_assert_int_eq(copy_as(copy, "n.h5", "0", "n1", &r), 0);
    H5Fclose(finish(copy));
    file = joule_hdf5_change_fd(out_fd, &err);
    ck_assert_int_ge(file, 0);
    group = H5Gcreate2(file, "/Steps/0/Waits", H5P_DEFAULT, H5P_DEFAULT,
                       H5P_DEFAULT);
    ck_assert_int_ge(H5Ocopy(file, "/Steps/0/Nodes/n1/Energy", group, "All",
                             H5P_DEFAULT, H5P_DEFAULT),
                     0);
    if (_i == 1)
        H5Lcreate_external("/etc/passwd", "/", group, "x", H5P_DEFAULT,
                           H5P_DEFAULT);
    H5Gclose(group);
    ck_assert_int_eq(joule_hdf5_close(file, &err), 0);
    copy = joule_hdf5_copy_create(fd, &err);
    ck_assert_int_eq(joule_hdf5_copy_node(copy, &again, &r, &err), 0);
    ck_assert_uint_eq(r.rows, 60);
    ck_assert_int_eq(joule_hdf5_copy_finish(copy, &err), 0);
    joule_hdf5_copy_destroy(copy);
    file = H5Fopen("second.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    if (_i == 0)
        ck_assert_uint_eq(rows_of(file, "/Steps/0/Waits/All"), 20);
    else
        ck_assert_int_eq(H5Lexists(file, "/Steps/0/Waits", H5P_DEFAULT), 0);
    H5Fclose(file);
    close(fd);
}
END_TEST

START_TEST(nodes_of_a_job_file)
{
    struct joule_hdf5_copied r;
    struct joule_hdf5_copy *copy = must_create();
    char path[64], name[32];
    const struct joule_hdf5_node again = {
        .fd = out_fd, .path = path, .step = "7", .name = name};
    H5G_info_t info;
    hid_t file;
    int fd = open("second.h5", O_RDWR | O_CREAT, 0600);
    int nodes = dice_is_long() ? 500 : 100;

    node.rows = 20;
    node.tasks = 0;
    for (int i = 0; i < nodes; i++) {
        snprintf(name, sizeof(name), "n%d", i * 7919 % nodes);
        node.node = name;
        ck_assert_int_eq(nodefile_write("n.h5", &node), 0);
        ck_assert_int_eq(copy_as(copy, "n.h5", "batch", name, &r), 0);
    }
    file = finish(copy);
    H5Gget_info_by_name(file, "/Steps/batch/Nodes", &info, H5P_DEFAULT);
    ck_assert_uint_eq(info.nlinks, nodes);
    ck_assert_int_eq(number(file, "/Steps/batch", "Number of Nodes"), nodes);
    H5Fclose(file);
    copy = joule_hdf5_copy_create(fd, &err);
    for (int i = nodes - 1; i >= 0; i -= 7) {
        snprintf(name, sizeof(name), "n%d", i);
        snprintf(path, sizeof(path), "/Steps/batch/Nodes/%s", name);
        ck_assert_int_eq(joule_hdf5_copy_node(copy, &again, &r, &err), 0);
        ck_assert_uint_eq(r.rows, 20);
        ck_assert_uint_eq(r.left_out, 0);
    }
    ck_assert_int_eq(joule_hdf5_copy_finish(copy, &err), 0);
    joule_hdf5_copy_destroy(copy);
    snprintf(path, sizeof(path), "/Steps/7/Nodes/n%d/Energy", nodes - 1);
    file = H5Fopen("second.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_int_eq(number(file, "/Steps/7", "Number of Nodes"),
                     (nodes - 1) / 7 + 1);
    ck_assert_uint_eq(rows_of(file, path), 20);
    H5Fclose(file);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hdf5_copy");
    TCase *tc = tcase_create("copy");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_is_no_node_file);
    tcase_add_test(tc, what_is_there_twice);
    tcase_add_test(tc, not_finished);
    tcase_add_test(tc, strangers_are_left_behind);
    tcase_add_loop_test(tc, what_can_be_read_is_kept, 0, 3);
    tcase_add_test(tc, not_closed_by_its_writer);
    tcase_add_test(tc, nodes_of_a_job_file);
    tcase_add_loop_test(tc, waits_of_a_step, 0, 2);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
