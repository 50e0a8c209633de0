/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/row_queue.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the node and the step have used at a time. */
struct point {
    int64_t ns;
    double node_uj, step_uj;
};

struct waiting {
    int64_t mono_ns, epoch_s;
    uint64_t node_uj;
};

struct joule_row_queue {
    size_t depth, cell_bytes;
    size_t first, count; /* of the rows that wait */
    struct waiting *rows;
    unsigned char *cells;
    bool begun;
    struct point before;   /* where the oldest of them begins */
    double node_uj_per_ns; /* in the last row */
    bool sampled;
    struct point from, to; /* the interval of the ledger; to.ns 0: none */
    struct point held;     /* what comes to be the next to; ns 0: none */
    int64_t began_ns;
    uint64_t uj; /* that was said last */
};

struct joule_row_queue *joule_row_queue_create(size_t depth, size_t cell_bytes)
{
    struct joule_row_queue *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->depth = depth;
    s->cell_bytes = cell_bytes;
    s->rows = calloc(depth, sizeof(*s->rows));
    s->cells = calloc(depth, cell_bytes);
    if (s->rows && s->cells)
        return s;
    joule_row_queue_destroy(s);
    errno = ENOMEM;
    return NULL;
}

void joule_row_queue_destroy(struct joule_row_queue *s)
{
    if (!s)
        return;
    free(s->rows);
    free(s->cells);
    free(s);
}

/* The one that has waited longest is 0. */
static size_t place(const struct joule_row_queue *s, size_t i)
{
    return (s->first + i) % s->depth;
}

void joule_row_queue_begin(struct joule_row_queue *s, int64_t mono_ns,
                           uint64_t node_uj)
{
    if (s->begun)
        return;
    s->begun = true;
    s->before = (struct point){.ns = mono_ns, .node_uj = (double)node_uj};
}

int joule_row_queue_add(struct joule_row_queue *s, int64_t mono_ns,
                        uint64_t node_uj, int64_t epoch_s, const void *cells)
{
    int64_t last_ns = s->before.ns;
    double last_uj = s->before.node_uj;
    size_t at;

    if (s->count == s->depth) {
        errno = ENOBUFS;
        return -1;
    }
    if (s->count > 0) {
        at = place(s, s->count - 1);
        last_ns = s->rows[at].mono_ns;
        last_uj = (double)s->rows[at].node_uj;
    }
    if (mono_ns > last_ns)
        s->node_uj_per_ns =
            ((double)node_uj - last_uj) / (double)(mono_ns - last_ns);
    at = place(s, s->count++);
    s->rows[at] = (struct waiting){
        .mono_ns = mono_ns, .epoch_s = epoch_s, .node_uj = node_uj};
    memcpy(s->cells + at * s->cell_bytes, cells, s->cell_bytes);
    return 0;
}

bool joule_row_queue_is_full(const struct joule_row_queue *s)
{
    return s->count == s->depth;
}

/* What the node had used at [ns]; before the oldest row and behind the last it
 * goes on as in these. */
static double node_at(const struct joule_row_queue *s, int64_t ns)
{
    int64_t before_ns = s->before.ns;
    double before_uj = s->before.node_uj;

    for (size_t i = 0; i < s->count; i++) {
        const struct waiting *row = &s->rows[place(s, i)];
        double uj = (double)row->node_uj;

        if (row->mono_ns >= ns && row->mono_ns > before_ns)
            return before_uj + (uj - before_uj) * (double)(ns - before_ns) /
                                   (double)(row->mono_ns - before_ns);
        before_ns = row->mono_ns;
        before_uj = uj;
    }
    return before_uj + s->node_uj_per_ns * (double)(ns - before_ns);
}

/* The step's energy at a time of the ledger's interval. */
static double step_at(const struct joule_row_queue *s, int64_t ns,
                      double node_uj)
{
    double whole = s->to.node_uj - s->from.node_uj;
    double part =
        whole > 0 ? (node_uj - s->from.node_uj) / whole
                  : (double)(ns - s->from.ns) / (double)(s->to.ns - s->from.ns);

    if (part < 0)
        part = 0;
    if (part > 1)
        part = 1;
    return s->from.step_uj + (s->to.step_uj - s->from.step_uj) * part;
}

static int64_t newest_ns(const struct joule_row_queue *s)
{
    return s->count > 0 ? s->rows[place(s, s->count - 1)].mono_ns
                        : s->before.ns;
}

/* Go on to the next interval.  Rows may have been given up that are newer than
 * the last sample: then what the node had used there is known from before. */
static void take_held(struct joule_row_queue *s)
{
    bool first = !s->sampled;

    s->from = s->to;
    if (first)
        s->from.ns = s->began_ns < s->held.ns ? s->began_ns : s->before.ns;
    if (first || s->from.ns >= s->before.ns)
        s->from.node_uj = node_at(s, s->from.ns);
    s->to = s->held;
    s->to.node_uj = node_at(s, s->to.ns);
    if (s->to.step_uj < s->from.step_uj)
        s->to.step_uj = s->from.step_uj;
    s->sampled = true;
    s->held.ns = 0;
}

void joule_row_queue_sample(struct joule_row_queue *s, int64_t began_ns,
                            int64_t mono_ns, uint64_t uj)
{
    if (!s->begun || mono_ns <= s->before.ns || mono_ns <= s->held.ns ||
        (s->sampled && mono_ns <= s->to.ns))
        return;
    if (s->held.ns && s->held.ns <= newest_ns(s))
        take_held(s);
    s->began_ns = began_ns;
    s->held = (struct point){.ns = mono_ns, .step_uj = (double)uj};
}

bool joule_row_queue_next(struct joule_row_queue *s, bool give_up,
                          struct joule_row_queue_row *ret)
{
    const struct waiting *row = &s->rows[s->first];
    struct point now;
    bool known;

    if (s->count == 0)
        return false;
    known = s->sampled && row->mono_ns <= s->to.ns;
    if (!known && s->held.ns && (give_up || s->held.ns <= newest_ns(s))) {
        take_held(s);
        known = row->mono_ns <= s->to.ns;
    }
    if (!known && !give_up)
        return false;
    now = (struct point){.ns = row->mono_ns,
                         .node_uj = (double)row->node_uj,
                         .step_uj = s->before.step_uj};
    *ret = (struct joule_row_queue_row){
        .mono_ns = row->mono_ns,
        .epoch_s = row->epoch_s,
        .mw = NAN,
        .cells = s->cells + s->first * s->cell_bytes,
    };
    if (known) {
        double before_uj = s->before.ns > s->from.ns
                               ? step_at(s, s->before.ns, s->before.node_uj)
                               : s->before.step_uj;

        now.step_uj = step_at(s, now.ns, now.node_uj);
        if (now.ns > s->before.ns && now.step_uj >= before_uj)
            ret->mw = (now.step_uj - before_uj) * 1e6 /
                      (double)(now.ns - s->before.ns);
    }
    if (now.step_uj > (double)s->uj)
        s->uj = (uint64_t)(now.step_uj + 0.5);
    ret->uj = s->uj;
    s->before = now;
    s->first = (s->first + 1) % s->depth;
    s->count--;
    return true;
}
