/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/totals.h"

#include <stdlib.h>
#include <string.h>

#include "tools/waits/definitions.h"

void joule_totals_init(struct joule_totals *t, size_t pieces)
{
    memset(t, 0, sizeof(*t));
    t->pieces = pieces;
}

void joule_totals_free(struct joule_totals *t)
{
    free(t->at);
    free(t->use);
    free(t->slot);
    memset(t, 0, sizeof(*t));
}

static bool is_same(const struct joule_total *a, const struct joule_total *b)
{
    return a->pattern == b->pattern && a->path == b->path &&
           a->process == b->process && a->communicator == b->communicator;
}

static uint32_t *find_slot(const struct joule_totals *t,
                           const struct joule_total *key)
{
    uint64_t hash = joule_mix64((uint64_t)key->process << 32 | key->path) ^
                    ((uint64_t)key->pattern << 32 | key->communicator);
    size_t at = joule_mix64(hash) & (t->slots - 1);

    while (t->slot[at] && !is_same(&t->at[t->slot[at] - 1], key))
        at = (at + 1) & (t->slots - 1);
    return &t->slot[at];
}

/* More than half of the slots are free. */
static int make_room(struct joule_totals *t)
{
    size_t room = t->room ? 2 * t->room : 64;
    struct joule_total *at;
    struct joule_power_use *use;
    uint32_t *slot;

    if (t->count < t->room)
        return 0;
    at = reallocarray(t->at, room, sizeof(*at));
    if (!at)
        return -1;
    t->at = at;
    use = reallocarray(t->use, room, (t->pieces + 1) * sizeof(*use));
    if (!use)
        return -1;
    t->use = use;
    slot = calloc(2 * room, sizeof(*slot));
    if (!slot)
        return -1;
    free(t->slot);
    t->slot = slot;
    t->slots = 2 * room;
    t->room = room;
    for (size_t i = 0; i < t->count; i++)
        *find_slot(t, &t->at[i]) = (uint32_t)i + 1;
    return 0;
}

/* The total of [key]; a new one is 0. */
static struct joule_total *find(struct joule_totals *t,
                                const struct joule_total *key,
                                struct joule_power_use **ret_use)
{
    uint32_t *slot;
    size_t i;

    if (make_room(t) < 0)
        return NULL;
    slot = find_slot(t, key);
    if (*slot == 0) {
        i = t->count++;
        t->at[i] = (struct joule_total){.pattern = key->pattern,
                                        .path = key->path,
                                        .process = key->process,
                                        .communicator = key->communicator};
        memset(t->use + i * t->pieces, 0, t->pieces * sizeof(*t->use));
        *slot = (uint32_t)i + 1;
    }
    i = *slot - 1;
    *ret_use = t->use + i * t->pieces;
    return &t->at[i];
}

int joule_totals_add(struct joule_totals *t,
                     const struct joule_power_envelope *envelope,
                     const struct joule_wait *wait)
{
    const struct joule_total key = {.pattern = (uint32_t)wait->pattern,
                                    .path = wait->path,
                                    .process = wait->process,
                                    .communicator = wait->communicator};
    struct joule_power_use *use;
    struct joule_total *to = find(t, &key, &use);

    if (!to)
        return -1;
    to->count++;
    to->ns += wait->wait_ns;
    if (to->longest_ns < wait->wait_ns)
        to->longest_ns = wait->wait_ns;
    if (envelope) {
        use += joule_power_piece(envelope, wait->wait_ns);
        use->count++;
        use->ns += wait->wait_ns;
    }
    return 0;
}

static int add_total(struct joule_totals *to, const struct joule_total *key,
                     const struct joule_total *from,
                     const struct joule_power_use *from_use)
{
    struct joule_power_use *use;
    struct joule_total *sum = find(to, key, &use);

    if (!sum)
        return -1;
    sum->count += from->count;
    sum->ns += from->ns;
    sum->uj += from->uj;
    sum->uncertain_uj += from->uncertain_uj;
    if (sum->longest_ns < from->longest_ns)
        sum->longest_ns = from->longest_ns;
    for (size_t i = 0; i < to->pieces; i++) {
        use[i].count += from_use[i].count;
        use[i].ns += from_use[i].ns;
    }
    return 0;
}

int joule_totals_join(struct joule_totals *to, const struct joule_totals *from)
{
    return joule_totals_group(to, from, JOULE_BY_ALL, true);
}

int joule_totals_group(struct joule_totals *to, const struct joule_totals *from,
                       unsigned by, bool completions)
{
    for (size_t i = 0; i < from->count; i++) {
        struct joule_total key = from->at[i];

        if (!completions && key.pattern >= JOULE_WAIT_COMPLETIONS)
            continue;
        if (!(by & JOULE_BY_PATTERN))
            key.pattern = JOULE_NO_NUMBER;
        if (!(by & JOULE_BY_PATH))
            key.path = JOULE_NO_NUMBER;
        if (!(by & JOULE_BY_PROCESS))
            key.process = JOULE_NO_NUMBER;
        if (!(by & JOULE_BY_COMMUNICATOR))
            key.communicator = JOULE_NO_NUMBER;
        if (add_total(to, &key, &from->at[i], from->use + i * from->pieces) < 0)
            return -1;
    }
    return 0;
}
