/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/store/queue.h"

/* HDF5 copies groups by recursion, with buffers on the stack. */
#define THREAD_STACK (1024 * 1024)

/* Rows of a chunk: some minutes at the usual rates, and little memory for a
 * node with a hundred tasks; at high rates half a minute. */
#define CHUNK_ROWS     256
#define CHUNK_ROWS_MAX 4096
#define CHUNK_NS       (40 * JOULE_NS_PER_S)

struct series {
    char *name;
    struct joule_field *fields; /* their names lie behind them */
    size_t count;
    int64_t period_ns;
    uint64_t last_ns; /* of the row before */
    uint64_t lost;    /* rows */
    /* the thread's */
    int table; /* in the file, or -1 */
    bool refused;
    uint64_t appended; /* rows given to the file */
    uint64_t on_disk;  /* of them */
    uint64_t told;     /* what the attribute says is lost */
};

struct joule_writer {
    /* constant */
    struct joule_writer_options opt;
    char *dir, *user, *base, *node;
    gid_t *groups;
    int64_t start_ns, start_wall_ns;
    pthread_t thread;

    pthread_mutex_t lock; /* of all up to the next remark */
    pthread_cond_t wake, ended;
    bool closing, done, abandoned, said;
    struct joule_queue *queue;
    struct series **series;
    int count;
    struct joule_loss loss;

    /* the thread's */
    int dir_fd, fd;
    char name[NAME_MAX + 1];
    struct joule_nodefile *file;
    uint64_t unsafe_first_ns, unsafe_last_ns; /* rows since the last commit */
    uint64_t loss_told;
};

static void destroy(struct joule_writer *w)
{
    int i;

    for (i = 0; i < w->count; i++) {
        free(w->series[i]->name);
        free(w->series[i]->fields);
        free(w->series[i]);
    }
    free(w->series);
    joule_queue_destroy(w->queue);
    free(w->dir);
    free(w->user);
    free(w->base);
    free(w->node);
    free(w->groups);
    pthread_cond_destroy(&w->wake);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static void tell(struct joule_writer *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Not by a thread that was left behind: whoever listened may be gone. */
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

/* true for the first who asks: the same trouble is not said twice. */
static bool say_first(struct joule_writer *w)
{
    bool first;

    pthread_mutex_lock(&w->lock);
    first = !w->said;
    w->said = true;
    pthread_mutex_unlock(&w->lock);
    return first;
}

/* ---- the thread ---- */

static size_t chunk_rows(const struct joule_writer *w, int64_t period_ns)
{
    size_t rows = CHUNK_ROWS;

    if (w->opt.chunk_rows)
        return w->opt.chunk_rows;
    if (period_ns > 0)
        while (rows < CHUNK_ROWS_MAX && (int64_t)rows * period_ns < CHUNK_NS)
            rows *= 2;
    return rows;
}

static void note_error(struct joule_writer *w, int error)
{
    pthread_mutex_lock(&w->lock);
    w->loss.error = error;
    pthread_mutex_unlock(&w->lock);
}

static void note_lost(struct joule_writer *w, struct series *s, uint64_t rows,
                      uint64_t first_ns, uint64_t last_ns)
{
    pthread_mutex_lock(&w->lock);
    s->lost += rows;
    if (w->loss.rows == 0)
        w->loss.first_ns = first_ns;
    if (w->loss.last_ns < last_ns)
        w->loss.last_ns = last_ns;
    w->loss.rows += rows;
    pthread_mutex_unlock(&w->lock);
}

static int open_file(struct joule_writer *w)
{
    struct joule_nodefile_facts facts = w->opt.facts;
    struct joule_error err;
    unsigned run = 0;

    if (w->dir_fd < 0)
        w->dir_fd = joule_place_open(&w->opt.place, &err);
    if (w->dir_fd >= 0 && w->fd < 0)
        w->fd = joule_place_create(&w->opt.place, w->dir_fd, w->base, w->name,
                                   sizeof(w->name), &run, &err);
    if (w->fd >= 0) {
        facts.run = run;
        facts.start_wall_ns = w->start_wall_ns;
        facts.start_boot_ns = w->start_ns;
        w->file = joule_nodefile_create(w->fd, &facts, &err);
    }
    if (w->file)
        return 0;
    note_error(w, errno);
    if (say_first(w))
        tell(w, "the profile cannot be written: %s", err.text);
    return -1;
}

/* Series that have come since the last time. */
static void add_tables(struct joule_writer *w)
{
    int i, count;
    struct series **list;

    pthread_mutex_lock(&w->lock);
    count = w->count;
    list = calloc((size_t)count + 1, sizeof(struct series *));
    if (list)
        memcpy(list, w->series, (size_t)count * sizeof(struct series *));
    pthread_mutex_unlock(&w->lock);
    for (i = 0; list && i < count; i++) {
        struct series *s = list[i];
        struct joule_table_options opt = {
            .fields = s->fields,
            .count = s->count,
            .chunk_rows = chunk_rows(w, s->period_ns),
            .pack = w->opt.pack,
            .period_ns = (uint64_t)s->period_ns,
        };

        if (s->table >= 0 || s->refused)
            continue;
        s->table = joule_nodefile_add_table(w->file, s->name, &opt);
        s->refused = s->table < 0;
        if (s->refused)
            note_error(w, errno);
    }
    free(list);
}

static struct series *get_series(struct joule_writer *w, uint32_t i)
{
    struct series *s;

    pthread_mutex_lock(&w->lock);
    s = w->series[i];
    pthread_mutex_unlock(&w->lock);
    return s;
}

/* What the queue held when it was swapped, into the tables. */
static void drain(struct joule_writer *w)
{
    struct series *s = NULL;
    uint32_t i = 0, before = UINT32_MAX, size;
    const void *row;

    while ((row = joule_queue_next(w->queue, &i, &size)) != NULL) {
        uint64_t ns;

        memcpy(&ns, (const char *)row + size - sizeof(ns), sizeof(ns));
        if (i != before)
            s = get_series(w, i);
        before = i;
        if (s->table < 0 ||
            joule_table_append(joule_nodefile_table(w->file, s->table), row) <
                0) {
            note_lost(w, s, 1, ns, ns);
            continue;
        }
        s->appended++;
        if (w->unsafe_first_ns == UINT64_MAX)
            w->unsafe_first_ns = ns;
        if (w->unsafe_last_ns < ns)
            w->unsafe_last_ns = ns;
    }
}

/* The count of what is missing, into the attributes. */
static void tell_loss(struct joule_writer *w)
{
    struct joule_loss loss;
    int i, count;

    pthread_mutex_lock(&w->lock);
    loss = w->loss;
    count = w->count;
    pthread_mutex_unlock(&w->lock);
    if (loss.rows == w->loss_told)
        return;
    joule_nodefile_set_loss(w->file, &loss);
    w->loss_told = loss.rows;
    for (i = 0; i < count; i++) {
        struct series *s = get_series(w, (uint32_t)i);
        uint64_t lost;

        pthread_mutex_lock(&w->lock);
        lost = s->lost;
        pthread_mutex_unlock(&w->lock);
        if (s->table >= 0 && lost != s->told)
            joule_table_set_lost(joule_nodefile_table(w->file, s->table), lost);
        s->told = lost;
    }
}

static void note_safe(struct joule_writer *w)
{
    int i, count;

    pthread_mutex_lock(&w->lock);
    count = w->count;
    pthread_mutex_unlock(&w->lock);
    for (i = 0; i < count; i++) {
        struct series *s = get_series(w, (uint32_t)i);

        s->on_disk = s->appended;
    }
    w->unsafe_first_ns = UINT64_MAX;
    w->unsafe_last_ns = 0;
}

static void failed(struct joule_writer *w)
{
    int error = errno;

    note_error(w, error);
    if (say_first(w))
        tell(w, "the profile cannot be written: %s", strerror(error));
}

/*
 * Once an interval.  After a failure nothing is taken from the queue until
 * what was taken is on disk: memory stays bounded.
 */
static int flush(struct joule_writer *w)
{
    if (!w->file && open_file(w) < 0)
        return -1;
    if (w->unsafe_first_ns != UINT64_MAX) {
        if (joule_nodefile_commit(w->file) < 0) {
            failed(w);
            return -1;
        }
        note_safe(w);
    }
    pthread_mutex_lock(&w->lock);
    joule_queue_swap(w->queue);
    pthread_mutex_unlock(&w->lock);
    add_tables(w);
    drain(w);
    tell_loss(w);
    if (joule_nodefile_commit(w->file) < 0) {
        failed(w);
        return -1;
    }
    note_safe(w);
    return 0;
}

/* A copy without the room that was left for more; if that cannot be had, what
 * there is will do. */
static void tidy(struct joule_writer *w)
{
    int fd;

    if (!joule_nodefile_is_loose(w->file))
        return;
    fd = joule_place_create_copy(&w->opt.place, w->dir_fd, w->name, NULL);
    if (fd < 0)
        return;
    if (joule_nodefile_copy(w->file, fd) == 0)
        joule_place_replace(w->dir_fd, w->name, w->fd);
    else
        joule_place_drop_copy(w->dir_fd, w->name);
    close(fd);
}

/* Rows that are in the queue, or in tables that did not get to the disk. */
static void count_lost(struct joule_writer *w)
{
    const void *row;
    uint32_t i, size;
    int k;

    for (k = 0; k < w->count; k++) {
        struct series *s = w->series[k];

        if (s->appended > s->on_disk)
            note_lost(w, s, s->appended - s->on_disk, w->unsafe_first_ns,
                      w->unsafe_last_ns);
    }
    for (k = 0; k < 2; k++) {
        while ((row = joule_queue_next(w->queue, &i, &size)) != NULL) {
            uint64_t ns;

            memcpy(&ns, (const char *)row + size - sizeof(ns), sizeof(ns));
            note_lost(w, w->series[i], 1, ns, ns);
        }
        joule_queue_swap(w->queue);
    }
}

/* The last flush.  Nobody adds rows any more, but a thread that was not told
 * so; the lock is held for what it might touch. */
static void finish(struct joule_writer *w)
{
    int64_t end_ns = joule_clock_mono_ns(w->opt.clock) - w->start_ns;
    int64_t wall_ns = joule_clock_wall_ns(w->opt.clock);

    if (flush(w) == 0 && joule_nodefile_finish(w->file, end_ns, wall_ns) == 0) {
        tidy(w);
    } else {
        if (w->file)
            failed(w);
        count_lost(w);
        if (w->file)
            joule_nodefile_rescue(w->file, &w->loss);
    }
    if (w->loss.rows)
        tell(w, "%" PRIu64 " rows of the profile are lost%s%s", w->loss.rows,
             w->loss.error ? ": " : "",
             w->loss.error ? strerror(w->loss.error) : "");
}

static void wait_for_work(struct joule_writer *w, const struct timespec *until)
{
    pthread_mutex_lock(&w->lock);
    while (!w->closing && !joule_queue_is_half_full(w->queue))
        if (pthread_cond_timedwait(&w->wake, &w->lock, until) != 0)
            break;
    pthread_mutex_unlock(&w->lock);
}

static bool is_closing(struct joule_writer *w)
{
    bool closing;

    pthread_mutex_lock(&w->lock);
    closing = w->closing;
    pthread_mutex_unlock(&w->lock);
    return closing;
}

static void add_ns(struct timespec *ts, int64_t ns)
{
    ns += ts->tv_nsec;
    ts->tv_sec += (time_t)(ns / JOULE_NS_PER_S);
    ts->tv_nsec = (long)(ns % JOULE_NS_PER_S);
}

/* Late by more than an interval: the ones that were missed are not made up
 * for.  A half full queue is not a reason to try a disk that refuses over and
 * over. */
static void run(struct joule_writer *w)
{
    struct timespec until, now;
    bool refused = false;

    clock_gettime(CLOCK_MONOTONIC, &until);
    add_ns(&until, w->opt.flush_ns);
    for (;;) {
        if (refused) {
            pthread_mutex_lock(&w->lock);
            while (!w->closing &&
                   pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
                ;
            pthread_mutex_unlock(&w->lock);
        } else {
            wait_for_work(w, &until);
        }
        if (is_closing(w))
            break;
        refused = flush(w) < 0;
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
    /* The process may end while this thread is stuck in the disk: HDF5 must
     * not wait for it then. */
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    run(w);
    joule_nodefile_destroy(w->file);
    if (w->fd >= 0)
        close(w->fd);
    if (w->dir_fd >= 0)
        close(w->dir_fd);
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

static int copy_options(struct joule_writer *w,
                        const struct joule_writer_options *opt)
{
    size_t n = opt->place.group_count;

    w->opt = *opt;
    w->dir = strdup(opt->place.dir);
    w->user = strdup(opt->place.user);
    w->base = strdup(opt->base);
    w->node = strdup(opt->facts.node);
    w->groups = calloc(n + 1, sizeof(gid_t));
    w->queue = joule_queue_create(opt->queue_bytes);
    if (!w->dir || !w->user || !w->base || !w->node || !w->groups || !w->queue)
        return -1;
    if (n)
        memcpy(w->groups, opt->place.groups, n * sizeof(gid_t));
    w->opt.place.dir = w->dir;
    w->opt.place.user = w->user;
    w->opt.place.groups = w->groups;
    w->opt.base = w->base;
    w->opt.facts.node = w->node;
    return 0;
}

static int start_thread(struct joule_writer *w)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, THREAD_STACK);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&w->thread, &attr, thread_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc;
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
    w->dir_fd = -1;
    w->fd = -1;
    w->unsafe_first_ns = UINT64_MAX;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attr);
    pthread_cond_init(&w->ended, &attr);
    pthread_condattr_destroy(&attr);
    if (copy_options(w, opt) < 0) {
        destroy(w);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    w->start_wall_ns = joule_clock_wall_ns(opt->clock);
    w->start_ns = joule_clock_mono_ns(opt->clock);
    rc = start_thread(w);
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

static void free_series(struct series *s)
{
    free(s->name);
    free(s->fields);
    free(s);
}

/* The names lie behind the fields. */
static struct joule_field *copy_fields(const struct joule_field *fields,
                                       size_t count)
{
    size_t bytes = (count + 1) * sizeof(*fields), i;
    struct joule_field *copy;
    char *name;

    for (i = 0; i < count; i++)
        bytes += strlen(fields[i].name) + 1;
    copy = calloc(1, bytes);
    if (!copy)
        return NULL;
    name = (char *)(copy + count + 1);
    for (i = 0; i < count; i++) {
        copy[i].type = fields[i].type;
        copy[i].name = name;
        name = stpcpy(name, fields[i].name) + 1;
    }
    return copy;
}

static struct series *make_series(const char *name,
                                  const struct joule_field *fields,
                                  size_t count, int64_t period_ns)
{
    struct series *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->name = strdup(name);
    s->fields = copy_fields(fields, count);
    s->count = count;
    s->period_ns = period_ns;
    s->table = -1;
    if (s->name && s->fields)
        return s;
    free_series(s);
    errno = ENOMEM;
    return NULL;
}

static int put_series(struct joule_writer *w, struct series *s)
{
    struct series **list;
    int i;

    for (i = 0; i < w->count; i++)
        if (strcmp(w->series[i]->name, s->name) == 0) {
            errno = EEXIST;
            return -1;
        }
    list = realloc(w->series, (size_t)(w->count + 1) * sizeof(struct series *));
    if (!list)
        return -1;
    list[w->count] = s;
    w->series = list;
    return w->count++;
}

static bool is_series_name(const char *name)
{
    const char *slash = strchr(name, '/');

    if (!*name || *name == '/' || *name == '.')
        return false;
    return !slash || (slash[1] && slash[1] != '.' && !strchr(slash + 1, '/'));
}

int joule_writer_add_table(struct joule_writer *w, const char *name,
                           const struct joule_field *fields, size_t count,
                           int64_t period_ns)
{
    struct series *s;
    int table, saved;

    if (!is_series_name(name)) {
        errno = EINVAL;
        return -1;
    }
    if (count > JOULE_FIELDS_MAX) {
        errno = E2BIG;
        return -1;
    }
    s = make_series(name, fields, count, period_ns);
    if (!s)
        return -1;
    pthread_mutex_lock(&w->lock);
    table = put_series(w, s);
    pthread_mutex_unlock(&w->lock);
    if (table < 0) {
        saved = errno;
        free_series(s);
        errno = saved;
    }
    return table;
}

/* Under the lock. */
static bool put_row(struct joule_writer *w, struct series *s, int table,
                    const void *cells, int64_t epoch_s, uint64_t ns)
{
    int64_t start_s = w->start_wall_ns / JOULE_NS_PER_S;
    uint64_t *row = joule_queue_add(w->queue, (uint32_t)table,
                                    (uint32_t)(s->count + 3) * 8);

    if (!row) {
        s->lost++;
        if (w->loss.rows++ == 0)
            w->loss.first_ns = ns;
        w->loss.last_ns = ns;
        return false;
    }
    row[0] = epoch_s > start_s ? (uint64_t)(epoch_s - start_s) : 0;
    row[1] = (uint64_t)epoch_s;
    memcpy(row + 2, cells, s->count * 8);
    row[s->count + 2] = ns;
    s->last_ns = ns;
    return true;
}

int joule_writer_append(struct joule_writer *w, int table, const void *cells,
                        int64_t epoch_s, int64_t mono_ns)
{
    uint64_t ns = mono_ns > w->start_ns ? (uint64_t)(mono_ns - w->start_ns) : 0;
    bool put, say, half;

    pthread_mutex_lock(&w->lock);
    if (table < 0 || table >= w->count) {
        pthread_mutex_unlock(&w->lock);
        errno = EINVAL;
        return -1;
    }
    if (ns < w->series[table]->last_ns)
        ns = w->series[table]->last_ns;
    put = put_row(w, w->series[table], table, cells, epoch_s, ns);
    half = joule_queue_is_half_full(w->queue);
    say = !put && !w->said;
    if (say)
        w->said = true;
    pthread_mutex_unlock(&w->lock);
    if (half)
        pthread_cond_signal(&w->wake);
    if (say)
        tell(w, "the profile is not written fast enough: rows are dropped");
    if (put)
        return 0;
    errno = ENOBUFS;
    return -1;
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
    w->closing = true;
    pthread_cond_signal(&w->wake);
    while (!w->done)
        if (pthread_cond_timedwait(&w->ended, &w->lock, &until) != 0)
            break;
    done = w->done;
    w->abandoned = !done;
    problem = w->opt.problem;
    arg = w->opt.problem_arg;
    if (!done)
        pthread_detach(w->thread);
    /* If it is abandoned, it may free everything from here on. */
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
