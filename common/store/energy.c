/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/energy.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define THREAD_STACK (256 * 1024)

/* Power, node_uJ, and a column for each domain; or two for each label and
 * node_uJ. */
#define COLUMNS_MAX (2 * JOULE_DOMAINS_MAX + 2)
#define NAME_SIZE   (32 + sizeof("Power"))

/* Counters are updated each millisecond: over less than this, power is mostly
 * that. */
#define INTERVAL_MIN_NS (5 * JOULE_NS_PER_MS)

union cell {
    uint64_t u;
    double d;
};

_Static_assert(sizeof(union cell) == 8, "a column is eight bytes");

struct joule_energy_series {
    struct joule_energy_series_options opt;
    pthread_t thread;
    pthread_mutex_t lock; /* guards stop */
    pthread_cond_t wake;
    bool stop;
    int table; /* -1: none yet */
    bool primed;
    int64_t before_ns;
    uint64_t before_uj;
    uint64_t domain_before_uj[JOULE_DOMAINS_MAX];
    union cell row[COLUMNS_MAX];
};

struct columns {
    struct joule_field field[COLUMNS_MAX];
    char name[COLUMNS_MAX][NAME_SIZE];
    size_t count;
};

static void add_column(struct columns *c, enum joule_field_type type,
                       const char *stem, const char *suffix)
{
    char *name = c->name[c->count];

    snprintf(name, NAME_SIZE, "%.31s%s", stem, suffix);
    c->field[c->count].name = name;
    c->field[c->count].type = type;
    c->count++;
}

static void add_columns(struct columns *c, const struct joule_source *source)
{
    char stem[sizeof(source->domains[0].name)];
    size_t i;
    char *p;

    if (joule_source_is_power(source)) {
        for (i = 0; i < source->domain_count; i++)
            add_column(c, JOULE_FIELD_U64, source->domains[i].name, "Power");
    } else {
        add_column(c, JOULE_FIELD_U64, "Power", "");
    }
    add_column(c, JOULE_FIELD_U64, "node_uJ", "");
    for (i = 0; i < source->domain_count; i++) {
        memcpy(stem, source->domains[i].name, sizeof(stem));
        for (p = stem; *p; p++) {
            if (*p == '-')
                *p = '_';
        }
        add_column(c, JOULE_FIELD_DOUBLE, stem, "_mW");
    }
}

static int add_table(struct joule_energy_series *s, int64_t period_ns)
{
    struct columns *c = calloc(1, sizeof(*c));

    if (!c)
        return -1;
    add_columns(c, s->opt.source);
    s->table = joule_writer_add_table(s->opt.writer, "Energy", c->field,
                                      c->count, period_ns);
    free(c);
    return s->table < 0 ? -1 : 0;
}

static double domain_mw(const struct joule_energy_series *s,
                        const struct joule_account_reading *reading, size_t i,
                        int64_t ns)
{
    if (reading->domain_mw && reading->domain_mw[i] == JOULE_MW_UNKNOWN)
        return NAN;
    return (double)(reading->domain_uj[i] - s->domain_before_uj[i]) * 1e6 /
           (double)ns;
}

static uint64_t watts(double mw)
{
    return mw >= 0 && mw < 1e12 ? (uint64_t)(mw / 1000 + 0.5) : 0;
}

static void fill_row(struct joule_energy_series *s,
                     const struct joule_account_reading *reading, int64_t ns)
{
    const struct joule_source *source = s->opt.source;
    union cell *cell = s->row;
    size_t i;

    if (joule_source_is_power(source)) {
        for (i = 0; i < source->domain_count; i++)
            (cell++)->u = watts(domain_mw(s, reading, i, ns));
    } else {
        (cell++)->u =
            watts((double)(reading->used_uj - s->before_uj) * 1e6 / (double)ns);
    }
    (cell++)->u = reading->used_uj;
    for (i = 0; i < source->domain_count; i++)
        (cell++)->d = domain_mw(s, reading, i, ns);
}

/* The reading that begins an interval gives no row. */
static void sample(struct joule_energy_series *s)
{
    struct joule_account_reading reading;
    int64_t ns, epoch_s;

    if (joule_account_update(s->opt.account, &reading) < 0)
        return;
    ns = reading.mono_ns - s->before_ns;
    if (s->primed && ns < INTERVAL_MIN_NS)
        return;
    if (joule_source_is_power(s->opt.source) &&
        reading.node_mw == JOULE_MW_UNKNOWN) {
        s->primed = false;
        return;
    }
    if (s->primed && s->table >= 0) {
        fill_row(s, &reading, ns);
        epoch_s = joule_clock_wall_ns(s->opt.clock) / JOULE_NS_PER_S;
        joule_writer_append(s->opt.writer, s->table, s->row, epoch_s,
                            reading.mono_ns);
    }
    s->primed = true;
    s->before_ns = reading.mono_ns;
    s->before_uj = reading.used_uj;
    memcpy(s->domain_before_uj, reading.domain_uj,
           s->opt.source->domain_count * sizeof(reading.domain_uj[0]));
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec ||
           (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static void add_ns(struct timespec *ts, int64_t ns)
{
    ns += ts->tv_nsec;
    ts->tv_sec += (time_t)(ns / JOULE_NS_PER_S);
    ts->tv_nsec = (long)(ns % JOULE_NS_PER_S);
    if (ts->tv_nsec < 0) {
        ts->tv_sec--;
        ts->tv_nsec += JOULE_NS_PER_S;
    }
}

/* false: the step is over. */
static bool wait_until(struct joule_energy_series *s,
                       const struct timespec *until)
{
    bool stop;

    pthread_mutex_lock(&s->lock);
    while (!s->stop)
        if (pthread_cond_timedwait(&s->wake, &s->lock, until) != 0)
            break;
    stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return !stop;
}

/* ElapsedTimeNs 0, by the clock that wait_until has. */
static struct timespec origin(const struct joule_energy_series *s)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    add_ns(&ts, joule_writer_start_ns(s->opt.writer) -
                    joule_clock_mono_ns(s->opt.clock));
    return ts;
}

static void run(struct joule_energy_series *s)
{
    int64_t period_ns = s->opt.period_ns;
    struct timespec next = origin(s), now;
    bool more = true;

    sample(s);
    if (period_ns == 0) {
        struct timespec second = next;

        add_ns(&second, JOULE_NS_PER_S);
        more = wait_until(s, &second);
        period_ns = s->opt.ask_period_ns ? s->opt.ask_period_ns() : 0;
    }
    if (period_ns <= 0 || add_table(s, period_ns) < 0)
        return;
    for (add_ns(&next, period_ns); more;) {
        more = wait_until(s, &next);
        sample(s);
        clock_gettime(CLOCK_MONOTONIC, &now);
        while (!is_before(&now, &next))
            add_ns(&next, period_ns);
    }
    /* The step ended in its first second. */
    sample(s);
}

static void *thread_main(void *arg)
{
    prctl(PR_SET_NAME, "joule-energy");
    /* The kernel may be late by 50 us to save wake-ups: too much for periods
     * of 10 ms. */
    prctl(PR_SET_TIMERSLACK, 1000);
    /* Ahead of the job's tasks, for some microseconds at a time; where that is
     * not allowed, rows may be late. */
    setpriority(PRIO_PROCESS, (id_t)gettid(), -10);
    run(arg);
    return NULL;
}

static int start_thread(struct joule_energy_series *s)
{
    pthread_condattr_t cond_attr;
    pthread_attr_t attr;
    sigset_t all, before;
    int rc;

    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&cond_attr);
    pthread_condattr_setclock(&cond_attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &cond_attr);
    pthread_condattr_destroy(&cond_attr);
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, THREAD_STACK);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&s->thread, &attr, thread_main, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

static void release(struct joule_energy_series *s)
{
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct joule_energy_series *
joule_energy_series_create(const struct joule_energy_series_options *opt)
{
    struct joule_energy_series *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return NULL;
    s->opt = *opt;
    s->table = -1;
    rc = start_thread(s);
    if (rc == 0)
        return s;
    release(s);
    errno = rc;
    return NULL;
}

void joule_energy_series_destroy(struct joule_energy_series *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    release(s);
}
