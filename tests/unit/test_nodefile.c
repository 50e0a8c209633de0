/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format of node-step files, and what is in one that was cut off: by
 * kill -9, by loss of power, by a copy that is made while it is written.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/store/nodefile.h"
#include "tests/unit/dice.h"
#include "tests/unit/rows.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static struct tree tree;
static char path[128];
static struct joule_error err;

static const struct joule_nodefile_facts facts = {
    .node = "n1",
    .writer = "test",
    .node_index = 2,
    .tasks = 12,
    .cpus_per_task = 4,
    .start_wall_ns = INT64_C(1700000000123456789),
    .start_boot_ns = 77,
};

static const struct joule_pack packs[] = {
    {0, false}, {1, false}, {1, true}, {9, true}};

static void setup(void)
{
    tree_create(&tree);
    snprintf(path, sizeof(path), "%s/f.h5", tree.path);
    memset(&err, 0, sizeof(err));
}

static void teardown(void)
{
    tree_destroy(&tree);
}

/* ---- the disk: every write and sync is recorded ---- */

struct event {
    enum { WRITE, SYNC, SIZE, COMMITTED } what;
    off_t at;
    size_t size;
    unsigned char *bytes;
};

static struct event *events;
static size_t event_count;
static int recording;
static long fail_after = -1; /* writes that succeed; -1: all do */
static int fail_errno;
static int has_failed;

ssize_t __real_pwrite(int fd, const void *buf, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t size, off_t at);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);

static void record(int what, off_t at, const void *buf, size_t size)
{
    struct event *e;

    if (!recording)
        return;
    if ((event_count & 1023) == 0)
        events = realloc(events, (event_count + 1024) * sizeof(*events));
    e = &events[event_count++];
    e->what = what;
    e->at = at;
    e->size = size;
    e->bytes = NULL;
    if (buf) {
        e->bytes = malloc(size);
        memcpy(e->bytes, buf, size);
    }
}

ssize_t __wrap_pwrite(int fd, const void *buf, size_t size, off_t at)
{
    if (fail_after >= 0 && fail_after-- == 0) {
        fail_after = 0;
        has_failed = 1;
        errno = fail_errno;
        return -1;
    }
    record(WRITE, at, buf, size);
    return __real_pwrite(fd, buf, size, at);
}

int __wrap_fdatasync(int fd)
{
    record(SYNC, 0, NULL, 0);
    return recording ? 0 : __real_fdatasync(fd);
}

int __wrap_ftruncate(int fd, off_t size)
{
    record(SIZE, size, NULL, 0);
    return __real_ftruncate(fd, size);
}

/* ---- helpers ---- */

static int must_open(void)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    return fd;
}

/* A process that will be killed does not use the framework's checks: they tell
 * the parent where they are, and it cannot read half a message. */
static bool is_child;

#define must(condition)                                                        \
    do {                                                                       \
        if (!is_child)                                                         \
            ck_assert(condition);                                              \
        else if (!(condition))                                                 \
            _exit(1);                                                          \
    } while (0)

static struct joule_nodefile *must_create(int fd)
{
    struct joule_nodefile_facts dated = facts;
    struct joule_nodefile *file;

    joule_nodefile_date(&dated);
    file = joule_nodefile_create(fd, &dated, &err);
    if (!file)
        fprintf(stderr, "%s\n", err.text);
    must(file != NULL);
    return file;
}

static int must_add(struct joule_nodefile *file, const char *name,
                    const struct joule_pack *pack, size_t chunk_rows)
{
    struct joule_table_options opt = {
        .fields = rows_fields,
        .count = ROWS_FIELDS,
        .chunk_rows = chunk_rows,
        .pack = *pack,
        .period_ns = 10000000,
    };
    int table = joule_nodefile_add_table(file, name, &opt);

    must(table >= 0);
    return table;
}

static void append(struct joule_nodefile *file, int table, uint64_t from,
                   uint64_t count)
{
    uint64_t row[ROWS_FIELDS + 3], i;

    for (i = from; i < from + count; i++) {
        rows_make(row, (unsigned)table, i);
        must(joule_table_append(joule_nodefile_table(file, table), row) == 0);
    }
}

static long count(const char *name, unsigned table)
{
    return rows_count(path, name, table, 0);
}

/* A copy of the file, which is the one at [path] now. */
static void must_copy(struct joule_nodefile *file)
{
    int fd;

    snprintf(path, sizeof(path), "%s/copy.h5", tree.path);
    fd = must_open();
    ck_assert_int_eq(joule_nodefile_copy(file, fd), 0);
    close(fd);
}

/* ---- bad inputs ---- */

START_TEST(bad_nodes)
{
    static const char *const names[] = {"",  ".",  "..",   "a/b",
                                        "/", ".x", "a\nb", "a\x01"};
    struct joule_nodefile_facts bad = facts;
    int fd = must_open(), i;

    for (i = 0; i < COUNT(names); i++) {
        bad.node = names[i];
        errno = 0;
        ck_assert_ptr_null(joule_nodefile_create(fd, &bad, &err));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, "cannot be the name"));
    }
    close(fd);
}
END_TEST

START_TEST(bad_tables)
{
    static const char *const names[] = {"",     "/",     "a/",  "/a", "..",
                                        "a/..", "a/b/c", "./a", "a\n"};
    struct joule_table_options opt = {
        .fields = rows_fields, .count = ROWS_FIELDS, .chunk_rows = 64};
    struct joule_field columns[4] = {{.name = "a"}};
    int fd = must_open(), i;
    struct joule_nodefile *file = must_create(fd);

    for (i = 0; i < COUNT(names); i++) {
        errno = 0;
        ck_assert_int_eq(joule_nodefile_add_table(file, names[i], &opt), -1);
        ck_assert_int_eq(errno, EINVAL);
    }
    must_add(file, "Energy", &packs[0], 64);
    errno = 0;
    ck_assert_int_eq(joule_nodefile_add_table(file, "Energy", &opt), -1);
    ck_assert_int_eq(errno, EINVAL);
    /* A table is no group. */
    ck_assert_int_eq(joule_nodefile_add_table(file, "Energy/0", &opt), -1);
    opt.count = JOULE_FIELDS_MAX + 1;
    errno = 0;
    ck_assert_int_eq(joule_nodefile_add_table(file, "Big", &opt), -1);
    ck_assert_int_eq(errno, E2BIG);
    /* Columns that HDF5 would not tell apart. */
    opt.fields = columns;
    for (opt.count = 2; opt.count <= 4; opt.count++) {
        columns[opt.count - 1].name = opt.count == 2   ? columns[0].name
                                      : opt.count == 3 ? ""
                                                       : "EpochTime";
        errno = 0;
        ck_assert_int_eq(joule_nodefile_add_table(file, "Odd", &opt), -1);
        ck_assert_int_eq(errno, EINVAL);
        columns[opt.count - 1].name = opt.count == 2 ? "b" : "c";
    }
    joule_nodefile_destroy(file);
    joule_nodefile_destroy(NULL);
    close(fd);
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
    time_t start = 1700000000;
    char when[32];
    hid_t file, set, type;
    struct joule_nodefile *node;
    int fd = must_open();

    node = must_create(fd);
    must_add(node, "Energy", &packs[2], 64);
    must_add(node, "Tasks/0", &packs[2], 64);
    append(node, 0, 0, 100);
    ck_assert_int_eq(joule_nodefile_finish(node, 5, 6), 0);
    joule_nodefile_destroy(node);
    close(fd);
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
    ck_assert_uint_eq(rows_attribute(path, "/n1/Energy", "Joule Period ns"),
                      10000000);
    rows_has_text(path, "/n1", "Node Name", "n1");
    ck_assert_ptr_nonnull(ctime_r(&start, when));
    when[24] = '\0';
    rows_has_text(path, "/n1", "Start Time", when);
    ck_assert_int_eq(count("/n1/Energy", 0), 100);
    ck_assert_int_eq(count("/n1/Tasks/0", 1), 0);
}
END_TEST

START_TEST(a_file_without_series)
{
    int fd = must_open(), i;
    struct joule_nodefile *file = must_create(fd);

    ck_assert_int_eq(joule_nodefile_commit(file), 0);
    for (i = 0; i < 2; i++) {
        hid_t id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
        hid_t group = H5Gopen2(id, "/n1", H5P_DEFAULT);
        H5G_info_t info;

        ck_assert_int_ge(H5Gget_info(group, &info), 0);
        ck_assert_uint_eq(info.nlinks, 0);
        ck_assert_int_eq(H5Lexists(group, "Energy", H5P_DEFAULT), 0);
        ck_assert_uint_eq(rows_attribute(path, "/n1", "Node Index"), 2);
        H5Gclose(group);
        H5Fclose(id);
        if (i == 0) {
            ck_assert_int_eq(joule_nodefile_finish(file, 1, 2), 0);
            must_copy(file);
        }
    }
    joule_nodefile_destroy(file);
    close(fd);
}
END_TEST

START_TEST(a_second_run_has_a_group_of_its_own)
{
    struct joule_nodefile_facts again = facts;
    struct joule_nodefile *file;
    int fd = must_open();

    again.run = 2;
    file = joule_nodefile_create(fd, &again, &err);
    ck_assert_ptr_nonnull(file);
    must_add(file, "Energy", &packs[0], 64);
    append(file, 0, 0, 3);
    ck_assert_int_eq(joule_nodefile_finish(file, 1, 2), 0);
    joule_nodefile_destroy(file);
    close(fd);
    ck_assert_int_eq(count("/n1.r2/Energy", 0), 3);
    ck_assert_uint_eq(rows_attribute(path, "/n1.r2", "Joule Run"), 2);
}
END_TEST

/* Every pack, and numbers of rows around the borders of chunks; committed in
 * steps of any length. */
START_TEST(rows_come_back)
{
    static const int totals[] = {0, 1, 63, 64, 65, 128, 1000};
    const struct joule_pack *pack = &packs[_i % COUNT(packs)];
    int total = totals[_i / COUNT(packs)], step, at;

    for (step = 1; step < 80; step += 13) {
        int fd = must_open();
        struct joule_nodefile *file = must_create(fd);

        must_add(file, "Energy", pack, 64);
        for (at = 0; at < total; at += step) {
            append(file, 0, (uint64_t)at,
                   (uint64_t)(total - at < step ? total - at : step));
            ck_assert_int_eq(joule_nodefile_commit(file), 0);
            ck_assert_int_eq(count("/n1/Energy", 0),
                             at + step < total ? at + step : total);
        }
        ck_assert_int_eq(joule_nodefile_finish(file, 1, 2), 0);
        ck_assert_int_eq(count("/n1/Energy", 0), total);
        joule_nodefile_destroy(file);
        close(fd);
        ck_assert_int_eq(count("/n1/Energy", 0), total);
    }
}
END_TEST

/* Rows that deflate cannot make smaller lie as they are, with a checksum. */
START_TEST(noise_is_not_packed)
{
    static uint64_t rows[64][ROWS_FIELDS + 3], back[64][ROWS_FIELDS + 3];
    const struct joule_pack *pack = &packs[1 + _i];
    int fd = must_open(), i;
    struct joule_nodefile *file = must_create(fd);
    unsigned char *bytes = (unsigned char *)rows;
    hsize_t first = 0, size;
    haddr_t at;
    unsigned mask, seed = 7;
    hid_t id, set, type;

    for (i = 0; i < (int)sizeof(rows); i++)
        bytes[i] = (unsigned char)(rand_r(&seed) >> 7);
    must_add(file, "Energy", pack, 64);
    for (i = 0; i < 64; i++)
        ck_assert_int_eq(
            joule_table_append(joule_nodefile_table(file, 0), rows[i]), 0);
    ck_assert_int_eq(joule_nodefile_finish(file, 1, 2), 0);
    joule_nodefile_destroy(file);
    close(fd);
    id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(id, "/n1/Energy", H5P_DEFAULT);
    type = H5Dget_type(set);
    ck_assert_int_ge(H5Dget_chunk_info_by_coord(set, &first, &mask, &at, &size),
                     0);
    ck_assert_uint_eq(mask, pack->shuffle ? 3 : 1);
    ck_assert_uint_eq(size, sizeof(rows) + 4);
    ck_assert_int_ge(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back),
                     0);
    ck_assert_mem_eq(back, rows, sizeof(rows));
    H5Tclose(type);
    H5Dclose(set);
    H5Fclose(id);
}
END_TEST

/* More chunks than a node of the B-tree holds, and more tables than a node of
 * the group does. */
START_TEST(large)
{
    int fd = must_open(), i;
    struct joule_nodefile *file = must_create(fd);
    char name[32];

    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "Tasks/%d", i);
        must_add(file, name, &packs[2], 64);
    }
    for (i = 0; i < 40; i++) {
        append(file, i, 0, i < 3 ? 20000 : 10);
        ck_assert_int_eq(joule_nodefile_commit(file), 0);
    }
    ck_assert_int_eq(joule_nodefile_finish(file, 1, 2), 0);
    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "/n1/Tasks/%d", i);
        ck_assert_int_eq(count(name, (unsigned)i), i < 3 ? 20000 : 10);
    }
    joule_nodefile_destroy(file);
    close(fd);
}
END_TEST

/* One row a chunk: the tree of chunks gets a third level. */
START_TEST(deep)
{
    const int total = 5000, step = 617;
    const struct joule_pack *pack = &packs[_i];
    int fd = must_open(), at;
    struct joule_nodefile *file = must_create(fd);

    must_add(file, "Energy", pack, 1);
    for (at = 0; at < total; at += step) {
        int n = total - at < step ? total - at : step;

        append(file, 0, (uint64_t)at, (uint64_t)n);
        ck_assert_int_eq(joule_nodefile_commit(file), 0);
        ck_assert_int_eq(count("/n1/Energy", 0), at + n);
    }
    ck_assert_int_eq(joule_nodefile_finish(file, 1, 2), 0);
    ck_assert_int_eq(count("/n1/Energy", 0), total);
    must_copy(file);
    joule_nodefile_destroy(file);
    close(fd);
    ck_assert_int_eq(count("/n1/Energy", 0), total);
}
END_TEST

/* ---- many names ---- */

#define NAMES 330

/* The [i]th of them that is made: each number once, in no order. */
static int number(int i)
{
    return i * 7 % NAMES;
}

static void add_names(struct joule_nodefile *file, int from, int to)
{
    char name[32];

    for (; from < to; from++) {
        snprintf(name, sizeof(name), "Tasks/%d", number(from));
        must_add(file, name, &packs[0], 1);
        append(file, from, 0, 1);
    }
}

struct seen_names {
    hid_t group;
    char last[32];
    int count;
};

/* In order, and each a table that is there. */
static herr_t see_name(hid_t group, const char *name, const H5L_info_t *info,
                       void *arg)
{
    struct seen_names *seen = arg;
    hid_t set = H5Dopen2(seen->group, name, H5P_DEFAULT);

    (void)group;
    (void)info;
    if (set < 0 || strcmp(name, seen->last) <= 0 || strlen(name) > 31)
        return -1;
    H5Dclose(set);
    snprintf(seen->last, sizeof(seen->last), "%s", name);
    seen->count++;
    return 0;
}

/* What of the first [count] names is not there; -1: all of them are, and
 * everything that is listed can be opened. */
static int missing_name(int names, int *ret_listed)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    struct seen_names seen = {.group = -1};
    int i, bad = -1;

    if (file >= 0)
        seen.group = H5Gopen2(file, "/n1/Tasks", H5P_DEFAULT);
    if (seen.group < 0 || H5Literate(seen.group, H5_INDEX_NAME, H5_ITER_INC,
                                     NULL, see_name, &seen) < 0)
        bad = 0;
    for (i = 0; bad < 0 && i < names; i++) {
        hid_t set, space;
        char name[32];

        snprintf(name, sizeof(name), "%d", number(i));
        set = H5Dopen2(seen.group, name, H5P_DEFAULT);
        space = set < 0 ? -1 : H5Dget_space(set);
        if (space < 0 || H5Sget_simple_extent_npoints(space) != 1)
            bad = i;
        if (space >= 0)
            H5Sclose(space);
        if (set >= 0)
            H5Dclose(set);
    }
    *ret_listed = seen.count;
    if (seen.group >= 0)
        H5Gclose(seen.group);
    if (file >= 0)
        H5Fclose(file);
    return bad;
}

START_TEST(many_names)
{
    int fd = must_open(), i, listed;
    struct joule_nodefile *file = must_create(fd);

    for (i = 0; i < NAMES; i += 11) {
        add_names(file, i, i + 11);
        ck_assert_int_eq(joule_nodefile_commit(file), 0);
        ck_assert_int_eq(missing_name(i + 11, &listed), -1);
        ck_assert_int_eq(listed, i + 11);
    }
    ck_assert_int_eq(joule_nodefile_finish(file, 1, 2), 0);
    must_copy(file);
    joule_nodefile_destroy(file);
    close(fd);
    ck_assert_int_eq(missing_name(NAMES, &listed), -1);
    ck_assert_int_eq(listed, NAMES);
    ck_assert_int_eq(count("/n1/Tasks/7", 1), 1);
}
END_TEST

START_TEST(a_copy_is_the_same_and_smaller)
{
    struct stat before, after;
    int fd = must_open();
    struct joule_nodefile *file = must_create(fd);

    must_add(file, "Energy", &packs[2], 256);
    must_add(file, "Tasks/0", &packs[2], 256);
    append(file, 0, 0, 3600);
    append(file, 1, 0, 10);
    ck_assert_int_eq(joule_nodefile_finish(file, 8, 9), 0);
    ck_assert(joule_nodefile_is_loose(file));
    ck_assert_int_eq(fstat(fd, &before), 0);
    must_copy(file);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_int_lt(after.st_size, before.st_size);
    joule_nodefile_destroy(file);
    close(fd);
    ck_assert_int_eq(count("/n1/Energy", 0), 3600);
    ck_assert_int_eq(count("/n1/Tasks/0", 1), 10);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule End ns"), 8);
}
END_TEST

/* What Slurm's sh5util does to merge files. */
static void copy_group(const char *from, const char *to)
{
    hid_t in = H5Fopen(from, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t out = H5Fcreate(to, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    ck_assert_int_ge(in, 0);
    ck_assert_int_ge(out, 0);
    ck_assert_int_ge(H5Ocopy(in, "/n1", out, "/n1", H5P_DEFAULT, H5P_DEFAULT),
                     0);
    H5Fclose(in);
    ck_assert_int_ge(H5Fclose(out), 0);
}

START_TEST(libhdf5_can_copy_it)
{
    const struct joule_pack *pack = &packs[_i];
    char to[128];
    int fd = must_open(), i;
    struct joule_nodefile *file = must_create(fd);

    must_add(file, "Energy", pack, 64);
    must_add(file, "Tasks/0", pack, 64);
    append(file, 0, 0, 5000);
    append(file, 1, 0, 10);
    ck_assert_int_eq(joule_nodefile_commit(file), 0);
    for (i = 0; i < 2; i++) {
        snprintf(to, sizeof(to), "%s/to%d.h5", tree.path, i);
        copy_group(path, to);
        snprintf(path, sizeof(path), "%s", to);
        ck_assert_int_eq(count("/n1/Energy", 0), 5000);
        ck_assert_int_eq(count("/n1/Tasks/0", 1), 10);
        ck_assert_uint_eq(rows_attribute(path, "/n1/Energy", "Joule Period ns"),
                          10000000);
        rows_has_text(path, "/n1", "Node Name", "n1");
        /* Once more, of the file that is closed. */
        if (i == 0) {
            ck_assert_int_eq(joule_nodefile_finish(file, 1, 2), 0);
            must_copy(file);
        }
    }
    joule_nodefile_destroy(file);
    close(fd);
}
END_TEST

/* ---- disks that refuse ---- */

/* The n-th write of a commit fails, for every n: what was there is there, and
 * the next commit makes it whole. */
START_TEST(a_failed_commit_loses_nothing)
{
    long n;

    for (n = 0; n < 60; n++) {
        int fd = must_open(), rc;
        struct joule_nodefile *file = must_create(fd);
        long is;

        must_add(file, "Energy", &packs[2], 64);
        append(file, 0, 0, 100);
        ck_assert_int_eq(joule_nodefile_commit(file), 0);
        must_add(file, "Tasks/0", &packs[2], 64);
        append(file, 0, 100, 150);
        append(file, 1, 0, 70);
        fail_errno = n % 2 ? ENOSPC : EIO;
        fail_after = n;
        has_failed = 0;
        errno = 0;
        rc = joule_nodefile_commit(file);
        if (!has_failed) { /* it took fewer writes */
            fail_after = -1;
            ck_assert_int_eq(rc, 0);
            ck_assert_int_gt(n, 4);
            joule_nodefile_destroy(file);
            close(fd);
            return;
        }
        ck_assert_int_eq(rc, -1);
        ck_assert_int_eq(errno, fail_errno);
        fail_after = -1;
        is = count("/n1/Energy", 0);
        ck_assert_msg(is == 100 || is == 250, "write %ld: %ld rows", n, is);
        ck_assert_int_eq(joule_nodefile_commit(file), 0);
        ck_assert_int_eq(count("/n1/Energy", 0), 250);
        ck_assert_int_eq(count("/n1/Tasks/0", 1), 70);
        joule_nodefile_destroy(file);
        close(fd);
    }
    ck_abort_msg("a commit never succeeds");
}
END_TEST

START_TEST(a_full_disk_can_be_told)
{
    struct joule_loss loss = {
        .rows = 150, .first_ns = 1, .last_ns = 9, .error = ENOSPC};
    int fd = must_open();
    struct joule_nodefile *file = must_create(fd);

    must_add(file, "Energy", &packs[2], 64);
    append(file, 0, 0, 100);
    ck_assert_int_eq(joule_nodefile_commit(file), 0);
    append(file, 0, 100, 150);
    fail_errno = ENOSPC;
    fail_after = 0;
    ck_assert_int_eq(joule_nodefile_commit(file), -1);
    fail_after = -1;
    ck_assert_int_eq(joule_nodefile_rescue(file, &loss), 0);
    joule_nodefile_destroy(file);
    close(fd);
    ck_assert_int_eq(count("/n1/Energy", 0), 100);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Rows"), 150);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Last ns"), 9);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Error"), ENOSPC);
}
END_TEST

/* ---- cut off ---- */

struct shared {
    _Atomic uint64_t committed[12];
    _Atomic int tables;
};

static void name_of(char *buf, size_t size, int table)
{
    if (table == 0)
        snprintf(buf, size, "Energy");
    else
        snprintf(buf, size, "Tasks/%d", table);
}

/* Rows and tables without an end, committed every few of them. */
static void sleep_us(unsigned us)
{
    struct timespec ts = {.tv_sec = us / 1000000,
                          .tv_nsec = us % 1000000 * 1000};

    nanosleep(&ts, NULL);
}

static void write_on(struct shared *shared, int fd, unsigned seed,
                     unsigned pause_us)
{
    struct joule_nodefile *file;
    uint64_t rows[12] = {0};
    int tables = 0, round, i;
    char name[32];

    is_child = true;
    file = must_create(fd);
    for (round = 0;; round++) {
        if (tables < 12 && round % 8 == 0) {
            name_of(name, sizeof(name), tables);
            must_add(file, name, &packs[seed % 4], 64);
            tables++;
        }
        for (i = 0; i < tables; i++) {
            uint64_t n = (uint64_t)(rand_r(&seed) % 40);

            append(file, i, rows[i], n);
            rows[i] += n;
        }
        if (joule_nodefile_commit(file) < 0)
            _exit(1);
        for (i = 0; i < tables; i++)
            shared->committed[i] = rows[i];
        shared->tables = tables;
        if (pause_us)
            sleep_us(pause_us);
    }
}

static void make_names(struct shared *shared, int fd)
{
    struct joule_nodefile *file;
    int i;

    is_child = true;
    file = must_create(fd);
    for (i = 0; i < NAMES; i += 3) {
        add_names(file, i, i + 3);
        if (joule_nodefile_commit(file) < 0)
            _exit(1);
        shared->tables = i + 3;
        sleep_us(2000);
    }
    for (;;)
        pause();
}

static struct shared *make_shared(void)
{
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(shared, MAP_FAILED);
    return shared;
}

/* The first table that has not all that was committed by then, or a row that
 * was never made; -1: none. */
static int spoilt_table(int tables, const uint64_t *least, long *ret_rows)
{
    int64_t file = rows_open(path);
    char name[32], object[40];
    int i;

    for (i = 0; i < tables; i++) {
        name_of(name, sizeof(name), i);
        snprintf(object, sizeof(object), "/n1/%s", name);
        *ret_rows = rows_count_in(file, object, (unsigned)i, 0);
        if (*ret_rows < (long)least[i])
            break;
    }
    rows_close(file);
    return i < tables ? i : -1;
}

static void check_cut(const char *what, int tables, const uint64_t *least)
{
    long rows;
    int i = spoilt_table(tables, least, &rows);

    ck_assert_msg(i < 0,
                  "%s: table %d: %ld, not the %llu rows that were "
                  "committed",
                  what, i, rows, (unsigned long long)(i < 0 ? 0 : least[i]));
}

static void note(const struct shared *shared, int *tables, uint64_t *least)
{
    int i;

    *tables = shared->tables;
    for (i = 0; i < *tables; i++)
        least[i] = shared->committed[i];
}


/* How long a writer takes here until it has its first tables. */
static unsigned first_tables_us(struct shared *shared)
{
    unsigned us = 0;
    int fd = must_open();
    pid_t pid;

    memset(shared, 0, sizeof(*shared));
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        write_on(shared, fd, 0, 0);
    close(fd);
    for (; shared->tables < 4 && us < 10000000; us += 1000)
        sleep_us(1000);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_ge(shared->tables, 4);
    return us;
}

START_TEST(killed_at_any_moment)
{
    struct shared *shared = make_shared();
    unsigned seed = 1, range_us = 60000 + 2 * first_tables_us(shared);
    int i, empty = 0, kills = dice_rounds(200);

    for (i = 0; i < kills; i++) {
        uint64_t least[12];
        int fd = must_open(), tables, status;
        pid_t pid;

        memset(shared, 0, sizeof(*shared));
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            write_on(shared, fd, (unsigned)i, 0);
        close(fd);
        sleep_us(2000 + (unsigned)rand_r(&seed) % range_us);
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status));
        note(shared, &tables, least);
        check_cut("killed", tables, least);
        empty += tables == 0;
    }
    ck_assert_int_lt(empty, kills / 2);
    munmap(shared, sizeof(*shared));
}
END_TEST

/* Page by page, from the beginning, taking its time. */
static void copy_slowly(const char *from, const char *to, unsigned *seed)
{
    char buf[4096];
    int in = open(from, O_RDONLY), out;
    ssize_t n;

    out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(in, 0);
    ck_assert_int_ge(out, 0);
    while ((n = read(in, buf, sizeof(buf))) > 0) {
        ck_assert_int_eq(write(out, buf, (size_t)n), n);
        if (rand_r(seed) % 16 == 0)
            sleep_us(200);
    }
    close(in);
    close(out);
}

START_TEST(copied_while_it_is_written)
{
    struct shared *shared = make_shared();
    char from[128];
    unsigned seed = 7;
    int i, j, torn = 0, copies = dice_rounds(25);

    memcpy(from, path, sizeof(from));
    for (i = 0; i < 4; i++) {
        int fd, tables;
        uint64_t least[12];
        long rows;
        pid_t pid;

        memcpy(path, from, sizeof(path));
        fd = must_open();
        memset(shared, 0, sizeof(*shared));
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            write_on(shared, fd, (unsigned)i, 4000);
        close(fd);
        while (shared->tables == 0)
            sleep_us(1000);
        for (j = 0; j < copies; j++) {
            sleep_us((unsigned)rand_r(&seed) % 20000);
            note(shared, &tables, least);
            snprintf(path, sizeof(path), "%s/copy.h5", tree.path);
            copy_slowly(from, path, &seed);
            /* Linux may read a page while it writes into it: then a header is
             * half old, and its checksum says so. */
            if (spoilt_table(tables, least, &rows) >= 0) {
                torn++;
                copy_slowly(from, path, &seed);
            }
            check_cut("copied", tables, least);
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    /* As often as the writer is met. */
    ck_assert_int_le(torn, (4 * copies + 9) / 10);
    munmap(shared, sizeof(*shared));
}
END_TEST

/* A name that was there when the copy was begun is in it, and what is in it is
 * whole, however the group of names has grown meanwhile. */
START_TEST(names_copied_while_they_are_made)
{
    struct shared *shared = make_shared();
    char from[128];
    unsigned seed = 11;
    int i, copies = 0, rounds = dice_rounds(6);

    memcpy(from, path, sizeof(from));
    /* On a busy machine a round has few copies: there are more rounds then. */
    for (i = 0; i < rounds || (copies <= 5 * rounds && i < 10 * rounds); i++) {
        int fd, names = 0, listed, bad;
        pid_t pid;

        memcpy(path, from, sizeof(path));
        fd = must_open();
        shared->tables = 0;
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            make_names(shared, fd);
        close(fd);
        while (names < NAMES) {
            sleep_us(500);
            names = shared->tables;
            if (names == 0)
                continue;
            snprintf(path, sizeof(path), "%s/copy.h5", tree.path);
            copy_slowly(from, path, &seed);
            bad = missing_name(names, &listed);
            ck_assert_msg(bad < 0, "%d of %d names (%d listed)", bad, names,
                          listed);
            copies++;
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    ck_assert_int_gt(copies, 5 * rounds);
    munmap(shared, sizeof(*shared));
}
END_TEST

/*
 * Power fails: what was synced is there; of what was written after that, each
 * page is as it was at a moment of its own.  (A page reaches the disk whole or
 * not at all.)
 */
static void lose_power(size_t at, unsigned seed)
{
    size_t synced = 0, i;
    int fd = must_open();
    off_t page, from, end;

    for (i = 0; i < at; i++)
        if (events[i].what == SYNC)
            synced = i;
    for (i = 0; i < at; i++) {
        const struct event *e = &events[i];

        if (e->what == SIZE)
            ck_assert_int_eq(__real_ftruncate(fd, e->at), 0);
        if (e->what != WRITE)
            continue;
        for (from = e->at; from < e->at + (off_t)e->size; from = end) {
            unsigned mix;

            page = from / 4096;
            mix = seed ^ (unsigned)page * 2654435761u;
            end = (page + 1) * 4096;
            if (end > e->at + (off_t)e->size)
                end = e->at + (off_t)e->size;
            if (i <= synced + (size_t)rand_r(&mix) % (at - synced + 1))
                ck_assert_int_eq(__real_pwrite(fd, e->bytes + (from - e->at),
                                               (size_t)(end - from), from),
                                 end - from);
        }
    }
    close(fd);
}

/* The number of the last commit but one at that event, -1: none.  The last one
 * may not be on the disk. */
static int last_on_disk(size_t at)
{
    int last = -1, before = -1;

    for (size_t i = 0; i < at; i++)
        if (events[i].what == COMMITTED) {
            before = last;
            last = (int)events[i].at;
        }
    return before;
}

static void forget_events(void)
{
    for (size_t i = 0; i < event_count; i++)
        free(events[i].bytes);
    free(events);
    events = NULL;
    event_count = 0;
}

#define ROUNDS 48

START_TEST(power_lost_at_any_moment)
{
    static uint64_t had[ROUNDS][12];
    static int tables_then[ROUNDS];
    uint64_t rows[12] = {0};
    unsigned seed = 3 + (unsigned)_i;
    int fd = must_open(), tables = 0, round, i, rounds = 0;
    struct joule_nodefile *file = must_create(fd);
    char name[32];
    size_t at, stride = dice_is_long() ? 12 : 120;

    recording = 1;
    for (round = 0; round < ROUNDS; round++) {
        if (tables < 12 && round % 4 == 0) {
            name_of(name, sizeof(name), tables);
            must_add(file, name, &packs[_i], 64);
            tables++;
        }
        for (i = 0; i < tables; i++) {
            uint64_t n = (uint64_t)(rand_r(&seed) % 300);

            append(file, i, rows[i], n);
            rows[i] += n;
        }
        ck_assert_int_eq(joule_nodefile_commit(file), 0);
        memcpy(had[round], rows, sizeof(rows));
        tables_then[round] = tables;
        record(COMMITTED, round, NULL, 0);
    }
    recording = 0;
    joule_nodefile_destroy(file);
    close(fd);
    for (at = 0; at <= event_count; at += 1 + (size_t)rand_r(&seed) % stride) {
        int last = last_on_disk(at);

        if (last < 0)
            continue;
        lose_power(at, (unsigned)rand_r(&seed));
        check_cut("power lost", tables_then[last], had[last]);
        rounds++;
    }
    ck_assert_int_gt(rounds, dice_rounds(100));
    forget_events();
}
END_TEST

START_TEST(power_lost_with_many_names)
{
    int fd = must_open(), i, listed, bad, cuts = 0;
    struct joule_nodefile *file = must_create(fd);
    unsigned seed = 5;
    size_t at, stride = dice_is_long() ? 20 : 200;

    recording = 1;
    for (i = 0; i < NAMES; i += 10) {
        add_names(file, i, i + 10);
        ck_assert_int_eq(joule_nodefile_commit(file), 0);
        record(COMMITTED, i + 10, NULL, 0);
    }
    recording = 0;
    joule_nodefile_destroy(file);
    close(fd);
    for (at = 0; at <= event_count; at += 1 + (size_t)rand_r(&seed) % stride) {
        int names = last_on_disk(at);

        if (names <= 0)
            continue;
        lose_power(at, (unsigned)rand_r(&seed));
        bad = missing_name(names, &listed);
        ck_assert_msg(bad < 0, "%d of %d names (%d listed)", bad, names,
                      listed);
        cuts++;
    }
    ck_assert_int_gt(cuts, dice_rounds(50));
    forget_events();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nodefile");
    TCase *tc = tcase_create("nodefile");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, bad_nodes);
    tcase_add_test(tc, bad_tables);
    tcase_add_test(tc, format);
    tcase_add_test(tc, a_file_without_series);
    tcase_add_test(tc, a_second_run_has_a_group_of_its_own);
    tcase_add_loop_test(tc, rows_come_back, 0, 7 * COUNT(packs));
    tcase_add_loop_test(tc, noise_is_not_packed, 0, COUNT(packs) - 1);
    tcase_add_test(tc, large);
    tcase_add_loop_test(tc, deep, 0, COUNT(packs));
    tcase_add_test(tc, many_names);
    tcase_add_test(tc, a_copy_is_the_same_and_smaller);
    tcase_add_loop_test(tc, libhdf5_can_copy_it, 0, COUNT(packs));
    tcase_add_test(tc, a_failed_commit_loses_nothing);
    tcase_add_test(tc, a_full_disk_can_be_told);
    tcase_add_test(tc, killed_at_any_moment);
    tcase_add_test(tc, copied_while_it_is_written);
    tcase_add_test(tc, names_copied_while_they_are_made);
    tcase_add_loop_test(tc, power_lost_at_any_moment, 0, COUNT(packs));
    tcase_add_test(tc, power_lost_with_many_names);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
