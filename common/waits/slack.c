/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/waits/slack.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/base/list.h"
#include "common/waits/table.h"

/* Computing, or a call, in the order in which the process has come to them. */
struct item {
    bool is_call;
    uint32_t path; /* where it computes */
    uint32_t open; /* what is not known of a call */
    uint64_t ns;   /* of computing */
    uint64_t limit_ns, wait_ns;
};

/* Paths whose delays may go further are [moving]; the others have used up all that
 * the calls behind them allow. */
struct joule_slack {
    struct item *ring; /* of a power of two */
    size_t room;
    uint64_t begin, end;
    struct joule_table number; /* of a path: its index */
    struct joule_slack_path *path;
    uint32_t *moving;
    size_t paths, path_room, movings, moving_room;
};

static struct item *item_at(const struct joule_slack *s, uint64_t number)
{
    return &s->ring[number & (s->room - 1)];
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* ---- paths ---- */

/* A new one does not move. */
static struct joule_slack_path *find_path(struct joule_slack *s, uint32_t path)
{
    uint32_t *at = joule_table_at(&s->number, path);

    if (!at)
        return NULL;
    if (*at == 0) {
        if (joule_list_grow(&s->path, s->paths, 1, &s->path_room,
                            sizeof(*s->path)) < 0 ||
            joule_list_grow(&s->moving, s->paths, 1, &s->moving_room,
                            sizeof(*s->moving)) < 0)
            return NULL;
        s->path[s->paths++] = (struct joule_slack_path){.path = path};
        *at = (uint32_t)s->paths;
    }
    return &s->path[*at - 1];
}

/* From here on a delay may begin in the path, of any length. */
static void move(struct joule_slack *s, struct joule_slack_path *p)
{
    if (p->carry_ns == 0)
        s->moving[s->movings++] = (uint32_t)(p - s->path);
    p->carry_ns = JOULE_SLACK_NO_LIMIT;
}

/* A call swallows as much of the delays that get through to it as it waits. */
static void pass(struct joule_slack *s, uint64_t limit_ns, uint64_t wait_ns)
{
    size_t left = 0;

    for (size_t i = 0; i < s->movings; i++) {
        struct joule_slack_path *p = &s->path[s->moving[i]];
        uint64_t carry_ns = least(p->carry_ns, limit_ns);
        uint64_t used_ns = least(carry_ns, wait_ns);

        p->slack_ns = sum(p->slack_ns, used_ns);
        p->carry_ns = carry_ns == JOULE_SLACK_NO_LIMIT ? JOULE_SLACK_NO_LIMIT
                                                       : carry_ns - used_ns;
        if (p->carry_ns > 0)
            s->moving[left++] = s->moving[i];
    }
    s->movings = left;
}

/* ---- the order of the process ---- */

static void take_first(struct joule_slack *s)
{
    struct item *i = item_at(s, s->begin++);
    struct joule_slack_path *p;

    if (i->is_call) {
        pass(s, i->limit_ns, i->wait_ns);
        return;
    }
    /* All of them are there since they were told. */
    p = find_path(s, i->path);
    p->computed_ns = sum(p->computed_ns, i->ns);
    move(s, p);
    move(s, &s->path[0]);
}

static void take_known(struct joule_slack *s)
{
    while (s->begin < s->end && item_at(s, s->begin)->open == 0)
        take_first(s);
}

static int append(struct joule_slack *s, const struct item *item)
{
    size_t room = s->room ? 2 * s->room : 16;
    struct item *ring;

    if (s->end - s->begin == JOULE_SLACK_OPEN_MAX) {
        item_at(s, s->begin)->limit_ns = 0;
        item_at(s, s->begin)->open = 0;
        take_known(s);
    }
    if (s->end - s->begin == s->room) {
        ring = calloc(room, sizeof(*ring));
        if (!ring)
            return -1;
        for (uint64_t i = s->begin; i < s->end; i++)
            ring[i & (room - 1)] = *item_at(s, i);
        free(s->ring);
        s->ring = ring;
        s->room = room;
    }
    *item_at(s, s->end++) = *item;
    return 0;
}

int joule_slack_compute(struct joule_slack *s, uint32_t path, uint64_t ns)
{
    const struct item item = {.path = path, .ns = ns};
    struct joule_slack_path *p = find_path(s, path);

    if (!p || append(s, &item) < 0)
        return -1;
    s->path[0].computed_ns = sum(s->path[0].computed_ns, ns);
    take_known(s);
    return 0;
}

int joule_slack_begin(struct joule_slack *s, uint32_t *ret_call)
{
    const struct item item = {
        .is_call = true, .open = 1, .limit_ns = JOULE_SLACK_NO_LIMIT};

    /* No call gets the number that means "none". */
    if ((uint32_t)s->end == JOULE_SLACK_NO_CALL &&
        append(s, &(struct item){
                      .is_call = true,
                      .limit_ns = JOULE_SLACK_NO_LIMIT,
                  }) < 0)
        return -1;
    *ret_call = (uint32_t)s->end;
    return append(s, &item);
}

static struct item *find_call(const struct joule_slack *s, uint32_t call)
{
    uint32_t behind = call - (uint32_t)s->begin;

    return call != JOULE_SLACK_NO_CALL && behind < s->end - s->begin
               ? item_at(s, s->begin + behind)
               : NULL;
}

void joule_slack_keep(struct joule_slack *s, uint32_t call)
{
    struct item *i = find_call(s, call);

    if (i)
        i->open++;
}

void joule_slack_release(struct joule_slack *s, uint32_t call,
                         uint64_t limit_ns, uint64_t wait_ns)
{
    struct item *i = find_call(s, call);

    if (!i)
        return;
    i->limit_ns = least(i->limit_ns, limit_ns);
    i->wait_ns = i->wait_ns > wait_ns ? i->wait_ns : wait_ns;
    i->open--;
    take_known(s);
}

/* ---- begin and end ---- */

struct joule_slack *joule_slack_create(void)
{
    struct joule_slack *s = calloc(1, sizeof(*s));

    if (s && !find_path(s, JOULE_SLACK_ALL)) {
        joule_slack_destroy(s);
        return NULL;
    }
    return s;
}

void joule_slack_destroy(struct joule_slack *s)
{
    if (!s)
        return;
    joule_table_free(&s->number);
    free(s->ring);
    free(s->path);
    free(s->moving);
    free(s);
}

void joule_slack_finish(struct joule_slack *s)
{
    while (s->begin < s->end)
        take_first(s);
}

const struct joule_slack_path *joule_slack_paths(const struct joule_slack *s,
                                                 size_t *ret_count)
{
    *ret_count = s->paths;
    return s->path;
}
