/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is written without libhdf5 (copy.h) is read by libhdf5, and what is
 * found without it (chunkmap.h) is what it finds.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/chunkmap.h"
#include "common/store/copy.h"
#include "common/store/reader.h"
#include "tests/unit/dice.h"
#include "tests/unit/nodefile.h"

static char path[64];
static int fd, source = -1;
static struct joule_error err;

static void setup(void)
{
    strcpy(path, "/tmp/joule-copy.XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_eq(joule_reader_equip(NULL), 0);
}

static void teardown(void)
{
    close(fd);
    unlink(path);
}

/* Rows of one number of 8 bytes. */
static struct joule_layout layout(uint64_t rows, uint64_t chunk_rows)
{
    struct joule_layout l = {
        .rows = rows,
        .chunk_rows = chunk_rows,
        .is_known = 1,
        .type = {.size = 8,
                 .count = 1,
                 .is_compound = 1,
                 .column[0] = {.name = "x", .size = 8, .count = 1}}};

    return l;
}

static struct joule_attribute attribute(const char *name, uint64_t value)
{
    struct joule_attribute a = {
        .elements = 1,
        .bytes = 8,
        .type = {.size = 8, .count = 1, .column[0] = {.size = 8, .count = 1}}};

    strcpy(a.name, name);
    memcpy(a.data, &value, 8);
    return a;
}

static const struct joule_visitor *
must_begin(struct joule_copy *copy, const char *step, const char *node)
{
    const struct joule_visitor *v =
        joule_copy_begin(copy, step, node, source, &err);

    ck_assert_msg(v != NULL, "%s", err.text);
    ck_assert_int_eq(v->group(v->arg, node, &err), 0);
    return v;
}

static void must_end(struct joule_copy *copy, struct joule_copy_state *state)
{
    struct joule_copy_state own;

    ck_assert_int_eq(joule_copy_end(copy, state ? state : &own, &err), 0);
}

static struct joule_copy *must_create(void)
{
    struct joule_copy *copy = joule_copy_create(fd, &err);

    ck_assert_ptr_nonnull(copy);
    return copy;
}

/* [rows] rows of which row i is i; in chunks of [chunk_rows] as they are, or as
 * rows, 7 at a time. */
static void put_table(const struct joule_visitor *v, const char *name,
                      uint64_t rows, uint64_t chunk_rows, bool stored)
{
    struct joule_layout l = layout(rows, chunk_rows);
    uint64_t step = stored ? chunk_rows : 7;
    uint64_t *data = calloc(step, 8);

    ck_assert_int_eq(v->table(v->arg, name, &l, stored, &err), 0);
    for (uint64_t at = 0; at < rows; at += step) {
        uint64_t n = rows - at < step ? rows - at : step;

        for (uint64_t i = 0; i < step; i++)
            data[i] = at + i;
        ck_assert_int_eq(stored ? v->chunk(v->arg, n, 0, data, step * 8, &err)
                                : v->rows(v->arg, data, n, n * 8, &err),
                         0);
    }
    ck_assert_int_eq(v->table_end(v->arg, 0, &err), 0);
    free(data);
}

/* As libhdf5 reads it: row i is i. */
static void check_table(hid_t file, const char *name, uint64_t rows)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space, type;
    uint64_t *data = malloc(rows * 8 + 1);
    hsize_t count, most;

    ck_assert_int_ge(set, 0);
    space = H5Dget_space(set);
    type = H5Dget_type(set);
    ck_assert_int_eq(H5Sget_simple_extent_dims(space, &count, &most), 1);
    ck_assert_uint_eq(count, rows);
    ck_assert_uint_eq(most, H5S_UNLIMITED);
    ck_assert_uint_eq(H5Tget_size(type), 8);
    ck_assert_int_ge(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
                     0);
    for (uint64_t i = 0; i < rows; i++)
        ck_assert_uint_eq(data[i], i);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(set);
    free(data);
}

static uint64_t get_number(hid_t file, const char *object, const char *name)
{
    hid_t id = H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
    uint64_t value = 0;

    ck_assert_int_ge(id, 0);
    ck_assert_int_ge(H5Aread(id, H5T_NATIVE_UINT64, &value), 0);
    H5Aclose(id);
    return value;
}

/* Indices of one, two and three levels; the borders of chunks. */
START_TEST(tables_of_all_sizes)
{
    static const uint64_t sizes[] = {0,   1,   2,    63,   64,   65,
                                     128, 129, 4095, 4096, 4097, 9001};
    struct joule_copy *copy = must_create();
    const struct joule_visitor *v = must_begin(copy, "0", "n");
    struct joule_copy_state state;
    char name[64];
    hid_t file;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(name, sizeof(name), "one%zu", i);
        put_table(v, name, sizes[i], 1, true);
        snprintf(name, sizeof(name), "five%zu", i);
        put_table(v, name, sizes[i], 5, true);
        snprintf(name, sizeof(name), "rows%zu", i);
        put_table(v, name, sizes[i], 10, false);
    }
    put_table(v, "large", 300000, 10, false); /* several chunks of rows */
    must_end(copy, &state);
    ck_assert_uint_eq(state.tables, 37);
    ck_assert_uint_eq(state.left_out, 0);
    ck_assert_int_eq(joule_copy_finish(copy, &err), 0);
    joule_copy_destroy(copy);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_int_ge(file, 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(name, sizeof(name), "/Steps/0/Nodes/n/one%zu", i);
        check_table(file, name, sizes[i]);
        snprintf(name, sizeof(name), "/Steps/0/Nodes/n/five%zu", i);
        check_table(file, name, sizes[i]);
        snprintf(name, sizeof(name), "/Steps/0/Nodes/n/rows%zu", i);
        check_table(file, name, sizes[i]);
    }
    check_table(file, "/Steps/0/Nodes/n/large", 300000);
    H5Fclose(file);
}
END_TEST

/* Each node's number as its attribute, in an order that is not that of the
 * names; trees of names of one, two and three levels. */
START_TEST(groups_of_all_sizes)
{
    static const unsigned sizes[] = {1, 8, 9, 256, 257, 9000};
    unsigned nodes = sizes[_i];
    struct joule_copy *copy = must_create();
    char name[64];
    H5G_info_t info;
    hid_t file;

    for (unsigned i = 0; i < nodes; i++) {
        const struct joule_visitor *v;
        struct joule_attribute a = attribute("number", i);

        snprintf(name, sizeof(name), "n%u", i * 7919u % nodes);
        v = must_begin(copy, "batch", name);
        ck_assert_int_eq(v->attribute(v->arg, &a, &err), 0);
        must_end(copy, NULL);
    }
    ck_assert_ptr_null(joule_copy_begin(copy, "batch", name, -1, &err));
    ck_assert_int_eq(errno, EEXIST);
    ck_assert_int_eq(joule_copy_finish(copy, &err), 0);
    joule_copy_destroy(copy);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_int_ge(file, 0);
    ck_assert_int_ge(
        H5Gget_info_by_name(file, "/Steps/batch/Nodes", &info, H5P_DEFAULT), 0);
    ck_assert_uint_eq(info.nlinks, nodes);
    ck_assert_uint_eq(get_number(file, "/", "Number of Steps"), 1);
    ck_assert_uint_eq(get_number(file, "/Steps/batch", "Number of Nodes"),
                      nodes);
    for (unsigned i = 0; i < nodes; i++) {
        snprintf(name, sizeof(name), "/Steps/batch/Nodes/n%u",
                 i * 7919u % nodes);
        ck_assert_uint_eq(get_number(file, name, "number"), i);
    }
    ck_assert_int_eq(H5Lexists(file, "/Steps/batch/Nodes/n", H5P_DEFAULT), 0);
    H5Fclose(file);
}
END_TEST

/* Chunks that are copied from another file: in one file system, and from one
 * that the kernel may not copy from; small ones, and larger than any buffer;
 * and a last one that is not full. */
START_TEST(chunks_from_their_places)
{
    static const uint64_t sizes[] = {2048, 300000};
    const uint64_t chunk_rows = sizes[_i / 2], rows = chunk_rows * 3 - 100;
    struct joule_layout l = layout(rows, chunk_rows);
    char other[] = "/tmp/joule-from.XXXXXX";
    const struct joule_visitor *v;
    struct joule_copy *copy;
    uint64_t *data = malloc(chunk_rows * 3 * 8), at = 4096 + 24;
    const size_t len = chunk_rows * 8;
    struct joule_run run;
    hid_t file;

    for (uint64_t i = 0; i < chunk_rows * 3; i++)
        data[i] = i;
    source = _i % 2 ? memfd_create("from", 0) : mkstemp(other);
    unlink(other);
    ck_assert_int_eq(pwrite(source, data, len * 3, (off_t)at), len * 3);
    copy = must_create();
    v = must_begin(copy, "0", "n");
    put_table(v, "before", 100, 7, false);
    ck_assert_int_eq(v->table(v->arg, "t", &l, true, &err), 0);
    run = (struct joule_run){.at = at, .len = len, .rows = chunk_rows};
    ck_assert_int_eq(v->run(v->arg, &run, &err), 0);
    run = (struct joule_run){
        .at = at + len, .len = 2 * len, .rows = rows - chunk_rows};
    ck_assert_int_eq(v->run(v->arg, &run, &err), 0);
    ck_assert_int_eq(v->table_end(v->arg, 0, &err), 0);
    put_table(v, "after", 100, 7, false);
    must_end(copy, NULL);
    ck_assert_int_eq(joule_copy_finish(copy, &err), 0);
    joule_copy_destroy(copy);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    check_table(file, "/Steps/0/Nodes/n/before", 100);
    check_table(file, "/Steps/0/Nodes/n/t", rows);
    check_table(file, "/Steps/0/Nodes/n/after", 100);
    H5Fclose(file);
    free(data);
    close(source);
}
END_TEST

/* The file has become shorter: what is there before is kept, in a job file
 * that is whole. */
START_TEST(chunk_from_behind_the_end)
{
    struct joule_layout l = layout(8192, 4096);
    struct joule_copy_state state;
    const struct joule_visitor *v;
    struct joule_copy *copy = must_create();
    uint64_t data[4096];
    struct joule_run run = {.len = sizeof(data), .rows = 4096};
    hid_t file;

    for (uint64_t i = 0; i < 4096; i++)
        data[i] = i;
    source = memfd_create("from", 0);
    ck_assert_int_eq(write(source, data, sizeof(data)), sizeof(data));
    ck_assert_int_eq(write(source, data, 100), 100);
    v = must_begin(copy, "0", "n");
    ck_assert_int_eq(v->table(v->arg, "t", &l, true, &err), 0);
    ck_assert_int_eq(v->run(v->arg, &run, &err), 0);
    run.at = sizeof(data);
    ck_assert_int_eq(v->run(v->arg, &run, &err), -1);
    ck_assert_int_eq(errno, EBADMSG);
    must_end(copy, &state);
    ck_assert_uint_eq(state.rows, 4096);
    v = must_begin(copy, "0", "n2");
    put_table(v, "t", 5000, 4096, true);
    must_end(copy, NULL);
    ck_assert_int_eq(joule_copy_finish(copy, &err), 0);
    joule_copy_destroy(copy);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    check_table(file, "/Steps/0/Nodes/n/t", 4096);
    check_table(file, "/Steps/0/Nodes/n2/t", 5000);
    H5Fclose(file);
    close(source);
}
END_TEST

START_TEST(what_is_there_twice_is_refused)
{
    struct joule_copy *copy = must_create();
    const struct joule_visitor *v = must_begin(copy, "0", "a");
    struct joule_layout l = layout(1, 1);

    put_table(v, "t", 3, 1, true);
    ck_assert_int_eq(v->table(v->arg, "t", &l, true, &err), -1);
    ck_assert_int_eq(errno, EBADMSG);
    ck_assert_int_eq(v->group(v->arg, "t", &err), -1);
    ck_assert_int_eq(errno, EBADMSG);
    must_end(copy, NULL);
    must_begin(copy, "1", "a");
    must_end(copy, NULL);
    ck_assert_ptr_null(joule_copy_begin(copy, "0", "b", -1, &err));
    ck_assert_int_eq(errno, EINVAL);
    joule_copy_destroy(copy);
}
END_TEST

/* A short chunk in the middle; attributes without end. */
START_TEST(what_cannot_be_kept)
{
    struct joule_copy *copy = must_create();
    const struct joule_visitor *v = must_begin(copy, "0", "a");
    struct joule_attribute a = attribute("a", 1);
    struct joule_layout l = layout(9, 4);
    uint64_t rows[4] = {0, 1, 2, 3};
    struct joule_copy_state state;
    struct stat st;

    a.elements = JOULE_ATTRIBUTE_MAX / 8;
    a.bytes = JOULE_ATTRIBUTE_MAX;
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(v->attribute(v->arg, &a, &err), 0);
    ck_assert_int_eq(v->table(v->arg, "t", &l, true, &err), 0);
    ck_assert_int_eq(v->chunk(v->arg, 2, 0, rows, 32, &err), 0);
    ck_assert_int_eq(v->chunk(v->arg, 4, 0, rows, 32, &err), -1);
    ck_assert_int_eq(errno, EBADMSG);
    must_end(copy, &state);
    ck_assert_uint_gt(state.left_out, 0);
    ck_assert_uint_lt(state.left_out, 1000);
    ck_assert_uint_eq(state.rows, 2);
    ck_assert_str_eq(state.note, "an attribute cannot be kept");
    ck_assert_int_eq(joule_copy_finish(copy, &err), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_lt(st.st_size, 5 << 20);
    joule_copy_destroy(copy);
}
END_TEST

/* Not a file before it is finished; no room is told. */
START_TEST(not_finished)
{
    struct joule_copy *copy = must_create();
    int full = open("/dev/full", O_WRONLY);

    must_begin(copy, "0", "a");
    must_end(copy, NULL);
    joule_copy_destroy(copy);
    ck_assert_int_lt(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), 0);
    copy = joule_copy_create(full, &err);
    must_begin(copy, "0", "a");
    must_end(copy, NULL);
    ck_assert_int_eq(joule_copy_finish(copy, &err), -1);
    ck_assert_int_eq(errno, ENOSPC);
    joule_copy_destroy(copy);
    close(full);
}
END_TEST

/* ---- chunkmap ---- */

struct map {
    struct joule_windows *windows;
    struct joule_chunkmap map;
    hid_t file, set;
};

/* The address of the header as libhdf5 knows it. */
static int open_map(struct map *m, uint64_t chunk_rows, uint32_t row_size)
{
    struct stat st;
    H5O_info_t info;

    stat(path, &st);
    m->windows = joule_windows_create(fd, (uint64_t)st.st_size);
    m->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    m->set = H5Dopen2(m->file, "/n1/Energy", H5P_DEFAULT);
    ck_assert_int_ge(m->set, 0);
#if H5_VERSION_GE(1, 10, 3)
    H5Oget_info2(m->set, &info, H5O_INFO_BASIC);
#else
    H5Oget_info(m->set, &info);
#endif
    return joule_chunkmap_open(&m->map, m->windows, info.addr, chunk_rows,
                               row_size);
}

static void close_map(struct map *m)
{
    joule_windows_destroy(m->windows);
    H5Dclose(m->set);
    H5Fclose(m->file);
}

static struct nodefile node = {.node = "n1",
                               .rows = 50007,
                               .rate_hz = 10,
                               .seed = 3,
                               .start_ns = UINT64_C(1795279470000000000)};

/* Every chunk is where libhdf5 says, forward, again, and after a rewind. */
START_TEST(map_is_what_libhdf5_says)
{
    struct joule_chunk chunk;
    struct map m;

    ck_assert_int_eq(nodefile_write(path, &node), 0);
    ck_assert_int_eq(open_map(&m, 10, 32), 0);
    for (int turn = 0; turn < 2; turn++) {
        for (uint64_t row = 0; row < node.rows; row += 10) {
            hsize_t first = row, size = 0;
            haddr_t at = 0;
            unsigned mask = 0;

            H5Dget_chunk_info_by_coord(m.set, &first, &mask, &at, &size);
            for (int again = 0; again < 2; again++) {
                ck_assert_int_eq(joule_chunkmap_find(&m.map, row, &chunk), 1);
                ck_assert_uint_eq(chunk.first, row);
                ck_assert_uint_eq(chunk.at, at);
                ck_assert_uint_eq(chunk.size, size);
                ck_assert_uint_eq(chunk.mask, mask);
            }
        }
        ck_assert_int_eq(joule_chunkmap_find(&m.map, 60000, &chunk), 0);
        joule_chunkmap_rewind(&m.map);
    }
    close_map(&m);
    /* Not the chunks that the caller believes in. */
    ck_assert_int_eq(open_map(&m, 11, 32), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    close_map(&m);
    ck_assert_int_eq(open_map(&m, 10, 40), -1);
    close_map(&m);
}
END_TEST

/* Chunks that are missing, at the beginning, in the middle, at the end. */
START_TEST(map_with_holes)
{
    hsize_t rows = 1000, chunk_rows = 10, first;
    hid_t file = nodefile_create(path, false);
    hid_t space = H5Screate_simple(1, &rows, NULL);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t group = H5Gcreate2(file, "n1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    struct joule_chunk chunk;
    struct map m;
    char data[80] = "";
    hid_t set;

    H5Pset_chunk(list, 1, &chunk_rows);
    set = H5Dcreate2(group, "Energy", H5T_STD_U64LE, space, H5P_DEFAULT, list,
                     H5P_DEFAULT);
    for (first = 20; first < 980; first += 30)
        H5Dwrite_chunk(set, H5P_DEFAULT, 0, &first, sizeof(data), data);
    H5Dclose(set);
    H5Gclose(group);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
    ck_assert_int_eq(open_map(&m, 10, 8), 0);
    for (first = 0; first < rows; first += 10)
        ck_assert_int_eq(joule_chunkmap_find(&m.map, first, &chunk),
                         first >= 20 && first < 980 && first % 30 == 20);
    close_map(&m);
}
END_TEST

/* Other kinds of index are not taken for this one. */
START_TEST(map_of_another_kind)
{
    hsize_t rows = 1000, unlimited = H5S_UNLIMITED, chunk_rows = 10;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file, space, list, group;
    struct map m;

    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    space = H5Screate_simple(1, &rows, &unlimited);
    list = H5Pcreate(H5P_DATASET_CREATE);
    group = H5Gcreate2(file, "n1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Pset_chunk(list, 1, &chunk_rows);
    H5Dclose(H5Dcreate2(group, "Energy", H5T_STD_U64LE, space, H5P_DEFAULT,
                        list, H5P_DEFAULT));
    H5Gclose(group);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(access);
    ck_assert_int_eq(open_map(&m, 10, 8), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    close_map(&m);
}
END_TEST

/* Damaged anywhere: it comes to an end, and every chunk that it gives is one
 * that could be. */
START_TEST(map_of_damaged_files)
{
    static unsigned char good[1 << 20], bad[1 << 20];
    struct nodefile n = node;
    struct joule_chunk chunk;
    struct map m;
    size_t len;
    unsigned damages = (unsigned)dice_rounds(3000);
    int broken = 0;

    n.rows = 2000;
    ck_assert_int_eq(nodefile_write(path, &n), 0);
    len = (size_t)pread(fd, good, sizeof(good), 0);
    ck_assert_int_eq(open_map(&m, 10, 32), 0);
    for (unsigned seed = 0; seed < damages; seed++) {
        unsigned at = seed * 2654435761u % 176;

        memcpy(bad, good, len);
        /* The root of the index, with its four children. */
        bad[(m.map.root + at) % len] ^= (unsigned char)(1u << seed % 8);
        ck_assert_int_eq(pwrite(fd, bad, len, 0), (ssize_t)len);
        joule_windows_destroy(m.windows);
        m.windows = joule_windows_create(fd, len);
        m.map.windows = m.windows;
        joule_chunkmap_rewind(&m.map);
        for (uint64_t row = 0; row < n.rows; row += 10) {
            int rc = joule_chunkmap_find(&m.map, row, &chunk);

            if (rc < 0) {
                ck_assert_int_eq(errno, EBADMSG);
                broken++;
                break;
            }
            ck_assert(rc == 0 || (chunk.first == row && chunk.size > 0));
        }
    }
    ck_assert_int_gt(broken, dice_rounds(50));
    close_map(&m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_copy");
    TCase *tc = tcase_create("copy");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_is_there_twice_is_refused);
    tcase_add_test(tc, what_cannot_be_kept);
    tcase_add_test(tc, not_finished);
    tcase_add_test(tc, tables_of_all_sizes);
    tcase_add_loop_test(tc, groups_of_all_sizes, 0, 6);
    tcase_add_loop_test(tc, chunks_from_their_places, 0, 4);
    tcase_add_test(tc, chunk_from_behind_the_end);
    tcase_add_test(tc, map_of_another_kind);
    tcase_add_test(tc, map_of_damaged_files);
    tcase_add_test(tc, map_with_holes);
    tcase_add_test(tc, map_is_what_libhdf5_says);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
