/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HDF5 files that are made of profile logs, read with libhdf5. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/profile/convert.h"
#include "common/profile/hdf5_driver.h"
#include "common/profile/log.h"
#include "tests/unit/rows.h"
#include "tests/unit/tree.h"

#define COUNT(a)  ((int)(sizeof(a) / sizeof((a)[0])))
#define ROW_BYTES ((ROWS_FIELDS + 4) * 8)

static struct tree tree;
static char log_path[128], path[128];
static struct joule_error err;
static struct joule_convert_result result;
static struct joule_profile_facts facts;
static struct joule_log *profile;
static int log_fd;

static const struct joule_pack packs[] = {
    {0, false}, {1, false}, {1, true}, {9, true}};

static void setup(void)
{
    tree_create(&tree);
    snprintf(log_path, sizeof(log_path), "%s/f.log", tree.path);
    snprintf(path, sizeof(path), "%s/f.h5", tree.path);
    memset(&err, 0, sizeof(err));
    facts = (struct joule_profile_facts){
        .node = "n1",
        .writer = "test",
        .start = "Tue Nov 14 22:13:20 2023",
        .node_index = 2,
        .tasks = 12,
        .cpus_per_task = 4,
        .chunk_rows = 64,
        .pack = {1, true},
        .start_wall_ns = INT64_C(1700000000123456789),
        .start_boot_ns = 77,
    };
    joule_hdf5_prepare();
}

static void teardown(void)
{
    tree_destroy(&tree);
}

/* Of disks, other tests know. */
int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
    (void)fd;
    return 0;
}

/* ---- a log ---- */

static void begin(void)
{
    log_fd = open(log_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(log_fd, 0);
    profile = joule_log_create(log_fd, &facts, &err);
    ck_assert_msg(profile != NULL, "%s", err.text);
}

static void add_table(const char *name, int64_t period_ns)
{
    struct joule_log_table table = {
        .name = name,
        .fields = rows_fields,
        .count = ROWS_FIELDS,
        .period_ns = period_ns,
    };

    ck_assert_int_eq(joule_log_add_table(profile, &table), 0);
}

static void append(unsigned table, uint64_t from, uint64_t count)
{
    static uint64_t buffer[1024 * ROW_BYTES / 8];

    while (count > 0) {
        uint64_t n = count < 1024 ? count : 1024, i;

        for (i = 0; i < n; i++) {
            uint64_t row[ROWS_FIELDS + 3];

            rows_make(row, table, from + i);
            joule_log_put_row((char *)buffer + i * ROW_BYTES, table, row[0],
                              row[1], row + 2, ROWS_FIELDS,
                              row[ROWS_FIELDS + 2]);
        }
        ck_assert_int_eq(joule_log_flush(profile, buffer, n * ROW_BYTES, NULL),
                         0);
        from += n;
        count -= n;
    }
}

static void end(void)
{
    struct joule_log_state state = {.end_ns = 5, .end_wall_ns = 6};

    ck_assert_int_eq(joule_log_flush(profile, NULL, 0, &state), 0);
}

static int convert(void)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), rc, saved;

    ck_assert_int_ge(fd, 0);
    memset(&result, 0, sizeof(result));
    rc = joule_profile_convert(log_fd, fd, &result, &err);
    saved = errno;
    close(fd);
    errno = saved;
    return rc;
}

static void must_convert(void)
{
    ck_assert_msg(convert() == 0, "%s", err.text);
    ck_assert_int_eq(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

static void forget(void)
{
    joule_log_destroy(profile);
    profile = NULL;
    close(log_fd);
}

static long count(const char *name, unsigned table)
{
    return rows_count(path, name, table, 0);
}

/* ---- bad inputs ---- */

START_TEST(no_log)
{
    static const char *const texts[] = {"", "x", "\x89HDF\r\n\x1a\n"};

    for (int i = 0; i < COUNT(texts); i++) {
        tree_write(&tree, "f.log", texts[i]);
        log_fd = open(log_path, O_RDONLY);
        errno = 0;
        ck_assert_int_eq(convert(), -1);
        ck_assert_int_eq(errno, EBADMSG);
        close(log_fd);
    }
}
END_TEST

START_TEST(the_output_is_not_empty)
{
    int fd;

    begin();
    end();
    tree_write(&tree, "f.h5", "something");
    fd = open(path, O_RDWR);
    errno = 0;
    ck_assert_int_eq(joule_profile_convert(log_fd, fd, &result, &err), -1);
    ck_assert_int_eq(errno, EINVAL);
    close(fd);
    forget();
}
END_TEST

/* Two tables of one name: not by the writer. */
START_TEST(tables_of_one_name)
{
    begin();
    add_table("Energy", 0);
    add_table("Energy", 0);
    append(0, 0, 1);
    end();
    errno = 0;
    ck_assert_int_eq(convert(), -1);
    ck_assert_int_eq(errno, EIO);
    ck_assert_int_eq(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
    forget();
}
END_TEST

/* No room for the HDF5 file: at any length of it. */
START_TEST(a_full_disk)
{
    struct rlimit before, size;
    struct stat st;
    off_t at;

    begin();
    add_table("Energy", 0);
    add_table("Tasks/0", 0);
    append(0, 0, 5000);
    append(1, 0, 5000);
    end();
    must_convert();
    ck_assert_int_eq(stat(path, &st), 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    size = before;
    for (at = 0; at < st.st_size; at += st.st_size / 16) {
        size.rlim_cur = (rlim_t)at;
        setrlimit(RLIMIT_FSIZE, &size);
        errno = 0;
        ck_assert_int_eq(convert(), -1);
        ck_assert_int_eq(errno, EFBIG);
        ck_assert_int_eq(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
        setrlimit(RLIMIT_FSIZE, &before);
    }
    must_convert();
    ck_assert_int_eq(count("/n1/Energy", 0), 5000);
    forget();
}
END_TEST

/* ---- the format ---- */

static void has_member(hid_t type, unsigned i, const char *name, hid_t of)
{
    char *is = H5Tget_member_name(type, i);
    hid_t member = H5Tget_member_type(type, i);

    ck_assert_str_eq(is, name);
    ck_assert_int_gt(H5Tequal(member, of), 0);
    ck_assert_uint_eq(H5Tget_member_offset(type, i), i * 8);
    H5free_memory(is);
    H5Tclose(member);
}

START_TEST(format)
{
    uint64_t lost[] = {0, 4};
    struct joule_log_state state = {.missed = 3,
                                    .lost_rows = 4,
                                    .lost_first_ns = 8,
                                    .lost_last_ns = 9,
                                    .lost_error = ENOSPC,
                                    .end_ns = 5,
                                    .end_wall_ns = 6,
                                    .lost_of = lost,
                                    .table_count = 2};
    hid_t file, set, type;

    begin();
    add_table("Energy", 10000000);
    add_table("Tasks/0", 0);
    append(0, 0, 100);
    ck_assert_int_eq(joule_log_flush(profile, NULL, 0, &state), 0);
    must_convert();
    ck_assert(result.is_ended);
    ck_assert_uint_eq(result.rows, 100);
    ck_assert_uint_eq(result.bytes_left_out, 0);
    forget();
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(file, "/n1/Energy", H5P_DEFAULT);
    type = H5Dget_type(set);
    ck_assert_int_eq(H5Tget_nmembers(type), 6);
    has_member(type, 0, "ElapsedTime", H5T_STD_U64LE);
    has_member(type, 1, "EpochTime", H5T_STD_U64LE);
    has_member(type, 2, "Power", H5T_STD_U64LE);
    has_member(type, 4, "package_0_mW", H5T_IEEE_F64LE);
    has_member(type, 5, "ElapsedTimeNs", H5T_STD_U64LE);
    H5Tclose(type);
    H5Dclose(set);
    H5Fclose(file);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Node Index"), 2);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Number of Tasks"), 12);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "CPUs per Task"), 4);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Format"), 1);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Start Wall ns"),
                      UINT64_C(1700000000123456789));
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Start Boot ns"), 77);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule End ns"), 5);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule End Wall ns"), 6);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Run"), 0);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Missed Periods"), 3);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Rows"), 4);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost First ns"), 8);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Last ns"), 9);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Error"), ENOSPC);
    ck_assert_uint_eq(rows_attribute(path, "/n1/Energy", "Joule Period ns"),
                      10000000);
    ck_assert_uint_eq(rows_attribute(path, "/n1/Energy", "Joule Lost Rows"), 0);
    ck_assert_uint_eq(rows_attribute(path, "/n1/Tasks/0", "Joule Lost Rows"),
                      4);
    rows_has_text(path, "/n1", "Node Name", "n1");
    rows_has_text(path, "/n1", "Joule Writer", "test");
    rows_has_text(path, "/n1", "Start Time", "Tue Nov 14 22:13:20 2023");
    ck_assert_int_eq(count("/n1/Energy", 0), 100);
    ck_assert_int_eq(count("/n1/Tasks/0", 1), 0);
}
END_TEST

/* The oldest format of everything, which all readers know. */
START_TEST(oldest_format)
{
    unsigned char head[9];
    H5O_info_t info;
    hid_t file;
    int fd;

    begin();
    add_table("Energy", 0);
    end();
    must_convert();
    forget();
    fd = open(path, O_RDONLY);
    ck_assert_int_eq(read(fd, head, sizeof(head)), sizeof(head));
    close(fd);
    ck_assert_mem_eq(head, "\x89HDF\r\n\x1a\n\0", 9); /* superblock 0 */
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_int_ge(H5Oget_info_by_name2(file, "/n1/Energy", &info,
                                          H5O_INFO_HDR, H5P_DEFAULT),
                     0);
    ck_assert_uint_eq(info.hdr.version, 1);
    H5Fclose(file);
}
END_TEST

START_TEST(a_file_without_series)
{
    hid_t file, group;
    H5G_info_t info;

    begin();
    end();
    must_convert();
    forget();
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    group = H5Gopen2(file, "/n1", H5P_DEFAULT);
    ck_assert_int_ge(H5Gget_info(group, &info), 0);
    ck_assert_uint_eq(info.nlinks, 0);
    H5Gclose(group);
    H5Fclose(file);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Node Index"), 2);
}
END_TEST

START_TEST(a_second_run_has_a_group_of_its_own)
{
    facts.run = 2;
    begin();
    add_table("Energy", 0);
    append(0, 0, 3);
    end();
    must_convert();
    forget();
    ck_assert_int_eq(count("/n1.r2/Energy", 0), 3);
    ck_assert_uint_eq(rows_attribute(path, "/n1.r2", "Joule Run"), 2);
    rows_has_text(path, "/n1.r2", "Node Name", "n1");
}
END_TEST

/* Every pack, and numbers of rows around the borders of chunks; flushed in
 * steps of any length, and read while it is written. */
START_TEST(rows_come_back)
{
    static const int totals[] = {0, 1, 63, 64, 65, 128, 1000};
    int total = totals[_i / COUNT(packs)], step, at;

    facts.pack = packs[_i % COUNT(packs)];
    for (step = 1; step < 80; step += 26) {
        begin();
        add_table("Energy", 0);
        for (at = 0; at < total; at += step)
            append(0, (uint64_t)at,
                   (uint64_t)(total - at < step ? total - at : step));
        must_convert();
        ck_assert(!result.is_ended);
        ck_assert_uint_eq(result.bytes_left_out, 0);
        /* A table without a row may not be in the log yet. */
        ck_assert_int_eq(count("/n1/Energy", 0), total ? total : -2);
        end();
        must_convert();
        ck_assert(result.is_ended);
        ck_assert_uint_eq(result.rows, total);
        forget();
        ck_assert_int_eq(count("/n1/Energy", 0), total);
    }
}
END_TEST

static void read_filters(const char *name, hsize_t *ret_chunk, int *ret_filters)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t list = H5Dget_create_plist(set);

    ck_assert_int_eq(H5Pget_chunk(list, 1, ret_chunk), 1);
    *ret_filters = H5Pget_nfilters(list);
    H5Pclose(list);
    H5Dclose(set);
    H5Fclose(file);
}

START_TEST(chunks)
{
    static const struct {
        uint64_t asked;
        int64_t period_ns;
        uint64_t rows;
        hsize_t chunk;
    } cases[] = {{0, 0, 1000, 256},        {0, 1000000000, 1000, 256},
                 {0, 100000000, 900, 512}, {0, 10000000, 5000, 4096},
                 {0, INT64_MAX, 300, 256}, {64, 10000000, 10, 64},
                 {65536, 0, 10, 65536},    {0, 0, 0, 64},
                 {0, 0, 64, 64},           {0, 0, 65, 128},
                 {0, 0, 128, 128},         {0, 10000000, 4095, 4096}};
    static const int filters[] = {0, 2, 3, 3};
    hsize_t chunk;
    int i, n;

    for (i = 0; i < COUNT(cases) * COUNT(packs); i++) {
        facts.chunk_rows = cases[i / COUNT(packs)].asked;
        facts.pack = packs[i % COUNT(packs)];
        begin();
        add_table("Energy", cases[i / COUNT(packs)].period_ns);
        append(0, 0, cases[i / COUNT(packs)].rows);
        end();
        must_convert();
        forget();
        ck_assert_int_eq(count("/n1/Energy", 0),
                         cases[i / COUNT(packs)].rows);
        read_filters("/n1/Energy", &chunk, &n);
        ck_assert_uint_eq(chunk, cases[i / COUNT(packs)].chunk);
        ck_assert_int_eq(n, filters[i % COUNT(packs)]);
    }
}
END_TEST

/* More tables than a node of the group's tree holds, and chunks than one of the
 * table's does. */
START_TEST(large)
{
    char name[32];
    int i;

    begin();
    for (i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "Tasks/%d", i);
        add_table(name, 0);
    }
    for (i = 0; i < 300; i++)
        append((unsigned)i, 0, i < 2 ? 20000 : 3);
    end();
    must_convert();
    forget();
    for (i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "/n1/Tasks/%d", i);
        ck_assert_int_eq(count(name, (unsigned)i), i < 2 ? 20000 : 3);
    }
}
END_TEST

/* Bytes that nobody wrote, behind those that somebody did. */
START_TEST(a_damaged_end)
{
    struct stat st;

    begin();
    add_table("Energy", 0);
    append(0, 0, 100);
    append(0, 100, 100);
    ck_assert_int_eq(fstat(log_fd, &st), 0);
    tree_poke(&tree, "f.log", st.st_size - JOULE_LOG_SPARE - 9, "x", 1);
    must_convert();
    ck_assert(!result.is_ended);
    ck_assert_uint_eq(result.rows, 100);
    ck_assert_uint_ge(result.bytes_left_out, 100 * ROW_BYTES);
    forget();
    ck_assert_int_eq(count("/n1/Energy", 0), 100);
}
END_TEST

/* What Slurm's sh5util does to merge files. */
START_TEST(libhdf5_can_copy_it)
{
    hid_t in, out;

    facts.pack = packs[_i];
    begin();
    add_table("Energy", 10000000);
    add_table("Tasks/0", 0);
    append(0, 0, 5000);
    append(1, 0, 10);
    end();
    must_convert();
    forget();
    in = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    snprintf(path, sizeof(path), "%s/to.h5", tree.path);
    out = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_int_ge(H5Ocopy(in, "/n1", out, "/n1", H5P_DEFAULT, H5P_DEFAULT),
                     0);
    H5Fclose(in);
    ck_assert_int_ge(H5Fclose(out), 0);
    ck_assert_int_eq(count("/n1/Energy", 0), 5000);
    ck_assert_int_eq(count("/n1/Tasks/0", 1), 10);
    ck_assert_uint_eq(rows_attribute(path, "/n1/Energy", "Joule Period ns"),
                      10000000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convert");
    TCase *tc = tcase_create("convert");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, no_log);
    tcase_add_test(tc, the_output_is_not_empty);
    tcase_add_test(tc, tables_of_one_name);
    tcase_add_test(tc, a_full_disk);
    tcase_add_test(tc, format);
    tcase_add_test(tc, oldest_format);
    tcase_add_test(tc, a_file_without_series);
    tcase_add_test(tc, a_second_run_has_a_group_of_its_own);
    tcase_add_loop_test(tc, rows_come_back, 0, 7 * COUNT(packs));
    tcase_add_test(tc, chunks);
    tcase_add_test(tc, large);
    tcase_add_test(tc, a_damaged_end);
    tcase_add_loop_test(tc, libhdf5_can_copy_it, 0, COUNT(packs));
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
