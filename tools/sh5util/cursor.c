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

static void find(struct joule_column *ret, const struct joule_rowtype *type,
                 const char *name)
{
    const struct joule_column *column = joule_rowtype_find(type, name);

    memset(ret, 0, sizeof(*ret));
    if (column)
        *ret = *column;
}

/* The columns, each time that the table is opened: it is the user's file. */
static int find_columns(struct joule_cursor *c,
                        const struct joule_hdf5_table *table, const char *item,
                        struct joule_error *err)
{
    const struct joule_rowtype *type = joule_hdf5_table_type(table);

    find(&c->item, type, item);
    find(&c->epoch, type, "EpochTime");
    find(&c->elapsed, type, "ElapsedTime");
    find(&c->elapsed_ns, type, "ElapsedTimeNs");
    if (c->item.size == 0 || (c->row_size && c->row_size != type->size))
        return joule_error_set(err, EBADMSG, "the item is gone");
    c->row_size = type->size;
    c->rows = joule_hdf5_table_rows(table);
    return 0;
}

static struct joule_hdf5_table *
open_table(struct joule_cursor *c, const char *item, struct joule_error *err)
{
    struct joule_hdf5_table *table =
        joule_hdf5_table_open(c->file, c->path, err);

    if (table && find_columns(c, table, item, err) < 0) {
        joule_hdf5_table_close(table);
        table = NULL;
    }
    return table;
}

static void read_batch(struct joule_cursor *c)
{
    char item[JOULE_PROFILE_NAME_MAX];
    struct joule_hdf5_table *table;

    c->at = c->batch;
    if (c->next >= c->rows)
        return;
    strcpy(item, c->item.name);
    table = open_table(c, item, NULL);
    if (!table) {
        c->lost += c->rows - c->next;
        c->next = c->rows;
        return;
    }
    joule_hdf5_table_seek(table, c->next);
    c->left = joule_hdf5_table_read(table, c->batch, c->batch_rows);
    c->lost += joule_hdf5_table_lost(table);
    c->next = joule_hdf5_table_tell(table);
    joule_hdf5_table_close(table);
}

static void read_sample(struct joule_cursor *c, struct joule_sample *s)
{
    memset(s, 0, sizeof(*s));
    if (c->left == 0)
        read_batch(c);
    if (c->left == 0)
        return;
    s->is_there = true;
    s->value = take_value(&c->item, c->at);
    if (c->elapsed.size)
        s->elapsed = joule_column_u64(&c->elapsed, c->at);
    if (c->elapsed_ns.size)
        s->elapsed_ns = joule_column_u64(&c->elapsed_ns, c->at);
    if (c->elapsed_ns.size && c->has_start)
        s->ns = (int64_t)(c->start_ns + s->elapsed_ns);
    else if (c->epoch.size)
        s->ns = (int64_t)(joule_column_u64(&c->epoch, c->at) *
                          (uint64_t)JOULE_NS_PER_S);
    c->at += c->row_size;
    c->left--;
}

void joule_cursor_advance(struct joule_cursor *c)
{
    int64_t gap_ns;

    c->now = c->next_sample;
    read_sample(c, &c->next_sample);
    gap_ns = (int64_t)((uint64_t)c->next_sample.ns - (uint64_t)c->now.ns);
    if (c->now.is_there && c->next_sample.is_there && gap_ns > 0)
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

    while (c->next_sample.is_there &&
           distance(c->next_sample.ns, ns) <= distance(c->now.ns, ns) &&
           c->now.ns < ns)
        joule_cursor_advance(c);
    if (!c->now.is_there)
        return none;
    most =
        (uint64_t)(interval_ns > c->interval_ns ? interval_ns : c->interval_ns);
    return distance(c->now.ns, ns) <= most / 2 ? c->now.value : none;
}

int joule_cursor_open(struct joule_cursor *c, hid_t file,
                      const struct joule_plan *plan,
                      const struct joule_plan_table *table, const char *item,
                      size_t bytes, struct joule_error *err)
{
    const struct joule_plan_node *node = &plan->node[table->node];
    struct joule_hdf5_table *opened;

    c->file = file;
    c->path = joule_plan_path(plan, table);
    if (!c->path)
        return joule_error_set(err, ENOMEM, "out of memory");
    opened = open_table(c, item, err);
    if (!opened)
        return -1;
    joule_hdf5_table_close(opened);
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
    uint64_t lost = c->lost;

    free(c->path);
    free(c->batch);
    memset(c, 0, sizeof(*c));
    return lost;
}
