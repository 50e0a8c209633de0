/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/thread.h"
#include "common/profile/converter.h"
#include "common/profile/queue.h"

#define THREAD_STACK (256 * 1024)

/* A flush is so much later than the multiples of the flush interval. */
#define FLUSH_LATE_NS (25 * JOULE_NS_PER_MS)

struct joule_writer {
    /* constant */
    struct joule_writer_options opt;
    char *dir, *user, *base, *node, *writer, *helper;
    char start[32]; /* "Start Time" */
    gid_t *groups;
    int64_t start_ns, start_wall_ns;
    pthread_t thread;

    struct joule_queue *queue;

    /* the thread's */
    int dir_fd, fd;
    char name[NAME_MAX + 1];
    struct joule_log *log;
    uint32_t tables;                 /* number of the next one for the log */
    bool is_late;                    /* the last flush failed */
    uint64_t told_lost, told_missed; /* in the last state of the log */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended;
    bool done, abandoned, has_told;
    int64_t helper_until_ns;
};

static void close_files(struct joule_writer *w)
{
    joule_log_destroy(w->log);
    w->log = NULL;
    if (w->fd >= 0)
        close(w->fd);
    if (w->dir_fd >= 0)
        close(w->dir_fd);
    w->fd = w->dir_fd = -1;
}

static void destroy(struct joule_writer *w)
{
    close_files(w);
    joule_queue_destroy(w->queue);
    free(w->dir);
    free(w->user);
    free(w->base);
    free(w->node);
    free(w->writer);
    free(w->helper);
    free(w->groups);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static void tell(struct joule_writer *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A thread that was left behind says nothing: the owner of [problem] may be
 * gone. */
static void tell(struct joule_writer *w, const char *fmt, ...)
{
    struct joule_error text;
    char sentence[JOULE_ERROR_MAX];
    bool abandoned;
    va_list ap;

    pthread_mutex_lock(&w->lock);
    abandoned = w->abandoned;
    pthread_mutex_unlock(&w->lock);
    if (abandoned || !w->opt.problem)
        return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    joule_error_set(&text, 0, "%s", sentence);
    w->opt.problem(text.text, w->opt.problem_arg);
}

/* Say once that rows cannot be written. */
static void tell_trouble(struct joule_writer *w, const char *what,
                         const char *reason)
{
    bool first;

    pthread_mutex_lock(&w->lock);
    first = !w->has_told;
    w->has_told = true;
    pthread_mutex_unlock(&w->lock);
    if (first)
        tell(w, "%s%s", what, reason);
}

/* ---- the thread ---- */

static int open_log(struct joule_writer *w, struct joule_error *err)
{
    if (w->dir_fd < 0)
        w->dir_fd = joule_place_open(&w->opt.place, err);
    if (w->dir_fd >= 0 && w->fd < 0)
        w->fd = joule_place_create(&w->opt.place, w->dir_fd, w->base, w->name,
                                   sizeof(w->name), &w->opt.facts.run, err);
    if (w->fd < 0)
        return -1;
    w->log = joule_log_create(w->fd, &w->opt.facts, err);
    return w->log ? 0 : -1;
}

static int add_tables(struct joule_writer *w)
{
    const struct joule_log_table *table;

    for (; (table = joule_queue_table(w->queue, w->tables)); w->tables++)
        if (joule_log_add_table(w->log, table) < 0)
            return -1;
    return 0;
}

/* Write the rows that wait, and the tables that are not in the log yet. */
static int write_rows(struct joule_writer *w, struct joule_error *err)
{
    struct joule_log_state state;
    uint32_t before = w->tables;
    const void *rows;
    bool is_news;
    size_t size;

    rows = joule_queue_take(w->queue, &size);
    if (add_tables(w) < 0 || joule_queue_state(w->queue, &state) < 0)
        return joule_error_set(err, errno, "%s", strerror(errno));
    is_news = state.lost_rows != w->told_lost || state.missed != w->told_missed;
    if (size == 0 && !is_news && w->tables == before)
        return 0;
    if (joule_log_flush(w->log, rows, size, is_news ? &state : NULL) < 0)
        return joule_error_set(err, errno, "%s", strerror(errno));
    joule_queue_release(w->queue);
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
        joule_queue_set_error(w->queue, error);
        tell_trouble(w, "the profile cannot be written: ", err.text);
    }
    return error;
}

/* Have the HDF5 file made of a log that is whole. */
static void convert(struct joule_writer *w)
{
    struct joule_converter helper = {
        .program = w->helper,
        .log_fd = w->fd,
        .dir_fd = w->dir_fd,
        .name = w->name,
        .uid = w->opt.place.uid,
        .gid = w->opt.place.gid,
    };
    char temporary[NAME_MAX + 1];
    struct joule_error err;
    int64_t until_ns;
    bool abandoned;

    pthread_mutex_lock(&w->lock);
    until_ns = w->helper_until_ns;
    abandoned = w->abandoned;
    pthread_mutex_unlock(&w->lock);
    if (abandoned || joule_converter_run(&helper, until_ns, &err) == 0)
        return;
    tell(w, "the profile stays in %s, which sh5util reads: %s", w->name,
         err.text);
    /* A helper that was killed leaves its file. */
    if (joule_place_names(w->name, NULL, temporary) == 0)
        unlinkat(w->dir_fd, temporary, 0);
}

/* The last flush, and the end of the log. */
static void finish(struct joule_writer *w)
{
    int64_t end_ns = joule_clock_mono_ns(w->opt.clock) - w->start_ns;
    int64_t wall_ns = joule_clock_wall_ns(w->opt.clock);
    struct joule_log_state state;
    int error = flush(w);

    if (error)
        joule_queue_lose(w->queue, error);
    /* Without a log all rows are lost, and the reason was told. */
    if (!w->log) {
        if (w->fd >= 0)
            unlinkat(w->dir_fd, w->name, 0);
        return;
    }
    if (joule_queue_state(w->queue, &state) < 0)
        return;
    if (state.lost_rows)
        tell(w, "%" PRIu64 " rows of the profile are lost%s%s", state.lost_rows,
             state.lost_error ? ": " : "",
             state.lost_error ? strerror(state.lost_error) : "");
    state.end_ns = end_ns > 0 ? end_ns : 1;
    state.end_wall_ns = wall_ns;
    if (joule_log_flush(w->log, NULL, 0, &state) < 0)
        tell_trouble(w, "the profile cannot be ended: ", strerror(errno));
    else if (w->helper)
        convert(w);
}

static void add_ns(struct timespec *ts, int64_t ns)
{
    ns += ts->tv_nsec;
    ts->tv_sec += (time_t)(ns / JOULE_NS_PER_S);
    ts->tv_nsec = (long)(ns % JOULE_NS_PER_S);
}

/* The first flush after [mono_ns].  Flushes are a little after the multiples of
 * flush_ns: the series add their rows at the multiples of their periods. */
static int64_t next_flush_ns(const struct joule_writer *w, int64_t mono_ns)
{
    int64_t first_ns = w->start_ns + w->opt.flush_ns + FLUSH_LATE_NS;

    if (mono_ns < first_ns)
        return first_ns;
    return first_ns +
           ((mono_ns - first_ns) / w->opt.flush_ns + 1) * w->opt.flush_ns;
}

/* A flush that took longer than an interval skips the next ones.  After a flush
 * that failed, a half full queue causes no other before its time. */
static void run(struct joule_writer *w)
{
    struct timespec until, now;
    bool refused = false;
    int64_t now_ns;

    now_ns = joule_clock_mono_ns(w->opt.clock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    add_ns(&until, next_flush_ns(w, now_ns) - now_ns);
    while (joule_queue_wait(w->queue, &until, !refused)) {
        refused = flush(w) != 0;
        clock_gettime(CLOCK_MONOTONIC, &now);
        while (until.tv_sec < now.tv_sec ||
               (until.tv_sec == now.tv_sec && until.tv_nsec <= now.tv_nsec))
            add_ns(&until, w->opt.flush_ns);
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

static int copy_options(struct joule_writer *w,
                        const struct joule_writer_options *opt)
{
    size_t n = opt->place.group_count;

    w->opt = *opt;
    w->dir = strdup(opt->place.dir);
    w->user = strdup(opt->place.user);
    w->base = strdup(opt->base);
    w->node = strdup(opt->facts.node);
    w->writer = strdup(opt->facts.writer);
    w->groups = calloc(n + 1, sizeof(gid_t));
    if (opt->helper)
        w->helper = strdup(opt->helper);
    if (!w->dir || !w->user || !w->base || !w->node || !w->writer ||
        !w->groups || (opt->helper && !w->helper))
        return -1;
    if (n)
        memcpy(w->groups, opt->place.groups, n * sizeof(gid_t));
    w->opt.place.dir = w->dir;
    w->opt.place.user = w->user;
    w->opt.place.groups = w->groups;
    w->opt.facts.node = w->node;
    w->opt.facts.writer = w->writer;
    w->opt.facts.start = w->start;
    w->opt.facts.start_wall_ns = w->start_wall_ns;
    w->opt.facts.start_boot_ns = w->start_ns;
    date(w);
    return 0;
}

struct joule_writer *joule_writer_create(const struct joule_writer_options *opt,
                                         struct joule_error *err)
{
    struct joule_writer *w = calloc(1, sizeof(*w));
    pthread_condattr_t attr;
    int rc;

    if (!w) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->ended, &attr);
    pthread_condattr_destroy(&attr);
    w->start_wall_ns = joule_clock_wall_ns(opt->clock);
    w->start_ns = joule_clock_mono_ns(opt->clock);
    w->fd = w->dir_fd = -1;
    w->queue =
        joule_queue_create(opt->queue_bytes, w->start_wall_ns / JOULE_NS_PER_S);
    if (!w->queue || copy_options(w, opt) < 0) {
        destroy(w);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
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

int joule_writer_add_table(struct joule_writer *w, const char *name,
                           const struct joule_field *fields, size_t count,
                           int64_t period_ns)
{
    struct joule_log_table table = {
        .name = name,
        .fields = fields,
        .count = count,
        .period_ns = period_ns,
    };

    return joule_queue_add_table(w->queue, &table);
}

int joule_writer_append(struct joule_writer *w, int table, const void *cells,
                        int64_t epoch_s, int64_t mono_ns)
{
    uint64_t ns = mono_ns > w->start_ns ? (uint64_t)(mono_ns - w->start_ns) : 0;

    if (joule_queue_append(w->queue, table, cells, epoch_s, ns) == 0)
        return 0;
    if (errno == ENOBUFS) {
        tell_trouble(w,
                     "the profile is not written fast enough: rows are "
                     "dropped",
                     "");
        errno = ENOBUFS;
    }
    return -1;
}

void joule_writer_add_missed(struct joule_writer *w, uint64_t periods)
{
    joule_queue_add_missed(w->queue, periods);
}

int joule_writer_close(struct joule_writer *w, int64_t wait_ns)
{
    void (*problem)(const char *, void *);
    void *arg;
    struct timespec until;
    bool done;

    if (!w)
        return 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    add_ns(&until, wait_ns);
    pthread_mutex_lock(&w->lock);
    w->helper_until_ns =
        joule_clock_mono_ns(&joule_clock_system) + wait_ns - wait_ns / 10;
    pthread_mutex_unlock(&w->lock);
    joule_queue_close(w->queue);
    pthread_mutex_lock(&w->lock);
    while (!w->done)
        if (pthread_cond_timedwait(&w->ended, &w->lock, &until) != 0)
            break;
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
