/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/counter_sensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/energy/counter.h"

/* Power is the mean over so much time at least: over less it is mostly the
 * counters' quantum of 1 ms, or of so many as they have. */
#define POWER_NS        (100 * JOULE_NS_PER_MS)
#define POWER_REFRESHES 10

/* Each of them is said once; all but the first are taken back. */
enum problem {
    PROBLEM_READ,  /* a counter does not answer; one that fails now and then
                      would fill the log */
    PROBLEM_LOST,  /* for so long that its energy is unknown */
    PROBLEM_NEVER, /* nothing has ever moved */
    PROBLEM_STALE, /* a counter no longer moves */
    PROBLEM_COUNT,
};

struct counter_sensor {
    struct joule_sensor sensor; /* first */
    struct joule_counters *counters;
    int64_t begun_ns, read_ns; /* first and last reading; 0: none */
    bool said[PROBLEM_COUNT];
    /* mean power since then */
    int64_t power_ns[JOULE_DOMAINS_MAX];
    int64_t power_gap_ns[JOULE_DOMAINS_MAX];
    uint64_t power_uj[JOULE_DOMAINS_MAX];
    uint64_t mw[JOULE_DOMAINS_MAX];
    struct joule_raw raw[JOULE_DOMAINS_MAX];
};

/* Of a domain that stands at 0, which desktop processors have for DRAM, nothing
 * can be said; a package that does is none. */
static bool must_move(const struct joule_domain *d)
{
    return d->kind == JOULE_DOMAIN_PACKAGE || d->kind == JOULE_DOMAIN_PSYS ||
           (d->kind == JOULE_DOMAIN_POWER && d->in_total);
}

static bool is_silent(const struct joule_counter *c, int64_t now_ns)
{
    return c->state == JOULE_COUNTER_NEW ||
           now_ns - c->read_ns > JOULE_COUNTER_FROZEN_NS;
}

static enum joule_reading_state state_of(const struct joule_domain *d,
                                         const struct joule_counter *c,
                                         int64_t now_ns)
{
    if (c->state == JOULE_COUNTER_STILL)
        return must_move(d) ? JOULE_READING_UNKNOWN : JOULE_READING_OK;
    if (is_silent(c, now_ns))
        return JOULE_READING_UNKNOWN;
    if (c->state == JOULE_COUNTER_FROZEN && must_move(d))
        return JOULE_READING_STALE;
    return JOULE_READING_OK;
}

static uint64_t power_of(struct counter_sensor *s, size_t i,
                         const struct joule_reading *r)
{
    int64_t ns = r->mono_ns - s->power_ns[i], least_ns = POWER_NS;

    if (s->sensor.domains[i].refresh_ms > 0)
        least_ns =
            POWER_REFRESHES * s->sensor.domains[i].refresh_ms * JOULE_NS_PER_MS;
    if (r->state != JOULE_READING_OK || s->power_ns[i] == 0 ||
        r->uj < s->power_uj[i] || r->gap_ns != s->power_gap_ns[i]) {
        s->mw[i] = JOULE_MW_UNKNOWN;
    } else if (ns < least_ns) {
        return s->mw[i];
    } else {
        s->mw[i] = joule_power_mw(r->uj - s->power_uj[i], ns);
    }
    s->power_ns[i] = r->mono_ns;
    s->power_gap_ns[i] = r->gap_ns;
    s->power_uj[i] = r->uj;
    return s->mw[i];
}

/* The time until its first answer; also if another process has asked. */
static void count_gap(struct joule_counter *c, int64_t now_ns)
{
    if (c->state != JOULE_COUNTER_NEW)
        return;
    if (c->moved_ns)
        c->gap_ns += now_ns - c->moved_ns;
    c->moved_ns = now_ns;
}

/*
 * Read all counters and return the time at which that was, to 1 ms: a thread
 * that was off the CPU between reading and clock reads again.  (A late time
 * would make the next interval short and its power absurd.)
 */
static int64_t read_raw(struct counter_sensor *s)
{
    int64_t before_ns, now_ns;
    int tries = 0;

    /* Slow devices (a simulator's) are not read for ever. */
    do {
        before_ns = joule_clock_mono_ns(s->sensor.clock);
        s->counters->ops->read(s->counters, s->raw);
        now_ns = joule_clock_mono_ns(s->sensor.clock);
    } while (now_ns - before_ns > JOULE_NS_PER_MS && ++tries < 4);
    return now_ns;
}

static int64_t counter_read(struct joule_sensor *sensor, int64_t edge_ns,
                            struct joule_reading *out)
{
    struct counter_sensor *s = (struct counter_sensor *)sensor;
    int64_t now_ns = read_raw(s);

    (void)edge_ns;
    for (size_t i = 0; i < sensor->domain_count; i++) {
        const struct joule_domain *d = &sensor->domains[i];
        struct joule_counter *c = &sensor->state.counter[i];

        count_gap(c, now_ns);
        joule_counter_update(c, d, s->raw[i], now_ns);
        out[i] = (struct joule_reading){
            .uj = joule_unit_to_uj(d->unit, c->ticks),
            .began_ns = c->began_ns,
            .mono_ns = c->read_ns,
            .gap_ns = c->gap_ns,
            .errors = c->errors,
            .state = state_of(d, c, now_ns),
        };
        out[i].mw = power_of(s, i, &out[i]);
    }
    if (s->begun_ns == 0)
        s->begun_ns = now_ns;
    s->read_ns = now_ns;
    return now_ns;
}

/* Power is the mean since the other process read. */
static void counter_resumed(struct joule_sensor *sensor)
{
    struct counter_sensor *s = (struct counter_sensor *)sensor;

    for (size_t i = 0; i < sensor->domain_count && s->read_ns == 0; i++) {
        const struct joule_counter *c = &sensor->state.counter[i];

        s->power_ns[i] = c->read_ns;
        s->power_gap_ns[i] = c->gap_ns;
        s->power_uj[i] = joule_unit_to_uj(sensor->domains[i].unit, c->ticks);
        s->mw[i] = JOULE_MW_UNKNOWN;
    }
}

/* ---- what the log is told ---- */

static const struct {
    const char *there, *over;
} sentences[PROBLEM_COUNT] = {
    [PROBLEM_LOST] = {.over =
                          "the energy counters answer again: energy is known"},
    [PROBLEM_NEVER] = {"the energy counters do not move: energy is unknown on "
                       "this node (virtual machines do not pass RAPL on; on "
                       "hardware, check that the firmware enables it; `joule "
                       "probe` shows the registers)",
                       "the energy counters move now: energy is known"},
    [PROBLEM_STALE] = {"the energy counters have stopped: power is unknown "
                       "until they move again",
                       "the energy counters move again"},
};

static int say(struct counter_sensor *s, enum problem problem, bool is_there,
               enum joule_event *ret_event, struct joule_error *ret)
{
    const char *sentence =
        is_there ? sentences[problem].there : sentences[problem].over;

    if (s->said[problem] == is_there)
        return 0;
    s->said[problem] = is_there;
    *ret_event = is_there ? JOULE_EVENT_PROBLEM : JOULE_EVENT_INFO;
    if (sentence) /* the others name a counter */
        joule_error_set(ret, 0, "%s", sentence);
    return 1;
}

/* The first counter of the total that has been silent for too long. */
static int lost_counter(const struct counter_sensor *s)
{
    for (size_t i = 0; i < s->sensor.domain_count; i++) {
        const struct joule_domain *d = &s->sensor.domains[i];
        const struct joule_counter *c = &s->sensor.state.counter[i];

        if (d->in_total && is_silent(c, s->read_ns) &&
            (c->state != JOULE_COUNTER_STILL || must_move(d)))
            return (int)i;
    }
    return -1;
}

/* A domain that makes the total is in that state. */
static bool has(const struct counter_sensor *s, uint32_t state)
{
    for (size_t i = 0; i < s->sensor.domain_count; i++) {
        const struct joule_domain *d = &s->sensor.domains[i];

        if (d->in_total && must_move(d) &&
            s->sensor.state.counter[i].state == state)
            return true;
    }
    return false;
}

/* The first counter that did not answer, or -1. */
static int failed_counter(const struct counter_sensor *s)
{
    for (size_t i = 0; i < s->sensor.domain_count; i++)
        if (s->raw[i].error)
            return (int)i;
    return -1;
}

static int counter_remark(struct joule_sensor *sensor,
                          enum joule_event *ret_event, struct joule_error *ret)
{
    struct counter_sensor *s = (struct counter_sensor *)sensor;
    const struct joule_domain *d = sensor->domains;
    int failed = failed_counter(s), lost = lost_counter(s);
    bool never = has(s, JOULE_COUNTER_STILL);

    *ret_event = JOULE_EVENT_INFO;
    if (joule_counter_sensor_moved(sensor, ret))
        return 1;
    if (s->read_ns == 0)
        return 0;
    if (failed >= 0 && say(s, PROBLEM_READ, true, ret_event, ret)) {
        joule_error_set(ret, 0,
                        "reading energy counter %s on CPU %u failed: %s; the "
                        "energy is counted with its next good reading",
                        d[failed].name, d[failed].cpu,
                        strerror(s->raw[failed].error));
        return 1;
    }
    if (say(s, PROBLEM_LOST, lost >= 0, ret_event, ret)) {
        if (lost >= 0)
            joule_error_set(
                ret, 0,
                "energy counter %s answers on no CPU (on CPU %u: %s): the "
                "energy of the node, and of steps that end meanwhile, is "
                "unknown until it does",
                d[lost].name, d[lost].cpu, strerror(s->raw[lost].error));
        return 1;
    }
    if (lost >= 0 ||
        (never && s->read_ns - s->begun_ns <= JOULE_COUNTER_FROZEN_NS))
        return 0;
    return say(s, PROBLEM_NEVER, never, ret_event, ret) ||
           say(s, PROBLEM_STALE, has(s, JOULE_COUNTER_FROZEN), ret_event, ret);
}

static void counter_destroy(struct joule_sensor *sensor)
{
    struct counter_sensor *s = (struct counter_sensor *)sensor;

    s->counters->ops->destroy(s->counters);
    free(s);
}

static const struct joule_sensor_ops counter_sensor_ops = {
    .type = "counters",
    .read = counter_read,
    .resumed = counter_resumed,
    .remark = counter_remark,
    .destroy = counter_destroy,
};

struct joule_sensor *
joule_counter_sensor_create(const struct joule_clock *clock,
                            struct joule_counters *counters)
{
    struct counter_sensor *s = calloc(1, sizeof(*s));

    if (!s) {
        counters->ops->destroy(counters);
        errno = ENOMEM;
        return NULL;
    }
    joule_sensor_init(&s->sensor, &counter_sensor_ops, clock, counters->domains,
                      counters->domain_count);
    s->sensor.state.counters = counters->domain_count;
    s->counters = counters;
    return &s->sensor;
}

const struct joule_raw *
joule_counter_sensor_raw(const struct joule_sensor *sensor)
{
    return ((const struct counter_sensor *)sensor)->raw;
}

int joule_counter_sensor_moved(struct joule_sensor *sensor,
                               struct joule_error *ret)
{
    struct counter_sensor *s = (struct counter_sensor *)sensor;

    if (!s->counters->remark.text[0])
        return 0;
    *ret = s->counters->remark;
    s->counters->remark.text[0] = '\0';
    return 1;
}
