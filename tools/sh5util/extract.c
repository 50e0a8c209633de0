/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile/hdf5_read.h"
#include "tools/sh5util/cells.h"
#include "tools/sh5util/extraction.h"
#include "tools/sh5util/say.h"
#include "tools/sh5util/totals.h"

/* A worker reads so many bytes of rows at a time. */
#define BATCH_SIZE ((size_t)128 << 10)

/* Tables are put together into tasks of about so many rows. */
#define TASK_ROWS 65536

/* In the worker: one table, and what its rows begin with. */
struct reading {
    const struct joule_extraction *x;
    const struct joule_plan_table *table;
    struct joule_hdf5_table *rows;
    const struct joule_rowtype *type;
    struct joule_out *out;
    unsigned char *batch;
    size_t batch_rows;
    char *prefix;
    size_t prefix_len, row_room;
    const struct joule_column **column; /* of each cell; NULL: it has none */
};

/* "step,node,series" as cells, the row's opening bracket included. */
static int make_prefix(struct reading *r)
{
    const struct joule_selection *s = &r->x->selection;
    const struct joule_plan_node *node = &s->plan->node[r->table->node];
    const char *label = joule_selection_label(s, r->table);
    struct joule_cells c;

    r->prefix = malloc(joule_cells_room(
        3, strlen(node->step) + strlen(node->name) + strlen(label)));
    if (!r->prefix)
        return -1;
    joule_cells_begin(&c, r->prefix, r->x->request->json);
    joule_cells_text(&c, node->step, strlen(node->step));
    joule_cells_text(&c, node->name, strlen(node->name));
    if (s->has_series)
        joule_cells_text(&c, label, strlen(label));
    r->prefix_len = (size_t)(c.at - r->prefix);
    return 0;
}

static int prepare(struct reading *r, struct joule_error *err)
{
    const struct joule_selection *s = &r->x->selection;

    /* What the file has now, not what it had when it was described. */
    r->type = joule_hdf5_table_type(r->rows);
    r->batch_rows = BATCH_SIZE / r->type->size;
    if (r->batch_rows == 0)
        r->batch_rows = 1;
    if (r->batch_rows < joule_hdf5_table_chunk_rows(r->rows))
        r->batch_rows = joule_hdf5_table_chunk_rows(r->rows);
    r->batch = malloc(r->batch_rows * r->type->size);
    r->column = calloc(s->columns + 1, sizeof(*r->column));
    if (!r->batch || !r->column || make_prefix(r) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < s->columns; i++)
        r->column[i] = joule_rowtype_find(r->type, s->column[i]);
    r->row_room =
        r->prefix_len +
        joule_cells_room(s->columns * 4 + 4, joule_cells_text_bytes(r->type));
    return 0;
}

static int put_rows(struct reading *r, const unsigned char *row, size_t count,
                    struct joule_error *err)
{
    size_t columns = r->x->selection.columns;
    struct joule_cells c = {.json = r->x->request->json};

    for (; count > 0; count--, row += r->type->size) {
        char *at = joule_out_room(r->out, r->row_room, err);

        if (!at)
            return -1;
        memcpy(at, r->prefix, r->prefix_len);
        c.at = at + r->prefix_len;
        c.is_first = false;
        for (size_t i = 0; i < columns; i++)
            if (r->column[i])
                joule_cells_column(&c, r->column[i], row);
            else
                joule_cells_missing(&c);
        joule_cells_end(&c);
        joule_out_commit(r->out, (size_t)(c.at - at));
    }
    return 0;
}

static int put_totals(struct reading *r, const struct joule_totals *totals,
                      struct joule_error *err)
{
    struct joule_cells c = {.json = r->x->request->json};
    char *at = joule_out_room(r->out, r->row_room, err);

    if (!at)
        return -1;
    memcpy(at, r->prefix, r->prefix_len);
    c.at = at + r->prefix_len;
    joule_totals_put(totals, &c);
    joule_cells_end(&c);
    joule_out_commit(r->out, (size_t)(c.at - at));
    return 0;
}

static int read_all(struct reading *r, struct joule_error *err)
{
    bool series = r->x->request->time_series;
    struct joule_totals *totals = NULL;
    size_t count;
    int rc = 0;

    if (!series) {
        totals = joule_totals_create(r->column, r->x->selection.column,
                                     r->x->selection.columns);
        if (!totals)
            return joule_error_set(err, ENOMEM, "out of memory");
    }
    while (rc == 0 && (count = joule_hdf5_table_read(r->rows, r->batch,
                                                     r->batch_rows)) > 0) {
        if (series)
            rc = put_rows(r, r->batch, count, err);
        else
            joule_totals_add(totals, r->batch, count, r->type->size);
    }
    if (rc == 0 && totals && joule_totals_rows(totals) > 0)
        rc = put_totals(r, totals, err);
    joule_totals_destroy(totals);
    return rc;
}

static int read_table(const struct joule_extraction *x, hid_t file,
                      const struct joule_plan_table *table,
                      struct joule_out *out, uint64_t *lost,
                      struct joule_error *err)
{
    struct reading r = {.x = x, .table = table, .out = out};
    char *path = joule_plan_path(&x->plan, table);
    int rc = -1;

    if (!path)
        return joule_error_set(err, ENOMEM, "out of memory");
    r.rows = joule_hdf5_table_open(file, path, err);
    if (r.rows && prepare(&r, err) == 0)
        rc = read_all(&r, err);
    if (r.rows)
        *lost += joule_hdf5_table_lost(r.rows);
    joule_hdf5_table_close(r.rows);
    free(r.batch);
    free(r.column);
    free(r.prefix);
    free(path);
    return rc;
}

/* In the worker. */
static int run_task(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    struct joule_extraction *x = arg;
    hid_t file = joule_extraction_file(x, err);
    struct joule_error why = {""};
    uint64_t lost = 0;

    (void)fd;
    if (file < 0)
        return -1;
    for (size_t i = x->first[task]; i < x->first[task + 1]; i++) {
        const struct joule_plan_table *table = x->selection.table[i];
        const struct joule_plan_node *n = &x->plan.node[table->node];
        struct joule_error one;
        uint64_t before = lost;

        if (read_table(x, file, table, out, &lost, &one) == 0 && lost == before)
            continue;
        if (lost != before)
            joule_error_set(&one, EBADMSG, "damaged, %llu rows are missing",
                            (unsigned long long)(lost - before));
        if (!why.text[0])
            joule_error_set(&why, EBADMSG, "step %s, node %s, %s: %s", n->step,
                            n->name, table->series, one.text);
    }
    return why.text[0] ? joule_error_set(err, EBADMSG, "%s", why.text) : 0;
}

static int choose(struct joule_extraction *x, struct joule_error *err)
{
    const struct joule_extract_request *r = x->request;
    const struct joule_selection *s = &x->selection;
    uint64_t rows = 0;

    if (s->tables == 0)
        return joule_error_set(err, ENOENT,
                               "%s: nothing in it fits (series "
                               "%s, node %s)",
                               r->input, r->series ? r->series : "any",
                               r->node ? r->node : "any");
    if (joule_extraction_cut(x, err) < 0)
        return -1;
    for (size_t i = 0; i < s->tables; i++) {
        if (rows == 0)
            joule_extraction_task(x, i);
        /* One at least: a table without rows takes time, too. */
        rows +=
            s->table[i]->rows < TASK_ROWS ? s->table[i]->rows + 64 : TASK_ROWS;
        if (rows >= TASK_ROWS)
            rows = 0;
    }
    return 0;
}

static void say(const struct joule_extraction *x)
{
    joule_say("Extracting job data from %s into %s", x->request->input,
              x->request->output);
}

static int write_head(struct joule_extraction *x, struct joule_error *err)
{
    const struct joule_selection *s = &x->selection;
    char(*made)[JOULE_PROFILE_NAME_MAX + 4];
    const char **name;
    size_t count = 0, used = 0;
    int rc;

    name = calloc(s->columns * 4 + 4, sizeof(*name));
    made = calloc(s->columns * 4 + 4, sizeof(*made));
    if (!name || !made) {
        free(name);
        free(made);
        return joule_error_set(err, ENOMEM, "out of memory");
    }
    name[count++] = "Step";
    name[count++] = "Node";
    if (s->has_series)
        name[count++] = "Series";
    for (size_t i = 0; i < s->columns; i++) {
        if (x->request->time_series ||
            strcmp(s->column[i], "ElapsedTime") == 0) {
            name[count++] = s->column[i];
            continue;
        }
        for (int part = 0; part < 4; part++, used++) {
            static const char *const parts[] = {"Min", "Max", "Sum", "Avg"};

            snprintf(made[used], sizeof(made[used]), "%s_%.*s", parts[part],
                     JOULE_PROFILE_NAME_MAX - 1, s->column[i]);
            name[count++] = made[used];
        }
    }
    rc = joule_extraction_head(x, name, count, err);
    free(name);
    free(made);
    return rc;
}

int joule_extract(const struct joule_extract_request *request)
{
    static const struct joule_extract_kind kind = {
        .choose = choose,
        .say = say,
        .head = write_head,
        .run = run_task,
    };
    struct joule_extraction x = {.request = request};

    return joule_extraction_run(&x, &kind);
}
