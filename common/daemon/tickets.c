/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/daemon/tickets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/deadline.h"
#include "common/node/user_view.h"

/* Each of them is said once. */
enum problem {
    PROBLEM_SPOILED, /* rows made no sense */
    PROBLEM_FAULT,   /* an interval does not add up */
    PROBLEM_VIEW,    /* users cannot be shown what is theirs */
    PROBLEM_SURPLUS, /* steps have no row of their own */
    PROBLEM_STRAY,   /* a job without a step uses CPU time */
    PROBLEM_FOREIGN, /* a job has groups that Slurm has not made */
    PROBLEM_COUNT,
};

struct joule_tickets {
    const struct joule_sampler_options *opt;
    struct joule_steps *steps;
    struct joule_ledger *ledger;
    struct joule_userview *view;
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

/* -- attributing -------------------------------------------------------- */

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
    if (r.is_spoiled)
        say_once(c, PROBLEM_SPOILED, JOULE_EVENT_PROBLEM,
                 "the rows of the ledger made no sense: what steps that run "
                 "had used before this moment is lost");
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

void joule_tickets_sample(struct joule_tickets *c,
                          const struct joule_snapshot *snapshot,
                          uint32_t tickets)
{
    const struct joule_ledger_totals *totals =
        joule_steps_sample(c->steps, snapshot);

    joule_ledger_answer(c->ledger, tickets);
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

bool joule_tickets_wait(struct joule_tickets *c, int64_t deadline_ns)
{
    int64_t ns;

    while ((ns = joule_deadline_left(deadline_ns)) > 0) {
        if (!joule_ledger_wait(c->ledger, c->answered, ns))
            continue;
        if (may_answer(c))
            return true;
        joule_sleep_ns(ns < JOULE_SAMPLER_ASKED_NS ? ns
                                                   : JOULE_SAMPLER_ASKED_NS);
    }
    return false;
}

struct joule_tickets *
joule_tickets_create(const struct joule_sampler_options *opt,
                     struct joule_steps *steps)
{
    struct joule_tickets *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->opt = opt;
    c->steps = steps;
    c->ledger = joule_steps_ledger(steps);
    /* Who has asked another slurmd waits no more. */
    c->answered = joule_ledger_asked(c->ledger);
    c->may_answer = JOULE_SAMPLER_ASKED_AT_ONCE;
    open_view(c);
    return c;
}

void joule_tickets_destroy(struct joule_tickets *c)
{
    int saved = errno;

    if (!c)
        return;
    joule_userview_destroy(c->view);
    free(c);
    errno = saved;
}
