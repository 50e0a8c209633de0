/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/tablesend.h"

/* Chunks from this size on are handed on as they are, smaller ones if they
 * are compressed. */
#define STORED_MIN ((size_t)16 << 10)
#define STORED_MAX ((size_t)2112 << 10)

static int send_rows(struct joule_rows *rows, const struct joule_visitor *v,
                     struct joule_error *err)
{
    const struct joule_layout *layout = joule_rows_layout(rows);
    size_t batch = (size_t)joule_batch_rows(layout);

    for (;;) {
        const void *from;
        size_t count;
        void *room = v->room(v->arg, batch * layout->type.size, err);

        if (!room)
            return -1;
        count = joule_rows_read(rows, room, batch, &from);
        if (count == 0)
            return 0;
        if (v->rows(v->arg, from, count, count * layout->type.size, err) < 0)
            return -1;
    }
}

static int send_chunks(struct joule_rows *rows, const struct joule_visitor *v,
                       struct joule_error *err)
{
    const struct joule_layout *layout = joule_rows_layout(rows);
    size_t most =
        joule_unfilter_bound((size_t)layout->chunk_rows * layout->type.size);

    for (;;) {
        struct joule_run run;
        uint64_t first = 0, left;
        uint32_t mask = 0;
        size_t len;
        void *room;

        if (v->run && joule_rows_skip_plain(rows, &run)) {
            if (v->run(v->arg, &run, err) < 0)
                return -1;
            continue;
        }
        room = v->room(v->arg, most, err);
        if (!room)
            return -1;
        len = joule_rows_read_stored(rows, room, most, &first, &mask);
        if (len == 0)
            return 0;
        left = layout->rows - first;
        if (left > layout->chunk_rows)
            left = layout->chunk_rows;
        if (v->chunk(v->arg, left, mask, room, len, err) < 0)
            return -1;
    }
}

static bool is_compressed(const struct joule_pipeline *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->filter[i].kind == JOULE_FILTER_DEFLATE && p->filter[i].level > 0)
            return true;
    return false;
}

/* Whether the chunks are worth being left as they are. */
static bool is_sent_stored(const struct joule_layout *layout)
{
    size_t raw = (size_t)layout->chunk_rows * layout->type.size;

    return layout->is_known && layout->chunk_rows > 0 &&
           (raw >= STORED_MIN || is_compressed(&layout->pipeline)) &&
           joule_unfilter_bound(raw) <= STORED_MAX;
}

int joule_table_send(struct joule_rows *rows, const char *name,
                     enum joule_walk how, const struct joule_visitor *v,
                     int (*attributes)(void *arg, struct joule_error *err),
                     void *arg, struct joule_error *err)
{
    const struct joule_layout *layout = joule_rows_layout(rows);
    bool stored = how == JOULE_WALK_TABLES && is_sent_stored(layout);

    if (v->table(v->arg, name, layout, stored, err) < 0 ||
        attributes(arg, err) < 0)
        return -1;
    if (how == JOULE_WALK_TABLES &&
        (stored ? send_chunks(rows, v, err) : send_rows(rows, v, err)) < 0)
        return -1;
    return v->table_end(v->arg, joule_rows_lost(rows), err);
}
