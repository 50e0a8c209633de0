/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/node_energy.h"

#include <errno.h>
#include <stdlib.h>

#include "common/step/board_follower.h"

/* Power over less than this is mostly the counter's 1 ms quantum. */
#define POWER_MIN_NS (5 * JOULE_NS_PER_MS)

/* What the board and our own count said of one counter at the same reading of
 * ours. */
struct board_mark {
    uint64_t ticks;     /* the board's count, carried on to our reading */
    uint64_t base_uj;   /* differs when the board has begun a new count */
    uint64_t own_ticks; /* our count */
    uint32_t gaps, own_gaps;
    bool known;
    bool fresh; /* of the reading that is being followed */
};

struct joule_node_energy {
    struct joule_board_follower *follow; /* power sources: all there is */
    const struct joule_clock *clock;
    struct joule_sensor *source;
    const struct joule_board *board;
    int64_t begin_ns, power_ns;
    uint64_t power_uj, node_mw, used_uj;
    bool begun, board_valid;
    struct joule_node_total total;  /* our own count since begin */
    struct joule_snapshot snapshot; /* scratch */
    struct board_mark mark[JOULE_DOMAINS_MAX];
    struct joule_reading readings[JOULE_DOMAINS_MAX];
    uint64_t domain_uj[JOULE_DOMAINS_MAX];
};

struct joule_node_energy *
joule_node_energy_create(const struct joule_clock *clock,
                         struct joule_sensor *source, struct joule_board *board)
{
    struct joule_node_energy *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    if (joule_sensor_is_power(source)) {
        a->follow = joule_board_follower_create(clock, source, board);
        if (!a->follow) {
            free(a);
            errno = ENOMEM;
            return NULL;
        }
    }
    a->clock = clock;
    a->source = source;
    a->board = board;
    a->node_mw = JOULE_MW_UNKNOWN;
    return a;
}

void joule_node_energy_destroy(struct joule_node_energy *node_energy)
{
    if (!node_energy)
        return;
    joule_board_follower_destroy(node_energy->follow);
    free(node_energy);
}

void joule_node_energy_extend(struct joule_node_energy *node_energy, bool extend)
{
    if (node_energy->follow)
        joule_board_follower_extend(node_energy->follow, extend);
}

void joule_node_energy_smooth(struct joule_node_energy *node_energy)
{
    if (node_energy->follow)
        joule_board_follower_smooth(node_energy->follow);
}

void joule_node_energy_edge(struct joule_node_energy *node_energy)
{
    if (node_energy->follow)
        joule_board_follower_edge(node_energy->follow);
}

/*
 * Carry the board's count of one counter on to our own reading.  It says
 * nothing if its own reading is too old to know the wraps since, or younger
 * than ours (the sampler ran in between: our reading is then behind it by
 * less than its wrap, and the difference would look like almost a whole
 * wrap; the next update will do).
 */
static struct board_mark mark_of(const struct joule_snapshot *s,
                                 const struct joule_domain *d, uint32_t i,
                                 struct joule_reading reading, int64_t now_ns)
{
    const struct joule_counter *c = &s->total.counter[i];
    struct board_mark mark = {.known = false};

    uint64_t ticks = joule_counter_diff(reading.raw, c->raw, d->width_bits);

    if (c->state == JOULE_COUNTER_NEW || reading.error || c->read_ns > now_ns ||
        now_ns - c->read_ns > joule_domain_wrap_ns(d) / 2 ||
        joule_domain_absurd(d, ticks, now_ns - c->read_ns))
        return mark;
    mark.ticks = c->ticks + ticks;
    mark.base_uj = s->total.base_uj;
    mark.gaps = c->gaps;
    mark.known = true;
    return mark;
}

/*
 * Our own reading is too long ago to know how often the counter wrapped, but
 * the board has watched it without a gap since a mark behind which our own
 * count has none either: take its word up to now.  What both have counted
 * since the mark is not added twice.
 */
static void bridge(struct joule_counter *c, const struct board_mark *now,
                   const struct board_mark *then, struct joule_reading reading,
                   int64_t now_ns)
{
    uint64_t ticks = then->own_ticks + (now->ticks - then->ticks);

    if (now->gaps != then->gaps || now->base_uj != then->base_uj ||
        now->ticks < then->ticks || c->gaps != then->own_gaps ||
        ticks < c->ticks)
        return;
    if (ticks != c->ticks) {
        c->state = JOULE_COUNTER_MOVING;
        c->moved_ns = now_ns;
    }
    c->ticks = ticks;
    c->raw = reading.raw;
    c->read_ns = now_ns;
}

static bool read_board(struct joule_node_energy *a)
{
    struct joule_node_total *t = &a->snapshot.total;

    return a->board && joule_board_read(a->board, &a->snapshot) == 0 &&
           t->domain_key == a->total.domain_key && t->count == a->total.count;
}

/* [has_board]: it is in a->snapshot. */
static void follow(struct joule_node_energy *a, bool has_board,
                   const struct joule_reading *readings, int64_t now_ns)
{
    const struct joule_domain *domains = a->source->domains;
    uint32_t i;

    if (has_board && a->snapshot.total.valid)
        a->board_valid = true;
    for (i = 0; i < a->total.count; i++) {
        struct joule_counter *c = &a->total.counter[i];
        struct board_mark *then = &a->mark[i];
        struct board_mark mark = {.known = false};

        if (has_board)
            mark = mark_of(&a->snapshot, &domains[i], i, readings[i], now_ns);
        if (!mark.known)
            continue;
        if (then->known && c->state != JOULE_COUNTER_NEW &&
            now_ns - c->read_ns > joule_domain_wrap_ns(&domains[i]) / 2)
            bridge(c, &mark, then, readings[i], now_ns);
        *then = mark;
        then->fresh = true;
    }
    joule_node_total_update(&a->total, domains, readings, now_ns);
    for (i = 0; i < a->total.count; i++) {
        if (!a->mark[i].fresh)
            continue;
        a->mark[i].own_ticks = a->total.counter[i].ticks;
        a->mark[i].own_gaps = a->total.counter[i].gaps;
        a->mark[i].fresh = false;
    }
}

static void read_and_follow(struct joule_node_energy *a)
{
    /* The board first: its readings are then older than ours. */
    bool has_board = read_board(a);
    int64_t now_ns = joule_sensor_read_all(a->source, a->clock, a->readings);

    follow(a, has_board, a->readings, now_ns);
}

/* Our own counters have moved, or stand where the sampler has seen them move.
 * One that does not answer us says nothing, whatever the board says. */
static bool is_known(const struct joule_node_energy *a)
{
    return a->total.valid ||
           (a->board_valid &&
            joule_node_total_silent(&a->total, a->source->domains) < 0);
}

void joule_node_energy_begin(struct joule_node_energy *a)
{
    uint32_t i;

    if (a->follow) {
        joule_board_follower_begin(a->follow);
        return;
    }
    joule_node_total_start(&a->total, a->source->domains,
                           a->source->domain_count, 0);
    for (i = 0; i < JOULE_DOMAINS_MAX; i++)
        a->mark[i].known = false;
    read_and_follow(a);
    a->begin_ns = a->total.mono_ns;
    a->power_ns = a->total.mono_ns;
    a->power_uj = 0;
    a->used_uj = 0;
    a->node_mw = JOULE_MW_UNKNOWN;
    a->begun = true;
}

/* What has been used by the reading that was followed last. */
static int say(struct joule_node_energy *a,
               struct joule_node_energy_reading *ret)
{
    uint32_t i;

    if (!is_known(a)) {
        errno = ENODATA;
        return -1;
    }
    a->used_uj = a->total.node_uj;
    for (i = 0; i < a->total.count; i++)
        a->domain_uj[i] = joule_unit_to_uj(a->source->domains[i].unit,
                                           a->total.counter[i].ticks);
    if (a->total.mono_ns - a->power_ns >= POWER_MIN_NS) {
        a->node_mw = joule_power_mw(a->used_uj - a->power_uj,
                                    a->total.mono_ns - a->power_ns);
        a->power_ns = a->total.mono_ns;
        a->power_uj = a->used_uj;
    }
    *ret = (struct joule_node_energy_reading){
        .mono_ns = a->total.mono_ns,
        .elapsed_ns = a->total.mono_ns - a->begin_ns,
        .gap_ns = a->total.gap_ns,
        .used_uj = a->used_uj,
        .node_mw = a->node_mw,
        .average_mw = JOULE_MW_UNKNOWN,
        .domain_uj = a->domain_uj,
    };
    if (ret->elapsed_ns >= POWER_MIN_NS)
        ret->average_mw = joule_power_mw(a->used_uj, ret->elapsed_ns);
    if (a->node_mw == JOULE_MW_UNKNOWN && a->board_valid &&
        a->snapshot.node_mw != JOULE_MW_UNKNOWN)
        ret->node_mw = a->snapshot.node_mw;
    return 0;
}

int joule_node_energy_update(struct joule_node_energy *a,
                             struct joule_node_energy_reading *ret)
{
    if (a->follow)
        return joule_board_follower_update(a->follow, ret);
    if (!a->begun) {
        errno = EINVAL;
        return -1;
    }
    read_and_follow(a);
    return say(a, ret);
}

int64_t joule_node_energy_read(struct joule_node_energy *a,
                               struct joule_reading *readings)
{
    return joule_sensor_read_all(a->source, a->clock, readings);
}

int joule_node_energy_follow(struct joule_node_energy *a,
                             const struct joule_reading *readings,
                             int64_t mono_ns,
                             struct joule_node_energy_reading *ret)
{
    if (a->follow || !a->begun) {
        errno = EINVAL;
        return -1;
    }
    follow(a, read_board(a), readings, mono_ns);
    return say(a, ret);
}
