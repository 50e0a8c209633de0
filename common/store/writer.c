/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/base/thread.h"
#include "common/store/intake.h"
#include "common/store/output.h"

#define THREAD_STACK (256 * 1024)

/* So long after the rows of that time are written. */
#define FLUSH_LATE_NS (25 * JOULE_NS_PER_MS)

struct joule_writer {
    /* constant */
    struct joule_writer_options opt;
    struct joule_output_options output_opt;
    char *dir, *user, *base, *node;
    gid_t *groups;
    int64_t start_ns, start_wall_ns;
    pthread_t thread;

    struct joule_intake *intake;
    struct joule_output *output; /* the thread's */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended;
    bool done, abandoned;
};

static void destroy(struct joule_writer *w)
{
    joule_output_destroy(w->output);
    joule_intake_destroy(w->intake);
    free(w->dir);
    free(w->user);
    free(w->base);
    free(w->node);
    free(w->groups);
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

/* ---- the thread ---- */

static int flush(struct joule_writer *w)
{
    struct joule_error err;

    if (joule_output_flush(w->output, &err) == 0)
        return 0;
    if (joule_intake_say_first(w->intake))
        tell(w, "the profile cannot be written: %s", err.text);
    return -1;
}

/* The last flush.  Nobody adds rows any more, but a thread that was not told
 * so. */
static void finish(struct joule_writer *w)
{
    int64_t end_ns = joule_clock_mono_ns(w->opt.clock) - w->start_ns;
    int64_t wall_ns = joule_clock_wall_ns(w->opt.clock);
    struct joule_loss loss;
    struct joule_error err;

    if (joule_output_finish(w->output, end_ns, wall_ns, &err) < 0 &&
        joule_intake_say_first(w->intake))
        tell(w, "the profile cannot be written: %s", err.text);
    /* Where there is no file, all are lost, and it was said why. */
    loss = joule_intake_toll(w->intake).loss;
    if (loss.rows && joule_output_has_file(w->output))
        tell(w, "%" PRIu64 " rows of the profile are lost%s%s", loss.rows,
             loss.error ? ": " : "", loss.error ? strerror(loss.error) : "");
}

static void add_ns(struct timespec *ts, int64_t ns)
{
    ns += ts->tv_nsec;
    ts->tv_sec += (time_t)(ns / JOULE_NS_PER_S);
    ts->tv_nsec = (long)(ns % JOULE_NS_PER_S);
}

/* The first time after [mono_ns] at which rows are written: a little after each
 * multiple of flush_ns, so that who reads at the multiples of a period has added
 * his row. */
static int64_t next_flush_ns(const struct joule_writer *w, int64_t mono_ns)
{
    int64_t first_ns = w->start_ns + w->opt.flush_ns + FLUSH_LATE_NS;

    if (mono_ns < first_ns)
        return first_ns;
    return first_ns +
           ((mono_ns - first_ns) / w->opt.flush_ns + 1) * w->opt.flush_ns;
}

/* Late by more than an interval: the ones that were missed are not made up
 * for.  A half full queue is not a reason to try a disk that refuses over and
 * over. */
static void run(struct joule_writer *w)
{
    struct timespec until, now;
    bool refused = false;
    int64_t now_ns;

    now_ns = joule_clock_mono_ns(w->opt.clock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    add_ns(&until, next_flush_ns(w, now_ns) - now_ns);
    while (joule_intake_wait(w->intake, &until, !refused)) {
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
    run(w);
    joule_output_destroy(w->output);
    w->output = NULL;
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
    struct joule_output_options *out = &w->output_opt;
    size_t n = opt->place.group_count;

    w->opt = *opt;
    w->dir = strdup(opt->place.dir);
    w->user = strdup(opt->place.user);
    w->base = strdup(opt->base);
    w->node = strdup(opt->facts.node);
    w->groups = calloc(n + 1, sizeof(gid_t));
    if (!w->dir || !w->user || !w->base || !w->node || !w->groups)
        return -1;
    if (n)
        memcpy(w->groups, opt->place.groups, n * sizeof(gid_t));
    *out = (struct joule_output_options){
        .place = opt->place,
        .base = w->base,
        .facts = opt->facts,
        .chunk_rows = opt->chunk_rows,
        .pack = opt->pack,
    };
    out->place.dir = w->dir;
    out->place.user = w->user;
    out->place.groups = w->groups;
    out->facts.node = w->node;
    out->facts.start_wall_ns = w->start_wall_ns;
    out->facts.start_boot_ns = w->start_ns;
    joule_nodefile_date(&out->facts);
    return 0;
}

static int make_parts(struct joule_writer *w,
                      const struct joule_writer_options *opt)
{
    if (copy_options(w, opt) < 0)
        return -1;
    w->intake = joule_intake_create(opt->queue_bytes,
                                    w->start_wall_ns / JOULE_NS_PER_S);
    if (w->intake)
        w->output = joule_output_create(&w->output_opt, w->intake);
    return w->output ? 0 : -1;
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
    if (make_parts(w, opt) < 0) {
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
    return joule_intake_add_series(w->intake, name, fields, count, period_ns);
}

int joule_writer_append(struct joule_writer *w, int table, const void *cells,
                        int64_t epoch_s, int64_t mono_ns)
{
    uint64_t ns = mono_ns > w->start_ns ? (uint64_t)(mono_ns - w->start_ns) : 0;

    if (joule_intake_append(w->intake, table, cells, epoch_s, ns) == 0)
        return 0;
    if (errno == ENOBUFS && joule_intake_say_first(w->intake)) {
        tell(w, "the profile is not written fast enough: rows are dropped");
        errno = ENOBUFS;
    }
    return -1;
}

void joule_writer_add_missed(struct joule_writer *w, uint64_t periods)
{
    joule_intake_add_missed(w->intake, periods);
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
    joule_intake_close(w->intake);
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
