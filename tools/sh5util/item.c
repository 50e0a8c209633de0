/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One item of all nodes of a step side by side.
 *
 * Nodes begin at different moments and may be sampled at different rates.  The
 * table with the most rows gives the moments; of every other one the sample
 * that is nearest in time is taken.
 */
#include "tools/sh5util/extract.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tools/sh5util/say.h"

/* Memory for the rows of all tables of a step: one for each node, or task. */
#define BATCHES_SIZE   ((size_t)24 << 20)
#define BATCH_ROWS     4096
#define BATCH_ROWS_MIN 16

/* ---- one column of one table, read forward by time ---- */

struct sample {
    bool is_there;
    int64_t ns;
    uint64_t elapsed, elapsed_ns; /* 0 where there is no such column */
    struct joule_value value;
};

/*
 * The sample at hand and the one behind it.  Time is "Joule Start Wall ns" +
 * "ElapsedTimeNs" where a file has them, otherwise "EpochTime".  Many cursors
 * are open at a time: each holds a batch of rows, and nothing of the file's.
 */
struct cursor {
    hid_t file;
    char *path;          /* of the table, which is open only while it is read */
    const char *name;    /* of the column */
    uint64_t rows, next; /* of the table, and the one that is read next */
    uint64_t lost;       /* that cannot be read */
    struct joule_column item, epoch, elapsed, elapsed_ns; /* size 0: none */
    uint64_t start_ns;
    bool has_start;
    unsigned char *batch;
    size_t batch_rows;
    const unsigned char *at; /* rows that are left of the batch */
    size_t left, row_size;
    struct sample now, next_sample;
    int64_t interval_ns;
};

/* A number. */
static void find(struct joule_column *ret, const struct joule_rowtype *type,
                 const char *name)
{
    const struct joule_column *column = joule_rowtype_find(type, name);

    memset(ret, 0, sizeof(*ret));
    if (column && column->kind <= JOULE_KIND_FLOAT)
        *ret = *column;
}

/* The columns, each time that the table is opened: it is the user's file. */
static int find_columns(struct cursor *c, const struct joule_hdf5_table *table,
                        struct joule_error *err)
{
    const struct joule_rowtype *type = table->row;

    find(&c->item, type, c->name);
    find(&c->epoch, type, "EpochTime");
    find(&c->elapsed, type, "ElapsedTime");
    find(&c->elapsed_ns, type, "ElapsedTimeNs");
    if (c->item.size == 0 || (c->row_size && c->row_size != type->size))
        return joule_error_set(err, EBADMSG, "the item is gone");
    c->row_size = type->size;
    c->rows = table->rows;
    return 0;
}

static struct joule_hdf5_table *open_table(struct cursor *c,
                                           struct joule_error *err)
{
    struct joule_hdf5_table *table =
        joule_hdf5_table_open(c->file, c->path, err);

    if (table && find_columns(c, table, err) < 0) {
        joule_hdf5_table_close(table);
        table = NULL;
    }
    return table;
}

static void read_batch(struct cursor *c)
{
    struct joule_hdf5_table *table;

    c->at = c->batch;
    if (c->next >= c->rows)
        return;
    table = open_table(c, NULL);
    if (!table) {
        c->lost += c->rows - c->next;
        c->next = c->rows;
        return;
    }
    table->next = c->next;
    c->left = joule_hdf5_table_read(table, c->batch, c->batch_rows);
    c->lost += table->lost;
    c->next = table->next;
    joule_hdf5_table_close(table);
}

static void read_sample(struct cursor *c, struct sample *s)
{
    memset(s, 0, sizeof(*s));
    if (c->left == 0)
        read_batch(c);
    if (c->left == 0)
        return;
    s->is_there = true;
    s->value = joule_value_of(&c->item, c->at);
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

static void advance(struct cursor *c)
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

/* The sample nearest to [ns], which does not fall from call to call, unless it
 * is further away than half of the longer interval between samples, its own or
 * [interval_ns]. */
static struct joule_value sample_at(struct cursor *c, int64_t ns,
                                    int64_t interval_ns)
{
    const struct joule_value none = {0};
    uint64_t most;

    while (c->next_sample.is_there &&
           distance(c->next_sample.ns, ns) <= distance(c->now.ns, ns) &&
           c->now.ns < ns)
        advance(c);
    if (!c->now.is_there)
        return none;
    most =
        (uint64_t)(interval_ns > c->interval_ns ? interval_ns : c->interval_ns);
    return distance(c->now.ns, ns) <= most / 2 ? c->now.value : none;
}

/* Column [item] of [table]; [bytes] of memory are for its rows. */
static int open_cursor(struct cursor *c, hid_t file,
                       const struct joule_plan *plan,
                       const struct joule_plan_table *table, const char *item,
                       size_t bytes, struct joule_error *err)
{
    const struct joule_plan_node *node = &plan->node[table->node];
    struct joule_hdf5_table *opened;

    c->file = file;
    c->name = item;
    c->path = joule_plan_path(plan, table);
    if (!c->path)
        return joule_error_set(err, ENOMEM, "out of memory");
    opened = open_table(c, err);
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
    advance(c); /* the first one is next */
    advance(c);
    return 0;
}

/* Rows that could not be read. */
static uint64_t close_cursor(struct cursor *c)
{
    uint64_t lost = c->lost;

    free(c->path);
    free(c->batch);
    memset(c, 0, sizeof(*c));
    return lost;
}

/* ---- all of a step side by side ---- */

struct item {
    struct joule_extraction x; /* stands first: it is what others have */
    char **name;               /* of the columns, one each: "0 n1" of a task */
    const char **head;         /* over the columns: "n1" if it has one alone */
    const char **node;         /* of the columns */
    size_t names;
    size_t *name_of; /* of each table */
    bool has_ns;     /* a table has ElapsedTimeNs: the last column is that */
};

/* Least, largest and sum of the values of a moment. */
struct moment {
    size_t least, largest, count;
    struct joule_value sum;
};

struct step {
    const struct item *item;
    const char *name;
    const size_t *name_of; /* of each cursor's column */
    struct cursor *cursor;
    size_t count, driver;
    struct joule_value *value; /* of each column of the output */
    bool is_float;
    struct joule_out *out;
    size_t room;
    struct moment most; /* of the largest sum so far; count 0: none */
    uint64_t most_elapsed;
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
    const struct cursor *driver = &s->cursor[s->driver];
    const struct item *item = s->item;
    const char *least = item->name[m->least];
    const char *largest = item->name[m->largest];
    struct joule_cells c;
    char *at = joule_out_room(s->out, s->room, err);

    if (!at)
        return -1;
    joule_cells_begin(&c, at, item->x.options->json);
    joule_cells_text(&c, s->name, strlen(s->name));
    joule_cells_u64(&c, driver->now.elapsed);
    joule_cells_text(&c, least, strlen(least));
    joule_cells_value(&c, &s->value[m->least], s->is_float);
    joule_cells_text(&c, largest, strlen(largest));
    joule_cells_value(&c, &s->value[m->largest], s->is_float);
    joule_cells_value(&c, &m->sum, s->is_float);
    joule_cells_double(&c, m->sum.real / (double)m->count);
    joule_cells_u64(&c, m->count);
    for (size_t i = 0; i < item->names; i++)
        joule_cells_value(&c, &s->value[i], s->is_float);
    if (item->has_ns && driver->elapsed_ns.size)
        joule_cells_u64(&c, driver->now.elapsed_ns);
    else if (item->has_ns)
        joule_cells_missing(&c);
    joule_cells_end(&c);
    joule_out_commit(s->out, (size_t)(c.at - at));
    return 0;
}

static int walk_step(struct step *s, struct joule_error *err)
{
    struct cursor *driver = &s->cursor[s->driver];

    for (; driver->now.is_there; advance(driver)) {
        struct moment m;

        memset(s->value, 0, s->item->names * sizeof(*s->value));
        for (size_t i = 0; i < s->count; i++)
            s->value[s->name_of[i]] =
                i == s->driver ? driver->now.value
                               : sample_at(&s->cursor[i], driver->now.ns,
                                           driver->interval_ns);
        m = sum_up(s);
        if (m.count == 0)
            continue;
        if (put_moment(s, &m, err) < 0)
            return -1;
        if (s->most.count == 0 || m.sum.real > s->most.sum.real) {
            s->most = m;
            s->most_elapsed = driver->now.elapsed;
        }
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

        if (open_cursor(&s->cursor[i], file, &x->plan,
                        x->selection.table[first + i], x->options->item, bytes,
                        err) < 0)
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
        lost += close_cursor(&s->cursor[i]);
    free(s->cursor);
    free(s->value);
    return lost;
}

static void say_most(const struct step *s, struct joule_error *sentence)
{
    const struct joule_value *sum = &s->most.sum;
    char text[JOULE_NUMBER_MAX + 1];

    *(s->is_float ? joule_number_fixed(text, sum->real)
                  : joule_number_i128(text, sum->whole)) = '\0';
    joule_error_set(sentence, 0,
                    "    Step %s Maximum accumulated %s Value (%s) "
                    "occurred at Time=%llu, Ave Node %.6f",
                    s->name, s->item->x.options->item, text,
                    (unsigned long long)s->most_elapsed,
                    sum->real / (double)s->most.count);
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
    if (s.most.count > 0)
        say_most(&s, err);
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
            joule_rowtype_find(s->table[i]->type, x->options->item);

        if (!column || column->kind > JOULE_KIND_FLOAT)
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
    const struct joule_sh5_options *o = x->options;

    if (x->selection.tables == 0)
        return joule_error_set(err, ENOENT, "%s: Series %s not found", x->input,
                               o->series);
    keep_tables(x);
    if (x->selection.tables == 0)
        return joule_error_set(err, ENOENT,
                               "%s: Item %s not found in series %s", x->input,
                               o->item, o->series);
    if (name_columns((struct item *)x) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    cut_steps(x);
    return 0;
}

static void say(const struct joule_extraction *x)
{
    const struct joule_sh5_options *o = x->options;

    joule_say("Extracting '%s' from '%s' data from %s into %s", o->item,
              o->series, x->input, x->output);
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

int joule_extract_item(const struct joule_sh5_options *options,
                       const struct joule_job *job, const char *input,
                       const char *output)
{
    static const struct joule_extract_kind kind = {
        .choose = choose,
        .say = say,
        .head = write_head,
        .run = run_task,
    };
    struct item item = {
        .x = {
            .options = options, .job = job, .input = input, .output = output}};
    int status = joule_extraction_run(&item.x, &kind);

    for (size_t i = 0; i < item.names; i++)
        free(item.name[i]);
    free(item.name);
    free(item.head);
    free(item.node);
    free(item.name_of);
    return status;
}
