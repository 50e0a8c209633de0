/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/board_follower.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A mean over less than this says nothing. */
#define POWER_MIN_NS (5 * JOULE_NS_PER_MS)

/* What a label has used since begin, also where the board begins a new count
 * of it in between. */
struct part {
    uint64_t board_uj; /* the board's count, as seen last */
    uint64_t from_uj;  /* what it was when this part of the sum began */
    uint64_t sum_uj;   /* of the counts before */
};

struct joule_board_follower {
    const struct joule_clock *clock;
    struct joule_sensor *source;
    struct joule_board *board; /* NULL: nothing will ever be known */
    uint64_t key;              /* of the source's domains */
    bool extend, smooth;
    bool begun;
    /* From here on it is of the step: begin clears it. */
    bool based; /* base_uj is set */
    bool known; /* the node has been measured */
    int64_t begin_ns, last_ns;
    int64_t missed_ns; /* from begin to the first measurement */
    int64_t gap_ns;    /* of the board's counts before this one */
    int64_t gap_from_ns, gap_seen_ns;
    int64_t measured_ns; /* the node, as seen last */
    uint64_t count_uj;   /* base of the board's count: a new one has another */
    uint64_t base_uj, used_uj;
    /* Sources of energy: the board's sample of then is counted on here, */
    bool counts;
    int64_t sampled_ns;
    int64_t missed_state_ns; /* a sample whose state was not there yet */
    double ahead_uj;     /* and the node has been said to have used so much more
                            than     the sample after it said: */
    double ahead_per_ns; /* is taken off again */
    struct joule_snapshot snapshot;
    struct part part[JOULE_DOMAINS_MAX];
    uint64_t domain_uj[JOULE_DOMAINS_MAX];
    uint64_t domain_mw[JOULE_DOMAINS_MAX];
    /* scratch */
    struct joule_snapshot latest;
    struct joule_fused_state state;
    struct joule_power power[JOULE_DOMAINS_MAX];
};

struct joule_board_follower *
joule_board_follower_create(const struct joule_clock *clock,
                            struct joule_sensor *source,
                            struct joule_board *board)
{
    struct joule_board_follower *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->clock = clock;
    f->source = source;
    f->board = board;
    f->key = joule_domains_key(source->domains, source->domain_count);
    f->extend = true;
    return f;
}

void joule_board_follower_destroy(struct joule_board_follower *f)
{
    /* The load of a step falls where it ends. */
    if (f && f->begun && f->board && f->last_ns > f->begin_ns)
        joule_board_edge(f->board, f->last_ns);
    free(f);
}

void joule_board_follower_extend(struct joule_board_follower *f, bool extend)
{
    f->extend = extend;
}

static bool has_our_domains(const struct joule_board_follower *f,
                            const struct joule_node_total *t)
{
    return t->is_power && t->domain_key == f->key &&
           t->count == f->source->domain_count;
}

/* The board's domains are ours; else only its node total is of use. */
static bool is_ours(const struct joule_board_follower *f)
{
    return has_our_domains(f, &f->snapshot.total);
}

static uint64_t domain_at(const struct joule_board_follower *f, size_t i,
                          int64_t now_ns)
{
    const struct joule_integrator *g = &f->snapshot.total.integrator[i];
    uint64_t uj = f->extend ? joule_integrator_extend(g, now_ns) : g->uj;

    if (!f->source->domains[i].in_total)
        return uj;
    if (f->ahead_uj < 0 && -f->ahead_uj >= (double)uj)
        return 0;
    return uj + (uint64_t)(int64_t)f->ahead_uj;
}

static uint64_t node_at(const struct joule_board_follower *f, int64_t now_ns)
{
    const struct joule_node_total *t = &f->snapshot.total;
    uint64_t uj = t->node_uj;
    size_t i;

    if (!is_ours(f))
        return uj;
    for (i = 0; i < t->count; i++) {
        if (f->source->domains[i].in_total)
            uj += domain_at(f, i, now_ns) - t->integrator[i].uj;
    }
    return uj;
}

/* ---- counting on ---- */

/* What has been used since the sample, or since the last time.  Without slurmd
 * not for longer than a power is carried on. */
static void count_on(struct joule_board_follower *f)
{
    struct joule_node_total *t = &f->snapshot.total;
    struct joule_error err;
    size_t i;

    if (joule_clock_mono_ns(f->clock) - f->sampled_ns > JOULE_POWER_BRIDGE_NS ||
        f->source->ops->read_power(f->source, f->power, &err) < 0)
        return;
    for (i = 0; i < t->count; i++)
        f->power[i].gap_ns = 0; /* the board says what was one */
    joule_node_total_add(t, f->source->domains, f->power);
    for (i = 0; i < t->count; i++)
        if (f->source->domains[i].in_total)
            f->snapshot.node_mw =
                (uint64_t)(t->integrator[i].power_w * 1000 + 0.5);
}

/* The state that goes with the sample in f->latest. */
static bool is_published(struct joule_board_follower *f)
{
    int64_t mono_ns = f->latest.total.mono_ns;

    if (joule_board_read_fused(f->board, &f->state) == 0 &&
        f->state.mono_ns == mono_ns)
        return true;
    f->missed_state_ns = mono_ns;
    return false;
}

/* What the board says, up to now where the source can count. */
static int read_board(struct joule_board_follower *f)
{
    bool counted = f->counts, was_missed, is_first;
    const struct joule_node_total *t = &f->latest.total;
    int64_t now_ns;
    uint64_t said_uj;

    if (joule_board_read(f->board, &f->latest) < 0)
        return -1;
    if (counted)
        count_on(f);
    if ((counted || f->smooth) && t->mono_ns == f->sampled_ns)
        return 0;
    f->counts =
        joule_sensor_has_energy(f->source) && has_our_domains(f, t) && t->valid;
    if (f->counts) {
        was_missed = f->missed_state_ns == t->mono_ns;
        f->counts = is_published(f);
        if (!f->counts && counted && !was_missed) {
            f->counts = true; /* slurmd publishes just now: the next time */
            return 0;
        }
    }
    f->counts = f->counts && f->source->ops->resume(f->source, &f->state);
    now_ns = joule_clock_mono_ns(f->clock);
    said_uj = node_at(f, now_ns);
    is_first = f->sampled_ns == 0;
    f->snapshot = f->latest;
    f->ahead_uj = 0;
    f->sampled_ns = t->mono_ns;
    if (f->counts)
        count_on(f);
    if (!is_first && f->smooth) {
        f->ahead_uj = (double)said_uj - (double)node_at(f, now_ns);
        f->ahead_per_ns = f->ahead_uj / (double)f->snapshot.period_ns;
    }
    return 0;
}

/* Over a period of the sampler. */
static void work_off(struct joule_board_follower *f, int64_t ns)
{
    double uj = f->ahead_per_ns * (double)ns;

    f->ahead_uj = fabs(uj) < fabs(f->ahead_uj) ? f->ahead_uj - uj : 0;
}

/* Labels that the board has no longer, or not yet, stay where they are. */
static void follow_domains(struct joule_board_follower *f, int64_t now_ns)
{
    const struct joule_node_total *t = &f->snapshot.total;
    int64_t gap_ns = joule_power_gap_ns(f->snapshot.period_ns);
    bool ours = is_ours(f);
    bool new_count = t->base_uj != f->count_uj;
    size_t i;

    for (i = 0; i < f->source->domain_count; i++) {
        const struct joule_integrator *g = &t->integrator[i];
        struct part *p = &f->part[i];
        uint64_t uj;

        f->domain_mw[i] = JOULE_MW_UNKNOWN;
        if (!ours)
            continue;
        uj = domain_at(f, i, now_ns);
        if (new_count) {
            p->sum_uj += p->board_uj - p->from_uj;
            p->from_uj = 0;
        }
        p->board_uj = uj;
        if (uj > p->from_uj && p->sum_uj + uj - p->from_uj > f->domain_uj[i])
            f->domain_uj[i] = p->sum_uj + uj - p->from_uj;
        if (g->readings > 0 && now_ns - g->read_ns <= gap_ns)
            f->domain_mw[i] = (uint64_t)(g->power_w * 1000 + 0.5);
    }
    if (ours)
        f->count_uj = t->base_uj;
}

/* Time since begin in which the node was not measured. */
static int64_t follow_gap(struct joule_board_follower *f, int64_t now_ns)
{
    const struct joule_node_total *t = &f->snapshot.total;
    int64_t ns;

    if (t->gap_ns < f->gap_seen_ns) { /* a new count */
        f->gap_ns += f->gap_seen_ns - f->gap_from_ns;
        f->gap_from_ns = 0;
    }
    f->gap_seen_ns = t->gap_ns;
    if (t->valid)
        f->measured_ns = t->mono_ns;
    ns = f->missed_ns + f->gap_ns + t->gap_ns - f->gap_from_ns;
    /* A gap that goes on now is not in the total yet. */
    if (joule_node_total_overdue(t, now_ns,
                                 joule_power_gap_ns(f->snapshot.period_ns)))
        ns += now_ns - f->measured_ns;
    return ns < now_ns - f->begin_ns ? ns : now_ns - f->begin_ns;
}

/* Count from what the board says now. */
static void take_base(struct joule_board_follower *f, int64_t now_ns)
{
    const struct joule_node_total *t = &f->snapshot.total;
    size_t i;

    f->base_uj = node_at(f, now_ns);
    f->gap_from_ns = t->gap_ns;
    f->gap_seen_ns = t->gap_ns;
    /* In the middle of a gap: only what comes is ours. */
    if (t->valid && joule_node_total_overdue(
                        t, now_ns, joule_power_gap_ns(f->snapshot.period_ns)))
        f->gap_from_ns += now_ns - t->mono_ns;
    f->measured_ns = t->valid ? t->mono_ns : now_ns;
    f->count_uj = t->base_uj;
    f->based = true;
    if (!is_ours(f))
        return;
    for (i = 0; i < t->count; i++) {
        f->part[i].from_uj = domain_at(f, i, now_ns);
        f->part[i].board_uj = f->part[i].from_uj;
    }
}

void joule_board_follower_edge(struct joule_board_follower *f)
{
    if (f->board)
        joule_board_edge(f->board, joule_clock_mono_ns(f->clock));
}

void joule_board_follower_smooth(struct joule_board_follower *f)
{
    f->smooth = true;
}

void joule_board_follower_begin(struct joule_board_follower *f)
{
    int64_t now_ns = joule_clock_mono_ns(f->clock);

    memset(&f->based, 0,
           sizeof(*f) - offsetof(struct joule_board_follower, based));
    f->begun = true;
    f->begin_ns = now_ns;
    f->last_ns = now_ns;
    if (!f->board)
        return;
    /* The edge first: a sample that comes in between is split there. */
    joule_board_edge(f->board, now_ns);
    if (read_board(f) == 0) {
        take_base(f, now_ns);
        f->known = f->snapshot.total.valid;
    } else {
        /* A board on which nothing was ever published begins at 0. */
        f->based = errno == ENODATA;
        f->measured_ns = now_ns;
    }
}

/* The first update that sees a measurement: the total of a board that had
 * none at begin counts from its first one. */
static void first_known(struct joule_board_follower *f, int64_t now_ns)
{
    const struct joule_snapshot *s = &f->snapshot;
    int64_t from_ns = now_ns;

    if (!f->based)
        take_base(f, now_ns);
    else
        from_ns = s->since_ns > f->begin_ns ? s->since_ns : s->total.mono_ns;
    if (from_ns > f->begin_ns)
        f->missed_ns = from_ns - f->begin_ns;
    f->known = true;
}

int joule_board_follower_update(struct joule_board_follower *f,
                                struct joule_node_energy_reading *ret)
{
    const struct joule_snapshot *s = &f->snapshot;
    int64_t now_ns, elapsed_ns;
    uint64_t uj;

    if (!f->begun) {
        errno = EINVAL;
        return -1;
    }
    if (!f->board || read_board(f) < 0 || (!f->known && !s->total.valid)) {
        errno = ENODATA;
        return -1;
    }
    /* Later than all that the board says. */
    now_ns = joule_clock_mono_ns(f->clock);
    if (!f->known)
        first_known(f, now_ns);
    work_off(f, now_ns - f->last_ns);
    f->last_ns = now_ns;
    uj = node_at(f, now_ns);
    if (uj > f->base_uj && uj - f->base_uj > f->used_uj)
        f->used_uj = uj - f->base_uj;
    follow_domains(f, now_ns);
    elapsed_ns = now_ns - f->begin_ns;
    *ret = (struct joule_node_energy_reading){
        .mono_ns = now_ns,
        .elapsed_ns = elapsed_ns,
        .gap_ns = follow_gap(f, now_ns),
        .used_uj = f->used_uj,
        .node_mw = JOULE_MW_UNKNOWN,
        .average_mw = JOULE_MW_UNKNOWN,
        .domain_uj = f->domain_uj,
        .domain_mw = f->domain_mw,
    };
    if (!joule_node_total_overdue(&s->total, now_ns,
                                  joule_power_gap_ns(s->period_ns)))
        ret->node_mw = s->node_mw;
    if (elapsed_ns - f->missed_ns >= POWER_MIN_NS)
        ret->average_mw = joule_power_mw(f->used_uj, elapsed_ns - f->missed_ns);
    return 0;
}
