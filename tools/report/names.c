/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/report/names.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a. */
static uint32_t hash(const char *text)
{
    uint32_t h = 2166136261u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* The slot of a name, or the free one where it would be. */
static uint32_t *find_slot(const struct joule_names *n, const char *name)
{
    for (size_t at = hash(name);; at++) {
        uint32_t *slot = &n->slot[at % n->slots];

        if (*slot == 0 || strcmp(n->name[*slot - 1], name) == 0)
            return slot;
    }
}

/* More than half of the slots are free. */
static int make_room(struct joule_names *n)
{
    size_t room = n->room ? 2 * n->room : 64;
    struct joule_names more = {.slots = 2 * room};

    if (n->count < n->room)
        return 0;
    more.name = reallocarray(n->name, room, sizeof(*more.name));
    if (!more.name)
        return -1;
    n->name = more.name;
    more.slot = calloc(more.slots, sizeof(*more.slot));
    if (!more.slot)
        return -1;
    for (size_t i = 0; i < n->count; i++)
        *find_slot(&more, n->name[i]) = (uint32_t)i + 1;
    free(n->slot);
    n->slot = more.slot;
    n->slots = more.slots;
    n->room = room;
    return 0;
}

int joule_names_number(struct joule_names *n, const char *name, size_t *ret)
{
    uint32_t *slot;

    if (make_room(n) < 0)
        return -1;
    slot = find_slot(n, name);
    if (*slot == 0) {
        n->name[n->count] = strdup(name);
        if (!n->name[n->count])
            return -1;
        *slot = (uint32_t)++n->count;
    }
    *ret = *slot - 1;
    return 0;
}

void joule_names_free(struct joule_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
    free(n->slot);
    memset(n, 0, sizeof(*n));
}
