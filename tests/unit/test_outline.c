/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files read without libhdf5: the same as with it, or not at all.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/outline.h"
#include "common/store/reader.h"
#include "tests/unit/dice.h"
#include "tests/unit/nodefile.h"

static char path[64];

static void setup(void)
{
    strcpy(path, "/tmp/joule-outline.XXXXXX");
    close(mkstemp(path));
    ck_assert_int_eq(joule_reader_equip(NULL), 0);
}

static void teardown(void)
{
    unlink(path);
}

/* ---- a visitor that writes all it is told to a stream ---- */

/* What tells them from others (FNV-1a). */
static void put_bytes(FILE *f, const void *data, size_t size)
{
    const unsigned char *byte = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    fprintf(f, " %zu bytes %016llx", size, (unsigned long long)hash);
}

static void put_type(FILE *f, const struct joule_rowtype *type)
{
    fprintf(f, " {%u %u", type->size, type->is_compound);
    for (uint32_t i = 0; i < type->count; i++) {
        const struct joule_column *c = &type->column[i];

        fprintf(f, "; '%s' %u %u %u %u %u %u %u", c->name, c->offset, c->size,
                c->count, c->kind, c->big_endian, c->pad, c->cset);
    }
    fputs("}", f);
}

static int on_group(void *arg, const char *name, struct joule_error *err)
{
    (void)err;
    return fprintf(arg, "group '%s'\n", name) < 0 ? -1 : 0;
}

static int on_leave(void *arg, struct joule_error *err)
{
    (void)err;
    return fputs("leave\n", arg) < 0 ? -1 : 0;
}

static int on_attribute(void *arg, const struct joule_attribute *a,
                        struct joule_error *err)
{
    (void)err;
    fprintf(arg, "attribute '%s' %u", a->name, a->elements);
    put_type(arg, &a->type);
    put_bytes(arg, a->data, a->bytes);
    return fputs("\n", arg) < 0 ? -1 : 0;
}

static int on_table(void *arg, const char *name,
                    const struct joule_layout *layout, bool stored,
                    struct joule_error *err)
{
    (void)err;
    fprintf(arg, "table '%s' %llu %llu %u %d ", name,
            (unsigned long long)layout->rows,
            (unsigned long long)layout->chunk_rows, layout->is_known, stored);
    put_bytes(arg, &layout->pipeline, sizeof(layout->pipeline));
    put_type(arg, &layout->type);
    return fputs("\n", arg) < 0 ? -1 : 0;
}

static int on_end(void *arg, uint64_t lost, struct joule_error *err)
{
    (void)err;
    return fprintf(arg, "end, lost %llu\n", (unsigned long long)lost) < 0 ? -1
                                                                          : 0;
}

static int on_note(void *arg, const char *sentence, struct joule_error *err)
{
    (void)err;
    return fprintf(arg, "note: %s\n", sentence) < 0 ? -1 : 0;
}

static void *on_room(void *arg, size_t size, struct joule_error *err)
{
    static unsigned char room[4 << 20];

    (void)arg;
    (void)err;
    return size <= sizeof(room) ? room : NULL;
}

static int on_rows(void *arg, const void *rows, uint64_t count, size_t bytes,
                   struct joule_error *err)
{
    (void)err;
    fprintf(arg, "rows %llu ", (unsigned long long)count);
    put_bytes(arg, rows, bytes);
    return fputs("\n", arg) < 0 ? -1 : 0;
}

static int on_chunk(void *arg, uint64_t rows, uint32_t mask, const void *data,
                    size_t len, struct joule_error *err)
{
    (void)err;
    fprintf(arg, "chunk %llu %u ", (unsigned long long)rows, mask);
    put_bytes(arg, data, len);
    return fputs("\n", arg) < 0 ? -1 : 0;
}

/* All that a reader says of [from] and below; the caller frees it. */
static char *told(bool slowly, const char *from, enum joule_walk how)
{
    struct joule_visitor v = {
        .group = on_group,
        .leave = on_leave,
        .attribute = on_attribute,
        .table = on_table,
        .table_end = on_end,
        .note = on_note,
        .room = on_room,
        .rows = on_rows,
        .chunk = on_chunk,
    };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct joule_error err = {""};
    struct joule_reader *reader = slowly
                                           ? joule_reader_open_slowly(fd, &err)
                                           : joule_reader_open(fd, &err);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    v.arg = f;
    if (!reader)
        fprintf(f, "no reader: %s\n", err.text);
    else if (joule_reader_walk(reader, from, how, &v, &err) < 0)
        fprintf(f, "ended: %s\n", err.text);
    else
        fprintf(f, "cut: %d\n", joule_reader_is_cut(reader));
    fclose(f);
    joule_reader_close(reader);
    close(fd);
    return text;
}

static void both_tell_the_same(const char *from, enum joule_walk how)
{
    char *one = told(false, from, how), *other = told(true, from, how);

    ck_assert_str_eq(one, other);
    free(one);
    free(other);
}

/* libhdf5 says why, too. */
static void neither_has_group(const char *name)
{
    for (int slowly = 0; slowly <= 1; slowly++) {
        char *text = told(slowly, name, JOULE_WALK_DESCRIBE);

        ck_assert_ptr_nonnull(strstr(text, "ended: there is no group"));
        ck_assert_ptr_null(strstr(text, "attribute"));
        free(text);
    }
}

static bool has_outline(void)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    struct joule_windows *windows;
    struct joule_outline *outline;

    ck_assert_int_eq(fstat(fd, &st), 0);
    windows = joule_windows_create(fd, (uint64_t)st.st_size);
    outline = joule_outline_read(windows);
    if (!outline)
        ck_assert_int_eq(errno, ENOTSUP);
    joule_outline_destroy(outline);
    joule_windows_destroy(windows);
    close(fd);
    return outline != NULL;
}

/* ---- files ---- */

static struct nodefile node = {.node = "n1",
                               .rows = 1237,
                               .rate_hz = 10,
                               .tasks = 40, /* more than one leaf of names */
                               .seed = 3,
                               .start_ns = UINT64_C(1795279470000000000)};

static void write_node(int layout)
{
    node.ours = layout > 0;
    node.plain = layout == 2;
    ck_assert_int_eq(nodefile_write(path, &node), 0);
}

START_TEST(the_same_as_libhdf5)
{
    write_node(_i);
    ck_assert(has_outline());
    both_tell_the_same("/", JOULE_WALK_TABLES);
    both_tell_the_same("/", JOULE_WALK_DESCRIBE);
    both_tell_the_same("/n1", JOULE_WALK_TABLES);
    both_tell_the_same("/n1/Tasks", JOULE_WALK_DESCRIBE);
    neither_has_group("/n1/Energy");
    neither_has_group("/n1/Nothing");
    neither_has_group("/n");
}
END_TEST

START_TEST(tables_by_path)
{
    static const char *const paths[] = {"n1/Energy", "/n1/Tasks/39", "n1",
                                        "n1/Tasks/40", "n1/Energy/x"};
    struct joule_error err = {""};
    struct joule_reader *reader;
    int fd;

    write_node(1);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    reader = joule_reader_open(fd, &err);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct joule_rows *rows = joule_reader_table(reader, paths[i], &err);

        ck_assert_int_eq(rows != NULL, i < 2);
        if (rows)
            ck_assert_uint_eq(joule_rows_layout(rows)->rows, node.rows);
        joule_rows_close(rows);
    }
    joule_reader_close(reader);
    close(fd);
}
END_TEST

/* Attributes of one object, added to a node's file. */
static void add_attribute(const char *name, hid_t type, int elements)
{
    hsize_t length = (hsize_t)elements;
    hid_t file = nodefile_open(path);
    hid_t group = H5Gopen2(file, "n1", H5P_DEFAULT);
    hid_t space =
        elements ? H5Screate_simple(1, &length, NULL) : H5Screate(H5S_SCALAR);
    hid_t id = H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    unsigned char data[256];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 7);
    ck_assert_int_ge(H5Awrite(id, type, data), 0);
    H5Aclose(id);
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
}

START_TEST(types_of_attributes)
{
    hid_t text = H5Tcopy(H5T_C_S1), utf8 = H5Tcopy(H5T_C_S1);
    hid_t pair = H5Tcreate(H5T_COMPOUND, 24), fixed = H5Tcopy(H5T_STD_U32LE);
    hsize_t three = 3;
    hid_t array = H5Tarray_create2(H5T_STD_U16LE, 1, &three);

    H5Tset_size(text, 13);
    H5Tset_strpad(text, H5T_STR_SPACEPAD);
    H5Tset_size(utf8, 5);
    H5Tset_cset(utf8, H5T_CSET_UTF8);
    H5Tinsert(pair, "a", 0, H5T_STD_I16LE);
    H5Tinsert(pair, "seven!!", 2, H5T_STD_U8LE);
    H5Tinsert(pair, "eight!!!", 8, H5T_IEEE_F64LE);
    H5Tinsert(pair, "text", 16, utf8);
    H5Tset_precision(fixed, 20);
    write_node(0);
    add_attribute("u8", H5T_STD_U8LE, 0);
    add_attribute("i64", H5T_STD_I64LE, 3);
    add_attribute("f32", H5T_IEEE_F32LE, 2);
    add_attribute("f64", H5T_IEEE_F64LE, 0);
    add_attribute("text", text, 0);
    add_attribute("utf8", utf8, 2);
    add_attribute("pair", pair, 2);
    ck_assert(has_outline());
    both_tell_the_same("/", JOULE_WALK_DESCRIBE);
    /* Left to libhdf5. */
    for (int i = 0; i < 5; i++) {
        const hid_t others[] = {H5T_STD_U32BE, H5T_IEEE_F64BE, array, fixed,
                                H5T_STD_B8LE};

        write_node(0);
        add_attribute("other", others[i], 0);
        ck_assert(!has_outline());
        both_tell_the_same("/", JOULE_WALK_DESCRIBE);
    }
    H5Tclose(text);
    H5Tclose(utf8);
    H5Tclose(pair);
    H5Tclose(fixed);
    H5Tclose(array);
}
END_TEST

/* So many that the header goes on elsewhere. */
START_TEST(many_attributes)
{
    char name[16];

    write_node(1);
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "%d", i * 37 % 60);
        add_attribute(name, H5T_STD_U64LE, 0);
    }
    ck_assert(has_outline());
    both_tell_the_same("/", JOULE_WALK_TABLES);
}
END_TEST

START_TEST(what_is_unusual_is_left_alone)
{
    hid_t file, group;

    for (int i = 0; i < 4; i++) {
        write_node(1);
        file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        group = H5Gopen2(file, "n1", H5P_DEFAULT);
        if (i == 0)
            H5Lcreate_soft("/n1", group, "x", H5P_DEFAULT, H5P_DEFAULT);
        if (i == 1)
            H5Lcreate_hard(file, "n1", group, "x", H5P_DEFAULT, H5P_DEFAULT);
        if (i == 2)
            H5Lcreate_external("/etc/x.h5", "/", group, "x", H5P_DEFAULT,
                               H5P_DEFAULT);
        H5Gclose(group);
        H5Fclose(file);
        if (i == 3)
            ck_assert_int_eq(truncate(path, 20000), 0);
        ck_assert(!has_outline());
        both_tell_the_same("/", JOULE_WALK_TABLES);
    }
}
END_TEST

/* A job of thousands of nodes. */
START_TEST(many_groups)
{
    char name[32];
    hid_t file;

    write_node(1);
    file = nodefile_open(path);
    for (int i = 0; i < 6000; i++) {
        snprintf(name, sizeof(name), "node%d", i);
        H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }
    H5Fclose(file);
    ck_assert(has_outline());
    both_tell_the_same("/", JOULE_WALK_DESCRIBE);
    both_tell_the_same("/node5999", JOULE_WALK_DESCRIBE);
    neither_has_group("/node6000");
}
END_TEST

/* No crash, nothing without end, and what comes of it can be walked. */
START_TEST(damaged_files)
{
    static unsigned char whole[1 << 20], data[1 << 20];
    size_t len, accepted = 0;
    uint64_t damages = (uint64_t)dice_rounds(1500);
    FILE *f;

    node.rows = 100;
    node.tasks = 2;
    write_node(_i);
    f = fopen(path, "r");
    len = fread(whole, 1, sizeof(whole), f);
    ck_assert_uint_lt(len, sizeof(whole));
    fclose(f);
    for (uint64_t seed = 0; seed < damages; seed++) {
        size_t left;

        memcpy(data, whole, len);
        left = nodefile_damage(data, len, seed);
        f = fopen(path, "w");
        ck_assert_uint_eq(fwrite(data, 1, left, f), left);
        fclose(f);
        if (left > 0 && has_outline()) {
            free(told(false, "/", JOULE_WALK_TABLES));
            accepted++;
        }
    }
    ck_assert_uint_gt(accepted, 0);
    ck_assert_uint_lt(accepted, damages);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("outline");
    TCase *tc = tcase_create("outline");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, the_same_as_libhdf5, 0, 3);
    tcase_add_test(tc, tables_by_path);
    tcase_add_test(tc, types_of_attributes);
    tcase_add_test(tc, many_attributes);
    tcase_add_test(tc, many_groups);
    tcase_add_test(tc, what_is_unusual_is_left_alone);
    tcase_add_loop_test(tc, damaged_files, 0, 3);
    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
