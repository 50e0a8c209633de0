/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/log.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/hash.h"

#define MAGIC   UINT64_C(0x474f4c454c554f4a) /* "JOULELOG" */
#define VERSION 1
#define FACTS   1 /* the kind of the first block */

/* magic, kind, offset, bytes of the body, hash */
#define HEAD_WORDS 5
#define HEAD_BYTES ((size_t)HEAD_WORDS * 8)

/* A body of any other kind than rows: 512 columns of the longest names. */
#define BODY_MAX ((size_t)1024 * 1024)

/* ---- names ---- */

static bool is_printable(const char *name, size_t length)
{
    if (length == 0 || length > JOULE_NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return false;
    return true;
}

/* Of a group or table in an HDF5 file, where '/' and "." mean something. */
static bool is_name(const char *name, size_t length)
{
    return is_printable(name, length) && name[0] != '.' &&
           !memchr(name, '/', length);
}

static bool is_table_name(const char *name)
{
    const char *slash = strchr(name, '/');

    if (!slash)
        return is_name(name, strlen(name));
    return is_name(name, (size_t)(slash - name)) &&
           is_name(slash + 1, strlen(slash + 1));
}

static bool is_column_taken(const struct joule_log_table *table, size_t column)
{
    const char *name = table->fields[column].name;

    for (size_t i = 0; i < column; i++)
        if (strcmp(table->fields[i].name, name) == 0)
            return true;
    return strcmp(name, "ElapsedTime") == 0 || strcmp(name, "EpochTime") == 0 ||
           strcmp(name, "ElapsedTimeNs") == 0;
}

int joule_log_check_table(const struct joule_log_table *table)
{
    errno = E2BIG;
    if (table->count > JOULE_FIELDS_MAX)
        return -1;
    errno = EINVAL;
    if (!is_table_name(table->name) || table->period_ns < 0)
        return -1;
    for (size_t i = 0; i < table->count; i++) {
        const struct joule_field *field = &table->fields[i];

        if (!is_printable(field->name, strlen(field->name)) ||
            field->type > JOULE_FIELD_TEXT || is_column_taken(table, i))
            return -1;
    }
    return 0;
}

/* ---- rows ---- */

size_t joule_log_cells(const struct joule_log_table *table)
{
    size_t cells = table->count;

    for (size_t i = 0; i < table->count; i++)
        if (table->fields[i].type == JOULE_FIELD_TEXT)
            cells += JOULE_TEXT_CELLS - 1;
    return cells;
}

void joule_log_put_row(void *to, uint32_t table, uint64_t elapsed_s,
                       uint64_t epoch_s, const void *cells, size_t count,
                       uint64_t ns)
{
    uint64_t *word = to, cell;

    *word++ = htole64(table | (uint64_t)(joule_log_row_bytes(count) - 8) << 32);
    *word++ = htole64(elapsed_s);
    *word++ = htole64(epoch_s);
    for (size_t i = 0; i < count; i++) {
        memcpy(&cell, (const char *)cells + i * 8, 8);
        *word++ = htole64(cell);
    }
    *word = htole64(ns);
}

uint32_t joule_log_row_table(const void *row, size_t *ret_bytes,
                             uint64_t *ret_ns)
{
    const uint64_t *word = row;
    uint64_t head = le64toh(word[0]);

    *ret_bytes = 8 + (size_t)(head >> 32);
    *ret_ns = le64toh(word[*ret_bytes / 8 - 1]);
    return (uint32_t)head;
}

/* ---- blocks ---- */

static uint64_t hash_words(uint64_t hash, const void *words, size_t size)
{
    const uint64_t *word = words;

    for (size_t i = 0; i < size / 8; i++)
        hash = joule_hash_u64(hash, le64toh(word[i]));
    return hash;
}

static uint64_t hash_block(uint64_t kind, uint64_t at, const void *body,
                           size_t size)
{
    uint64_t hash = joule_hash_u64(JOULE_HASH_BEGIN, kind);

    hash = joule_hash_u64(joule_hash_u64(hash, at), size);
    return hash_words(hash, body, size);
}

static void put_head(void *head, uint64_t kind, uint64_t at, const void *body,
                     size_t size)
{
    uint64_t words[HEAD_WORDS] = {htole64(MAGIC), htole64(kind), htole64(at),
                                  htole64(size),
                                  htole64(hash_block(kind, at, body, size))};

    memcpy(head, words, HEAD_BYTES);
}

/* Blocks in memory.  [failed]: there was none. */
struct buffer {
    uint64_t *words;
    size_t used, room; /* words */
    bool failed;
};

static void put_words(struct buffer *b, const void *bytes, size_t size)
{
    size_t words = (size + 7) / 8;

    if (b->used + words > b->room && !b->failed) {
        size_t room = 2 * b->room + words + 64;
        uint64_t *more = reallocarray(b->words, room, 8);

        b->failed = !more;
        if (more) {
            b->words = more;
            b->room = room;
        }
    }
    if (b->failed || words == 0)
        return;
    b->words[b->used + words - 1] = 0;
    memcpy(b->words + b->used, bytes, size);
    b->used += words;
}

static void put_u64(struct buffer *b, uint64_t value)
{
    value = htole64(value);
    put_words(b, &value, 8);
}

static void put_text(struct buffer *b, const char *text)
{
    put_u64(b, strlen(text));
    put_words(b, text, strlen(text));
}

/* The head of a block, filled in by end_block; returns where it is. */
static size_t begin_block(struct buffer *b)
{
    static const uint64_t nothing[HEAD_WORDS];
    size_t head = b->used;

    put_words(b, nothing, HEAD_BYTES);
    return head;
}

/* [at] is where the buffer will lie in the file. */
static int end_block(struct buffer *b, size_t head, uint64_t kind, uint64_t at)
{
    const uint64_t *body = b->words + head + HEAD_WORDS;

    if (b->failed) {
        b->failed = false;
        b->used = head;
        errno = ENOMEM;
        return -1;
    }
    put_head(b->words + head, kind, at + head * 8, body,
             (b->used - head - HEAD_WORDS) * 8);
    return 0;
}

/* ---- writing ---- */

struct joule_log {
    int fd;
    uint64_t end; /* of the blocks that are safe in the file */
    bool is_torn; /* there may be more in it: a flush has failed */
    uint32_t tables;
    struct buffer waiting; /* tables, which will lie at [end] */
    struct buffer state;
};

/* An open file description lock: unlike flock(2) it is seen by the nodes that
 * share a file system whatever their NFS version, and unlike a lock of the
 * process it stays when another descriptor of the file is closed. */
static void lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    fcntl(fd, F_OFD_SETLK, &whole);
}

/* All of it, at [at]. */
static int write_all(int fd, struct iovec *part, int count, uint64_t at)
{
    for (;;) {
        ssize_t n;

        for (; count > 0 && part->iov_len == 0; count--)
            part++;
        if (count == 0)
            return 0;
        n = pwritev(fd, part, count, (off_t)at);
        if (n == 0)
            errno = EIO;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += (uint64_t)n;
        for (; count > 0 && (size_t)n >= part->iov_len; count--)
            n -= (ssize_t)part++->iov_len;
        if (count > 0) {
            part->iov_base = (char *)part->iov_base + n;
            part->iov_len -= (size_t)n;
        }
    }
}

/* Tables, rows, state, and zeros behind them: room that the end will need. */
static int append(struct joule_log *log, const void *rows, size_t size,
                  bool is_end)
{
    static const unsigned char spare[JOULE_LOG_SPARE];
    unsigned char head[HEAD_BYTES];
    uint64_t at = log->end + log->waiting.used * 8;
    struct iovec part[] = {
        {log->waiting.words, log->waiting.used * 8},
        {head, size ? HEAD_BYTES : 0},
        {(void *)rows, size},
        {log->state.words, log->state.used * 8},
        {(void *)spare, is_end ? 0 : sizeof(spare)},
    };
    uint64_t end = log->end;

    for (int i = 0; i < 4; i++)
        end += part[i].iov_len;
    if (size)
        put_head(head, JOULE_LOG_ROWS, at, rows, size);
    /* A flush that failed may have left blocks, which take room on a full disk. */
    if (log->is_torn &&
        ftruncate(log->fd, (off_t)(log->end + JOULE_LOG_SPARE)) < 0)
        return -1;
    log->is_torn = true;
    if (write_all(log->fd, part, 5, log->end) < 0 ||
        (is_end && ftruncate(log->fd, (off_t)end) < 0) ||
        fdatasync(log->fd) < 0)
        return -1;
    log->is_torn = false;
    log->end = end;
    log->waiting.used = 0;
    return 0;
}

static int put_state(struct joule_log *log, size_t rows_bytes,
                     const struct joule_log_state *state)
{
    struct buffer *b = &log->state;
    uint64_t at = log->end + log->waiting.used * 8 + rows_bytes;
    size_t head;

    b->used = 0;
    if (!state)
        return 0;
    head = begin_block(b);
    put_u64(b, state->missed);
    put_u64(b, state->lost_rows);
    put_u64(b, state->lost_first_ns);
    put_u64(b, state->lost_last_ns);
    put_u64(b, (uint64_t)state->lost_error);
    put_u64(b, (uint64_t)state->end_ns);
    put_u64(b, (uint64_t)state->end_wall_ns);
    put_u64(b, state->table_count);
    for (size_t i = 0; i < state->table_count; i++)
        put_u64(b, state->lost_of[i]);
    return end_block(b, head, JOULE_LOG_STATE, at);
}

int joule_log_flush(struct joule_log *log, const void *rows, size_t size,
                    const struct joule_log_state *state)
{
    if (size > JOULE_LOG_ROWS_MAX) {
        errno = EFBIG;
        return -1;
    }
    if (put_state(log, size ? HEAD_BYTES + size : 0, state) < 0)
        return -1;
    return append(log, rows, size, state && state->end_ns);
}

int joule_log_add_table(struct joule_log *log,
                        const struct joule_log_table *table)
{
    struct buffer *b = &log->waiting;
    size_t head;

    if (joule_log_check_table(table) < 0)
        return -1;
    if (log->tables == JOULE_TABLES_MAX) {
        errno = ENOSPC;
        return -1;
    }
    head = begin_block(b);
    put_u64(b, log->tables);
    put_u64(b, (uint64_t)table->period_ns);
    put_text(b, table->name);
    put_u64(b, table->count);
    for (size_t i = 0; i < table->count; i++) {
        put_u64(b, table->fields[i].type);
        put_text(b, table->fields[i].name);
    }
    if (end_block(b, head, JOULE_LOG_TABLE, log->end) < 0)
        return -1;
    log->tables++;
    return 0;
}

static int put_facts(struct joule_log *log,
                     const struct joule_profile_facts *facts)
{
    struct buffer *b = &log->waiting;
    size_t head = begin_block(b);

    put_u64(b, VERSION);
    put_u64(b, facts->node_index);
    put_u64(b, facts->tasks);
    put_u64(b, facts->cpus_per_task);
    put_u64(b, facts->run);
    put_u64(b, facts->chunk_rows);
    put_u64(b, (uint64_t)facts->pack.level);
    put_u64(b, facts->pack.shuffle);
    put_u64(b, (uint64_t)facts->start_wall_ns);
    put_u64(b, (uint64_t)facts->start_boot_ns);
    put_text(b, facts->node);
    put_text(b, facts->writer);
    put_text(b, facts->start);
    return end_block(b, head, FACTS, 0);
}

struct joule_log *joule_log_create(int fd,
                                   const struct joule_profile_facts *facts,
                                   struct joule_error *err)
{
    struct joule_log *log;
    int saved;

    if (!is_name(facts->node, strlen(facts->node))) {
        joule_error_set(err, EINVAL, "'%s' cannot be the name of a group",
                        facts->node);
        return NULL;
    }
    log = calloc(1, sizeof(*log));
    if (!log) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    log->fd = fd;
    lock(fd);
    if (put_facts(log, facts) == 0 && append(log, NULL, 0, false) == 0)
        return log;
    saved = errno;
    joule_log_destroy(log);
    joule_error_set(err, saved, "%s", strerror(saved));
    return NULL;
}

void joule_log_destroy(struct joule_log *log)
{
    if (!log)
        return;
    free(log->waiting.words);
    free(log->state.words);
    free(log);
}

/* ---- reading ---- */

struct joule_log_reader {
    int fd;
    uint64_t size, at; /* of the file; the next block */
    uint64_t left_out;
    struct joule_profile_facts facts;
    uint64_t *facts_body;       /* its texts */
    uint64_t *body;             /* of the block that was read */
    size_t room, used;          /* bytes */
    size_t taken;               /* of them, rows that were given away */
    struct joule_field *fields; /* of the table that was read */
    uint64_t *lost;             /* of the state that was read, of each table */
    uint32_t *cells;            /* bytes of a row of each table */
    uint32_t tables;
};

/* The whole of it, or as much as there is: the bytes, or -1. */
static ssize_t read_at(const struct joule_log_reader *r, void *buf, size_t size,
                       uint64_t at)
{
    size_t got = 0;

    while (got < size) {
        ssize_t n =
            pread(r->fd, (char *)buf + got, size - got, (off_t)(at + got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static int make_room(struct joule_log_reader *r, size_t size)
{
    uint64_t *more;

    if (size <= r->room)
        return 0;
    more = realloc(r->body, size);
    if (!more)
        return -1;
    r->body = more;
    r->room = size;
    return 0;
}

/* The next block that is what its hash says: its kind; 0: there is none; -1. */
static int read_block(struct joule_log_reader *r)
{
    uint64_t head[HEAD_WORDS] = {0}, kind, size;
    ssize_t n = read_at(r, head, HEAD_BYTES, r->at);

    if (n < 0)
        return -1;
    kind = le64toh(head[1]);
    size = le64toh(head[3]);
    if ((size_t)n < HEAD_BYTES || le64toh(head[0]) != MAGIC ||
        le64toh(head[2]) != r->at || kind < FACTS || kind > JOULE_LOG_STATE ||
        size % 8 != 0 || size == 0 || r->size < r->at + HEAD_BYTES ||
        size > r->size - r->at - HEAD_BYTES ||
        size > (kind == JOULE_LOG_ROWS ? JOULE_LOG_ROWS_MAX : BODY_MAX))
        return 0;
    if (make_room(r, size) < 0)
        return -1;
    n = read_at(r, r->body, size, r->at + HEAD_BYTES);
    if (n < 0)
        return -1;
    if ((uint64_t)n < size ||
        hash_block(kind, r->at, r->body, size) != le64toh(head[4]))
        return 0;
    r->used = size;
    r->taken = 0;
    return (int)kind;
}

/* Where decoding is in a body.  [is_bad]: it has gone wrong. */
struct cursor {
    uint64_t *word;
    size_t left; /* words */
    bool is_bad;
};

static uint64_t get_u64(struct cursor *c, uint64_t max)
{
    uint64_t value;

    if (c->is_bad || c->left == 0) {
        c->is_bad = true;
        return 0;
    }
    value = le64toh(*c->word++);
    c->left--;
    c->is_bad = value > max;
    return c->is_bad ? 0 : value;
}

/* Moved to where its length was, which makes room for the 0 behind it. */
static const char *get_text(struct cursor *c)
{
    uint64_t length = get_u64(c, JOULE_NAME_MAX), words = (length + 7) / 8;
    char *text;

    if (c->is_bad || c->left < words) {
        c->is_bad = true;
        return "";
    }
    text = (char *)(c->word - 1);
    memmove(text, c->word, length);
    text[length] = '\0';
    c->is_bad = strlen(text) != length;
    c->word += words;
    c->left -= words;
    return text;
}

static bool get_facts(struct joule_log_reader *r)
{
    struct joule_profile_facts *f = &r->facts;
    struct cursor c = {r->body, r->used / 8, false};

    if (get_u64(&c, VERSION) != VERSION)
        return false;
    f->node_index = (uint32_t)get_u64(&c, UINT32_MAX);
    f->tasks = (uint32_t)get_u64(&c, UINT32_MAX);
    f->cpus_per_task = (uint32_t)get_u64(&c, UINT32_MAX);
    f->run = (uint32_t)get_u64(&c, UINT32_MAX);
    f->chunk_rows = get_u64(&c, 65536);
    f->pack.level = (int)get_u64(&c, 9);
    f->pack.shuffle = get_u64(&c, 1);
    f->start_wall_ns = (int64_t)get_u64(&c, INT64_MAX);
    f->start_boot_ns = (int64_t)get_u64(&c, INT64_MAX);
    f->node = get_text(&c);
    f->writer = get_text(&c);
    f->start = get_text(&c);
    return !c.is_bad && c.left == 0 && is_name(f->node, strlen(f->node));
}

static int add_cells(struct joule_log_reader *r, size_t count)
{
    /* Room for 1, 2, 4, 8 ... tables. */
    if ((r->tables & (r->tables - 1)) == 0) {
        size_t room = r->tables ? 2 * (size_t)r->tables : 1;
        uint32_t *cells = reallocarray(r->cells, room, sizeof(*cells));
        uint64_t *lost = reallocarray(r->lost, room, sizeof(*lost));

        if (cells)
            r->cells = cells;
        if (lost)
            r->lost = lost;
        if (!cells || !lost)
            return -1;
    }
    r->cells[r->tables++] = (uint32_t)(joule_log_row_bytes(count) - 8);
    return 0;
}

/* 1, 0: it makes no sense, or -1: no memory. */
static int get_table(struct joule_log_reader *r, struct joule_log_block *ret)
{
    struct cursor c = {r->body, r->used / 8, false};
    struct joule_log_table *t = &ret->table;
    uint64_t number = get_u64(&c, JOULE_TABLES_MAX - 1);

    t->period_ns = (int64_t)get_u64(&c, INT64_MAX);
    t->name = get_text(&c);
    t->count = get_u64(&c, JOULE_FIELDS_MAX);
    t->fields = r->fields;
    for (size_t i = 0; i < t->count; i++) {
        r->fields[i].type =
            (enum joule_field_type)get_u64(&c, JOULE_FIELD_TEXT);
        r->fields[i].name = get_text(&c);
    }
    if (c.is_bad || c.left != 0 || number != r->tables ||
        joule_log_check_table(t) < 0)
        return 0;
    ret->number = (uint32_t)number;
    return add_cells(r, joule_log_cells(t)) < 0 ? -1 : 1;
}

static bool get_state(struct joule_log_reader *r, struct joule_log_block *ret)
{
    struct cursor c = {r->body, r->used / 8, false};
    struct joule_log_state *s = &ret->state;

    s->missed = get_u64(&c, UINT64_MAX);
    s->lost_rows = get_u64(&c, UINT64_MAX);
    s->lost_first_ns = get_u64(&c, UINT64_MAX);
    s->lost_last_ns = get_u64(&c, UINT64_MAX);
    s->lost_error = (int)get_u64(&c, INT32_MAX);
    s->end_ns = (int64_t)get_u64(&c, INT64_MAX);
    s->end_wall_ns = (int64_t)get_u64(&c, INT64_MAX);
    s->table_count = get_u64(&c, r->tables);
    s->lost_of = r->lost;
    for (size_t i = 0; i < s->table_count; i++)
        r->lost[i] = get_u64(&c, UINT64_MAX);
    return !c.is_bad && c.left == 0;
}

static bool are_rows(const struct joule_log_reader *r)
{
    for (size_t at = 0; at < r->used;) {
        uint64_t head = le64toh(r->body[at / 8]);
        uint32_t table = (uint32_t)head;
        size_t cells = (size_t)(head >> 32);

        if (table >= r->tables || cells != r->cells[table] ||
            cells > r->used - at - 8)
            return false;
        at += 8 + cells;
    }
    return true;
}

struct joule_log_reader *joule_log_open(int fd, struct joule_error *err)
{
    struct joule_log_reader *r = calloc(1, sizeof(*r));
    struct stat st;
    int saved, kind;

    if (r) {
        r->fields = calloc(JOULE_FIELDS_MAX, sizeof(*r->fields));
        r->fd = fd;
    }
    if (!r || !r->fields) {
        joule_log_close(r);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    if (fstat(fd, &st) < 0)
        goto fail;
    r->size = (uint64_t)st.st_size;
    errno = EBADMSG;
    kind = read_block(r);
    if (kind < 0)
        goto fail;
    if (kind != FACTS || !get_facts(r)) {
        joule_log_close(r);
        joule_error_set(err, EBADMSG,
                        kind == FACTS ? "the profile log is of a later version"
                                      : "it is not a profile log");
        return NULL;
    }
    r->at = HEAD_BYTES + r->used;
    r->facts_body = r->body;
    r->body = NULL;
    r->room = r->used = 0;
    return r;
fail:
    saved = errno;
    joule_log_close(r);
    joule_error_set(err, saved, "the profile log cannot be read: %s",
                    strerror(saved));
    return NULL;
}

void joule_log_close(struct joule_log_reader *r)
{
    if (!r)
        return;
    free(r->facts_body);
    free(r->body);
    free(r->fields);
    free(r->lost);
    free(r->cells);
    free(r);
}

const struct joule_profile_facts *
joule_log_facts(const struct joule_log_reader *r)
{
    return &r->facts;
}

/* Behind the last block: what is not the writer's zeros. */
static int measure_rest(struct joule_log_reader *r)
{
    unsigned char rest[JOULE_LOG_SPARE];
    ssize_t n;

    r->used = r->taken = 0;
    r->left_out = r->size - r->at;
    if (r->left_out > sizeof(rest))
        return 0;
    n = read_at(r, rest, r->left_out, r->at);
    if (n < 0)
        return -1;
    while (n > 0 && rest[n - 1] == 0)
        n--;
    if (n == 0)
        r->left_out = 0;
    return 0;
}

int joule_log_next(struct joule_log_reader *r, struct joule_log_block *ret,
                   struct joule_error *err)
{
    int kind = r->at < r->size ? read_block(r) : 0, good = kind;

    if (kind == JOULE_LOG_TABLE)
        good = get_table(r, ret);
    else if (kind == JOULE_LOG_STATE)
        good = get_state(r, ret);
    else if (kind == JOULE_LOG_ROWS)
        good = are_rows(r);
    else if (kind == FACTS)
        good = 0;
    if (good == 0 && measure_rest(r) < 0)
        good = -1;
    if (good < 0)
        return joule_error_set(err, errno, "the profile log cannot be read: %s",
                               strerror(errno));
    if (good == 0)
        return 0;
    ret->kind = (enum joule_log_kind)kind;
    r->at += HEAD_BYTES + r->used;
    if (kind != JOULE_LOG_ROWS)
        r->used = 0; /* no rows */
    return 1;
}

const void *joule_log_row(struct joule_log_reader *r, uint32_t *ret_table)
{
    const uint64_t *row;

    if (r->taken == r->used)
        return NULL;
    row = r->body + r->taken / 8;
    r->taken += 8 + (size_t)(le64toh(row[0]) >> 32);
    *ret_table = (uint32_t)le64toh(row[0]);
    return row + 1;
}

uint64_t joule_log_left_out(const struct joule_log_reader *r)
{
    return r->left_out;
}
