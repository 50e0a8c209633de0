/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"
#include "common/base/thread.h"
#include "common/profile/converter.h"

#define THREAD_STACK (256 * 1024)

/* A flush is so much later than the multiples of the flush interval. */
#define FLUSH_LATE_NS (25 * JOULE_NS_PER_MS)

/* Rows as the log has them (log.h). */
struct buffer {
    unsigned char *bytes;
    size_t used;
};

/* One allocation with its fields and all names. */
struct table {
    struct joule_log_table log;
    size_t cells;     /* of a row */
    uint64_t last_ns; /* of the row before */
    uint64_t lost;    /* rows */
};

struct joule_writer {
    /* constant */
    struct joule_writer_options opt; /* its texts and groups are in [copy] */
    void *copy[7];
    char start[32]; /* "Start Time" */
    int64_t start_ns, start_wall_ns;
    pthread_t thread;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;  /* the thread: [fill] is half full, or [closed] */
    pthread_cond_t ended;
    bool closed, done, abandoned, has_told;
    int64_t helper_until_ns;
    struct buffer fill; /* rows are appended here */
    struct table **tables;
    uint32_t count;
    struct joule_log_state state; /* what is missing so far */

    /* the thread's */
    struct buffer taken; /* rows that are being written */
    uint64_t *lost_of;   /* for the log's state */
    int dir_fd, fd;
    char name[NAME_MAX + 1];
    struct joule_log *log;
    uint32_t logged;                 /* tables that the log has */
    bool is_late;                    /* the last flush failed */
    uint64_t told_lost, told_missed; /* in the last state of the log */
};

static void close_files(struct joule_writer *w)
{
    joule_log_destroy(w->log);
    w->log = NULL;
    joule_close(w->fd);
    joule_close(w->dir_fd);
    w->fd = w->dir_fd = -1;
}

static void destroy(struct joule_writer *w)
{
    close_files(w);
    for (uint32_t i = 0; i < w->count; i++)
        free(w->tables[i]);
    free(w->tables);
    free(w->lost_of);
    free(w->fill.bytes);
    free(w->taken.bytes);
    for (size_t i = 0; i < sizeof(w->copy) / sizeof(w->copy[0]); i++)
        free(w->copy[i]);
    pthread_cond_destroy(&w->wake);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* A thread that was left behind says nothing: the owner of [problem] may be
 * gone. */
static void tell(struct joule_writer *w, const struct joule_error *sentence)
{
    bool abandoned;

    pthread_mutex_lock(&w->lock);
    abandoned = w->abandoned;
    pthread_mutex_unlock(&w->lock);
    if (!abandoned && w->opt.problem)
        w->opt.problem(sentence->text, w->opt.problem_arg);
}

/* Say once that rows cannot be written. */
static void tell_trouble(struct joule_writer *w, const char *what,
                         const char *reason)
{
    struct joule_error sentence;
    bool first;

    pthread_mutex_lock(&w->lock);
    first = !w->has_told;
    w->has_told = true;
    pthread_mutex_unlock(&w->lock);
    joule_error_set(&sentence, 0, "%s%s", what, reason);
    if (first)
        tell(w, &sentence);
}

/* ---- tables and rows: any thread ---- */

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
    table->cells = joule_log_cells(from);
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

/* Under the lock: 0 or an errno value. */
static int put_table(struct joule_writer *w, struct table *table)
{
    struct table **list;

    for (uint32_t i = 0; i < w->count; i++)
        if (collide(w->tables[i]->log.name, table->log.name))
            return EEXIST;
    if (w->count == JOULE_TABLES_MAX)
        return ENOSPC;
    list = reallocarray(w->tables, w->count + 1, sizeof(struct table *));
    if (!list)
        return ENOMEM;
    list[w->count++] = table;
    w->tables = list;
    return 0;
}

int joule_writer_add_table(struct joule_writer *w, const char *name,
                           const struct joule_field *fields, size_t count,
                           int64_t period_ns)
{
    const struct joule_log_table table = {
        .name = name,
        .fields = fields,
        .count = count,
        .period_ns = period_ns,
    };
    struct table *copy;
    int number, error;

    if (joule_log_check_table(&table) < 0)
        return -1;
    if (joule_log_row_bytes(joule_log_cells(&table)) > w->opt.queue_bytes) {
        errno = E2BIG;
        return -1;
    }
    copy = copy_table(&table);
    if (!copy)
        return -1;
    pthread_mutex_lock(&w->lock);
    error = put_table(w, copy);
    number = (int)w->count - 1;
    pthread_mutex_unlock(&w->lock);
    if (error == 0)
        return number;
    free(copy);
    errno = error;
    return -1;
}

/* Under the lock. */
static void lose(struct joule_writer *w, uint32_t table, uint64_t ns)
{
    struct joule_log_state *state = &w->state;

    w->tables[table]->lost++;
    if (state->lost_rows == 0 || ns < state->lost_first_ns)
        state->lost_first_ns = ns;
    if (state->lost_last_ns < ns)
        state->lost_last_ns = ns;
    state->lost_rows++;
}

static void lose_all(struct joule_writer *w, struct buffer *buffer)
{
    size_t at, bytes;

    for (at = 0; at < buffer->used; at += bytes) {
        uint64_t ns;
        uint32_t table = joule_log_row_table(buffer->bytes + at, &bytes, &ns);

        lose(w, table, ns);
    }
    buffer->used = 0;
}

static bool is_half_full(const struct joule_writer *w)
{
    return w->fill.used > w->opt.queue_bytes / 2;
}

/* Under the lock: 0 or an errno value. */
static int put_row(struct joule_writer *w, uint32_t number, const void *cells,
                   int64_t epoch_s, uint64_t ns)
{
    struct table *table = w->tables[number];
    size_t bytes = joule_log_row_bytes(table->cells);
    int64_t elapsed_s = epoch_s - w->start_wall_ns / JOULE_NS_PER_S;

    if (ns < table->last_ns)
        ns = table->last_ns;
    if (w->opt.queue_bytes - w->fill.used < bytes) {
        lose(w, number, ns);
        return ENOBUFS;
    }
    joule_log_put_row(w->fill.bytes + w->fill.used, number,
                      elapsed_s > 0 ? (uint64_t)elapsed_s : 0,
                      (uint64_t)epoch_s, cells, table->cells, ns);
    w->fill.used += bytes;
    table->last_ns = ns;
    return 0;
}

int joule_writer_append(struct joule_writer *w, int table, const void *cells,
                        int64_t epoch_s, int64_t mono_ns)
{
    uint64_t ns = mono_ns > w->start_ns ? (uint64_t)(mono_ns - w->start_ns) : 0;
    bool was_half, half;
    int error = EINVAL;

    pthread_mutex_lock(&w->lock);
    was_half = is_half_full(w);
    if (table >= 0 && (uint32_t)table < w->count)
        error = put_row(w, (uint32_t)table, cells, epoch_s, ns);
    half = is_half_full(w);
    pthread_mutex_unlock(&w->lock);
    if (half && !was_half)
        pthread_cond_signal(&w->wake);
    if (error == ENOBUFS)
        tell_trouble(w,
                     "the profile is not written fast enough: rows are "
                     "dropped",
                     "");
    errno = error;
    return error ? -1 : 0;
}

bool joule_writer_is_behind(struct joule_writer *w)
{
    bool half;

    pthread_mutex_lock(&w->lock);
    half = is_half_full(w);
    pthread_mutex_unlock(&w->lock);
    return half;
}

void joule_writer_add_missed(struct joule_writer *w, uint64_t periods)
{
    pthread_mutex_lock(&w->lock);
    w->state.missed += periods;
    pthread_mutex_unlock(&w->lock);
}

/* ---- the thread ---- */

static int open_log(struct joule_writer *w, struct joule_error *err)
{
    if (w->dir_fd < 0)
        w->dir_fd = joule_place_open(&w->opt.place, err);
    if (w->dir_fd >= 0 && w->fd < 0)
        w->fd =
            joule_place_create(&w->opt.place, w->dir_fd, w->opt.base, w->name,
                               sizeof(w->name), &w->opt.facts.run, err);
    if (w->fd < 0)
        return -1;
    w->log = joule_log_create(w->fd, &w->opt.facts, err);
    return w->log ? 0 : -1;
}

/* Rows that were taken and not written yet; if there are none, those that have
 * come since. */
static void take_rows(struct joule_writer *w)
{
    struct buffer empty = w->taken;

    if (empty.used > 0)
        return;
    pthread_mutex_lock(&w->lock);
    w->taken = w->fill;
    w->fill = empty;
    pthread_mutex_unlock(&w->lock);
}

static int add_tables(struct joule_writer *w)
{
    const struct table *table;

    for (;; w->logged++) {
        pthread_mutex_lock(&w->lock);
        table = w->logged < w->count ? w->tables[w->logged] : NULL;
        pthread_mutex_unlock(&w->lock);
        if (!table)
            return 0;
        if (joule_log_add_table(w->log, &table->log) < 0)
            return -1;
    }
}

/* What is missing so far; the end is left 0. */
static int get_state(struct joule_writer *w, struct joule_log_state *ret)
{
    uint64_t *lost_of;

    pthread_mutex_lock(&w->lock);
    lost_of = reallocarray(w->lost_of, w->count + 1, sizeof(*lost_of));
    if (lost_of) {
        w->lost_of = lost_of;
        for (uint32_t i = 0; i < w->count; i++)
            lost_of[i] = w->tables[i]->lost;
        *ret = w->state;
        ret->lost_of = lost_of;
        ret->table_count = w->count;
    }
    pthread_mutex_unlock(&w->lock);
    return lost_of ? 0 : -1;
}

/* Write the rows that wait, and the tables that are not in the log yet. */
static int write_rows(struct joule_writer *w, struct joule_error *err)
{
    struct joule_log_state state;
    uint32_t before = w->logged;
    bool is_news;

    take_rows(w);
    if (add_tables(w) < 0 || get_state(w, &state) < 0)
        return joule_error_set(err, errno, "%s", strerror(errno));
    is_news = state.lost_rows != w->told_lost || state.missed != w->told_missed;
    if (w->taken.used == 0 && !is_news && w->logged == before)
        return 0;
    if (joule_log_flush(w->log, w->taken.bytes, w->taken.used,
                        is_news ? &state : NULL) < 0)
        return joule_error_set(err, errno, "%s", strerror(errno));
    w->taken.used = 0;
    w->told_lost = state.lost_rows;
    w->told_missed = state.missed;
    return 0;
}

/* Rows of a flush that failed are written first, then those that have come
 * since. */
static int try_flush(struct joule_writer *w, struct joule_error *err)
{
    if (!w->log && open_log(w, err) < 0)
        return -1;
    if (w->is_late && write_rows(w, err) < 0)
        return -1;
    return write_rows(w, err);
}

/* 0 or an errno value; the first failure is told. */
static int flush(struct joule_writer *w)
{
    struct joule_error err;
    int error = try_flush(w, &err) < 0 ? errno : 0;

    w->is_late = error != 0;
    if (error) {
        pthread_mutex_lock(&w->lock);
        w->state.lost_error = error;
        pthread_mutex_unlock(&w->lock);
        tell_trouble(w, "the profile cannot be written: ", err.text);
    }
    return error;
}

/* Have the HDF5 file made of a log that is whole. */
static void convert(struct joule_writer *w)
{
    struct joule_converter helper = {
        .program = w->opt.helper,
        .log_fd = w->fd,
        .dir_fd = w->dir_fd,
        .name = w->name,
        .uid = w->opt.place.uid,
        .gid = w->opt.place.gid,
    };
    char temporary[NAME_MAX + 1];
    struct joule_error err, sentence;
    int64_t until_ns;
    bool abandoned;

    pthread_mutex_lock(&w->lock);
    until_ns = w->helper_until_ns;
    abandoned = w->abandoned;
    pthread_mutex_unlock(&w->lock);
    if (abandoned || joule_converter_run(&helper, until_ns, &err) == 0)
        return;
    joule_error_set(&sentence, 0,
                    "the profile stays in %s, which sh5util reads: %s", w->name,
                    err.text);
    tell(w, &sentence);
    /* A helper that was killed leaves its file. */
    if (joule_place_names(w->name, NULL, temporary) == 0)
        unlinkat(w->dir_fd, temporary, 0);
}

/* The last flush, and the end of the log. */
static void finish(struct joule_writer *w)
{
    int64_t end_ns = joule_clock_mono_ns(w->opt.clock) - w->start_ns;
    int64_t wall_ns = joule_clock_wall_ns(w->opt.clock);
    struct joule_error sentence;
    struct joule_log_state state;

    if (flush(w) != 0) {
        pthread_mutex_lock(&w->lock);
        lose_all(w, &w->taken);
        lose_all(w, &w->fill);
        pthread_mutex_unlock(&w->lock);
    }
    /* Without a log all rows are lost, and the reason was told. */
    if (!w->log) {
        if (w->fd >= 0)
            unlinkat(w->dir_fd, w->name, 0);
        return;
    }
    if (get_state(w, &state) < 0)
        return;
    joule_error_set(&sentence, 0,
                    "%" PRIu64 " rows of the profile are lost%s%s",
                    state.lost_rows, state.lost_error ? ": " : "",
                    state.lost_error ? strerror(state.lost_error) : "");
    if (state.lost_rows)
        tell(w, &sentence);
    state.end_ns = end_ns > 0 ? end_ns : 1;
    state.end_wall_ns = wall_ns;
    if (joule_log_flush(w->log, NULL, 0, &state) < 0)
        tell_trouble(w, "the profile cannot be ended: ", strerror(errno));
    else if (w->opt.helper)
        convert(w);
}

/* Wait for the deadline; with [early] only until half of the buffer is full.
 * false: no row will come any more. */
static bool wait_rows(struct joule_writer *w, int64_t until_ns, bool early)
{
    bool closed;

    pthread_mutex_lock(&w->lock);
    while (!w->closed && !(early && is_half_full(w)))
        if (!joule_cond_wait(&w->wake, &w->lock, until_ns))
            break;
    closed = w->closed;
    pthread_mutex_unlock(&w->lock);
    return !closed;
}

/* Flushes are a little after the multiples of flush_ns: the series add their rows
 * at the multiples of their periods.  A flush that took longer than an interval
 * skips the next ones.  After a flush that failed, a half full buffer causes no
 * other before its time. */
static void run(struct joule_writer *w)
{
    int64_t first_ns = w->start_ns + w->opt.flush_ns + FLUSH_LATE_NS, until_ns;
    bool refused = false;

    until_ns = joule_deadline_in(first_ns - joule_clock_mono_ns(w->opt.clock));
    while (wait_rows(w, until_ns, !refused)) {
        refused = flush(w) != 0;
        while (until_ns <= joule_deadline_now())
            until_ns += w->opt.flush_ns;
    }
    finish(w);
}

static void *thread_main(void *arg)
{
    struct joule_writer *w = arg;
    bool abandoned;

    prctl(PR_SET_NAME, "joule-profile");
    run(w);
    close_files(w);
    pthread_mutex_lock(&w->lock);
    w->done = true;
    abandoned = w->abandoned;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    if (abandoned)
        destroy(w);
    return NULL;
}

/* ---- everybody else ---- */

/* As ctime(3), without its newline.  The thread that forks calls this, not the
 * writer's: localtime(3) takes a lock, which a child would be born with. */
static void date(struct joule_writer *w)
{
    time_t start = (time_t)(w->start_wall_ns / JOULE_NS_PER_S);
    struct tm tm;

    if (!localtime_r(&start, &tm) ||
        !strftime(w->start, sizeof(w->start), "%a %b %e %T %Y", &tm))
        w->start[0] = '\0';
}

static const char *keep_text(struct joule_writer *w, size_t at,
                             const char *text)
{
    return w->copy[at] = text ? strdup(text) : NULL;
}

static int copy_options(struct joule_writer *w)
{
    struct joule_writer_options *opt = &w->opt;
    struct joule_place *place = &opt->place;
    size_t bytes = place->group_count * sizeof(gid_t);
    bool has_helper = opt->helper;

    place->dir = keep_text(w, 0, place->dir);
    place->user = keep_text(w, 1, place->user);
    opt->base = keep_text(w, 2, opt->base);
    opt->facts.node = keep_text(w, 3, opt->facts.node);
    opt->facts.writer = keep_text(w, 4, opt->facts.writer);
    opt->helper = keep_text(w, 5, opt->helper);
    w->copy[6] = malloc(bytes + 1);
    for (int i = 0; i < 7; i++)
        if (!w->copy[i] && (i != 5 || has_helper))
            return -1;
    place->groups =
        memcpy(w->copy[6], bytes ? place->groups : w->copy[6], bytes);
    opt->facts.start = w->start;
    opt->facts.start_wall_ns = w->start_wall_ns;
    opt->facts.start_boot_ns = w->start_ns;
    date(w);
    return 0;
}

/* A thread with real-time priority appends rows.  While it waits for the lock,
 * the holder inherits its priority. */
static void init_locks(struct joule_writer *w)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    if (pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) != 0 ||
        pthread_mutex_init(&w->lock, &attr) != 0)
        pthread_mutex_init(&w->lock, NULL); /* a kernel without it */
    pthread_mutexattr_destroy(&attr);
    joule_cond_init(&w->wake);
    joule_cond_init(&w->ended);
}

struct joule_writer *joule_writer_create(const struct joule_writer_options *opt,
                                         struct joule_error *err)
{
    struct joule_writer *w = calloc(1, sizeof(*w));
    int rc = ENOMEM;

    if (!w) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    init_locks(w);
    w->opt = *opt;
    w->start_wall_ns = joule_clock_wall_ns(opt->clock);
    w->start_ns = joule_clock_mono_ns(opt->clock);
    w->fd = w->dir_fd = -1;
    w->fill.bytes = malloc(opt->queue_bytes);
    w->taken.bytes = malloc(opt->queue_bytes);
    if (w->fill.bytes && w->taken.bytes && copy_options(w) == 0)
        rc = joule_thread_start(&w->thread, THREAD_STACK, thread_main, w);
    if (rc == 0)
        return w;
    destroy(w);
    joule_error_set(err, rc, "cannot start the profile's thread: %s",
                    strerror(rc));
    return NULL;
}

int64_t joule_writer_start_ns(const struct joule_writer *w)
{
    return w->start_ns;
}

int64_t joule_writer_start_wall_ns(const struct joule_writer *w)
{
    return w->start_wall_ns;
}

int joule_writer_close(struct joule_writer *w, int64_t wait_ns)
{
    void (*problem)(const char *, void *);
    void *arg;
    int64_t until_ns = joule_deadline_in(wait_ns);
    bool done;

    if (!w)
        return 0;
    pthread_mutex_lock(&w->lock);
    w->helper_until_ns = until_ns - wait_ns / 10;
    w->closed = true;
    pthread_cond_signal(&w->wake);
    while (!w->done && joule_cond_wait(&w->ended, &w->lock, until_ns))
        continue;
    done = w->done;
    w->abandoned = !done;
    problem = w->opt.problem;
    arg = w->opt.problem_arg;
    if (!done)
        pthread_detach(w->thread);
    /* An abandoned thread may free everything from here on. */
    pthread_mutex_unlock(&w->lock);
    if (!done) {
        if (problem)
            problem("the file system does not answer: the profile is left as "
                    "it is",
                    arg);
        errno = ETIMEDOUT;
        return -1;
    }
    pthread_join(w->thread, NULL);
    destroy(w);
    return 0;
}
