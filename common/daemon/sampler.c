/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/daemon/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"
#include "common/base/thread.h"
#include "common/daemon/steps.h"
#include "common/daemon/tickets.h"
#include "common/energy/counter.h"

/* Deep enough for the host's logging. */
#define THREAD_STACK (256 * 1024)

struct joule_sampler {
    struct joule_sampler_options opt; /* root_fd, node: our own copies */
    char *node;
    pid_t pid; /* of the process that has the thread */
    pthread_t thread;
    pthread_mutex_t lock; /* of the next four */
    pthread_cond_t wake;
    bool stop, has_news; /* has_news: the sensor has more to read */
    _Atomic(struct joule_ledger *) ledger; /* NULL until it is ours to write;
                                              then it stays */
    struct joule_steps *steps;             /* it has the ledger */
    struct joule_tickets *tickets;         /* NULL: no ledger yet */
    bool said_ledger;                      /* that it cannot be had */
    unsigned lines;                        /* that may still be told */
    int64_t refilled_ns;
    struct joule_snapshot snapshot;
    struct joule_reading readings[JOULE_DOMAINS_MAX];
};

int64_t joule_sampler_period_ns(int64_t wrap_ns, int64_t asked_ns)
{
    return asked_ns < wrap_ns / 3 ? asked_ns : wrap_ns / 3;
}

static void tell(struct joule_sampler *s, enum joule_event event,
                 const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void tell(struct joule_sampler *s, enum joule_event event,
                 const char *fmt, ...)
{
    char text[JOULE_ERROR_MAX];
    va_list ap;

    if (!s->opt.event)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    s->opt.event(event, text, s->opt.event_arg);
}

/* Whether one more line of the sensor may be told now. */
static bool may_tell(struct joule_sampler *s)
{
    int64_t now_ns = joule_clock_mono_ns(s->opt.clock);

    while (s->lines < JOULE_SAMPLER_LINES &&
           now_ns - s->refilled_ns >= JOULE_SAMPLER_REFILL_NS) {
        s->lines++;
        s->refilled_ns += JOULE_SAMPLER_REFILL_NS;
    }
    if (s->lines == 0)
        return false;
    if (s->lines == JOULE_SAMPLER_LINES)
        s->refilled_ns = now_ns;
    s->lines--;
    return true;
}

static void tell_remarks(struct joule_sampler *s)
{
    struct joule_sensor *sensor = s->opt.sensor;
    enum joule_event event;
    struct joule_error text;

    while (sensor->ops->remark(sensor, &event, &text))
        if (may_tell(s))
            tell(s, event, "%s", text.text);
}

static void read_sensor(struct joule_sampler *s)
{
    struct joule_snapshot *snap = &s->snapshot;
    struct joule_node_total *t = &snap->total;
    struct joule_sensor *sensor = s->opt.sensor;
    bool was_valid = t->valid;
    int64_t edge_ns =
        joule_ledger_last_edge(s->ledger, joule_clock_mono_ns(s->opt.clock));
    int64_t now_ns = joule_sensor_read(sensor, edge_ns, s->readings);

    joule_node_total_update(t, sensor->domains, s->readings, now_ns);
    snap->wall_ns = joule_clock_wall_ns(s->opt.clock);
    snap->samples++;
    if (t->valid && !was_valid && t->base_uj == 0)
        snap->since_ns = t->began_ns;
    snap->average_mw = JOULE_MW_UNKNOWN;
    if (t->valid && now_ns > snap->since_ns)
        snap->average_mw = joule_power_mw(t->node_uj, now_ns - snap->since_ns);
    joule_ledger_stage_node(s->ledger, snap, &sensor->state);
    tell_remarks(s);
}

static void take_sample(struct joule_sampler *s)
{
    uint32_t tickets = joule_ledger_asked(s->ledger);

    read_sensor(s);
    joule_tickets_sample(s->tickets, &s->snapshot, tickets);
}

/* The node of this boot, if there is one, and whether its domains are ours. */
static bool read_total(struct joule_sampler *s, struct joule_ledger *ledger,
                       bool *ret_is_same)
{
    const struct joule_sensor *sensor = s->opt.sensor;
    const struct joule_node_total *t = &s->snapshot.total;

    if (joule_ledger_read_node(ledger, &s->snapshot, NULL) < 0)
        return false;
    *ret_is_same =
        t->count == sensor->domain_count &&
        t->domain_key == joule_domains_key(sensor->domains, t->count);
    return true;
}

/* Go on with the sensor's state.  false: it makes no sense. */
static bool resume_sensor(struct joule_sampler *s, struct joule_ledger *ledger)
{
    struct joule_sensor *sensor = s->opt.sensor;
    struct joule_sensor_state *state = malloc(sizeof(*state));
    bool ok = state &&
              joule_ledger_read_node(ledger, &s->snapshot, state) == 0 &&
              joule_sensor_resume(sensor, state);

    free(state);
    return ok;
}

/* Go on with the total of this boot, or begin one. */
static void continue_total(struct joule_sampler *s, struct joule_ledger *ledger)
{
    struct joule_snapshot *snap = &s->snapshot;
    struct joule_node_total *t = &snap->total;
    const struct joule_sensor *sensor = s->opt.sensor;
    int64_t now_ns = joule_clock_mono_ns(s->opt.clock);
    bool is_same;

    if (!read_total(s, ledger, &is_same)) {
        memset(snap, 0, sizeof(*snap));
        snap->since_ns = now_ns;
        joule_node_total_start(t, sensor->domains, sensor->domain_count, 0);
    } else if (is_same && resume_sensor(s, ledger)) {
        if (t->valid)
            tell(s, JOULE_EVENT_INFO,
                 "the node total goes on from %" PRIu64 " J, %" PRId64
                 " ms after its last sample",
                 t->node_uj / 1000000, (now_ns - t->mono_ns) / JOULE_NS_PER_MS);
    } else {
        uint64_t base_uj = t->node_uj;

        tell(s, JOULE_EVENT_INFO,
             "%s; the node total goes on from %" PRIu64 " J",
             is_same ? "the energy since the last sample is unknown"
                     : "the energy domains have changed",
             base_uj / 1000000);
        joule_node_total_start(t, sensor->domains, sensor->domain_count,
                               base_uj);
    }
    snap->period_ns = s->opt.period_ns;
}

/* true: the ledger is ours and the total is set up. */
static bool acquire_ledger(struct joule_sampler *s, struct joule_error *err)
{
    struct joule_steps_options opt = {
        .sensor = s->opt.sensor,
        .root_fd = s->opt.root_fd,
        .node = s->opt.node,
        .attribution = s->opt.attribution,
        .idle_uw = s->opt.idle_uw,
    };

    if (s->ledger)
        return true;
    if (!s->steps)
        s->steps = joule_steps_create(&opt, err);
    if (!s->steps)
        return false;
    s->tickets = joule_tickets_create(&s->opt, s->steps);
    if (!s->tickets) {
        joule_error_set(err, ENOMEM, "out of memory");
        return false;
    }
    continue_total(s, joule_steps_ledger(s->steps));
    pthread_mutex_lock(&s->lock);
    s->ledger = joule_steps_ledger(s->steps);
    pthread_mutex_unlock(&s->lock);
    return true;
}

/* Sleep until the deadline, or stop, or until a sample is asked for: true. */
static bool wait(struct joule_sampler *s, int64_t deadline_ns)
{
    if (s->ledger)
        return joule_tickets_wait(s->tickets, deadline_ns);
    pthread_mutex_lock(&s->lock);
    while (!s->stop && joule_cond_wait(&s->wake, &s->lock, deadline_ns))
        continue;
    pthread_mutex_unlock(&s->lock);
    return false;
}

static void on_news(void *arg)
{
    struct joule_sampler *s = arg;

    pthread_mutex_lock(&s->lock);
    s->has_news = true;
    if (s->ledger)
        joule_ledger_wake(s->ledger);
    pthread_mutex_unlock(&s->lock);
}

/* Whether to stop; and whether the sensor has news. */
static bool is_stopped(struct joule_sampler *s, bool *ret_has_news)
{
    bool stop;

    pthread_mutex_lock(&s->lock);
    stop = s->stop;
    *ret_has_news = s->has_news;
    s->has_news = false;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

static void *sampler_main(void *arg)
{
    struct joule_sampler *s = arg;
    int64_t period_ns = s->opt.period_ns, deadline_ns = joule_deadline_now();
    bool asked = false, has_news;
    struct joule_error err;

    prctl(PR_SET_NAME, "joule_sampler");
    for (;;) {
        int64_t now_ns = joule_deadline_now();

        if (!asked)
            deadline_ns += period_ns;
        /* After a suspend or a stop, one sample now and not a burst. */
        if (now_ns > deadline_ns + period_ns)
            deadline_ns = now_ns;
        asked = wait(s, deadline_ns);
        if (is_stopped(s, &has_news))
            break;
        /* A meter that answers sets the pace. */
        if (has_news) {
            asked = false;
            deadline_ns = joule_deadline_now();
        }
        if (acquire_ledger(s, &err)) {
            take_sample(s);
        } else if (errno != EWOULDBLOCK && !s->said_ledger) {
            s->said_ledger = true;
            tell(s, JOULE_EVENT_PROBLEM, "energy is unknown on this node: %s",
                 err.text);
        }
    }
    if (s->ledger)
        take_sample(s);
    return NULL;
}

static int start_thread(struct joule_sampler *s, struct joule_error *err)
{
    int rc = joule_thread_start(&s->thread, THREAD_STACK, sampler_main, s);

    if (rc)
        return joule_error_set(err, rc, "cannot start the sampler thread: %s",
                               strerror(rc));
    return 0;
}

/* In a child of fork somebody may have had the lock. */
static void sampler_free(struct joule_sampler *s)
{
    int saved = errno;

    if (s->pid == getpid()) {
        pthread_cond_destroy(&s->wake);
        pthread_mutex_destroy(&s->lock);
    }
    joule_tickets_destroy(s->tickets);
    joule_steps_destroy(s->steps);
    joule_close(s->opt.root_fd);
    free(s->node);
    free(s);
    errno = saved;
}

struct joule_sampler *
joule_sampler_create(const struct joule_sampler_options *opt,
                     struct joule_error *err)
{
    struct joule_sampler *s = calloc(1, sizeof(*s));

    if (!s) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    s->opt = *opt;
    s->opt.root_fd = fcntl(opt->root_fd, F_DUPFD_CLOEXEC, 0);
    s->node = strdup(opt->node);
    s->opt.node = s->node;
    s->pid = getpid();
    s->lines = JOULE_SAMPLER_LINES;
    pthread_mutex_init(&s->lock, NULL);
    joule_cond_init(&s->wake);
    if (s->opt.root_fd < 0 || !s->node) {
        joule_error_set(err, errno, "cannot start the sampler: %s",
                        strerror(errno));
        goto fail;
    }
    if (acquire_ledger(s, err))
        take_sample(s);
    else if (errno != EWOULDBLOCK)
        goto fail;
    if (start_thread(s, err) < 0)
        goto fail;
    if (opt->sensor->ops->notify)
        opt->sensor->ops->notify(opt->sensor, on_news, s);
    return s;
fail:
    sampler_free(s);
    return NULL;
}

void joule_sampler_destroy(struct joule_sampler *s)
{
    if (!s)
        return;
    if (s->pid == getpid()) {
        if (s->opt.sensor->ops->notify)
            s->opt.sensor->ops->notify(s->opt.sensor, NULL, NULL);
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_broadcast(&s->wake);
        if (s->ledger)
            joule_ledger_wake(s->ledger);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    sampler_free(s);
}

int joule_sampler_read(struct joule_sampler *s, struct joule_snapshot *ret)
{
    struct joule_ledger *ledger = s->ledger;

    if (ledger && s->pid == getpid())
        return joule_ledger_read_node(ledger, ret, NULL);
    errno = s->pid == getpid() ? ENODATA : ECHILD;
    return -1;
}
