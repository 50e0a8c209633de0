/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The profile log: damaged, cut off, killed, on a full disk; and whole. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/profile/log.h"
#include "tests/unit/dice.h"
#include "tests/unit/rows.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

#define ROW_BYTES ((ROWS_FIELDS + 4) * 8)

static struct tree tree;
static char path[128];
static struct joule_error err;

static const struct joule_profile_facts facts = {
    .node = "n1",
    .writer = "test",
    .start = "Tue Nov 14 22:13:20 2023",
    .node_index = 2,
    .tasks = 12,
    .cpus_per_task = 4,
    .run = 3,
    .chunk_rows = 64,
    .pack = {1, true},
    .start_wall_ns = INT64_C(1700000000123456789),
    .start_boot_ns = 77,
};

static void setup(void)
{
    tree_create(&tree);
    snprintf(path, sizeof(path), "%s/f.log", tree.path);
    memset(&err, 0, sizeof(err));
}

static void teardown(void)
{
    tree_destroy(&tree);
}

/* ---- the disk ---- */

static long fail_after = -1; /* bytes that can be written; -1: all */
static int fail_errno, fail_syncs;

ssize_t __real_pwritev(int fd, const struct iovec *part, int count, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *part, int count, off_t at);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

/* As a disk that fills up: what there is room for is written. */
ssize_t __wrap_pwritev(int fd, const struct iovec *part, int count, off_t at)
{
    struct iovec few = part[0];

    if (fail_after < 0)
        return __real_pwritev(fd, part, count, at);
    if (fail_after == 0) {
        errno = fail_errno;
        return -1;
    }
    if ((long)few.iov_len > fail_after)
        few.iov_len = (size_t)fail_after;
    fail_after -= (long)few.iov_len;
    return __real_pwritev(fd, &few, 1, at);
}

int __wrap_fdatasync(int fd)
{
    if (fail_syncs > 0) {
        fail_syncs--;
        errno = EIO;
        return -1;
    }
    return __real_fdatasync(fd);
}

/* ---- helpers ---- */

static int must_open(void)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    return fd;
}

static const struct joule_log_table energy = {
    .name = "Energy",
    .fields = rows_fields,
    .count = ROWS_FIELDS,
    .period_ns = 10000000,
};

static struct joule_log_table task(unsigned i, char name[32])
{
    struct joule_log_table table = energy;

    snprintf(name, 32, "Tasks/%u", i);
    table.name = name;
    table.period_ns = 0;
    return table;
}

/* Rows [from, from + count) of a table, at [to]. */
static size_t put_rows(void *to, unsigned table, uint64_t from, uint64_t count)
{
    uint64_t row[ROWS_FIELDS + 3];

    for (uint64_t i = 0; i < count; i++) {
        rows_make(row, table, from + i);
        joule_log_put_row((char *)to + i * ROW_BYTES, table, row[0], row[1],
                          row + 2, ROWS_FIELDS, row[ROWS_FIELDS + 2]);
    }
    return count * ROW_BYTES;
}

static uint64_t buffer[4096 * ROW_BYTES / 8];

static int flush_rows(struct joule_log *log, unsigned table, uint64_t from,
                      uint64_t count)
{
    return joule_log_flush(log, buffer, put_rows(buffer, table, from, count),
                           NULL);
}

/* What is in a log: rows of each table, all of them as rows_make made them. */
struct contents {
    int tables, states, blocks;
    uint64_t rows[16], left_out;
    struct joule_log_state state;
    bool is_bad; /* a row that was never written */
};

static void take_rows(struct joule_log_reader *reader, struct contents *ret)
{
    uint64_t row[ROWS_FIELDS + 3];
    const void *is;
    uint32_t table;

    while ((is = joule_log_row(reader, &table))) {
        ck_assert_uint_lt(table, 16);
        rows_make(row, table, ret->rows[table]++);
        ret->is_bad |= memcmp(is, row, sizeof(row)) != 0;
    }
}

/* -1: it is no log. */
static int read_log(int fd, struct contents *ret)
{
    struct joule_log_reader *reader = joule_log_open(fd, &err);
    struct joule_log_block block;
    int rc;

    memset(ret, 0, sizeof(*ret));
    if (!reader)
        return -1;
    while ((rc = joule_log_next(reader, &block, &err)) > 0) {
        ret->blocks++;
        if (block.kind == JOULE_LOG_TABLE)
            ret->tables++;
        if (block.kind == JOULE_LOG_STATE) {
            ret->states++;
            ret->state = block.state;
            ret->state.lost_of = NULL;
        }
        take_rows(reader, ret);
    }
    ck_assert_int_eq(rc, 0);
    ret->left_out = joule_log_left_out(reader);
    joule_log_close(reader);
    return 0;
}

/* Three flushes and the end; returns its bytes. */
static size_t make_log(unsigned char *bytes, size_t size)
{
    struct joule_log_state state = {.missed = 1, .end_ns = 9, .end_wall_ns = 8};
    int fd = must_open();
    struct joule_log *log = joule_log_create(fd, &facts, &err);
    struct joule_log_table first;
    char name[32];
    ssize_t n;

    ck_assert_msg(log != NULL, "%s", err.text);
    first = task(0, name);
    ck_assert_int_eq(joule_log_add_table(log, &energy), 0);
    ck_assert_int_eq(flush_rows(log, 0, 0, 5), 0);
    ck_assert_int_eq(joule_log_add_table(log, &first), 0);
    ck_assert_int_eq(flush_rows(log, 1, 0, 3), 0);
    ck_assert_int_eq(joule_log_flush(log, NULL, 0, &state), 0);
    joule_log_destroy(log);
    n = pread(fd, bytes, size, 0);
    ck_assert_int_gt(n, 0);
    ck_assert_uint_lt((size_t)n, size);
    close(fd);
    return (size_t)n;
}

/* ---- bad inputs ---- */

START_TEST(bad_nodes)
{
    static const char *const names[] = {"",  ".",  "..",   "a/b",
                                        "/", ".x", "a\nb", "a\x01"};
    struct joule_profile_facts bad = facts;
    int fd = must_open(), i;

    for (i = 0; i < COUNT(names); i++) {
        bad.node = names[i];
        errno = 0;
        ck_assert_ptr_null(joule_log_create(fd, &bad, &err));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, "cannot be the name"));
    }
    close(fd);
    joule_log_destroy(NULL);
    joule_log_close(NULL);
}
END_TEST

START_TEST(bad_tables)
{
    static const char *const names[] = {"",     "/",     "a/",  "/a", "..",
                                        "a/..", "a/b/c", "./a", "a\n"};
    static const char *const columns[] = {"a", "", "EpochTime", "a\nb",
                                          "ElapsedTimeNs"};
    struct joule_field fields[2] = {{.name = "a"}};
    struct joule_field many[JOULE_FIELDS_MAX + 1] = {{0}};
    struct joule_log_table table = energy;
    char long_name[JOULE_NAME_MAX + 2];
    int i;

    for (i = 0; i < COUNT(names); i++) {
        table.name = names[i];
        errno = 0;
        ck_assert_int_eq(joule_log_check_table(&table), -1);
        ck_assert_int_eq(errno, EINVAL);
    }
    memset(long_name, 'x', sizeof(long_name));
    long_name[JOULE_NAME_MAX + 1] = '\0';
    table.name = long_name;
    ck_assert_int_eq(joule_log_check_table(&table), -1);
    long_name[JOULE_NAME_MAX] = '\0';
    ck_assert_int_eq(joule_log_check_table(&table), 0);
    table = (struct joule_log_table){.name = "a", .fields = fields, .count = 2};
    for (i = 0; i < COUNT(columns); i++) {
        fields[1].name = columns[i];
        errno = 0;
        ck_assert_int_eq(joule_log_check_table(&table), -1);
        ck_assert_int_eq(errno, EINVAL);
    }
    fields[1].name = "./b"; /* a label of Slurm's ipmi plugin may be so */
    ck_assert_int_eq(joule_log_check_table(&table), 0);
    table.fields = many;
    table.count = JOULE_FIELDS_MAX + 1;
    errno = 0;
    ck_assert_int_eq(joule_log_check_table(&table), -1);
    ck_assert_int_eq(errno, E2BIG);
}
END_TEST

START_TEST(too_many_rows_at_once)
{
    int fd = must_open();
    struct joule_log *log = joule_log_create(fd, &facts, &err);

    errno = 0;
    ck_assert_int_eq(joule_log_flush(log, buffer, JOULE_LOG_ROWS_MAX + 8, NULL),
                     -1);
    ck_assert_int_eq(errno, EFBIG);
    joule_log_destroy(log);
    close(fd);
}
END_TEST

START_TEST(no_logs)
{
    static const char *const texts[] = {"", "x", "\x89HDF\r\n\x1a\n",
                                        "JOULELOG", "JOULELOG\1\0\0\0"};
    struct contents is;
    int i, fd;

    for (i = 0; i < COUNT(texts); i++) {
        tree_write(&tree, "f.log", texts[i]);
        fd = open(path, O_RDONLY);
        errno = 0;
        ck_assert_int_eq(read_log(fd, &is), -1);
        ck_assert_int_eq(errno, EBADMSG);
        ck_assert_ptr_nonnull(strstr(err.text, "not a profile log"));
        close(fd);
    }
    fd = open(tree.path, O_RDONLY);
    ck_assert_int_eq(read_log(fd, &is), -1);
    close(fd);
}
END_TEST

/* Cut off at every byte: what is there is whole, and what was before the cut. */
START_TEST(cut_anywhere)
{
    static unsigned char bytes[65536];
    size_t size = make_log(bytes, sizeof(bytes)), cut;
    uint64_t before = 0;
    struct contents is;
    int opened = 0;

    for (cut = 0; cut <= size; cut++) {
        int fd;

        tree_bytes(&tree, "f.log", bytes, cut);
        fd = open(path, O_RDONLY);
        if (read_log(fd, &is) == 0) {
            opened++;
            ck_assert(!is.is_bad);
            ck_assert_uint_ge(is.rows[0] + is.rows[1], before);
            before = is.rows[0] + is.rows[1];
            ck_assert(is.states == (cut == size));
            ck_assert(cut < size || is.left_out == 0);
        } else {
            ck_assert_uint_eq(before, 0);
        }
        close(fd);
    }
    ck_assert_uint_eq(before, 8);
    ck_assert_int_gt(opened, 8 * ROW_BYTES);
}
END_TEST

/* Every bit, one after the other: nothing that was not written is read. */
START_TEST(any_bit_flipped)
{
    static unsigned char bytes[65536];
    size_t size = make_log(bytes, sizeof(bytes)), at;
    struct contents is;

    for (at = 0; at < size; at++) {
        int fd;

        bytes[at] ^= (unsigned char)(1u << at % 8);
        tree_bytes(&tree, "f.log", bytes, size);
        bytes[at] ^= (unsigned char)(1u << at % 8);
        fd = open(path, O_RDONLY);
        if (read_log(fd, &is) == 0) {
            ck_assert(!is.is_bad);
            ck_assert_int_lt(is.blocks, 5);
            ck_assert_uint_gt(is.left_out, 0);
        }
        close(fd);
    }
}
END_TEST

/* Blocks whose hash is right and whose contents are not: the user's own work. */

struct forged {
    uint64_t words[512];
    size_t count;
};

static uint64_t hash_of(const uint64_t *word, size_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 8; k++) {
            hash ^= word[i] >> (8 * k) & 0xff;
            hash *= UINT64_C(0x100000001b3);
        }
    return hash;
}

static void forge(struct forged *f, uint64_t kind, const uint64_t *body,
                  size_t count)
{
    uint64_t *head = f->words + f->count, text[512];

    memcpy(head, "JOULELOG", 8);
    head[1] = text[0] = kind;
    head[2] = text[1] = f->count * 8;
    head[3] = text[2] = count * 8;
    memcpy(head + 5, body, count * 8);
    memcpy(text + 3, body, count * 8);
    head[4] = hash_of(text, count + 3);
    f->count += 5 + count;
}

static int read_forged(const struct forged *f, struct contents *ret)
{
    int fd, rc;

    tree_bytes(&tree, "f.log", f->words, f->count * 8);
    fd = open(path, O_RDONLY);
    rc = read_log(fd, ret);
    close(fd);
    return rc;
}

#define A 0x61 /* "a" */

static const uint64_t good_facts[] = {1, 0, 1, 1, 0, 0, 1, 1,
                                      5, 6, 1, A, 1, A, 1, A};
static const uint64_t good_table[] = {0, 0, 1, A, 1, 0, 1, A};

static const struct {
    size_t at;
    uint64_t value;
} bad_facts[] = {
    {0, 2},               /* version */
    {0, 0},               /* likewise */
    {1, UINT64_MAX},      /* node index */
    {5, 65537},           /* rows of a chunk */
    {6, 10},              /* level */
    {7, 2},               /* shuffle */
    {8, UINT64_MAX},      /* clock */
    {10, 0},              /* no name */
    {10, 256},            /* too long a name */
    {10, UINT64_MAX},     /* far too long */
    {10, UINT64_MAX / 8}, /* as many bytes as there can be */
    {10, 2},              /* a 0 in it */
    {11, 0x2f},           /* "/" */
    {14, 9},              /* behind the end */
};

START_TEST(forged_facts)
{
    uint64_t body[COUNT(good_facts) + 1];
    struct forged f = {0};
    struct contents is;

    forge(&f, 1, good_facts, COUNT(good_facts));
    ck_assert_int_eq(read_forged(&f, &is), 0);
    memcpy(body, good_facts, sizeof(good_facts));
    body[COUNT(good_facts)] = 0;
    f.count = 0;
    if (_i == COUNT(bad_facts)) {
        forge(&f, 1, body, COUNT(body)); /* too long */
    } else {
        body[bad_facts[_i].at] = bad_facts[_i].value;
        forge(&f, 1, body, COUNT(good_facts));
    }
    errno = 0;
    ck_assert_int_eq(read_forged(&f, &is), -1);
    ck_assert_int_eq(errno, EBADMSG);
}
END_TEST

static const struct {
    size_t count, at;
    uint64_t value;
} bad_tables_[] = {
    {8, 0, 1},          /* not its number */
    {8, 1, UINT64_MAX}, /* period */
    {8, 2, 0},          /* no name */
    {8, 2, 300},        /* too long a name */
    {8, 3, 0x2f},       /* "/" */
    {8, 4, 2},          /* more columns than there are */
    {8, 4, 513},        /* more than may be */
    {8, 4, UINT64_MAX}, /* far more */
    {8, 4, 0},          /* fewer */
    {8, 5, 3},          /* type */
    {8, 6, 9},          /* name of a column: behind the end */
    {8, 7, 9},          /* a tabulator */
    {7, 0, 0},          /* it lacks a word */
    {1, 0, 0},          /* it lacks all but one */
};

START_TEST(forged_tables)
{
    uint64_t body[COUNT(good_table)];
    struct forged f = {0};
    struct contents is;

    forge(&f, 1, good_facts, COUNT(good_facts));
    memcpy(body, good_table, sizeof(body));
    body[bad_tables_[_i].at] = bad_tables_[_i].value;
    forge(&f, 2, body, bad_tables_[_i].count);
    forge(&f, 2, good_table, COUNT(good_table));
    ck_assert_int_eq(read_forged(&f, &is), 0);
    ck_assert_int_eq(is.tables, 0);
    ck_assert_uint_gt(is.left_out, 0);
}
END_TEST

/* {table + size << 32, cells ...} */
static const struct {
    size_t count;
    uint64_t head;
} bad_rows[] = {
    {5, UINT64_C(32) << 32 | 1},          /* no such table */
    {5, UINT64_C(32) << 32 | UINT32_MAX}, /* likewise */
    {5, UINT64_C(24) << 32},              /* fewer than its columns */
    {5, UINT64_C(40) << 32},              /* more */
    {5, UINT64_C(0xfffffff8) << 32},      /* far behind the end */
    {4, UINT64_C(32) << 32},              /* behind the end */
    {6, UINT64_C(32) << 32},              /* a row and a piece */
    {1, 0},                               /* a piece */
};

START_TEST(forged_rows)
{
    uint64_t body[16] = {0};
    struct forged f = {0};
    struct contents is;

    forge(&f, 1, good_facts, COUNT(good_facts));
    forge(&f, 2, good_table, COUNT(good_table));
    body[0] = bad_rows[_i].head;
    forge(&f, 3, body, bad_rows[_i].count);
    ck_assert_int_eq(read_forged(&f, &is), 0);
    ck_assert_int_eq(is.tables, 1);
    ck_assert_uint_eq(is.rows[0], 0);
    ck_assert_uint_gt(is.left_out, 0);
}
END_TEST

START_TEST(forged_states)
{
    static const uint64_t many[] = {0, 0, 0, 0, 0, 1, 1, 1, 5};
    static const uint64_t wide[] = {0, 0, 0, 0, UINT64_MAX, 1, 1, 0};
    static const uint64_t few[] = {0, 0, 0};
    struct forged f = {0};
    struct contents is;

    forge(&f, 1, good_facts, COUNT(good_facts));
    if (_i == 0)
        forge(&f, 4, many, COUNT(many)); /* lost of a table that is none */
    else if (_i == 1)
        forge(&f, 4, wide, COUNT(wide)); /* errno */
    else if (_i == 2)
        forge(&f, 4, few, COUNT(few));
    else if (_i == 3)
        forge(&f, 5, few, COUNT(few)); /* no such kind */
    else
        forge(&f, 1, good_facts, COUNT(good_facts)); /* a second time */
    ck_assert_int_eq(read_forged(&f, &is), 0);
    ck_assert_int_eq(is.blocks, 0);
    ck_assert_uint_gt(is.left_out, 0);
}
END_TEST

/* A block from elsewhere in the file. */
START_TEST(a_block_has_its_place)
{
    struct forged f = {0};
    struct contents is;

    forge(&f, 1, good_facts, COUNT(good_facts));
    forge(&f, 2, good_table, COUNT(good_table));
    memmove(f.words + f.count, f.words + f.count - 5 - COUNT(good_table),
            (5 + COUNT(good_table)) * 8);
    f.count += 5 + COUNT(good_table);
    ck_assert_int_eq(read_forged(&f, &is), 0);
    ck_assert_int_eq(is.tables, 1);
}
END_TEST

/* ---- it works ---- */

START_TEST(all_comes_back)
{
    uint64_t lost[2] = {0, 7};
    struct joule_log_state state = {.missed = 3,
                                    .lost_rows = 7,
                                    .lost_first_ns = 5,
                                    .lost_last_ns = 6,
                                    .lost_error = ENOSPC,
                                    .lost_of = lost,
                                    .table_count = 2};
    int fd = must_open();
    struct joule_log *log = joule_log_create(fd, &facts, &err);
    struct joule_log_table second;
    const struct joule_profile_facts *f;
    struct joule_log_reader *reader;
    struct joule_log_block block;
    struct contents is;
    char name[32];
    struct stat st;

    second = task(7, name);
    ck_assert_int_eq(joule_log_add_table(log, &energy), 0);
    ck_assert_int_eq(joule_log_add_table(log, &second), 0);
    for (uint64_t i = 0; i < 50; i++) {
        ck_assert_int_eq(flush_rows(log, 0, i * 20, 20), 0);
        ck_assert_int_eq(read_log(fd, &is), 0);
        ck_assert_uint_eq(is.rows[0], (i + 1) * 20);
        ck_assert_uint_eq(is.left_out, 0);
        ck_assert_int_eq(is.states, 0);
    }
    ck_assert_int_eq(flush_rows(log, 1, 0, 3), 0);
    ck_assert_int_eq(joule_log_flush(log, NULL, 0, &state), 0);
    state.end_ns = 99;
    state.end_wall_ns = 100;
    ck_assert_int_eq(joule_log_flush(log, NULL, 0, &state), 0);
    joule_log_destroy(log);

    ck_assert_int_eq(read_log(fd, &is), 0);
    ck_assert(!is.is_bad);
    ck_assert_uint_eq(is.rows[0], 1000);
    ck_assert_uint_eq(is.rows[1], 3);
    ck_assert_int_eq(is.states, 2);
    ck_assert_uint_eq(is.state.missed, 3);
    ck_assert_uint_eq(is.state.lost_rows, 7);
    ck_assert_int_eq(is.state.lost_error, ENOSPC);
    ck_assert_int_eq(is.state.end_ns, 99);
    ck_assert_int_eq(is.state.end_wall_ns, 100);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_lt(st.st_size, 1003 * ROW_BYTES + 50 * 40 + 1000);

    reader = joule_log_open(fd, &err);
    f = joule_log_facts(reader);
    ck_assert_str_eq(f->node, "n1");
    ck_assert_str_eq(f->writer, "test");
    ck_assert_str_eq(f->start, facts.start);
    ck_assert_uint_eq(f->node_index, 2);
    ck_assert_uint_eq(f->tasks, 12);
    ck_assert_uint_eq(f->cpus_per_task, 4);
    ck_assert_uint_eq(f->run, 3);
    ck_assert_uint_eq(f->chunk_rows, 64);
    ck_assert_int_eq(f->pack.level, 1);
    ck_assert(f->pack.shuffle);
    ck_assert_int_eq(f->start_wall_ns, facts.start_wall_ns);
    ck_assert_int_eq(f->start_boot_ns, 77);
    ck_assert_int_eq(joule_log_next(reader, &block, &err), 1);
    ck_assert_int_eq(block.kind, JOULE_LOG_TABLE);
    ck_assert_str_eq(block.table.name, "Energy");
    ck_assert_int_eq(block.table.period_ns, 10000000);
    ck_assert_uint_eq(block.table.count, ROWS_FIELDS);
    ck_assert_str_eq(block.table.fields[2].name, "package_0_mW");
    ck_assert_int_eq(block.table.fields[2].type, JOULE_FIELD_DOUBLE);
    ck_assert_int_eq(joule_log_next(reader, &block, &err), 1);
    ck_assert_str_eq(block.table.name, "Tasks/7");
    while (joule_log_next(reader, &block, &err) > 0)
        ;
    ck_assert_uint_eq(block.state.lost_of[1], 7);
    joule_log_close(reader);
    close(fd);
}
END_TEST

/* A text of every length, so that each lies differently in its words. */
START_TEST(texts_of_any_length)
{
    char name[JOULE_NAME_MAX + 1];
    int length;

    for (length = 1; length <= JOULE_NAME_MAX; length++) {
        struct joule_profile_facts named = facts;
        struct joule_log_reader *reader;
        struct joule_log *log;
        int fd = must_open();

        memset(name, 'n', sizeof(name));
        name[length] = '\0';
        named.node = name;
        log = joule_log_create(fd, &named, &err);
        ck_assert_msg(log != NULL, "%s", err.text);
        reader = joule_log_open(fd, &err);
        ck_assert_msg(reader != NULL, "%s", err.text);
        ck_assert_str_eq(joule_log_facts(reader)->node, name);
        ck_assert_str_eq(joule_log_facts(reader)->writer, "test");
        joule_log_close(reader);
        joule_log_destroy(log);
        close(fd);
    }
}
END_TEST

/* Others see that it is being written. */
START_TEST(is_locked)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = must_open(), other = open(path, O_RDWR);
    struct joule_log *log = joule_log_create(fd, &facts, &err);

    ck_assert_int_eq(fcntl(other, F_OFD_GETLK, &whole), 0);
    ck_assert_int_eq(whole.l_type, F_WRLCK);
    joule_log_destroy(log);
    close(fd);
    whole.l_pid = 0;
    ck_assert_int_eq(fcntl(other, F_OFD_GETLK, &whole), 0);
    ck_assert_int_eq(whole.l_type, F_UNLCK);
    close(other);
}
END_TEST

/* ---- disks that refuse ---- */

/* After any number of bytes: what was there is there, and once there is room,
 * nothing is missing. */
START_TEST(a_failed_flush_loses_nothing)
{
    struct joule_log_table second;
    long n, last = 0;
    char name[32];

    second = task(1, name);
    for (n = 0; !last; n += n < 300 ? 7 : 211) {
        int fd = must_open();
        struct joule_log *log = joule_log_create(fd, &facts, &err);
        struct contents is;

        ck_assert_int_eq(joule_log_add_table(log, &energy), 0);
        ck_assert_int_eq(flush_rows(log, 0, 0, 100), 0);
        ck_assert_int_eq(joule_log_add_table(log, &second), 0);
        fail_errno = n % 2 ? ENOSPC : EIO;
        fail_after = n;
        errno = 0;
        if (flush_rows(log, 1, 0, 70) == 0)
            last = n;
        else
            ck_assert_int_eq(errno, fail_errno);
        fail_after = -1;
        ck_assert_int_eq(read_log(fd, &is), 0);
        ck_assert(!is.is_bad);
        ck_assert_uint_eq(is.rows[0], 100);
        if (!last) {
            ck_assert(is.rows[1] == 0 || is.rows[1] == 70);
            /* Fewer than before, so that something is left behind them. */
            ck_assert_int_eq(flush_rows(log, 1, 0, 2), 0);
            ck_assert_int_eq(read_log(fd, &is), 0);
            ck_assert(!is.is_bad);
            ck_assert_uint_eq(is.rows[0], 100);
            ck_assert_uint_eq(is.rows[1], 2);
        }
        joule_log_destroy(log);
        close(fd);
    }
    ck_assert_int_gt(last, 70 * ROW_BYTES);
}
END_TEST

START_TEST(a_failed_sync_is_written_again)
{
    int fd = must_open();
    struct joule_log *log = joule_log_create(fd, &facts, &err);
    struct contents is;

    ck_assert_int_eq(joule_log_add_table(log, &energy), 0);
    fail_syncs = 1;
    errno = 0;
    ck_assert_int_eq(flush_rows(log, 0, 0, 100), -1);
    ck_assert_int_eq(errno, EIO);
    ck_assert_int_eq(flush_rows(log, 0, 0, 100), 0);
    ck_assert_int_eq(read_log(fd, &is), 0);
    ck_assert_uint_eq(is.rows[0], 100);
    ck_assert_int_eq(is.tables, 1);
    joule_log_destroy(log);
    close(fd);
}
END_TEST

/* The end of a log needs no more room on the disk than there is already. */
START_TEST(a_full_disk_can_be_told)
{
    uint64_t lost[1] = {150};
    struct joule_log_state state = {.lost_rows = 150,
                                    .lost_error = ENOSPC,
                                    .end_ns = 5,
                                    .lost_of = lost,
                                    .table_count = 1};
    int fd = must_open();
    struct joule_log *log = joule_log_create(fd, &facts, &err);
    struct contents is;
    struct stat st;

    ck_assert_int_eq(joule_log_add_table(log, &energy), 0);
    ck_assert_int_eq(flush_rows(log, 0, 0, 100), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    fail_errno = ENOSPC;
    fail_after = 5000;
    ck_assert_int_eq(flush_rows(log, 0, 100, 150), -1);
    fail_after = JOULE_LOG_SPARE;
    ck_assert_int_eq(joule_log_flush(log, NULL, 0, &state), 0);
    fail_after = -1;
    joule_log_destroy(log);
    ck_assert_int_eq(read_log(fd, &is), 0);
    ck_assert_uint_eq(is.rows[0], 100);
    ck_assert_uint_eq(is.state.lost_rows, 150);
    ck_assert_int_eq(is.state.end_ns, 5);
    ck_assert_uint_eq(is.left_out, 0);
    ck_assert_int_lt(lseek(fd, 0, SEEK_END), st.st_size);
    close(fd);
}
END_TEST

/* ---- cut off ---- */

struct shared {
    _Atomic uint64_t flushed[12];
    _Atomic int tables;
    _Atomic int rounds; /* that may be written: a reader that is slower than the
                           writer would never come to the end */
};

static void sleep_us(unsigned us)
{
    struct timespec ts = {.tv_sec = us / 1000000,
                          .tv_nsec = us % 1000000 * 1000};

    nanosleep(&ts, NULL);
}

/* Rows and tables, flushed every few of them, until it is killed. */
static void write_on(struct shared *shared, int fd, unsigned seed)
{
    struct joule_log *log = joule_log_create(fd, &facts, NULL);
    uint64_t rows[12] = {0};
    int tables = 0, round, i;
    char name[32];

    for (round = 0; log; round++) {
        size_t size = 0;

        while (round >= shared->rounds)
            sleep_us(100);
        if (tables < 12 && round % 8 == 0) {
            struct joule_log_table table = task((unsigned)tables++, name);

            if (joule_log_add_table(log, &table) < 0)
                break;
        }
        for (i = 0; i < tables; i++) {
            uint64_t n = (uint64_t)(rand_r(&seed) % 40);

            size += put_rows((char *)buffer + size, (unsigned)i, rows[i], n);
            rows[i] += n;
        }
        if (joule_log_flush(log, buffer, size, NULL) < 0)
            break;
        for (i = 0; i < tables; i++)
            shared->flushed[i] = rows[i];
        shared->tables = tables;
    }
    _exit(1);
}

static pid_t must_start(struct shared *shared, int fd, unsigned seed)
{
    pid_t pid;

    ck_assert_int_eq(ftruncate(fd, 0), 0);
    memset(shared, 0, sizeof(*shared));
    shared->rounds = 512;
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        write_on(shared, fd, seed);
    for (int k = 0; k < 20000 && shared->tables == 0; k++)
        sleep_us(500);
    ck_assert_int_gt(shared->tables, 0);
    return pid;
}

START_TEST(killed_at_any_moment)
{
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int i, k, fd = must_open(), kills = dice_rounds(200);
    unsigned seed = 1;

    ck_assert_ptr_ne(shared, MAP_FAILED);
    for (i = 0; i < kills; i++) {
        pid_t pid = must_start(shared, fd, (unsigned)i);
        struct contents is;
        int status;

        sleep_us((unsigned)rand_r(&seed) % 30000);
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status));
        ck_assert_int_eq(read_log(fd, &is), 0);
        ck_assert(!is.is_bad);
        ck_assert_int_ge(is.tables, shared->tables);
        for (k = 0; k < shared->tables; k++)
            ck_assert_uint_ge(is.rows[k], shared->flushed[k]);
    }
    close(fd);
    munmap(shared, sizeof(*shared));
}
END_TEST

/* Again and again: never less than was flushed when the reading began.  A new
 * log now and then, before it grows too long. */
START_TEST(read_while_it_is_written)
{
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = must_open(), i, k, reads = dice_rounds(300);
    pid_t pid = 0;

    ck_assert_ptr_ne(shared, MAP_FAILED);
    for (i = 0; i < reads; i++) {
        uint64_t least[12];
        struct contents is;
        int tables;

        if (i % 10 == 0) {
            if (pid) {
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
            }
            pid = must_start(shared, fd, (unsigned)i);
        }
        shared->rounds += 128;
        tables = shared->tables;
        for (k = 0; k < tables; k++)
            least[k] = shared->flushed[k];
        ck_assert_int_eq(read_log(fd, &is), 0);
        ck_assert(!is.is_bad);
        for (k = 0; k < tables; k++)
            ck_assert_uint_ge(is.rows[k], least[k]);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(fd);
    munmap(shared, sizeof(*shared));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *tc = tcase_create("log");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, bad_nodes);
    tcase_add_test(tc, bad_tables);
    tcase_add_test(tc, too_many_rows_at_once);
    tcase_add_test(tc, no_logs);
    tcase_add_test(tc, cut_anywhere);
    tcase_add_test(tc, any_bit_flipped);
    tcase_add_loop_test(tc, forged_facts, 0, COUNT(bad_facts) + 1);
    tcase_add_loop_test(tc, forged_tables, 0, COUNT(bad_tables_));
    tcase_add_loop_test(tc, forged_rows, 0, COUNT(bad_rows));
    tcase_add_loop_test(tc, forged_states, 0, 5);
    tcase_add_test(tc, a_block_has_its_place);
    tcase_add_test(tc, all_comes_back);
    tcase_add_test(tc, texts_of_any_length);
    tcase_add_test(tc, is_locked);
    tcase_add_test(tc, a_failed_flush_loses_nothing);
    tcase_add_test(tc, a_failed_sync_is_written_again);
    tcase_add_test(tc, a_full_disk_can_be_told);
    tcase_add_test(tc, killed_at_any_moment);
    tcase_add_test(tc, read_while_it_is_written);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
