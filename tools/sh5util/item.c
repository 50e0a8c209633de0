/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One item of all nodes of a step side by side.
 *
 * Nodes begin at different moments and may be sampled at different rates.  The
 * table with the most rows gives the moments; of every other one the sample
 * that is nearest in time is taken (cursor.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sh5util/cells.h"
#include "tools/sh5util/cursor.h"
#include "tools/sh5util/extraction.h"
#include "tools/sh5util/say.h"

/* Memory for the rows of all tables of a step: one for each node, or task. */
#define BATCHES_SIZE ((size_t)24 << 20)

struct item {
    struct joule_extraction x; /* stands first: it is what others have */
    char **name;               /* of the columns, one each: "0 n1" of a task */
    const char **head;         /* over the columns: "n1" if it has one alone */
    const char **node;         /* of the columns */
    size_t names;
    size_t *name_of; /* of each table */
    bool has_ns;     /* a table has ElapsedTimeNs: the last column is that */
};

struct step {
    const struct item *item;
    const char *name;
    const size_t *name_of; /* of each cursor's column */
    struct joule_cursor *cursor;
    size_t count, driver;
    struct joule_value *value; /* of each column of the output */
    bool is_float;
    struct joule_out *out;
    size_t room;
    double most; /* largest sum so far */
    bool has_most;
    uint64_t most_elapsed;
    double most_mean;
    struct joule_error most_value;
};

static void put_value(struct joule_cells *c, const struct joule_value *v,
                      bool is_float)
{
    if (!v->is_there) {
        joule_cells_missing(c);
    } else if (is_float) {
        joule_cells_double(c, v->real);
    } else {
        joule_cells_next(c);
        c->at = joule_number_i128(c->at, v->whole);
    }
}

/* Least, largest and sum of the values of a moment. */
struct moment {
    size_t least, largest, count;
    struct joule_value sum;
};

static struct moment sum_up(const struct step *s)
{
    struct moment m = {.sum.is_there = true};

    for (size_t i = 0; i < s->item->names; i++) {
        const struct joule_value *v = &s->value[i];

        if (!v->is_there)
            continue;
        if (m.count == 0 || v->real < s->value[m.least].real)
            m.least = i;
        if (m.count == 0 || v->real > s->value[m.largest].real)
            m.largest = i;
        m.sum.whole += v->whole;
        m.sum.real += v->real;
        m.count++;
    }
    return m;
}

static int put_moment(struct step *s, const struct moment *m,
                      struct joule_error *err)
{
    const struct joule_cursor *driver = &s->cursor[s->driver];
    const struct item *item = s->item;
    const char *least = item->name[m->least];
    const char *largest = item->name[m->largest];
    struct joule_cells c;
    char *at = joule_out_room(s->out, s->room, err);

    if (!at)
        return -1;
    joule_cells_begin(&c, at, item->x.request->json);
    joule_cells_text(&c, s->name, strlen(s->name));
    joule_cells_u64(&c, driver->now.elapsed);
    joule_cells_text(&c, least, strlen(least));
    put_value(&c, &s->value[m->least], s->is_float);
    joule_cells_text(&c, largest, strlen(largest));
    put_value(&c, &s->value[m->largest], s->is_float);
    put_value(&c, &m->sum, s->is_float);
    joule_cells_double(&c, m->sum.real / (double)m->count);
    joule_cells_u64(&c, m->count);
    for (size_t i = 0; i < item->names; i++)
        put_value(&c, &s->value[i], s->is_float);
    if (item->has_ns && driver->elapsed_ns.size)
        joule_cells_u64(&c, driver->now.elapsed_ns);
    else if (item->has_ns)
        joule_cells_missing(&c);
    joule_cells_end(&c);
    joule_out_commit(s->out, (size_t)(c.at - at));
    return 0;
}

static void keep_most(struct step *s, const struct moment *m, uint64_t elapsed)
{
    char text[JOULE_NUMBER_MAX + 1];
    char *end;

    if (s->has_most && m->sum.real <= s->most)
        return;
    s->has_most = true;
    s->most = m->sum.real;
    s->most_elapsed = elapsed;
    s->most_mean = m->sum.real / (double)m->count;
    end = s->is_float ? joule_number_fixed(text, m->sum.real)
                      : joule_number_i128(text, m->sum.whole);
    *end = '\0';
    joule_error_set(&s->most_value, 0, "%s", text);
}

static int walk_step(struct step *s, struct joule_error *err)
{
    struct joule_cursor *driver = &s->cursor[s->driver];

    for (; driver->now.is_there; joule_cursor_advance(driver)) {
        struct moment m;

        memset(s->value, 0, s->item->names * sizeof(*s->value));
        for (size_t i = 0; i < s->count; i++)
            s->value[s->name_of[i]] =
                i == s->driver ? driver->now.value
                               : joule_cursor_at(&s->cursor[i], driver->now.ns,
                                                 driver->interval_ns);
        m = sum_up(s);
        if (m.count == 0)
            continue;
        if (put_moment(s, &m, err) < 0)
            return -1;
        keep_most(s, &m, driver->now.elapsed);
    }
    return 0;
}

static int open_step(struct step *s, hid_t file, size_t first,
                     struct joule_error *err)
{
    const struct joule_extraction *x = &s->item->x;
    size_t bytes = BATCHES_SIZE / x->selection.tables;
    uint64_t most = 0;

    s->cursor = calloc(s->count, sizeof(*s->cursor));
    s->value = calloc(s->item->names, sizeof(*s->value));
    if (!s->cursor || !s->value)
        return joule_error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < s->count; i++) {
        uint64_t rows;

        if (joule_cursor_open(&s->cursor[i], file, &x->plan,
                              x->selection.table[first + i], x->request->item,
                              bytes, err) < 0)
            return -1;
        rows = s->cursor[i].rows;
        if (rows > most) {
            most = rows;
            s->driver = i;
        }
        if (s->cursor[i].item.kind == JOULE_KIND_FLOAT)
            s->is_float = true;
    }
    s->room = joule_cells_room(
        s->item->names + 10, strlen(s->name) + 2 * JOULE_PROFILE_NAME_MAX * 2);
    return 0;
}

static uint64_t close_step(struct step *s)
{
    uint64_t lost = 0;

    for (size_t i = 0; s->cursor && i < s->count; i++)
        lost += joule_cursor_close(&s->cursor[i]);
    free(s->cursor);
    free(s->value);
    return lost;
}

static int run_task(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    struct joule_extraction *x = arg;
    const struct item *item = arg;
    size_t first = x->first[task];
    const struct joule_plan_table *table = x->selection.table[first];
    struct step s = {
        .item = item,
        .name = x->plan.node[table->node].step,
        .name_of = item->name_of + first,
        .count = x->first[task + 1] - first,
        .out = out,
    };
    hid_t file = joule_extraction_file(x, err);
    uint64_t lost;
    int rc;

    (void)fd;
    if (file < 0)
        return -1;
    rc = open_step(&s, file, first, err);
    if (rc == 0)
        rc = walk_step(&s, err);
    lost = close_step(&s);
    if (rc < 0)
        return -1;
    if (lost)
        return joule_error_set(err, EBADMSG,
                               "step %s: damaged, %llu samples are missing",
                               s.name, (unsigned long long)lost);
    if (s.has_most)
        joule_error_set(err, 0,
                        "    Step %s Maximum accumulated %s Value (%s) "
                        "occurred at Time=%llu, Ave Node %.6f",
                        s.name, x->request->item, s.most_value.text,
                        (unsigned long long)s.most_elapsed, s.most_mean);
    return 0;
}

/* Only tables that have the item, as a number. */
static void keep_tables(struct joule_extraction *x)
{
    struct item *item = (struct item *)x;
    struct joule_selection *s = &x->selection;
    size_t kept = 0;

    for (size_t i = 0; i < s->tables; i++) {
        const struct joule_column *column =
            joule_rowtype_find(s->table[i]->type, x->request->item);

        if (!column || column->kind > JOULE_KIND_FLOAT || column->count != 1)
            continue;
        if (joule_rowtype_find(s->table[i]->type, "ElapsedTimeNs"))
            item->has_ns = true;
        s->table[kept++] = s->table[i];
    }
    s->tables = kept;
}

/* As Slurm heads them: by the node, which it does also where a node has several
 * and nobody can tell its columns apart. */
static void head_columns(struct item *item)
{
    for (size_t i = 0; i < item->names; i++) {
        size_t of_node = 0;

        for (size_t j = 0; j < item->names; j++)
            if (strcmp(item->node[i], item->node[j]) == 0)
                of_node++;
        item->head[i] = of_node > 1 ? item->name[i] : item->node[i];
    }
}

/* The column of each table: its node, and the task if it is one of a task. */
static int name_columns(struct item *item)
{
    const struct joule_selection *s = &item->x.selection;

    item->name = calloc(s->tables, sizeof(*item->name));
    item->head = calloc(s->tables, sizeof(*item->head));
    item->node = calloc(s->tables, sizeof(*item->node));
    item->name_of = calloc(s->tables, sizeof(*item->name_of));
    if (!item->name || !item->head || !item->node || !item->name_of)
        return -1;
    for (size_t i = 0; i < s->tables; i++) {
        const char *node = item->x.plan.node[s->table[i]->node].name;
        char *name;
        size_t at = 0;
        int n = s->has_series
                    ? asprintf(&name, "%s %s",
                               joule_selection_label(s, s->table[i]), node)
                    : asprintf(&name, "%s", node);

        if (n < 0)
            return -1;
        while (at < item->names && strcmp(item->name[at], name) != 0)
            at++;
        item->name_of[i] = at;
        if (at < item->names) {
            free(name);
        } else {
            item->node[at] = node;
            item->name[item->names++] = name;
        }
    }
    head_columns(item);
    return 0;
}

/* A task for each step. */
static void cut_steps(struct joule_extraction *x)
{
    const struct joule_selection *s = &x->selection;
    const char *last = NULL;

    for (size_t i = 0; i < s->tables; i++) {
        const char *step = x->plan.node[s->table[i]->node].step;

        if (!last || strcmp(last, step) != 0)
            joule_extraction_task(x, i);
        last = step;
    }
}

static int choose(struct joule_extraction *x, struct joule_error *err)
{
    const struct joule_extract_request *r = x->request;

    if (x->selection.tables == 0)
        return joule_error_set(err, ENOENT, "%s: Series %s not found", r->input,
                               r->series);
    keep_tables(x);
    if (x->selection.tables == 0)
        return joule_error_set(err, ENOENT,
                               "%s: Item %s not found in series %s", r->input,
                               r->item, r->series);
    if (name_columns((struct item *)x) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (joule_extraction_cut(x, err) < 0)
        return -1;
    cut_steps(x);
    return 0;
}

static void say(const struct joule_extraction *x)
{
    const struct joule_extract_request *r = x->request;

    joule_say("Extracting '%s' from '%s' data from %s into %s", r->item,
              r->series, r->input, r->output);
}

static int write_head(struct joule_extraction *x, struct joule_error *err)
{
    const struct item *item = (const struct item *)x;
    /* "ElaspedTime" is how Slurm spells it, and what scripts look for. */
    static const char *const fixed[] = {
        "Step",     "ElaspedTime", "MinNode", "MinValue", "MaxNode",
        "MaxValue", "Sum",         "Avg",     "NumNodes",
    };
    const size_t count = sizeof(fixed) / sizeof(fixed[0]);
    const char **name = calloc(count + item->names + 1, sizeof(*name));
    int rc;

    if (!name)
        return joule_error_set(err, ENOMEM, "out of memory");
    memcpy(name, fixed, sizeof(fixed));
    memcpy(name + count, item->head, item->names * sizeof(*name));
    name[count + item->names] = "ElapsedTimeNs";
    rc =
        joule_extraction_head(x, name, count + item->names + item->has_ns, err);
    free(name);
    return rc;
}

int joule_extract_item(const struct joule_extract_request *request)
{
    static const struct joule_extract_kind kind = {
        .choose = choose,
        .say = say,
        .head = write_head,
        .run = run_task,
    };
    struct item item = {.x.request = request};
    int status = joule_extraction_run(&item.x, &kind);

    for (size_t i = 0; i < item.names; i++)
        free(item.name[i]);
    free(item.name);
    free(item.head);
    free(item.node);
    free(item.name_of);
    return status;
}
