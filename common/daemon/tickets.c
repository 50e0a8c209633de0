/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/daemon/tickets.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "common/base/deadline.h"
#include "common/base/thread.h"
#include "common/node/user_view.h"
#include "common/daemon/steps.h"

/* Deep enough for the host's logging. */
#define THREAD_STACK (256 * 1024)

/* A ledger that cannot be had is tried again after so long. */
#define RETRY_NS (10 * JOULE_NS_PER_S)

/* Each of them is said once. */
enum problem {
    PROBLEM_LEDGER,    /* the ledger cannot be had */
    PROBLEM_FAULT,   /* an interval does not add up */
    PROBLEM_VIEW,    /* users cannot be shown what is theirs */
    PROBLEM_SURPLUS, /* steps have no row of their own */
    PROBLEM_STRAY,   /* a job without a step uses CPU time */
    PROBLEM_FOREIGN, /* a job has groups that Slurm has not made */
    PROBLEM_COUNT,
};

struct joule_tickets {
    const struct joule_sampler_options *opt;
    bool is_slow;         /* the source is not prompt: */
    pthread_t thread;     /* then there is one */
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t wake;
    bool stop;
    struct joule_steps *steps; /* NULL: none yet; then it stays */
    struct joule_userview *view;
    struct joule_snapshot snapshot; /* the last sample, if is_slow */
    int64_t tried_ns;
    uint32_t answered;   /* tickets */
    unsigned may_answer; /* samples that may be taken at once */
    int64_t earned_ns;   /* when that grew last */
    bool said[PROBLEM_COUNT];
};

static void say_once(struct joule_tickets *c, enum problem problem,
                     enum joule_event event, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void say_once(struct joule_tickets *c, enum problem problem,
                     enum joule_event event, const char *fmt, ...)
{
    char text[JOULE_ERROR_MAX];
    va_list ap;

    if (!c->said[problem] && c->opt->event) {
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        c->opt->event(event, text, c->opt->event_arg);
    }
    c->said[problem] = true;
}

/* -- with the lock ------------------------------------------------------ */

static void open_view(struct joule_tickets *c)
{
    struct joule_userview_options opt = {
        .period_ns = c->opt->user_period_ns,
        .sample_period_ns = c->opt->period_ns,
        .attribution = c->opt->attribution,
    };
    struct joule_error err;

    c->view = joule_userview_create(c->opt->root_fd, c->opt->node, &opt, &err);
    if (!c->view)
        say_once(c, PROBLEM_VIEW, JOULE_EVENT_INFO,
                 "joule ledger is for root alone: %s", err.text);
}

static void open_steps(struct joule_tickets *c)
{
    struct joule_steps_options opt = {
        .source = c->opt->source,
        .root_fd = c->opt->root_fd,
        .node = c->opt->node,
        .attribution = c->opt->attribution,
        .idle_uw = c->opt->idle_uw,
        .no_extend = c->opt->no_extend,
    };
    int64_t now_ns = joule_clock_mono_ns(c->opt->clock);
    struct joule_error err;

    if (c->tried_ns && now_ns - c->tried_ns < RETRY_NS)
        return;
    c->tried_ns = now_ns;
    c->steps = joule_steps_create(&opt, &err);
    if (!c->steps) {
        say_once(c, PROBLEM_LEDGER, JOULE_EVENT_PROBLEM,
                 "the energy of the node cannot be divided among its jobs: %s",
                 err.text);
        return;
    }
    /* Who has asked another slurmd waits no more. */
    c->answered = joule_ledger_asked(joule_steps_ledger(c->steps));
    c->may_answer = JOULE_SAMPLER_ASKED_AT_ONCE;
    open_view(c);
    pthread_cond_broadcast(&c->wake);
}

static void show_users(struct joule_tickets *c, int64_t mono_ns)
{
    const struct joule_row *rows;
    struct joule_error err;
    size_t count;

    if (!c->view)
        return;
    rows = joule_steps_rows(c->steps, &count);
    if (joule_userview_publish(c->view, rows, count, mono_ns,
                               joule_clock_wall_ns(c->opt->clock), &err) < 0)
        say_once(c, PROBLEM_VIEW, JOULE_EVENT_PROBLEM, "%s", err.text);
}

static void say_remarks(struct joule_tickets *c,
                        const struct joule_ledger_totals *totals)
{
    struct joule_steps_remarks r = joule_steps_remarks(c->steps);

    if (totals->surplus > 0)
        say_once(c, PROBLEM_SURPLUS, JOULE_EVENT_PROBLEM,
                 "there are jobs with more steps at once than have a place in "
                 "the ledger: the energy of further steps is blank, and is "
                 "charged to their jobs");
    if (r.stray_job)
        say_once(c, PROBLEM_STRAY, JOULE_EVENT_PROBLEM,
                 "processes of job %u use CPU time and no step of it is left: "
                 "nobody is charged for them",
                 (unsigned)r.stray_job);
    if (r.foreign_job)
        say_once(c, PROBLEM_FOREIGN, JOULE_EVENT_PROBLEM,
                 "job %u has %zu cgroups that Slurm has not made: with cgroup "
                 "v1 processes of its user's other jobs may be in them, and "
                 "are charged to this one; cgroup v2 does not allow that",
                 (unsigned)r.foreign_job, r.foreign_groups);
}

static void attribute_interval(struct joule_tickets *c,
                   const struct joule_snapshot *snapshot, uint32_t tickets)
{
    const struct joule_ledger_totals *totals = joule_steps_sample(
        c->steps, snapshot, joule_clock_mono_ns(c->opt->clock));

    joule_ledger_answer(joule_steps_ledger(c->steps), tickets);
    c->answered = tickets;
    if (!totals)
        return;
    show_users(c, totals->mono_ns);
    if (totals->faults > 0)
        say_once(c, PROBLEM_FAULT, JOULE_EVENT_PROBLEM,
                 "the ledger does not add up: %" PRIu64 " of %" PRIu64
                 " intervals, please report this",
                 totals->faults, totals->intervals);
    say_remarks(c, totals);
}

/* Whether a sample that was asked for may be taken now. */
static bool may_answer(struct joule_tickets *c)
{
    int64_t now_ns = joule_clock_mono_ns(&joule_clock_system);
    int64_t earned = (now_ns - c->earned_ns) / JOULE_SAMPLER_ASKED_NS;

    if (earned > 0) {
        c->may_answer = c->may_answer + earned < JOULE_SAMPLER_ASKED_AT_ONCE
                            ? c->may_answer + (unsigned)earned
                            : JOULE_SAMPLER_ASKED_AT_ONCE;
        c->earned_ns = now_ns;
    }
    if (c->may_answer == 0)
        return false;
    c->may_answer--;
    return true;
}

/* -- waiting ------------------------------------------------------------ */

/* Until the deadline or stop, or with [for_book] until there is one. */
static void sleep_until(struct joule_tickets *c, int64_t deadline_ns,
                        bool for_steps)
{
    while (!c->stop && !(for_steps && c->steps) &&
           joule_cond_wait(&c->wake, &c->lock, deadline_ns))
        continue;
}

/* true: a sample is asked for, and may be taken.  Has the lock, and lets go of
 * it meanwhile. */
static bool wait_for_tickets(struct joule_tickets *c, int64_t ns)
{
    struct joule_ledger *ledger = joule_steps_ledger(c->steps);
    uint32_t answered = c->answered;
    bool asked;

    pthread_mutex_unlock(&c->lock);
    asked = joule_ledger_wait(ledger, answered, ns);
    pthread_mutex_lock(&c->lock);
    if (!asked || c->stop)
        return false;
    if (may_answer(c))
        return true;
    ns = ns < JOULE_SAMPLER_ASKED_NS ? ns : JOULE_SAMPLER_ASKED_NS;
    pthread_mutex_unlock(&c->lock);
    joule_sleep_ns(ns);
    pthread_mutex_lock(&c->lock);
    return false;
}

bool joule_tickets_wait(struct joule_tickets *c, int64_t deadline_ns)
{
    bool asked = false;
    int64_t ns;

    pthread_mutex_lock(&c->lock);
    while (!asked && !c->stop && (ns = joule_deadline_left(deadline_ns)) > 0) {
        if (c->is_slow || !c->steps)
            sleep_until(c, deadline_ns, false);
        else
            asked = wait_for_tickets(c, ns);
    }
    pthread_mutex_unlock(&c->lock);
    return asked;
}

void joule_tickets_wake(struct joule_tickets *c)
{
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->wake);
    if (c->steps)
        joule_ledger_wake(joule_steps_ledger(c->steps));
    pthread_mutex_unlock(&c->lock);
}

/* Power sources: between two measurements. */
static void *tickets_main(void *arg)
{
    struct joule_tickets *c = arg;

    prctl(PR_SET_NAME, "joule_ledger");
    pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        if (!c->steps) {
            sleep_until(c, joule_deadline_in(60 * JOULE_NS_PER_S), true);
        } else if (wait_for_tickets(c, 60 * JOULE_NS_PER_S)) {
            attribute_interval(c, &c->snapshot,
                   joule_ledger_asked(joule_steps_ledger(c->steps)));
        }
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* -- the sampler's ------------------------------------------------------ */

uint32_t joule_tickets_asked(struct joule_tickets *c)
{
    uint32_t tickets = 0;

    pthread_mutex_lock(&c->lock);
    if (c->steps)
        tickets = joule_ledger_asked(joule_steps_ledger(c->steps));
    pthread_mutex_unlock(&c->lock);
    return tickets;
}

void joule_tickets_sample(struct joule_tickets *c,
                          const struct joule_snapshot *snapshot,
                          uint32_t tickets)
{
    pthread_mutex_lock(&c->lock);
    if (c->is_slow)
        c->snapshot = *snapshot;
    if (!c->steps) {
        open_steps(c);
        tickets = c->answered;
    }
    if (c->steps)
        attribute_interval(c, snapshot, tickets);
    pthread_mutex_unlock(&c->lock);
}

static void init_locks(struct joule_tickets *c)
{
    pthread_mutex_init(&c->lock, NULL);
    joule_cond_init(&c->wake);
}

struct joule_tickets *
joule_tickets_create(const struct joule_sampler_options *opt)
{
    struct joule_tickets *c = calloc(1, sizeof(*c));
    int rc;

    if (!c)
        return NULL;
    c->opt = opt;
    c->is_slow = !joule_sensor_is_prompt(opt->source);
    init_locks(c);
    if (!c->is_slow)
        return c;
    rc = joule_thread_start(&c->thread, THREAD_STACK, tickets_main, c);
    if (rc == 0)
        return c;
    free(c);
    errno = rc;
    return NULL;
}

void joule_tickets_destroy(struct joule_tickets *c, bool has_threads)
{
    int saved = errno;

    if (!c)
        return;
    if (has_threads) {
        joule_tickets_wake(c);
        if (c->is_slow)
            pthread_join(c->thread, NULL);
        pthread_cond_destroy(&c->wake);
        pthread_mutex_destroy(&c->lock);
    }
    joule_userview_destroy(c->view);
    joule_steps_destroy(c->steps);
    free(c);
    errno = saved;
}
