/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/cursor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

#define BATCH_ROWS     4096
#define BATCH_ROWS_MIN 16

static struct joule_value take_value(const struct joule_column *column,
                                     const void *row)
{
    struct joule_value v = {.is_there = true};

    if (column->kind == JOULE_KIND_FLOAT) {
        v.real = joule_column_double(column, row);
        v.is_there = !isnan(v.real);
    } else if (column->kind == JOULE_KIND_SIGNED) {
        v.whole = joule_column_i64(column, row);
        v.real = (double)v.whole;
    } else {
        v.whole = joule_column_u64(column, row);
        v.real = (double)v.whole;
    }
    return v;
}

static void read_sample(struct joule_cursor *c, struct joule_sample *s)
{
    const void *rows;

    memset(s, 0, sizeof(*s));
    if (c->left == 0) {
        c->left = joule_rows_read(c->rows, c->batch, c->batch_rows, &rows);
        if (c->left > 0 && rows != c->batch)
            memcpy(c->batch, rows, c->left * c->row_size);
        joule_rows_release(c->rows);
        c->at = c->batch;
    }
    if (c->left == 0)
        return;
    s->is_there = true;
    s->value = take_value(c->item, c->at);
    if (c->elapsed)
        s->elapsed = joule_column_u64(c->elapsed, c->at);
    if (c->elapsed_ns)
        s->elapsed_ns = joule_column_u64(c->elapsed_ns, c->at);
    if (c->elapsed_ns && c->has_start)
        s->ns = (int64_t)(c->start_ns + s->elapsed_ns);
    else if (c->epoch)
        s->ns = (int64_t)(joule_column_u64(c->epoch, c->at) *
                          (uint64_t)JOULE_NS_PER_S);
    c->at += c->row_size;
    c->left--;
}

void joule_cursor_advance(struct joule_cursor *c)
{
    int64_t gap_ns;

    c->now = c->next;
    read_sample(c, &c->next);
    gap_ns = (int64_t)((uint64_t)c->next.ns - (uint64_t)c->now.ns);
    if (c->now.is_there && c->next.is_there && gap_ns > 0)
        c->interval_ns = gap_ns;
}

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

struct joule_value joule_cursor_at(struct joule_cursor *c, int64_t ns,
                                   int64_t interval_ns)
{
    const struct joule_value none = {0};
    uint64_t most;

    while (c->next.is_there &&
           distance(c->next.ns, ns) <= distance(c->now.ns, ns) &&
           c->now.ns < ns)
        joule_cursor_advance(c);
    if (!c->now.is_there)
        return none;
    most =
        (uint64_t)(interval_ns > c->interval_ns ? interval_ns : c->interval_ns);
    return distance(c->now.ns, ns) <= most / 2 ? c->now.value : none;
}

static int find_columns(struct joule_cursor *c, const char *item,
                        struct joule_error *err)
{
    const struct joule_rowtype *type = &joule_rows_layout(c->rows)->type;

    c->item = joule_rowtype_find(type, item);
    c->epoch = joule_rowtype_find(type, "EpochTime");
    c->elapsed = joule_rowtype_find(type, "ElapsedTime");
    c->elapsed_ns = joule_rowtype_find(type, "ElapsedTimeNs");
    c->row_size = type->size;
    return c->item ? 0 : joule_error_set(err, EBADMSG, "the item is gone");
}

int joule_cursor_open(struct joule_cursor *c, struct joule_reader *reader,
                      const struct joule_plan *plan,
                      const struct joule_plan_table *table, const char *item,
                      size_t bytes, struct joule_error *err)
{
    const struct joule_plan_node *node = &plan->node[table->node];
    char *path = joule_plan_path(plan, table);

    if (!path)
        return joule_error_set(err, ENOMEM, "out of memory");
    c->rows = joule_reader_table(reader, path, err);
    free(path);
    if (!c->rows || find_columns(c, item, err) < 0)
        return -1;
    c->batch_rows = bytes / c->row_size;
    if (c->batch_rows > BATCH_ROWS)
        c->batch_rows = BATCH_ROWS;
    if (c->batch_rows < BATCH_ROWS_MIN)
        c->batch_rows = BATCH_ROWS_MIN;
    c->batch = malloc(c->batch_rows * c->row_size);
    if (!c->batch)
        return joule_error_set(err, ENOMEM, "out of memory");
    c->start_ns = node->start_wall_ns;
    c->has_start = node->has_start;
    joule_cursor_advance(c); /* the first one is next */
    joule_cursor_advance(c);
    return 0;
}

uint64_t joule_cursor_close(struct joule_cursor *c)
{
    uint64_t lost = c->rows ? joule_rows_lost(c->rows) : 0;

    joule_rows_close(c->rows);
    free(c->batch);
    memset(c, 0, sizeof(*c));
    return lost;
}
