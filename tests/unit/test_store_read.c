/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/store/copy.h"
#include "common/store/fletcher.h"
#include "common/store/pool.h"
#include "common/store/reader.h"
#include "common/store/record.h"
#include "common/store/unfilter.h"
#include "tests/unit/dice.h"
#include "tests/unit/nodefile.h"

static char path[64];

static void setup(void)
{
    strcpy(path, "/tmp/joule-read.XXXXXX");
    close(mkstemp(path));
    ck_assert_int_eq(joule_reader_equip(NULL), 0);
}

static void teardown(void)
{
    unlink(path);
}

START_TEST(unsound_types)
{
    const struct joule_rowtype good = {
        .size = 16,
        .count = 1,
        .is_compound = 1,
        .column[0] = {.name = "a", .offset = 8, .size = 8, .count = 1}};
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
    UNSOUND(t.column[0].count = 2);
    UNSOUND(t.column[0].count = 0);
    UNSOUND(t.column[0].size = 3);
    UNSOUND(t.column[0].size = 0);
    UNSOUND(t.column[0].kind = 5);
    UNSOUND(t.column[0].big_endian = 2);
    UNSOUND(t.column[0].name[0] = '\0');
    UNSOUND(memset(t.column[0].name, 'x', sizeof(t.column[0].name)));
    UNSOUND(t.column[0].kind = JOULE_KIND_STRING; t.column[0].cset = 9);
}
END_TEST

START_TEST(values_of_all_widths)
{
    const unsigned char row[] = {0xFF, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1};
    struct joule_column c = {.size = 1, .count = 1};
    float single = -1.5f;

    ck_assert_uint_eq(joule_column_u64(&c, row), 0xFF);
    ck_assert_int_eq(joule_column_i64(&c, row), -1);
    c.size = 2;
    ck_assert_uint_eq(joule_column_u64(&c, row), 0xFEFF);
    c.big_endian = 1;
    ck_assert_uint_eq(joule_column_u64(&c, row), 0xFFFE);
    ck_assert_int_eq(joule_column_i64(&c, row), -2);
    c.kind = JOULE_KIND_SIGNED;
    ck_assert(joule_column_double(&c, row) == -2.0);
    c.size = 8;
    ck_assert_uint_eq(joule_column_u64(&c, row), UINT64_C(0xFFFEFFFFFFFFFF01));
    c = (struct joule_column){.size = 4, .count = 1, .kind = JOULE_KIND_FLOAT};
    ck_assert(joule_column_double(&c, &single) == -1.5);
}
END_TEST

/* A chunk of [raw] bytes with its filters on, from zlib. */
static size_t deflated(const void *raw, size_t len, int level, void *out,
                       size_t room)
{
    uLongf n = room;

    ck_assert_int_eq(compress2(out, &n, raw, len, level), Z_OK);
    return n;
}

START_TEST(deflate_at_all_levels)
{
    enum { RAW = 70000 }; /* more than one stored block */
    static unsigned char raw[RAW], stored[RAW * 2], out[RAW];
    const struct joule_pipeline p = {.count = 1,
                                     .filter[0].kind = JOULE_FILTER_DEFLATE};
    struct joule_unfilter *u = joule_unfilter_create(&p, RAW);

    for (size_t i = 0; i < RAW; i++)
        raw[i] = (unsigned char)(i * i >> 7);
    for (int level = 0; level <= 9; level += 3) {
        size_t len = deflated(raw, RAW, level, stored, sizeof(stored));
        unsigned char last = stored[len - 1];

        ck_assert_int_eq(joule_unfilter_check(u, 0, stored, len), 0);
        ck_assert_int_eq(joule_unfilter(u, 0, stored, len, out), 0);
        ck_assert_mem_eq(out, raw, RAW);
        len = deflated(raw, RAW, level, stored, sizeof(stored));
        stored[len - 1] = (unsigned char)~last; /* the checksum */
        ck_assert_int_eq(joule_unfilter_check(u, 0, stored, len), -1);
        ck_assert_int_eq(joule_unfilter(u, 0, stored, len, out), -1);
        ck_assert_int_eq(errno, EBADMSG);
        stored[len - 1] = last;
        for (size_t cut = 0; cut < len; cut += 997)
            ck_assert_int_eq(joule_unfilter(u, 0, stored, cut, out), -1);
        len = deflated(raw, RAW - 1, level, stored, sizeof(stored));
        ck_assert_int_eq(joule_unfilter(u, 0, stored, len, out), -1);
    }
    /* Left out: the bytes as they are. */
    memcpy(stored, raw, RAW);
    ck_assert_int_eq(joule_unfilter(u, 1, stored, RAW, out), 0);
    ck_assert_mem_eq(out, raw, RAW);
    ck_assert_int_eq(joule_unfilter(u, 1, stored, RAW - 1, out), -1);
    joule_unfilter_destroy(u);
}
END_TEST

/* Collects what a walk shows. */
struct seen {
    char text[4096];
    uint64_t rows, lost;
    size_t notes, runs;
    bool wants_runs;
    int fd;
    unsigned char room[3 << 20];
    uint64_t power_sum;
    struct joule_layout layout;
};

static void append(struct seen *s, const char *what, const char *name)
{
    size_t at = strlen(s->text);

    snprintf(s->text + at, sizeof(s->text) - at, "%s%s ", what, name);
}

static int on_group(void *arg, const char *name, struct joule_error *err)
{
    (void)err;
    append(arg, "(", name);
    return 0;
}

static int on_leave(void *arg, struct joule_error *err)
{
    (void)err;
    append(arg, ")", "");
    return 0;
}

static int on_attribute(void *arg, const struct joule_attribute *a,
                        struct joule_error *err)
{
    (void)err;
    ck_assert(a->name[0] != '\0' && strcmp(a->name, ".") != 0);
    ck_assert_ptr_null(strchr(a->name, '/'));
    if (strncmp(a->name, "Node", 4) == 0)
        append(arg, "@", a->name);
    return 0;
}

static int on_table(void *arg, const char *name,
                    const struct joule_layout *layout, bool stored,
                    struct joule_error *err)
{
    struct seen *s = arg;

    (void)err;
    append(arg, stored ? "#" : "=", name);
    s->layout = *layout;
    return 0;
}

static int on_table_end(void *arg, uint64_t lost, struct joule_error *err)
{
    (void)err;
    ((struct seen *)arg)->lost += lost;
    return 0;
}

static int on_note(void *arg, const char *sentence, struct joule_error *err)
{
    (void)err;
    ck_assert(sentence[0] != '\0');
    ((struct seen *)arg)->notes++;
    return 0;
}

static void *on_room(void *arg, size_t size, struct joule_error *err)
{
    struct seen *s = arg;

    (void)err;
    ck_assert_uint_le(size, sizeof(s->room));
    return s->room;
}

static int on_rows(void *arg, const void *rows, uint64_t count, size_t bytes,
                   struct joule_error *err)
{
    struct seen *s = arg;
    const struct joule_column *power =
        joule_rowtype_find(&s->layout.type, "Power");

    (void)err;
    ck_assert_uint_eq(bytes, count * s->layout.type.size);
    for (uint64_t i = 0; i < count; i++)
        s->power_sum += joule_column_u64(power, (const char *)rows +
                                                    i * s->layout.type.size);
    s->rows += count;
    return 0;
}

static int on_chunk(void *arg, uint64_t rows, uint32_t mask, const void *data,
                    size_t len, struct joule_error *err)
{
    (void)mask;
    (void)data;
    (void)len;
    (void)err;
    ((struct seen *)arg)->rows += rows;
    return 0;
}

/* All of it is there. */
static int on_run(void *arg, const struct joule_run *run,
                  struct joule_error *err)
{
    struct seen *s = arg;

    ck_assert_uint_le(run->len, sizeof(s->room));
    ck_assert_int_eq(pread(s->fd, s->room, run->len, (off_t)run->at), run->len);
    s->runs++;
    return on_rows(arg, s->room, run->rows, run->rows * s->layout.type.size,
                   err);
}

static struct seen seen;

static const struct joule_visitor visitor = {
    .group = on_group,
    .leave = on_leave,
    .attribute = on_attribute,
    .table = on_table,
    .table_end = on_table_end,
    .note = on_note,
    .room = on_room,
    .rows = on_rows,
    .chunk = on_chunk,
    .arg = &seen,
};

static struct nodefile node = {.node = "n1",
                               .rows = 1237,
                               .rate_hz = 10,
                               .tasks = 1,
                               .seed = 3,
                               .start_ns = UINT64_C(1795279470000000000)};

static int walk(const char *file)
{
    int fd = open(file, O_RDONLY);
    struct joule_error err;
    struct joule_reader *reader = joule_reader_open(fd, &err);
    struct joule_visitor v = visitor;
    int rc = -1;

    if (seen.wants_runs)
        v.run = on_run;
    memset(&seen, 0, sizeof(seen));
    seen.fd = fd;
    if (reader)
        rc = joule_reader_walk(reader, "/", JOULE_WALK_TABLES, &v, &err);
    joule_reader_close(reader);
    close(fd);
    return rc;
}

START_TEST(walk_both_layouts)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < node.rows; i++)
        sum += nodefile_power(&node, i);
    node.ours = false;
    for (int later = 0; later < 2; later++) {
        node.later = later;
        ck_assert_int_eq(nodefile_write(path, &node), 0);
        ck_assert_int_eq(walk(path), 0);
        ck_assert_str_eq(seen.text,
                         "(n1 @Node Index @Node Name =Energy (Tasks =0 ) ) ");
        ck_assert_uint_eq(seen.rows, 2 * node.rows);
        ck_assert_uint_eq(seen.power_sum, 2 * sum);
        ck_assert_uint_eq(seen.lost + seen.notes, 0);
    }
    node.later = false;
    node.ours = true;
    ck_assert_int_eq(nodefile_write(path, &node), 0);
    ck_assert_int_eq(walk(path), 0);
    ck_assert_str_eq(seen.text,
                     "(n1 @Node Index @Node Name #Energy (Tasks #0 ) ) ");
    ck_assert_uint_eq(seen.rows, 2 * node.rows);
}
END_TEST

/* Chunks that nothing could be found wrong with are told by where they are, all
 * others come with their bytes. */
START_TEST(runs_of_plain_chunks)
{
    struct nodefile n = node;
    uint64_t sum = 0, lost = 0, runs = 0;
    struct stat whole;

    n.ours = n.plain = true;
    n.rows = 50000;
    for (uint64_t i = 0; i < n.rows; i++)
        sum += nodefile_power(&n, i);
    ck_assert_int_eq(nodefile_write(path, &n), 0);
    ck_assert_int_eq(stat(path, &whole), 0);
    seen.wants_runs = true;
    ck_assert_int_eq(walk(path), 0);
    ck_assert_uint_gt(seen.runs, 0);
    ck_assert_uint_eq(seen.rows, 2 * n.rows);
    ck_assert_uint_eq(seen.power_sum, 2 * sum);
    ck_assert_uint_eq(seen.lost, 0);
    /* None is told that lies behind the end: on_run would fail. */
    for (int i = 15; i >= 8; i--) {
        ck_assert_int_eq(truncate(path, whole.st_size * i / 16), 0);
        seen.wants_runs = true;
        if (walk(path) < 0)
            continue;
        ck_assert_uint_lt(seen.rows, 2 * n.rows);
        lost += seen.lost;
        runs += seen.runs;
    }
    ck_assert_uint_gt(lost, 0);
    ck_assert_uint_gt(runs, 0);
    n.plain = false;
    ck_assert_int_eq(nodefile_write(path, &n), 0);
    seen.wants_runs = true;
    ck_assert_int_eq(walk(path), 0);
    ck_assert_uint_eq(seen.runs, 0);
    ck_assert_uint_eq(seen.rows, 2 * n.rows);
}
END_TEST

/* What HDF5's own filter makes of len bytes: data and checksum. */
static void fletcher_by_hdf5(const unsigned char *data, size_t len,
                             unsigned char *ret)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t count = len, first = 0;
    hid_t space = H5Screate_simple(1, &count, NULL), file, set;
    uint32_t mask = 9;

    H5Pset_fapl_core(access, 1 << 20, false);
    file = H5Fcreate("in memory", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pset_chunk(list, 1, &count);
    H5Pset_fletcher32(list);
    set = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, list,
                     H5P_DEFAULT);
    ck_assert_int_ge(
        H5Dwrite(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
        0);
    ck_assert_int_ge(H5Dflush(set), 0);
    ck_assert_int_ge(H5Dread_chunk(set, H5P_DEFAULT, &first, &mask, ret), 0);
    ck_assert_uint_eq(mask, 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(list);
    H5Pclose(access);
}

/* Lengths around those of a block; zeros, ones, what only just folds, and
 * anything. */
START_TEST(fletcher_agrees_with_hdf5)
{
    static const size_t lens[] = {1,   2,   3,    7,     8,    9,
                                  15,  16,  2879, 2880,  2881, 2888,
                                  719, 721, 5761, 40000, 65535};
    static unsigned char data[65536], sealed[65536 + 8];
    size_t len = lens[_i / 5];

    for (size_t i = 0; i < len; i++)
        data[i] = _i % 5 == 0   ? 0
                  : _i % 5 == 1 ? 0xFF
                  : _i % 5 == 2 ? i == len / 2
                  : _i % 5 == 3 ? (i & 1 ? 0xFE : 0xFF)
                                : (unsigned char)(i * i * 2654435761u >> 13);
    fletcher_by_hdf5(data, len, sealed);
    ck_assert_mem_eq(sealed, data, len);
    ck_assert(joule_fletcher_check(sealed, len + JOULE_FLETCHER_SIZE));
    memset(sealed + len, 0x55, JOULE_FLETCHER_SIZE);
    joule_fletcher_put(sealed, len);
    ck_assert(joule_fletcher_check(sealed, len + JOULE_FLETCHER_SIZE));
    for (size_t bit = 0; bit < len * 8; bit += len / 40 + 1) {
        sealed[bit / 8] ^= (unsigned char)(1u << bit % 8);
        ck_assert(!joule_fletcher_check(sealed, len + JOULE_FLETCHER_SIZE));
        sealed[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < JOULE_FLETCHER_SIZE; cut++)
        ck_assert(!joule_fletcher_check(sealed, cut));
}
END_TEST

/* A bit of a chunk flipped, in a file as the writer makes it: the chunk's rows
 * are lost and counted, the others come over. */
START_TEST(flipped_bit_of_a_chunk_is_found)
{
    struct nodefile n = node;
    hsize_t first = 0, size = 0;
    haddr_t at = 0;
    unsigned mask;
    hid_t file, set;
    int fd;
    unsigned char byte;

    n.ours = true;
    n.rate_hz = 1;
    n.tasks = 0;
    n.rows = 600; /* 256, 256, 88 */
    ck_assert_int_eq(nodefile_write(path, &n), 0);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(file, "/n1/Energy", H5P_DEFAULT);
    first = 256;
    ck_assert_int_ge(H5Dget_chunk_info_by_coord(set, &first, &mask, &at, &size),
                     0);
    H5Dclose(set);
    H5Fclose(file);
    fd = open(path, O_RDWR);
    for (hsize_t i = 0; i < size * 8; i += size * 8 / 50) {
        off_t where = (off_t)(at + i / 8);

        ck_assert_int_eq(pread(fd, &byte, 1, where), 1);
        byte ^= (unsigned char)(1u << i % 8);
        ck_assert_int_eq(pwrite(fd, &byte, 1, where), 1);
        ck_assert_int_eq(walk(path), 0);
        ck_assert_uint_eq(seen.lost, 256);
        ck_assert_uint_eq(seen.rows, 344);
        byte ^= (unsigned char)(1u << i % 8);
        ck_assert_int_eq(pwrite(fd, &byte, 1, where), 1);
    }
    ck_assert_int_eq(walk(path), 0);
    ck_assert_uint_eq(seen.lost, 0);
    ck_assert_uint_eq(seen.rows, 600);
    close(fd);
}
END_TEST

START_TEST(links_and_twice_reached)
{
    hid_t file, group;

    node.ours = true;
    ck_assert_int_eq(nodefile_write(path, &node), 0);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    group = H5Gopen2(file, "n1", H5P_DEFAULT);
    H5Lcreate_external("/etc/other.h5", "/", group, "x1", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_soft("/n1", group, "x2", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "n1", group, "x3", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
    H5Fclose(file);
    ck_assert_int_eq(walk(path), 0);
    ck_assert_uint_ge(seen.notes, 3);
    ck_assert_uint_eq(seen.rows, 2 * node.rows);
}
END_TEST

/* Such names cost their attributes, and not the node. */
START_TEST(odd_names_of_attributes)
{
    static const char *const names[] = {".", "a/b", "/"};
    hid_t file, group, space = H5Screate(H5S_SCALAR);

    node.ours = true;
    ck_assert_int_eq(nodefile_write(path, &node), 0);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    group = H5Gopen2(file, "n1", H5P_DEFAULT);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        hid_t id = H5Acreate2(group, names[i], H5T_STD_U64LE, space,
                              H5P_DEFAULT, H5P_DEFAULT);

        ck_assert_int_ge(id, 0);
        H5Aclose(id);
    }
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
    ck_assert_int_eq(walk(path), 0);
    ck_assert_uint_eq(seen.notes, sizeof(names) / sizeof(names[0]));
    ck_assert_uint_eq(seen.rows, 2 * node.rows);
}
END_TEST

/* A file that is marked as open, with a damaged superblock: whoever reads it
 * does not wait for the writer to mend it, who is gone. */
START_TEST(damage_is_not_waited_for)
{
    static unsigned char data[1 << 16];
    hid_t list = H5Pcreate(H5P_FILE_ACCESS), file;
    size_t len;
    FILE *f;

    H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    file =
        H5Fcreate(path, H5F_ACC_TRUNC | H5F_ACC_SWMR_WRITE, H5P_DEFAULT, list);
    ck_assert_int_ge(file, 0);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    f = fopen(path, "r+");
    len = fread(data, 1, sizeof(data), f);
    H5Fclose(file);
    H5Pclose(list);
    ck_assert_uint_eq(data[8], 3);  /* version */
    ck_assert_uint_eq(data[11], 5); /* open, by SWMR */
    data[20] ^= 1;                  /* an address: the checksum is wrong */
    rewind(f);
    ck_assert_uint_eq(fwrite(data, 1, len, f), len);
    ck_assert_int_eq(ftruncate(fileno(f), (off_t)len), 0);
    fclose(f);
    alarm(5);
    ck_assert_int_eq(walk(path), -1);
    alarm(0);
}
END_TEST

START_TEST(outside_data_is_refused)
{
    hsize_t rows = 16;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "n1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &rows, NULL);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    ck_assert_int_ge(H5Pset_external(list, "/etc/passwd", 0, 128), 0);
    H5Dclose(H5Dcreate2(group, "Energy", H5T_STD_U64LE, space, H5P_DEFAULT,
                        list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
    ck_assert_int_eq(walk(path), 0);
    ck_assert_uint_eq(seen.rows, 0);
    ck_assert_uint_eq(seen.notes, 1);
}
END_TEST

START_TEST(cut_files_give_whole_rows)
{
    uint64_t before = UINT64_MAX;
    off_t size;
    int fd;

    node.ours = false;
    node.tasks = 0;
    ck_assert_int_eq(nodefile_write(path, &node), 0);
    fd = open(path, O_RDWR);
    size = lseek(fd, 0, SEEK_END);
    for (off_t cut = size; cut > 0; cut -= size / 40) {
        ck_assert_int_eq(ftruncate(fd, cut), 0);
        if (walk(path) < 0)
            seen.rows = 0;
        ck_assert_uint_le(seen.rows, before);
        ck_assert_uint_eq(seen.rows % 10, seen.rows == node.rows ? 7 : 0);
        if (cut > size * 3 / 4)
            ck_assert_uint_gt(seen.rows, node.rows / 2);
        before = seen.rows;
    }
    close(fd);
    node.tasks = 1;
}
END_TEST

START_TEST(no_hdf5_file)
{
    int fd = open(path, O_RDWR | O_TRUNC);
    struct joule_error err;

    ck_assert_ptr_null(joule_reader_open(fd, &err));
    ck_assert_int_eq(errno, ENODATA);
    ck_assert_int_eq(write(fd, "hello", 5), 5);
    ck_assert_ptr_null(joule_reader_open(fd, &err));
    ck_assert_int_eq(errno, EBADMSG);
    close(fd);
    fd = open("/dev/zero", O_RDONLY);
    ck_assert_ptr_null(joule_reader_open(fd, &err));
    ck_assert_int_eq(errno, EINVAL);
    close(fd);
}
END_TEST

/* Every truncation and change of a good record is refused, or is as good. */
START_TEST(decoder_believes_nothing)
{
    static unsigned char data[256];
    struct joule_decoder *d = calloc(1, sizeof(*d));
    struct joule_error err;
    uint64_t state = 7;

    memset(&seen, 0, sizeof(seen));
    for (int i = 0; i < dice_rounds(200000); i++) {
        size_t len;

        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        len = 8 + state % (sizeof(data) - 8);
        for (size_t j = 8; j < len; j++)
            data[j] = (unsigned char)(state >> (j % 56) ^ j);
        memset(data, 0, 8);
        data[0] = (unsigned char)(state >> 40) % 11;
        data[4] = (unsigned char)(len - 8) & (state >> 50 & 1 ? 0xF8 : 0xFF);
        joule_decoder_start(d, &visitor);
        d->in_table = state >> 60 & 1;
        seen.text[0] = '\0';
        /* A layout that was checked: rows are only taken by it. */
        d->layout.type.size = 8;
        d->layout.type.count = 1;
        d->layout.chunk_rows = 4;
        if (joule_decoder_take(d, data, len, &err) < 0)
            ck_assert_int_eq(errno, EBADMSG);
    }
    free(d);
}
END_TEST

enum { TASKS = 40 };

struct pool_test {
    unsigned char got[TASKS]; /* what came of each task */
    int errnum[TASKS];
    size_t last;
    int fail_take_at;
};

static int pool_open(void *arg, size_t task, struct joule_error *err)
{
    (void)arg;
    if (task % 10 == 3)
        return joule_error_set(err, EPERM, "not this one");
    return open("/dev/null", O_RDONLY);
}

static int endless = 1;

static int pool_run(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    unsigned char *room;

    (void)arg;
    ck_assert_int_ge(fd, 0);
    if (task % 10 == 5)
        raise(SIGKILL);
    if (task == 7)
        while (*(volatile int *)&endless)
            ;
    if (task == 8) {
        /* No way to another file, nor to a socket. */
        if (open("/etc/passwd", O_RDONLY) >= 0 ||
            socket(AF_INET, SOCK_STREAM, 0) >= 0)
            return joule_error_set(err, 1000, "the sandbox has a hole");
    }
    /* More than fits into all slots. */
    for (int i = 0; i < 200; i++) {
        room = joule_out_room(out, 100000, err);
        if (!room)
            return -1;
        memset(room, (int)task + 1, 100000);
        joule_out_commit(out, 100000);
    }
    if (joule_out_room(out, JOULE_POOL_SLOT_SIZE + 1, NULL))
        return -1;
    return task == 9 ? joule_error_set(err, EDOM, "nine") : 0;
}

static int pool_take(void *arg, size_t task, const void *data, size_t len,
                     struct joule_error *err)
{
    struct pool_test *t = arg;
    const unsigned char *bytes = data;

    if (t->fail_take_at == (int)task)
        return joule_error_set(err, ENOSPC, "full");
    if (task == 12)
        return joule_error_set(err, EBADMSG, "nonsense");
    ck_assert_uint_ge(task, t->last);
    ck_assert_uint_eq(bytes[0], task + 1);
    ck_assert_uint_eq(bytes[len - 1], task + 1);
    t->got[task] = (unsigned char)(t->got[task] + len / 100000);
    return 0;
}

static int pool_ended(void *arg, size_t task, int errnum, const char *sentence,
                      struct joule_error *err)
{
    struct pool_test *t = arg;

    (void)err;
    ck_assert_uint_eq(task, t->last);
    t->last = task + 1;
    t->errnum[task] = errnum;
    ck_assert((errnum == 0) == (sentence[0] == '\0'));
    return 0;
}

START_TEST(pool_in_order)
{
    struct pool_test t = {.fail_take_at = -1};
    const struct joule_work work = {.open = pool_open,
                                    .run = pool_run,
                                    .take = pool_take,
                                    .ended = pool_ended,
                                    .arg = &t,
                                    .cpu_s = 1,
                                    .wall_s = 20};
    struct joule_error err;

    ck_assert_int_eq(joule_pool_run(&work, TASKS, (unsigned)_i, &err), 0);
    ck_assert_uint_eq(t.last, TASKS);
    for (int i = 0; i < TASKS; i++) {
        int want = i % 10 == 3              ? EPERM
                   : i % 10 == 5 || i == 12 ? EBADMSG
                   : i == 7                 ? ETIMEDOUT
                   : i == 9                 ? EDOM
                                            : 0;

#if defined(__SANITIZE_ADDRESS__)
        if (i == 8) /* there is no sandbox */
            continue;
#endif
        ck_assert_msg(t.errnum[i] == want, "task %d: %d", i, t.errnum[i]);
        if (want == 0)
            ck_assert_uint_eq(t.got[i], 200);
    }
    t = (struct pool_test){.fail_take_at = 14};
    ck_assert_int_eq(joule_pool_run(&work, TASKS, (unsigned)_i, &err), -1);
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_str_eq(err.text, "full");
    ck_assert_int_eq(joule_pool_run(&work, 0, 1, &err), 0);
}
END_TEST

/* 16 MB each time, and never the whole machine. */
static int hungry_run(void *arg, size_t task, int fd, struct joule_out *out,
                      struct joule_error *err)
{
    size_t size = task ? (size_t)16 << 20 : (size_t)256 << 20;
    void *volatile p = malloc(size); /* else nothing needs to be allocated */

    (void)arg;
    (void)fd;
    (void)out;
    if (!p)
        return joule_error_set(err, ENOMEM, "no memory");
    memset(p, 1, size);
    free(p);
    return 0;
}

/* The memory of a task is bounded, but what its parent has is not held against
 * it. */
START_TEST(pool_of_a_big_process)
{
    struct pool_test t = {.fail_take_at = -1};
    const struct joule_work work = {.open = pool_open,
                                    .run = hungry_run,
                                    .take = pool_take,
                                    .ended = pool_ended,
                                    .arg = &t,
                                    .cpu_s = 10,
                                    .wall_s = 20};
    struct joule_error err;
    void *volatile much = malloc((size_t)128 << 20);

    ck_assert_ptr_nonnull(much);
    ck_assert_int_eq(joule_pool_run(&work, 3, 1, &err), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_int_eq(t.errnum[0], ENOMEM);
#endif
    ck_assert_int_eq(t.errnum[1], 0);
    ck_assert_int_eq(t.errnum[2], 0);
    free(much);
}
END_TEST

/* A library that some tasks take, and that a worker has if it was forked after
 * the library was loaded. */
enum lack {
    LACK_NOTHING,
    LACK_LIBRARY,
    LACK_AFTER_OUTPUT, /* too late to begin anew */
    LACK_FOREVER,      /* a worker that always says so */
    LACKS,
};

static bool is_loaded;
static int loads;

static int lacking_run(void *arg, size_t task, int fd, struct joule_out *out,
                       struct joule_error *err)
{
    unsigned char *room;

    (void)arg;
    (void)fd;
    if (task % LACKS == LACK_FOREVER ||
        (task % LACKS == LACK_LIBRARY && !is_loaded))
        return joule_error_set(err, ELIBACC, "it lacks something");
    room = joule_out_room(out, 100000, err);
    if (!room)
        return -1;
    memset(room, (int)task + 1, 100000);
    joule_out_commit(out, 100000);
    if (task % LACKS == LACK_AFTER_OUTPUT)
        return joule_error_set(err, ELIBACC, "it lacks something");
    return 0;
}

static int load(struct joule_error *err)
{
    (void)err;
    loads++;
    is_loaded = true;
    return 0;
}

static int load_in_vain(struct joule_error *err)
{
    loads++;
    return joule_error_set(err, ENOENT, "there is none");
}

static int lacking_open(void *arg, size_t task, struct joule_error *err)
{
    (void)arg;
    (void)task;
    (void)err;
    return open("/dev/null", O_RDONLY);
}

START_TEST(pool_equips_its_workers)
{
    struct pool_test t = {.fail_take_at = -1};
    struct joule_work work = {.open = lacking_open,
                              .run = lacking_run,
                              .take = pool_take,
                              .ended = pool_ended,
                              .equip = load,
                              .arg = &t,
                              .cpu_s = 5,
                              .wall_s = 20};
    struct joule_error err;

    loads = 0;
    ck_assert_int_eq(joule_pool_run(&work, 12, (unsigned)_i, &err), 0);
    /* Once for each worker, at most. */
    ck_assert_int_ge(loads, 1);
    ck_assert_int_le(loads, _i);
    for (int i = 0; i < 12; i++) {
        bool is_well = i % LACKS == LACK_NOTHING || i % LACKS == LACK_LIBRARY;

        ck_assert_int_eq(t.errnum[i], is_well ? 0 : ELIBACC);
        ck_assert_int_eq(t.got[i], i % LACKS == LACK_FOREVER ? 0 : 1);
    }
    /* It cannot be had: each of them says why. */
    is_loaded = false;
    loads = 0;
    t = (struct pool_test){.fail_take_at = -1};
    work.equip = load_in_vain;
    ck_assert_int_eq(joule_pool_run(&work, 12, (unsigned)_i, &err), 0);
    ck_assert_int_eq(loads, 6);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(t.errnum[i], i % LACKS == LACK_NOTHING ? 0
                                      : i % LACKS == LACK_AFTER_OUTPUT
                                          ? ELIBACC
                                          : ENOENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_read");
    TCase *plain = tcase_create("plain"), *files = tcase_create("files");
    SRunner *runner;
    int failed;

    tcase_add_test(plain, unsound_types);
    tcase_add_test(plain, values_of_all_widths);
    tcase_add_test(plain, deflate_at_all_levels);
    tcase_add_loop_test(plain, fletcher_agrees_with_hdf5, 0, 17 * 5);
    tcase_add_test(plain, decoder_believes_nothing);
    tcase_add_loop_test(plain, pool_in_order, 1, 4);
    tcase_add_test(plain, pool_of_a_big_process);
    tcase_add_loop_test(plain, pool_equips_its_workers, 1, 4);
    tcase_set_timeout(plain, 120);
    tcase_add_checked_fixture(files, setup, teardown);
    tcase_add_test(files, walk_both_layouts);
    tcase_add_test(files, flipped_bit_of_a_chunk_is_found);
    tcase_add_test(files, links_and_twice_reached);
    tcase_add_test(files, runs_of_plain_chunks);
    tcase_add_test(files, odd_names_of_attributes);
    tcase_add_test(files, damage_is_not_waited_for);
    tcase_add_test(files, outside_data_is_refused);
    tcase_add_test(files, cut_files_give_whole_rows);
    tcase_add_test(files, no_hdf5_file);
    tcase_set_timeout(files, 60);
    suite_add_tcase(suite, plain);
    suite_add_tcase(suite, files);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
