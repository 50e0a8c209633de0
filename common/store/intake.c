/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/intake.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/queue.h"

struct joule_intake {
    int64_t start_s;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;
    bool closed, said;
    struct joule_queue *queue;
    struct joule_series_entry **series;
    uint32_t count;
    struct joule_intake_toll toll;

    /* of the thread that takes out: the series of the row before */
    uint32_t table;
    struct joule_series_entry *current;
};

/* A thread with real-time priority waits for nobody who holds the lock and is
 * kept from running by the job's tasks. */
static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    if (pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) != 0 ||
        pthread_mutex_init(lock, &attr) != 0)
        pthread_mutex_init(lock, NULL); /* a kernel without it */
    pthread_mutexattr_destroy(&attr);
}

struct joule_intake *joule_intake_create(size_t queue_bytes, int64_t start_s)
{
    struct joule_intake *in = calloc(1, sizeof(*in));
    pthread_condattr_t attr;

    if (!in)
        return NULL;
    in->start_s = start_s;
    init_lock(&in->lock);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&in->wake, &attr);
    pthread_condattr_destroy(&attr);
    in->queue = joule_queue_create(queue_bytes);
    if (in->queue)
        return in;
    joule_intake_destroy(in);
    errno = ENOMEM;
    return NULL;
}

/* Name and fields lie behind the entry. */
void joule_intake_destroy(struct joule_intake *in)
{
    uint32_t i;

    if (!in)
        return;
    for (i = 0; i < in->count; i++)
        free(in->series[i]);
    free(in->series);
    joule_queue_destroy(in->queue);
    pthread_cond_destroy(&in->wake);
    pthread_mutex_destroy(&in->lock);
    free(in);
}

/* ---- series ---- */

/* In one piece: the entry, its fields, the names of the fields, its name. */
static struct joule_series_entry *make_entry(const char *name,
                                             const struct joule_field *fields,
                                             size_t count, int64_t period_ns)
{
    size_t bytes = strlen(name) + 1, i;
    struct joule_series_entry *s;
    struct joule_field *copy;
    char *text;

    for (i = 0; i < count; i++)
        bytes += strlen(fields[i].name) + 1;
    s = calloc(1, sizeof(*s) + count * sizeof(*fields) + bytes);
    if (!s)
        return NULL;
    copy = (struct joule_field *)(s + 1);
    text = (char *)(copy + count);
    for (i = 0; i < count; i++) {
        copy[i].type = fields[i].type;
        copy[i].name = text;
        text = stpcpy(text, fields[i].name) + 1;
    }
    strcpy(text, name);
    s->name = text;
    s->fields = copy;
    s->count = count;
    s->period_ns = period_ns;
    s->table = -1;
    return s;
}

/* Under the lock. */
static int put_entry(struct joule_intake *in, struct joule_series_entry *s)
{
    struct joule_series_entry **list;
    uint32_t i;

    for (i = 0; i < in->count; i++)
        if (strcmp(in->series[i]->name, s->name) == 0) {
            errno = EEXIST;
            return -1;
        }
    list = realloc(in->series, (in->count + 1) * sizeof(s));
    if (!list)
        return -1;
    list[in->count] = s;
    in->series = list;
    return (int)in->count++;
}

static bool is_series_name(const char *name)
{
    const char *slash = strchr(name, '/');

    if (!*name || *name == '/' || *name == '.')
        return false;
    return !slash || (slash[1] && slash[1] != '.' && !strchr(slash + 1, '/'));
}

int joule_intake_add_series(struct joule_intake *in, const char *name,
                            const struct joule_field *fields, size_t count,
                            int64_t period_ns)
{
    struct joule_series_entry *s;
    int table, saved;

    if (!is_series_name(name)) {
        errno = EINVAL;
        return -1;
    }
    if (count > JOULE_FIELDS_MAX) {
        errno = E2BIG;
        return -1;
    }
    s = make_entry(name, fields, count, period_ns);
    if (!s)
        return -1;
    pthread_mutex_lock(&in->lock);
    table = put_entry(in, s);
    saved = errno;
    pthread_mutex_unlock(&in->lock);
    if (table < 0) {
        free(s);
        errno = saved;
    }
    return table;
}

struct joule_series_entry *joule_intake_series(struct joule_intake *in,
                                               uint32_t i)
{
    struct joule_series_entry *s;

    pthread_mutex_lock(&in->lock);
    s = i < in->count ? in->series[i] : NULL;
    pthread_mutex_unlock(&in->lock);
    return s;
}

/* ---- what is missing ---- */

/* Under the lock. */
static void lose(struct joule_intake *in, struct joule_series_entry *s,
                 uint64_t rows, uint64_t first_ns, uint64_t last_ns)
{
    struct joule_loss *loss = &in->toll.loss;

    s->lost += rows;
    if (loss->rows == 0)
        loss->first_ns = first_ns;
    if (loss->last_ns < last_ns)
        loss->last_ns = last_ns;
    loss->rows += rows;
}

void joule_intake_lose(struct joule_intake *in, struct joule_series_entry *s,
                       uint64_t rows, uint64_t first_ns, uint64_t last_ns)
{
    pthread_mutex_lock(&in->lock);
    lose(in, s, rows, first_ns, last_ns);
    pthread_mutex_unlock(&in->lock);
}

uint64_t joule_intake_lost(struct joule_intake *in,
                           const struct joule_series_entry *s)
{
    uint64_t rows;

    pthread_mutex_lock(&in->lock);
    rows = s->lost;
    pthread_mutex_unlock(&in->lock);
    return rows;
}

void joule_intake_set_error(struct joule_intake *in, int error)
{
    pthread_mutex_lock(&in->lock);
    in->toll.loss.error = error;
    pthread_mutex_unlock(&in->lock);
}

void joule_intake_add_missed(struct joule_intake *in, uint64_t periods)
{
    pthread_mutex_lock(&in->lock);
    in->toll.missed += periods;
    pthread_mutex_unlock(&in->lock);
}

struct joule_intake_toll joule_intake_toll(struct joule_intake *in)
{
    struct joule_intake_toll toll;

    pthread_mutex_lock(&in->lock);
    toll = in->toll;
    pthread_mutex_unlock(&in->lock);
    return toll;
}

bool joule_intake_say_first(struct joule_intake *in)
{
    bool first;

    pthread_mutex_lock(&in->lock);
    first = !in->said;
    in->said = true;
    pthread_mutex_unlock(&in->lock);
    return first;
}

/* ---- rows ---- */

/* Under the lock. */
static int put_row(struct joule_intake *in, uint32_t table, const void *cells,
                   int64_t epoch_s, uint64_t ns)
{
    struct joule_series_entry *s = in->series[table];
    uint64_t *row;

    if (ns < s->last_ns)
        ns = s->last_ns;
    row = joule_queue_add(in->queue, table, (uint32_t)(s->count + 3) * 8);
    if (!row) {
        lose(in, s, 1, ns, ns);
        errno = ENOBUFS;
        return -1;
    }
    row[0] = epoch_s > in->start_s ? (uint64_t)(epoch_s - in->start_s) : 0;
    row[1] = (uint64_t)epoch_s;
    memcpy(row + 2, cells, s->count * 8);
    row[s->count + 2] = ns;
    s->last_ns = ns;
    return 0;
}

int joule_intake_append(struct joule_intake *in, int table, const void *cells,
                        int64_t epoch_s, uint64_t ns)
{
    bool was_half = false, half = false;
    int rc = -1, saved;

    pthread_mutex_lock(&in->lock);
    errno = EINVAL;
    if (table >= 0 && (uint32_t)table < in->count) {
        was_half = joule_queue_is_half_full(in->queue);
        rc = put_row(in, (uint32_t)table, cells, epoch_s, ns);
        half = joule_queue_is_half_full(in->queue);
    }
    saved = errno;
    pthread_mutex_unlock(&in->lock);
    if (half && !was_half)
        pthread_cond_signal(&in->wake);
    errno = saved;
    return rc;
}

void joule_intake_close(struct joule_intake *in)
{
    pthread_mutex_lock(&in->lock);
    in->closed = true;
    pthread_cond_signal(&in->wake);
    pthread_mutex_unlock(&in->lock);
}

bool joule_intake_wait(struct joule_intake *in, const struct timespec *until,
                       bool early)
{
    bool closed;

    pthread_mutex_lock(&in->lock);
    while (!in->closed && !(early && joule_queue_is_half_full(in->queue)))
        if (pthread_cond_timedwait(&in->wake, &in->lock, until) != 0)
            break;
    closed = in->closed;
    pthread_mutex_unlock(&in->lock);
    return !closed;
}

void joule_intake_take(struct joule_intake *in)
{
    pthread_mutex_lock(&in->lock);
    joule_queue_swap(in->queue);
    pthread_mutex_unlock(&in->lock);
}

const void *joule_intake_next(struct joule_intake *in,
                              struct joule_series_entry **ret_series,
                              uint64_t *ret_ns)
{
    uint32_t table, size;
    const char *row = joule_queue_next(in->queue, &table, &size);

    if (!row)
        return NULL;
    memcpy(ret_ns, row + size - sizeof(*ret_ns), sizeof(*ret_ns));
    if (!in->current || in->table != table)
        in->current = joule_intake_series(in, table);
    in->table = table;
    *ret_series = in->current;
    return row;
}
