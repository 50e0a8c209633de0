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
#include <time.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/thread.h"
#include "common/node/ledger.h"
#include "common/daemon/tickets.h"
#include "common/daemon/sensor_log.h"

/* Deep enough for the host's logging. */
#define THREAD_STACK (256 * 1024)

/* Power over less than this is mostly the counter's 1 ms quantum: the figure
 * before stays. */
#define POWER_MIN_NS (5 * JOULE_NS_PER_MS)

/* Each of them is said once, and once more when it is over. */
enum problem {
    PROBLEM_BOARD, /* the board cannot be had, for another reason than that
                      another slurmd writes it */
    PROBLEM_READ,  /* a counter does not answer; not taken back: one that
                      fails now and then would fill the log */
    PROBLEM_LOST,  /* for so long that there is no total */
    PROBLEM_STALE, /* a counter no longer moves */
    PROBLEM_NEVER, /* nothing has ever moved */
    PROBLEM_COUNT,
};

struct joule_sampler {
    struct joule_sampler_options opt; /* root_fd, node: our own copies */
    char *node;
    _Atomic(struct joule_board *) board; /* NULL until it is ours to write;
                                            then it stays */
    pid_t pid; /* of the process that has the threads */
    pthread_t thread;
    atomic_bool stop;
    struct joule_tickets *tickets;
    int64_t begun_ns;
    int64_t power_ns;  /* counters: power is the mean since then */
    uint64_t power_uj; /* the total then */
    bool said[PROBLEM_COUNT];
    struct joule_snapshot snapshot;
    union {
        struct joule_reading readings[JOULE_DOMAINS_MAX];
        struct joule_power power[JOULE_DOMAINS_MAX];
    };
    struct joule_sensor_log watch; /* counters: their remarks alone */
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

static bool say_once(struct joule_sampler *s, enum problem problem)
{
    bool first = !s->said[problem];

    s->said[problem] = true;
    return first;
}

static int64_t last_ns(const struct joule_sampler *s)
{
    return s->snapshot.total.mono_ns;
}

/* true: a part of the total is lost, and nothing else is worth a word. */
static bool report_lost(struct joule_sampler *s)
{
    const struct joule_domain *domains = s->opt.source->domains;
    int lost = joule_node_total_silent(&s->snapshot.total, domains);

    if (lost >= 0 && say_once(s, PROBLEM_LOST))
        tell(s, JOULE_EVENT_PROBLEM,
             "energy counter %s answers on no CPU (on CPU %u: %s): the energy "
             "of the node, and of steps that end meanwhile, is unknown until "
             "it does",
             domains[lost].name, domains[lost].cpu,
             strerror(s->readings[lost].error));
    if (lost < 0 && s->said[PROBLEM_LOST]) {
        s->said[PROBLEM_LOST] = false;
        tell(s, JOULE_EVENT_INFO,
             "the energy counters answer again: energy is known");
    }
    return lost >= 0;
}

static void remark(struct joule_sampler *s)
{
    struct joule_sensor *source = s->opt.source;
    struct joule_error text;

    if (source->ops->remark && source->ops->remark(source, &text))
        joule_sensor_log_remark(&s->watch, text.text, last_ns(s));
}

static void report(struct joule_sampler *s)
{
    const struct joule_node_total *t = &s->snapshot.total;
    const struct joule_domain *domains = s->opt.source->domains;
    uint32_t i;

    remark(s);
    for (i = 0; i < t->count; i++) {
        if (s->readings[i].error && say_once(s, PROBLEM_READ))
            tell(s, JOULE_EVENT_PROBLEM,
                 "reading energy counter %s on CPU %u failed: %s; the energy "
                 "is counted with its next good reading",
                 domains[i].name, domains[i].cpu,
                 strerror(s->readings[i].error));
    }
    if (report_lost(s))
        return;
    if (!t->valid && t->mono_ns - s->begun_ns > JOULE_COUNTER_FROZEN_NS &&
        say_once(s, PROBLEM_NEVER))
        tell(s, JOULE_EVENT_PROBLEM,
             "the energy counters do not move: energy is unknown on this "
             "node (virtual machines do not pass RAPL on; on hardware, check "
             "that the firmware enables it; `joule probe` shows the "
             "registers)");
    if (t->valid && s->said[PROBLEM_NEVER]) {
        s->said[PROBLEM_NEVER] = false;
        tell(s, JOULE_EVENT_INFO,
             "the energy counters move now: energy is known");
    }
    if (!s->snapshot.stale && s->said[PROBLEM_STALE]) {
        s->said[PROBLEM_STALE] = false;
        tell(s, JOULE_EVENT_INFO, "the energy counters move again");
    } else if (s->snapshot.stale && say_once(s, PROBLEM_STALE)) {
        tell(s, JOULE_EVENT_PROBLEM,
             "the energy counters have stopped: power is unknown until they "
             "move again");
    }
}

/* Not of a sample that was asked for: it may follow the one before at once. */
static void find_power(struct joule_sampler *s)
{
    struct joule_snapshot *snap = &s->snapshot;
    const struct joule_node_total *t = &snap->total;

    if (t->mono_ns - s->power_ns < POWER_MIN_NS)
        return;
    snap->node_mw =
        joule_power_mw(t->node_uj - s->power_uj, t->mono_ns - s->power_ns);
    s->power_ns = t->mono_ns;
    s->power_uj = t->node_uj;
}

static void read_counters(struct joule_sampler *s, bool is_asked)
{
    struct joule_snapshot *snap = &s->snapshot;
    struct joule_node_total *t = &snap->total;
    const struct joule_clock *clock = s->opt.clock;
    bool was_valid = t->valid;
    int64_t now_ns;

    now_ns = joule_sensor_read_all(s->opt.source, clock, s->readings);
    joule_node_total_update(t, s->opt.source->domains, s->readings, now_ns);
    snap->wall_ns = joule_clock_wall_ns(clock);
    snap->samples++;
    snap->stale = joule_node_total_stale(t, s->opt.source->domains);
    snap->average_mw = JOULE_MW_UNKNOWN;
    if (!was_valid || snap->stale) {
        s->power_ns = t->mono_ns;
        s->power_uj = t->node_uj;
    }
    if (!t->valid || !was_valid || snap->stale)
        snap->node_mw = JOULE_MW_UNKNOWN;
    else if (!is_asked)
        find_power(s);
    if (t->valid && t->mono_ns > snap->since_ns)
        snap->average_mw =
            joule_power_mw(t->node_uj, t->mono_ns - snap->since_ns);
    joule_board_publish(s->board, snap);
    report(s);
}

/* What is known of power at this moment, also if that is nothing. */
static void publish_power(struct joule_sampler *s)
{
    struct joule_snapshot *snap = &s->snapshot;
    const struct joule_node_total *t = &snap->total;
    const struct joule_domain *domains = s->opt.source->domains;
    uint32_t i;

    snap->stale =
        joule_node_total_overdue(t, joule_clock_mono_ns(s->opt.clock),
                                 joule_power_gap_ns(s->opt.period_ns));
    snap->node_mw = JOULE_MW_UNKNOWN;
    for (i = 0; i < t->count && !snap->stale; i++) {
        if (domains[i].in_total)
            snap->node_mw = (uint64_t)(t->integrator[i].power_w * 1000 + 0.5);
    }
    snap->average_mw = JOULE_MW_UNKNOWN;
    if (t->valid && t->mono_ns > snap->since_ns)
        snap->average_mw =
            joule_power_mw(t->node_uj, t->mono_ns - snap->since_ns);
    joule_board_publish_fused(s->board, snap,
                              joule_sensor_has_energy(s->opt.source)
                                  ? s->opt.source->ops->state(s->opt.source)
                                  : NULL);
}

/* Follow the readings in s->power. */
static void integrate(struct joule_sampler *s)
{
    struct joule_snapshot *snap = &s->snapshot;
    struct joule_node_total *t = &snap->total;
    const struct joule_domain *domains = s->opt.source->domains;
    int64_t before_ns = t->mono_ns;
    int64_t edge_ns = 0;
    bool was_valid = t->valid;
    uint32_t i;

    for (i = 0; i < t->count; i++) {
        if (s->power[i].status < JOULE_POWER_STATUS_COUNT)
            snap->power_faults[s->power[i].status]++;
        if (domains[i].in_total && s->power[i].status == JOULE_POWER_OK)
            edge_ns = joule_board_last_edge(s->board, s->power[i].mono_ns);
    }
    if (joule_sensor_has_energy(s->opt.source))
        joule_node_total_add(t, domains, s->power);
    else
        joule_node_total_integrate(t, domains, s->power, edge_ns,
                                   joule_power_gap_ns(s->opt.period_ns));
    snap->samples++;
    if (t->mono_ns != before_ns)
        snap->wall_ns = joule_clock_wall_ns(s->opt.clock) -
                        (joule_clock_mono_ns(s->opt.clock) - t->mono_ns);
    if (t->valid && !was_valid && t->base_uj == 0)
        snap->since_ns = t->mono_ns;
}

static void read_power(struct joule_sampler *s)
{
    struct joule_sensor *source = s->opt.source;
    struct joule_error err = {""}, remark;
    int rc = source->ops->read_power(source, s->power, &err);
    int errnum = rc < 0 ? errno : 0;
    int64_t now_ns = joule_clock_mono_ns(s->opt.clock);
    size_t i;

    for (i = 0;
         source->ops->remark && i < 4 && source->ops->remark(source, &remark);
         i++)
        joule_sensor_log_remark(&s->watch, remark.text, now_ns);
    if (joule_sensor_has_energy(source) && err.text[0])
        joule_sensor_log_failure(&s->watch, err.text, now_ns);
    if (rc == 0) {
        integrate(s);
        joule_sensor_log_readings(&s->watch, s->power, &s->snapshot.total,
                                  now_ns);
    } else if (errnum != EAGAIN && errnum != ECANCELED) {
        for (i = 0; i < source->domain_count; i++)
            s->power[i] = (struct joule_power){.status = JOULE_POWER_FAILED};
        integrate(s);
        joule_sensor_log_failure(
            &s->watch, err.text[0] ? err.text : strerror(errnum), now_ns);
    }
}

static void ask_power(struct joule_sampler *s)
{
    read_power(s);
    publish_power(s);
}

static void take_sample(struct joule_sampler *s, bool is_asked)
{
    uint32_t tickets;

    /* A BMC's energy is carried on from the measurement to now.  Who asked does
     * not wait for the next one. */
    if (!joule_sensor_is_prompt(s->opt.source))
        ask_power(s);
    tickets = joule_tickets_asked(s->tickets);
    if (joule_sensor_has_energy(s->opt.source))
        ask_power(s);
    else if (joule_sensor_is_prompt(s->opt.source))
        read_counters(s, is_asked);
    joule_tickets_sample(s->tickets, &s->snapshot, tickets);
}

/* A source of energy goes on where this total ends. */
static void resume_source(struct joule_sampler *s, uint64_t key)
{
    struct joule_sensor *source = s->opt.source;
    const struct joule_node_total *t = &s->snapshot.total;
    struct joule_fused_state *state;

    if (!joule_sensor_has_energy(source) || t->domain_key != key)
        return;
    state = malloc(sizeof(*state));
    if (state && joule_board_read_fused(s->board, state) == 0 &&
        state->mono_ns == t->mono_ns)
        source->ops->resume(source, state);
    free(state);
}

/* Go on with the total of this boot, or begin one. */
static void continue_total(struct joule_sampler *s)
{
    struct joule_snapshot *snap = &s->snapshot;
    const struct joule_sensor *source = s->opt.source;
    int64_t now_ns = joule_clock_mono_ns(s->opt.clock);
    uint64_t key = joule_domains_key(source->domains, source->domain_count);

    if (joule_board_read(s->board, snap) < 0) {
        memset(snap, 0, sizeof(*snap));
        joule_node_total_start(&snap->total, source->domains,
                               source->domain_count, 0);
        snap->since_ns = now_ns;
    } else if (snap->total.domain_key != key ||
               snap->total.count != source->domain_count) {
        uint64_t base_uj = snap->total.node_uj;

        joule_node_total_start(&snap->total, source->domains,
                               source->domain_count, base_uj);
        tell(s, JOULE_EVENT_INFO,
             "the energy domains have changed; the node total goes on from "
             "%" PRIu64 " J",
             base_uj / 1000000);
    } else if (!snap->total.is_power || snap->total.valid) {
        tell(s, JOULE_EVENT_INFO,
             "the node total goes on from %" PRIu64 " J, %" PRId64
             " ms after its last sample",
             snap->total.node_uj / 1000000,
             (now_ns - snap->total.mono_ns) / JOULE_NS_PER_MS);
    }
    snap->period_ns = s->opt.period_ns;
    s->begun_ns = now_ns;
    resume_source(s, key);
    s->power_ns = snap->total.mono_ns;
    s->power_uj = snap->total.node_uj;
}

/* true: the board is ours and the total is set up. */
static bool acquire_board(struct joule_sampler *s, struct joule_error *err)
{
    struct joule_board *board;

    if (s->board)
        return true;
    board = joule_board_create(s->opt.root_fd, s->node, err);
    if (!board)
        return false;
    s->board = board;
    continue_total(s);
    joule_sensor_log_start(&s->watch, &s->opt, s->snapshot.total.mono_ns,
                           s->begun_ns);
    if (joule_sensor_is_power(s->opt.source))
        publish_power(s);
    return true;
}

static void *sampler_main(void *arg)
{
    struct joule_sampler *s = arg;
    bool is_power = joule_sensor_is_power(s->opt.source);
    int64_t period_ns = s->opt.period_ns, deadline_ns = joule_deadline_now();
    int64_t now_ns;
    bool asked = is_power; /* at once */
    struct joule_error err;

    prctl(PR_SET_NAME, "joule_sampler");
    for (;;) {
        if (!asked)
            deadline_ns += period_ns;
        now_ns = joule_deadline_now();
        /* After a suspend or a stop, one sample now and not a burst. */
        if (now_ns > deadline_ns + period_ns)
            deadline_ns = now_ns;
        asked = joule_tickets_wait(s->tickets, deadline_ns);
        if (s->stop)
            break;
        if (acquire_board(s, &err))
            take_sample(s, asked);
        else if (errno != EWOULDBLOCK && say_once(s, PROBLEM_BOARD))
            tell(s, JOULE_EVENT_PROBLEM, "energy is unknown on this node: %s",
                 err.text);
    }
    if (s->board && !is_power)
        take_sample(s, false);
    /* It was interrupted, and puts away what must not outlive this thread. */
    if (is_power)
        joule_sensor_end(s->opt.source, s->power);
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

static void sampler_free(struct joule_sampler *s)
{
    int saved = errno;

    joule_tickets_destroy(s->tickets, s->pid == getpid());
    joule_board_destroy(s->board);
    if (s->opt.root_fd >= 0)
        close(s->opt.root_fd);
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
    if (s->opt.root_fd >= 0 && s->node)
        s->tickets = joule_tickets_create(&s->opt);
    if (!s->tickets) {
        joule_error_set(err, errno, "cannot start the sampler: %s",
                        strerror(errno));
        goto fail;
    }
    if (acquire_board(s, err)) {
        if (!joule_sensor_is_power(opt->source))
            take_sample(s, false);
    } else if (errno != EWOULDBLOCK) {
        goto fail;
    }
    if (start_thread(s, err) < 0)
        goto fail;
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
        if (joule_sensor_is_power(s->opt.source))
            s->opt.source->ops->interrupt(s->opt.source);
        s->stop = true;
        joule_tickets_wake(s->tickets);
        pthread_join(s->thread, NULL);
    }
    sampler_free(s);
}

int joule_sampler_read(struct joule_sampler *s, struct joule_snapshot *ret)
{
    struct joule_board *board = s->board;
    int64_t now_ns;

    if (!board || s->pid != getpid()) {
        errno = s->pid == getpid() ? ENODATA : ECHILD;
        return -1;
    }
    if (joule_board_read(board, ret) < 0)
        return -1;
    now_ns = joule_clock_mono_ns(s->opt.clock);
    if (joule_sensor_is_power(s->opt.source) &&
        joule_node_total_overdue(&ret->total, now_ns,
                                 joule_power_gap_ns(ret->period_ns))) {
        ret->stale = 1;
        ret->node_mw = JOULE_MW_UNKNOWN;
    }
    return 0;
}
