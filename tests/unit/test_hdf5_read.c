/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/profile/hdf5_driver.h"
#include "common/profile/hdf5_read.h"
#include "tests/unit/nodefile.h"

static char path[64];
static struct joule_error err;

static void setup(void)
{
    strcpy(path, "/tmp/joule-read.XXXXXX");
    close(mkstemp(path));
    joule_hdf5_prepare();
}

static void teardown(void)
{
    unlink(path);
}

/* ---- columns ---- */

START_TEST(unsound_types)
{
    const struct joule_rowtype good = {
        .size = 16,
        .count = 1,
        .is_compound = 1,
        .column[0] = {.name = "a", .offset = 8, .size = 8}};
    const size_t bytes = joule_rowtype_bytes(&good);
    struct joule_rowtype t = good;

    ck_assert_int_eq(joule_rowtype_check(&t, bytes), 0);
    ck_assert_int_eq(joule_rowtype_check(&t, bytes - 1), -1);
    ck_assert_int_eq(errno, EBADMSG);
    ck_assert_int_eq(joule_rowtype_check(&t, 3), -1);
#define UNSOUND(change)                                                        \
    do {                                                                       \
        t = good;                                                              \
        change;                                                                \
        ck_assert_int_eq(joule_rowtype_check(&t, bytes), -1);                  \
    } while (0)
    UNSOUND(t.size = 0);
    UNSOUND(t.size = 15);
    UNSOUND(t.size = JOULE_ROW_MAX + 1);
    UNSOUND(t.count = 0);
    UNSOUND(t.count = JOULE_COLUMNS_MAX + 1);
    UNSOUND(t.is_compound = 0);
    UNSOUND(t.is_compound = 2);
    UNSOUND(t.column[0].offset = 9);
    UNSOUND(t.column[0].offset = UINT32_MAX - 3);
    UNSOUND(t.column[0].size = 3);
    UNSOUND(t.column[0].size = 0);
    UNSOUND(t.column[0].kind = 5);
    UNSOUND(t.column[0].name[0] = '\0');
    UNSOUND(memset(t.column[0].name, 'x', sizeof(t.column[0].name)));
}
END_TEST

static hid_t file;

/* What is written into the row, if its type is as long. */
static const unsigned char row_bytes[80] = {
    8,    7,    6, 5, 4,    3,    2, 1, /* u */
    0xFF, 0xFE,                         /* i: -2, high byte first */
    0,    0,    0, 0, 0xC0, 0xBF,       /* f: -1.5 */
    0x40, 4,    0, 0, 0,    0,    0, 0, /* d: 2.5, high byte first */
    'a',  'b',                          /* s */
};

/* A table of one row of [type], which is closed; by this library. */
static struct joule_hdf5_table *table_of(hid_t type)
{
    hsize_t one = 1;
    hid_t space = H5Screate_simple(1, &one, NULL), set;
    int fd;

    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    set = H5Dcreate2(file, "t", type, space, H5P_DEFAULT, H5P_DEFAULT,
                     H5P_DEFAULT);
    ck_assert_int_ge(set, 0);
    if (H5Tget_size(type) == sizeof(row_bytes))
        H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, row_bytes);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
    H5Fclose(file);
    fd = open(path, O_RDONLY);
    file = joule_hdf5_open_fd(fd, &err);
    ck_assert_int_ge(file, 0);
    return joule_hdf5_table_open(file, "t", &err);
}

static void forget(struct joule_hdf5_table *table)
{
    joule_hdf5_table_close(table);
    joule_hdf5_close(file, NULL);
}

START_TEST(types_that_are_read)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, 80), text = H5Tcopy(H5T_C_S1), odd;
    const hsize_t three = 3;
    hid_t array = H5Tarray_create2(H5T_STD_U64LE, 1, &three);
    struct joule_hdf5_table *table;
    const struct joule_rowtype *t;
    unsigned char row[128];
    static const uint8_t kinds[] = {
        JOULE_KIND_UNSIGNED, JOULE_KIND_SIGNED, JOULE_KIND_FLOAT,
        JOULE_KIND_FLOAT,    JOULE_KIND_STRING, JOULE_KIND_OPAQUE,
        JOULE_KIND_OPAQUE,
    };

    H5Tset_size(text, 7);
    odd = H5Tcopy(H5T_STD_U32LE);
    H5Tset_precision(odd, 17);
    H5Tinsert(type, "u", 0, H5T_STD_U64LE);
    H5Tinsert(type, "i", 8, H5T_STD_I16BE);
    H5Tinsert(type, "f", 12, H5T_IEEE_F32LE);
    H5Tinsert(type, "d", 16, H5T_IEEE_F64BE);
    H5Tinsert(type, "s", 24, text);
    H5Tinsert(type, "a", 32, array);
    H5Tinsert(type, "odd", 64, odd);
    H5Tclose(array);
    H5Tclose(odd);
    H5Tclose(text);
    table = table_of(type);
    t = table->row;
    ck_assert_uint_eq(table->file_row, sizeof(row_bytes));
    ck_assert_uint_eq(t->count, 7);
    for (uint32_t i = 0; i < t->count; i++)
        ck_assert_uint_eq(t->column[i].kind, kinds[i]);
    ck_assert_uint_le(t->size, sizeof(row));
    ck_assert_uint_eq(joule_hdf5_table_read(table, row, 1), 1);
    ck_assert_uint_eq(joule_column_u64(&t->column[0], row), 0x0102030405060708);
    ck_assert_int_eq((int64_t)joule_column_u64(&t->column[1], row), -2);
    ck_assert(joule_column_double(&t->column[2], row) == -1.5);
    ck_assert(joule_column_double(&t->column[3], row) == 2.5);
    ck_assert_str_eq((char *)row + t->column[4].offset, "ab");
    ck_assert_ptr_eq(joule_rowtype_find(t, "s"), &t->column[4]);
    ck_assert_ptr_null(joule_rowtype_find(t, "S"));
    forget(table);
    table = table_of(H5Tcopy(H5T_STD_I32LE));
    ck_assert_uint_eq(table->row->is_compound, 0);
    forget(table);
}
END_TEST

static void check_refused(hid_t type)
{
    ck_assert_ptr_null(table_of(type));
    ck_assert_int_eq(errno, ENOTSUP);
    forget(NULL);
}

/* What points to other places of a file is no row. */
START_TEST(types_that_are_not)
{
    hid_t text = H5Tcopy(H5T_C_S1), type = H5Tcreate(H5T_COMPOUND, 16);
    struct joule_hdf5_table *table;
    const hsize_t two[] = {2, 2};

    H5Tset_size(text, H5T_VARIABLE);
    H5Tinsert(type, "text", 0, text);
    check_refused(type);
    check_refused(text);
    check_refused(H5Tvlen_create(H5T_STD_U64LE));
    check_refused(H5Tcopy(H5T_STD_REF_OBJ));
    /* Of two dimensions: bytes. */
    table = table_of(H5Tarray_create2(H5T_STD_U8LE, 2, two));
    ck_assert_uint_eq(table->row->column[0].kind, JOULE_KIND_OPAQUE);
    forget(table);
}
END_TEST

/* ---- tables ---- */

struct seen {
    char text[4096];
    uint64_t rows, lost, missing, power_sum;
    size_t notes;
    char note[JOULE_ERROR_MAX];
    size_t room; /* rows that are asked for at a time */
};

static struct seen seen;

static int on_table(void *arg, const char *name, struct joule_hdf5_table *found,
                    struct joule_error *e)
{
    struct joule_hdf5_table *table;
    const struct joule_column *power;
    size_t size, count;
    char full[512];
    void *rows;

    (void)arg;
    snprintf(full, sizeof(full), "/n1/%s", name);
    table = joule_hdf5_table_open(file, full, e);
    ck_assert_ptr_nonnull(table);
    ck_assert_uint_eq(table->rows, found->rows);
    snprintf(seen.text + strlen(seen.text),
             sizeof(seen.text) - strlen(seen.text), "%s ", name);
    size = table->row->size;
    power = joule_rowtype_find(table->row, "Power");
    rows = malloc(seen.room * size);
    while ((count = joule_hdf5_table_read(table, rows, seen.room)) > 0) {
        ck_assert_uint_le(count, seen.room);
        for (size_t i = 0; i < count && power; i++)
            seen.power_sum +=
                joule_column_u64(power, (const char *)rows + i * size);
        seen.rows += count;
    }
    seen.lost += table->lost;
    seen.missing += joule_hdf5_table_missing(table);
    ck_assert_uint_eq(joule_hdf5_table_read(table, rows, seen.room), 0);
    free(rows);
    joule_hdf5_table_close(table);
    return 0;
}

static int on_note(void *arg, const char *name, const char *sentence,
                   struct joule_error *e)
{
    (void)arg;
    (void)name;
    (void)e;
    ck_assert(sentence[0] != '\0');
    snprintf(seen.note, sizeof(seen.note), "%s", sentence);
    seen.notes++;
    return 0;
}

static int walk_by(size_t room)
{
    const struct joule_hdf5_visitor v = {.table = on_table, .note = on_note};
    int fd = open(path, O_RDONLY), rc = -1;
    hid_t group;

    memset(&seen, 0, sizeof(seen));
    seen.room = room;
    file = joule_hdf5_open_fd(fd, &err);
    if (file >= 0) {
        group = H5Gopen2(file, "/n1", H5P_DEFAULT);
        if (group >= 0)
            rc = joule_hdf5_walk(group, &v, &err);
        if (group >= 0)
            H5Gclose(group);
        joule_hdf5_close(file, NULL);
    }
    close(fd);
    return rc;
}

static int walk(void)
{
    return walk_by(3000);
}

static struct nodefile node = {.node = "n1",
                               .rows = 10237,
                               .rate_hz = 10,
                               .tasks = 1,
                               .seed = 3,
                               .start_ns = UINT64_C(1795279470000000000)};

/* Batches of less than a chunk, of a chunk, and of several. */
START_TEST(rows_of_all_layouts)
{
    static const size_t rooms[] = {1, 7, 1000, 4096, 5000, 100000};
    uint64_t sum = 0;

    node.ours = _i > 0;
    node.plain = _i == 2;
    node.later = _i == 3;
    for (uint64_t i = 0; i < node.rows; i++)
        sum += nodefile_power(&node, i);
    ck_assert_int_eq(nodefile_write(path, &node), 0);
    /* A packed chunk is unpacked again for each row that is asked for. */
    for (size_t i = node.ours ? 2 : 0; i < sizeof(rooms) / sizeof(rooms[0]);
         i++) {
        ck_assert_int_eq(walk_by(rooms[i]), 0);
        ck_assert_str_eq(seen.text, "Energy Tasks/0 ");
        ck_assert_uint_eq(seen.rows, 2 * node.rows);
        ck_assert_uint_eq(seen.power_sum, 2 * sum);
        ck_assert_uint_eq(seen.lost + seen.missing + seen.notes, 0);
    }
}
END_TEST

/* A bit of a chunk flipped: its rows are lost and counted, the others come. */
START_TEST(a_flipped_bit_is_found)
{
    struct nodefile n = node;
    hsize_t first = 256, size = 0;
    haddr_t at = 0;
    unsigned char byte;
    unsigned mask;
    hid_t set;
    int fd;

    n.ours = true;
    n.rate_hz = 1;
    n.tasks = 0;
    n.rows = 600; /* 256, 256, 88 */
    ck_assert_int_eq(nodefile_write(path, &n), 0);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(file, "/n1/Energy", H5P_DEFAULT);
    ck_assert_int_ge(H5Dget_chunk_info_by_coord(set, &first, &mask, &at, &size),
                     0);
    H5Dclose(set);
    H5Fclose(file);
    fd = open(path, O_RDWR);
    at += size * (hsize_t)_i / 7;
    ck_assert_int_eq(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x10;
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
    for (size_t room = 100; room < 1000; room += 300) {
        ck_assert_int_eq(walk_by(room), 0);
        ck_assert_uint_eq(seen.rows, 344);
        ck_assert_uint_eq(seen.lost, 256);
    }
}
END_TEST

/* A table that has chunks here and there alone. */
START_TEST(chunks_that_are_missing)
{
    hsize_t rows = 1000, chunk = 10, first;
    hid_t space = H5Screate_simple(1, &rows, NULL), group, set;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    char data[80] = "";
    uint64_t there = 0;

    file = nodefile_create(path, false);
    group = H5Gcreate2(file, "n1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Pset_chunk(list, 1, &chunk);
    set = H5Dcreate2(group, "Energy", H5T_STD_U64LE, space, H5P_DEFAULT, list,
                     H5P_DEFAULT);
    for (first = 20; first < 980; first += 30, there += 10)
        H5Dwrite_chunk(set, H5P_DEFAULT, 0, &first, sizeof(data), data);
    H5Dclose(set);
    H5Gclose(group);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
    ck_assert_int_eq(walk(), 0);
    ck_assert_uint_eq(seen.rows, there);
    ck_assert_uint_eq(seen.lost, rows - there);
    ck_assert_uint_eq(seen.missing, rows - there);
}
END_TEST

/* A header may say anything of how many rows there are. */
START_TEST(rows_without_end)
{
    hsize_t rows = UINT64_C(1) << 60, chunk = 64, first = 0;
    hid_t space = H5Screate_simple(1, &rows, NULL), group, set;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    uint64_t data[64] = {0};

    file = nodefile_create(path, false);
    group = H5Gcreate2(file, "n1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Pset_chunk(list, 1, &chunk);
    set = H5Dcreate2(group, "Energy", H5T_STD_U64LE, space, H5P_DEFAULT, list,
                     H5P_DEFAULT);
    H5Dwrite_chunk(set, H5P_DEFAULT, 0, &first, sizeof(data), data);
    H5Dclose(set);
    H5Gclose(group);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
    alarm(20);
    ck_assert_int_eq(walk(), 0);
    alarm(0);
    ck_assert_uint_eq(seen.rows, 64);
    ck_assert_uint_eq(seen.lost, rows - 64);
}
END_TEST

START_TEST(links_are_not_followed)
{
    hid_t group;

    node.ours = true;
    ck_assert_int_eq(nodefile_write(path, &node), 0);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    group = H5Gopen2(file, "n1", H5P_DEFAULT);
    H5Lcreate_external("/etc/other.h5", "/", group, "x1", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_soft("/n1", group, "x2", H5P_DEFAULT, H5P_DEFAULT);
    /* A group within itself. */
    H5Lcreate_hard(file, "n1", group, "x3", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
    H5Fclose(file);
    ck_assert_int_eq(walk(), 0);
    ck_assert_uint_eq(seen.notes, 2);
    ck_assert_str_eq(seen.note, "a link to another place is not followed");
    ck_assert_uint_eq(seen.rows, 2 * node.rows);
}
END_TEST

START_TEST(groups_without_end)
{
    hid_t group;

    file = nodefile_create(path, false);
    group = H5Gcreate2(file, "n1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 40; i++) {
        hid_t next =
            H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

        H5Gclose(group);
        group = next;
    }
    H5Gclose(group);
    H5Fclose(file);
    ck_assert_int_eq(walk(), -1);
    ck_assert_int_eq(errno, E2BIG);
}
END_TEST

START_TEST(data_of_another_file)
{
    hsize_t rows = 16;
    hid_t space = H5Screate_simple(1, &rows, NULL), group;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    group = H5Gcreate2(file, "n1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_int_ge(H5Pset_external(list, "/etc/passwd", 0, 128), 0);
    H5Dclose(H5Dcreate2(group, "Energy", H5T_STD_U64LE, space, H5P_DEFAULT,
                        list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
    ck_assert_int_eq(walk(), 0);
    ck_assert_uint_eq(seen.rows, 0);
    ck_assert_uint_eq(seen.notes, 1);
    ck_assert_str_eq(seen.note, "its data is in another file");
}
END_TEST

/* Of LeakSanitizer; not there without it. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* Cut anywhere: whole chunks come (of one that is not packed, its rows), what
 * is missing is counted, and nothing is made up. */
START_TEST(cut_files_give_whole_chunks)
{
    uint64_t before = UINT64_MAX, chunk;
    off_t size;
    int fd;

    node.ours = _i > 0;
    node.plain = _i == 2;
    node.tasks = 0;
    chunk = node.ours ? 4096 : 10;
    ck_assert_int_eq(nodefile_write(path, &node), 0);
    fd = open(path, O_RDWR);
    size = lseek(fd, 0, SEEK_END);
    for (off_t cut = size; cut > 0; cut -= size / 40) {
        int rc;

        ck_assert_int_eq(ftruncate(fd, cut), 0);
        /* libhdf5 1.10 leaks in damaged files. */
        if (__lsan_disable)
            __lsan_disable();
        rc = walk();
        if (__lsan_disable)
            __lsan_enable();
        if (rc < 0)
            seen.rows = 0;
        else if (seen.notes == 0)
            ck_assert_uint_eq(seen.rows + seen.lost, node.rows);
        ck_assert_uint_le(seen.rows, before);
        if (seen.rows < node.rows && !node.plain)
            ck_assert_uint_eq(seen.rows % chunk % (node.rows % chunk), 0);
        before = seen.rows;
    }
    ck_assert_uint_eq(before, 0);
    close(fd);
    node.tasks = 1;
}
END_TEST

START_TEST(numbers_of_attributes)
{
    uint64_t value = 9;
    hid_t group;
    int fd;

    node.ours = true;
    ck_assert_int_eq(nodefile_write(path, &node), 0);
    fd = open(path, O_RDONLY);
    file = joule_hdf5_open_fd(fd, &err);
    group = H5Gopen2(file, "n1", H5P_DEFAULT);
    ck_assert_int_eq(joule_hdf5_read_number(group, "nothing", &value), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(joule_hdf5_read_number(group, "Node Name", &value), -1);
    ck_assert_int_eq(joule_hdf5_read_number(group, "Node Index", &value), -1);
    ck_assert_uint_eq(value, 9);
    ck_assert_int_eq(
        joule_hdf5_read_number(group, "Joule Start Wall ns", &value), 0);
    ck_assert_uint_eq(value, node.start_ns);
    H5Gclose(group);
    joule_hdf5_close(file, NULL);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hdf5_read");
    TCase *tc = tcase_create("read");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, unsound_types);
    tcase_add_test(tc, types_that_are_not);
    tcase_add_loop_test(tc, a_flipped_bit_is_found, 0, 7);
    tcase_add_test(tc, chunks_that_are_missing);
    tcase_add_test(tc, rows_without_end);
    tcase_add_test(tc, links_are_not_followed);
    tcase_add_test(tc, groups_without_end);
    tcase_add_test(tc, data_of_another_file);
    tcase_add_loop_test(tc, cut_files_give_whole_chunks, 0, 3);
    tcase_add_test(tc, types_that_are_read);
    tcase_add_loop_test(tc, rows_of_all_layouts, 0, 4);
    tcase_add_test(tc, numbers_of_attributes);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
