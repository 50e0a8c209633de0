/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    unsigned char *bytes;
    size_t used;
};

/* One allocation with its fields and all names. */
struct table {
    struct joule_log_table log;
    uint64_t last_ns; /* of the row before */
    uint64_t lost;    /* rows */
};

struct joule_queue {
    int64_t start_s;
    size_t size;          /* of a buffer */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;
    bool closed;
    struct buffer fill;
    struct table **tables;
    uint32_t count;
    struct joule_log_state state;

    /* of the thread that writes */
    struct buffer taken;
    uint64_t *lost_of;
};

/* A thread with real-time priority appends rows.  While it waits for the lock,
 * the holder inherits its priority. */
static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    if (pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) != 0 ||
        pthread_mutex_init(lock, &attr) != 0)
        pthread_mutex_init(lock, NULL); /* a kernel without it */
    pthread_mutexattr_destroy(&attr);
}

struct joule_queue *joule_queue_create(size_t bytes, int64_t start_s)
{
    struct joule_queue *q = calloc(1, sizeof(*q));
    pthread_condattr_t attr;

    if (!q)
        return NULL;
    q->start_s = start_s;
    q->size = bytes;
    init_lock(&q->lock);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->wake, &attr);
    pthread_condattr_destroy(&attr);
    q->fill.bytes = malloc(bytes);
    q->taken.bytes = malloc(bytes);
    if (q->fill.bytes && q->taken.bytes)
        return q;
    joule_queue_destroy(q);
    errno = ENOMEM;
    return NULL;
}

void joule_queue_destroy(struct joule_queue *q)
{
    if (!q)
        return;
    for (uint32_t i = 0; i < q->count; i++)
        free(q->tables[i]);
    free(q->tables);
    free(q->lost_of);
    free(q->fill.bytes);
    free(q->taken.bytes);
    pthread_cond_destroy(&q->wake);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

/* ---- tables ---- */

static struct table *copy_table(const struct joule_log_table *from)
{
    size_t bytes = strlen(from->name) + 1;
    struct table *table;
    struct joule_field *fields;
    char *text;

    for (size_t i = 0; i < from->count; i++)
        bytes += strlen(from->fields[i].name) + 1;
    table = calloc(1, sizeof(*table) + from->count * sizeof(*fields) + bytes);
    if (!table)
        return NULL;
    fields = (struct joule_field *)(table + 1);
    text = (char *)(fields + from->count);
    for (size_t i = 0; i < from->count; i++) {
        fields[i].type = from->fields[i].type;
        fields[i].name = text;
        text = stpcpy(text, from->fields[i].name) + 1;
    }
    strcpy(text, from->name);
    table->log = *from;
    table->log.name = text;
    table->log.fields = fields;
    return table;
}

/* Whether names are the same, or one is the group of the other: "Tasks" and
 * "Tasks/0". */
static bool collide(const char *a, const char *b)
{
    size_t length = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

    return strncmp(a, b, length) == 0 &&
           (a[length] == b[length] || a[length] == '/' || b[length] == '/');
}

/* Under the lock. */
static int put_table(struct joule_queue *q, struct table *table)
{
    struct table **list;

    for (uint32_t i = 0; i < q->count; i++)
        if (collide(q->tables[i]->log.name, table->log.name)) {
            errno = EEXIST;
            return -1;
        }
    if (q->count == JOULE_TABLES_MAX) {
        errno = ENOSPC;
        return -1;
    }
    list = reallocarray(q->tables, q->count + 1, sizeof(struct table *));
    if (!list)
        return -1;
    list[q->count] = table;
    q->tables = list;
    return (int)q->count++;
}

int joule_queue_add_table(struct joule_queue *q,
                          const struct joule_log_table *table)
{
    struct table *copy;
    int number, saved;

    if (joule_log_check_table(table) < 0)
        return -1;
    if (joule_log_row_bytes(table->count) > q->size) {
        errno = E2BIG;
        return -1;
    }
    copy = copy_table(table);
    if (!copy)
        return -1;
    pthread_mutex_lock(&q->lock);
    number = put_table(q, copy);
    saved = errno;
    pthread_mutex_unlock(&q->lock);
    if (number < 0) {
        free(copy);
        errno = saved;
    }
    return number;
}

const struct joule_log_table *joule_queue_table(struct joule_queue *q,
                                                uint32_t number)
{
    const struct joule_log_table *table;

    pthread_mutex_lock(&q->lock);
    table = number < q->count ? &q->tables[number]->log : NULL;
    pthread_mutex_unlock(&q->lock);
    return table;
}

/* ---- what is missing ---- */

/* Under the lock. */
static void lose(struct joule_queue *q, uint32_t table, uint64_t ns)
{
    struct joule_log_state *state = &q->state;

    q->tables[table]->lost++;
    if (state->lost_rows == 0 || ns < state->lost_first_ns)
        state->lost_first_ns = ns;
    if (state->lost_last_ns < ns)
        state->lost_last_ns = ns;
    state->lost_rows++;
}

static void lose_all(struct joule_queue *q, struct buffer *buffer)
{
    size_t at, bytes;

    for (at = 0; at < buffer->used; at += bytes) {
        uint64_t ns;
        uint32_t table = joule_log_row_table(buffer->bytes + at, &bytes, &ns);

        lose(q, table, ns);
    }
    buffer->used = 0;
}

void joule_queue_lose(struct joule_queue *q, int error)
{
    pthread_mutex_lock(&q->lock);
    lose_all(q, &q->taken);
    lose_all(q, &q->fill);
    q->state.lost_error = error;
    pthread_mutex_unlock(&q->lock);
}

void joule_queue_set_error(struct joule_queue *q, int error)
{
    pthread_mutex_lock(&q->lock);
    q->state.lost_error = error;
    pthread_mutex_unlock(&q->lock);
}

void joule_queue_add_missed(struct joule_queue *q, uint64_t periods)
{
    pthread_mutex_lock(&q->lock);
    q->state.missed += periods;
    pthread_mutex_unlock(&q->lock);
}

int joule_queue_state(struct joule_queue *q, struct joule_log_state *ret)
{
    uint64_t *lost_of;

    pthread_mutex_lock(&q->lock);
    lost_of = reallocarray(q->lost_of, q->count + 1, sizeof(*lost_of));
    if (lost_of) {
        q->lost_of = lost_of;
        for (uint32_t i = 0; i < q->count; i++)
            lost_of[i] = q->tables[i]->lost;
        *ret = q->state;
        ret->lost_of = lost_of;
        ret->table_count = q->count;
    }
    pthread_mutex_unlock(&q->lock);
    return lost_of ? 0 : -1;
}

/* ---- rows ---- */

static bool is_half_full(const struct joule_queue *q)
{
    return q->fill.used > q->size / 2;
}

/* Under the lock. */
static int put_row(struct joule_queue *q, uint32_t number, const void *cells,
                   int64_t epoch_s, uint64_t ns)
{
    struct table *table = q->tables[number];
    size_t bytes = joule_log_row_bytes(table->log.count);
    uint64_t elapsed_s =
        epoch_s > q->start_s ? (uint64_t)(epoch_s - q->start_s) : 0;

    if (ns < table->last_ns)
        ns = table->last_ns;
    if (q->size - q->fill.used < bytes) {
        lose(q, number, ns);
        errno = ENOBUFS;
        return -1;
    }
    joule_log_put_row(q->fill.bytes + q->fill.used, number, elapsed_s,
                      (uint64_t)epoch_s, cells, table->log.count, ns);
    q->fill.used += bytes;
    table->last_ns = ns;
    return 0;
}

int joule_queue_append(struct joule_queue *q, int table, const void *cells,
                       int64_t epoch_s, uint64_t ns)
{
    bool was_half = false, half = false;
    int rc = -1, saved;

    pthread_mutex_lock(&q->lock);
    errno = EINVAL;
    if (table >= 0 && (uint32_t)table < q->count) {
        was_half = is_half_full(q);
        rc = put_row(q, (uint32_t)table, cells, epoch_s, ns);
        half = is_half_full(q);
    }
    saved = errno;
    pthread_mutex_unlock(&q->lock);
    if (half && !was_half)
        pthread_cond_signal(&q->wake);
    errno = saved;
    return rc;
}

void joule_queue_close(struct joule_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_signal(&q->wake);
    pthread_mutex_unlock(&q->lock);
}

bool joule_queue_wait(struct joule_queue *q, const struct timespec *until,
                      bool early)
{
    bool closed;

    pthread_mutex_lock(&q->lock);
    while (!q->closed && !(early && is_half_full(q)))
        if (pthread_cond_timedwait(&q->wake, &q->lock, until) != 0)
            break;
    closed = q->closed;
    pthread_mutex_unlock(&q->lock);
    return !closed;
}

const void *joule_queue_take(struct joule_queue *q, size_t *ret_size)
{
    if (q->taken.used == 0) {
        struct buffer empty = q->taken;

        pthread_mutex_lock(&q->lock);
        q->taken = q->fill;
        q->fill = empty;
        pthread_mutex_unlock(&q->lock);
    }
    *ret_size = q->taken.used;
    return q->taken.bytes;
}

void joule_queue_release(struct joule_queue *q)
{
    q->taken.used = 0;
}
