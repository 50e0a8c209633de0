/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table.h - a hash table of numbers: a key of 64 bits, a value of 32 bits.
 *
 *     struct joule_table table = {0};
 *     joule_table_put(&table, key, value);
 *     if (joule_table_get(&table, key, &value)) ...
 *     joule_table_free(&table);
 *
 * Linear probing; at most three quarters of the slots are used.  One thread at a
 * time.
 */
#ifndef JOULE_WAITS_TABLE_H
#define JOULE_WAITS_TABLE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct joule_table_slot {
    uint64_t key;
    uint32_t value;
    uint32_t is_used;
};

/* All zeros: empty. */
struct joule_table {
    struct joule_table_slot *slot;
    size_t slots; /* a power of two, or 0 */
    size_t count;
};

/* The end of MurmurHash3's 64-bit mixing (Appleby, public domain): all bits of the
 * result depend on all bits of [x]. */
static inline uint64_t joule_mix64(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* The slot of [key], or the free one where it would be. */
static inline struct joule_table_slot *
joule_table_find(const struct joule_table *t, uint64_t key)
{
    size_t at = joule_mix64(key) & (t->slots - 1);

    while (t->slot[at].is_used && t->slot[at].key != key)
        at = (at + 1) & (t->slots - 1);
    return &t->slot[at];
}

static inline int joule_table_grow(struct joule_table *t)
{
    struct joule_table more = {.slots = t->slots ? 2 * t->slots : 16,
                               .count = t->count};

    more.slot = calloc(more.slots, sizeof(*more.slot));
    if (!more.slot)
        return errno = ENOMEM, -1;
    for (size_t i = 0; i < t->slots; i++)
        if (t->slot[i].is_used)
            *joule_table_find(&more, t->slot[i].key) = t->slot[i];
    free(t->slot);
    *t = more;
    return 0;
}

/* Where the value of [key] is; a new one is 0.  NULL with ENOMEM.  Good until the
 * table is changed. */
static inline uint32_t *joule_table_at(struct joule_table *t, uint64_t key)
{
    struct joule_table_slot *slot;

    if (4 * (t->count + 1) > 3 * t->slots && joule_table_grow(t) < 0)
        return NULL;
    slot = joule_table_find(t, key);
    if (!slot->is_used) {
        *slot = (struct joule_table_slot){key, 0, 1};
        t->count++;
    }
    return &slot->value;
}

/* 0, or -1 with ENOMEM.  A value that the key had is replaced. */
static inline int joule_table_put(struct joule_table *t, uint64_t key,
                                  uint32_t value)
{
    uint32_t *at = joule_table_at(t, key);

    if (!at)
        return -1;
    *at = value;
    return 0;
}

static inline bool joule_table_get(const struct joule_table *t, uint64_t key,
                                   uint32_t *ret_value)
{
    const struct joule_table_slot *slot;

    if (t->count == 0)
        return false;
    slot = joule_table_find(t, key);
    if (slot->is_used)
        *ret_value = slot->value;
    return slot->is_used;
}

/* Knuth, The Art of Computer Programming 6.4, algorithm R: what follows moves
 * into the gap, so that no marks of removed keys are needed. */
static inline bool joule_table_remove(struct joule_table *t, uint64_t key,
                                      uint32_t *ret_value)
{
    size_t mask = t->slots - 1, gap, at, home;
    struct joule_table_slot *slot;

    if (t->count == 0)
        return false;
    slot = joule_table_find(t, key);
    if (!slot->is_used)
        return false;
    *ret_value = slot->value;
    gap = (size_t)(slot - t->slot);
    for (at = (gap + 1) & mask; t->slot[at].is_used; at = (at + 1) & mask) {
        home = joule_mix64(t->slot[at].key) & mask;
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        t->slot[gap] = t->slot[at];
        gap = at;
    }
    t->slot[gap].is_used = 0;
    t->count--;
    return true;
}

static inline void joule_table_free(struct joule_table *t)
{
    free(t->slot);
    memset(t, 0, sizeof(*t));
}

#endif
