/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One item of all nodes of a step side by side.
 *
 * Nodes begin at different moments and may be sampled at different rates.  The
 * table with the most rows gives the moments; of every other one the sample
 * that is nearest in time is taken, unless it is further away than half of the
 * longer interval between samples.  Time is "Joule Start Wall ns" +
 * "ElapsedTimeNs" where a file has them, otherwise "EpochTime".
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/store/hdferror.h"
#include "common/store/reader.h"
#include "tools/sh5util/cells.h"
#include "tools/sh5util/extract.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/select.h"

#define CPU_S  5
#define WALL_S 60

/* Memory for the rows of all tables of a step: one for each node, or task. */
#define BATCHES_SIZE ((size_t)16 << 20)
#define BATCH_ROWS   4096

struct item {
    const struct joule_extract_request *request;
    struct joule_plan plan;
    struct joule_selection selection; /* tables with the item */
    char **name;                      /* of the columns, one each */
    size_t names;
    size_t *name_of; /* of each table */
    size_t *first;   /* table of each step, and one more */
    size_t tasks;
    struct joule_text text;
};

struct value {
    bool is_there;
    __int128 whole;
    double real;
};

struct sample {
    bool is_there;
    int64_t ns;
    uint64_t elapsed;
    struct value value;
};

/* One table, read forward: the sample at hand and the one behind it. */
struct cursor {
    struct joule_rows *rows;
    const struct joule_column *item, *epoch, *elapsed, *elapsed_ns;
    uint64_t start_ns;
    bool has_start;
    unsigned char *batch;
    size_t batch_rows;
    const unsigned char *at; /* rows that are left of the batch */
    size_t left, row_size;
    struct sample now, next;
    int64_t interval_ns;
    size_t name;
};

static struct value take_value(const struct joule_column *column,
                               const void *row)
{
    struct value v = {.is_there = true};

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

static void read_sample(struct cursor *c, struct sample *s)
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
    if (c->elapsed_ns && c->has_start)
        s->ns = (int64_t)(c->start_ns + joule_column_u64(c->elapsed_ns, c->at));
    else if (c->epoch)
        s->ns = (int64_t)(joule_column_u64(c->epoch, c->at) *
                          (uint64_t)JOULE_NS_PER_S);
    c->at += c->row_size;
    c->left--;
}

static void advance(struct cursor *c)
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

/* The sample nearest to [ns], of which the driver's come every
 * [interval_ns]. */
static struct value value_at(struct cursor *c, int64_t ns, int64_t interval_ns)
{
    const struct value none = {0};
    uint64_t most;

    while (c->next.is_there &&
           distance(c->next.ns, ns) <= distance(c->now.ns, ns) &&
           c->now.ns < ns)
        advance(c);
    if (!c->now.is_there)
        return none;
    most =
        (uint64_t)(interval_ns > c->interval_ns ? interval_ns : c->interval_ns);
    return distance(c->now.ns, ns) <= most / 2 ? c->now.value : none;
}

struct step {
    const struct item *x;
    const char *name;
    struct cursor *cursor;
    size_t count, driver;
    struct value *value; /* of each column of the output */
    bool is_float;
    struct joule_out *out;
    size_t room;
    double most; /* largest sum so far */
    bool has_most;
    uint64_t most_elapsed;
    double most_mean;
    struct joule_error most_value;
};

static int open_cursor(struct cursor *c, const struct item *x,
                       struct joule_reader *reader, size_t i,
                       struct joule_error *err)
{
    const struct joule_plan_table *table = x->selection.table[i];
    const struct joule_plan_node *node = &x->plan.node[table->node];
    char *path = joule_plan_path(&x->plan, table);
    const struct joule_rowtype *type;

    if (!path)
        return joule_error_set(err, ENOMEM, "out of memory");
    c->rows = joule_reader_table(reader, path, err);
    free(path);
    if (!c->rows)
        return -1;
    type = &joule_rows_layout(c->rows)->type;
    c->item = joule_rowtype_find(type, x->request->item);
    c->epoch = joule_rowtype_find(type, "EpochTime");
    c->elapsed = joule_rowtype_find(type, "ElapsedTime");
    c->elapsed_ns = joule_rowtype_find(type, "ElapsedTimeNs");
    c->row_size = type->size;
    c->batch_rows = BATCHES_SIZE / x->selection.tables / c->row_size;
    if (c->batch_rows > BATCH_ROWS)
        c->batch_rows = BATCH_ROWS;
    if (c->batch_rows < 16)
        c->batch_rows = 16;
    c->batch = malloc(c->batch_rows * c->row_size);
    c->start_ns = node->start_wall_ns;
    c->has_start = node->has_start;
    c->name = x->name_of[i];
    if (!c->batch)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (!c->item)
        return joule_error_set(err, EBADMSG, "the item is gone");
    advance(c); /* the first one is next */
    advance(c);
    return 0;
}

static void put_value(struct joule_cells *c, const struct value *v,
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
    struct value sum;
};

static struct moment sum_up(const struct step *s)
{
    struct moment m = {.sum.is_there = true};

    for (size_t i = 0; i < s->x->names; i++) {
        const struct value *v = &s->value[i];

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

static int put_moment(struct step *s, const struct moment *m, uint64_t elapsed,
                      struct joule_error *err)
{
    const struct item *x = s->x;
    const char *least = x->name[m->least], *largest = x->name[m->largest];
    struct joule_cells c;
    char *at = joule_out_room(s->out, s->room, err);

    if (!at)
        return -1;
    joule_cells_begin(&c, at, x->text.json);
    joule_cells_text(&c, s->name, strlen(s->name));
    joule_cells_u64(&c, elapsed);
    joule_cells_text(&c, least, strlen(least));
    put_value(&c, &s->value[m->least], s->is_float);
    joule_cells_text(&c, largest, strlen(largest));
    put_value(&c, &s->value[m->largest], s->is_float);
    put_value(&c, &m->sum, s->is_float);
    joule_cells_double(&c, m->sum.real / (double)m->count);
    joule_cells_u64(&c, m->count);
    for (size_t i = 0; i < x->names; i++)
        put_value(&c, &s->value[i], s->is_float);
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
    struct cursor *driver = &s->cursor[s->driver];

    for (; driver->now.is_there; advance(driver)) {
        uint64_t elapsed = driver->now.elapsed;
        struct moment m;

        memset(s->value, 0, s->x->names * sizeof(*s->value));
        for (size_t i = 0; i < s->count; i++)
            s->value[s->cursor[i].name] =
                i == s->driver ? driver->now.value
                               : value_at(&s->cursor[i], driver->now.ns,
                                          driver->interval_ns);
        m = sum_up(s);
        if (m.count == 0)
            continue;
        if (put_moment(s, &m, elapsed, err) < 0)
            return -1;
        keep_most(s, &m, elapsed);
    }
    return 0;
}

static int open_step(struct step *s, struct joule_reader *reader, size_t first,
                     struct joule_error *err)
{
    uint64_t most = 0;

    s->cursor = calloc(s->count, sizeof(*s->cursor));
    s->value = calloc(s->x->names, sizeof(*s->value));
    if (!s->cursor || !s->value)
        return joule_error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < s->count; i++) {
        uint64_t rows;

        if (open_cursor(&s->cursor[i], s->x, reader, first + i, err) < 0)
            return -1;
        rows = joule_rows_layout(s->cursor[i].rows)->rows;
        if (rows > most) {
            most = rows;
            s->driver = i;
        }
        if (s->cursor[i].item->kind == JOULE_KIND_FLOAT)
            s->is_float = true;
    }
    s->room = joule_cells_room(s->x->names + 9,
                               strlen(s->name) + 2 * JOULE_STORE_NAME_MAX * 2);
    return 0;
}

static uint64_t close_step(struct step *s)
{
    uint64_t lost = 0;

    for (size_t i = 0; s->cursor && i < s->count; i++) {
        if (s->cursor[i].rows)
            lost += joule_rows_lost(s->cursor[i].rows);
        joule_rows_close(s->cursor[i].rows);
        free(s->cursor[i].batch);
    }
    free(s->cursor);
    free(s->value);
    return lost;
}

static int run_task(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    const struct item *x = arg;
    size_t first = x->first[task];
    const struct joule_plan_table *table = x->selection.table[first];
    struct step s = {
        .x = x,
        .name = x->plan.node[table->node].step,
        .count = x->first[task + 1] - first,
        .out = out,
    };
    struct joule_reader *reader;
    uint64_t lost;
    int rc;

    joule_hdf_quiet();
    reader = joule_reader_open(fd, err);
    if (!reader)
        return -1;
    rc = open_step(&s, reader, first, err);
    if (rc == 0)
        rc = walk_step(&s, err);
    lost = close_step(&s);
    joule_reader_close(reader);
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

static int open_task(void *arg, size_t task, struct joule_error *err)
{
    const struct item *x = arg;

    (void)task;
    return joule_text_open(&x->text, err);
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    struct item *x = arg;

    (void)task;
    return joule_text_rows(&x->text, data, len, err);
}

static int ended(void *arg, size_t task, int errnum, const char *sentence,
                 struct joule_error *err)
{
    struct item *x = arg;

    (void)task;
    (void)err;
    if (errnum)
        joule_text_failed(&x->text, x->request->input, sentence);
    else if (*sentence)
        fprintf(x->text.out.dir_fd < 0 ? stderr : stdout, "%s\n", sentence);
    return 0;
}

/* Only tables that have the item, as a number. */
static void keep_tables(struct item *x)
{
    struct joule_selection *s = &x->selection;
    size_t kept = 0;

    for (size_t i = 0; i < s->tables; i++) {
        const struct joule_column *column =
            joule_rowtype_find(s->table[i]->type, x->request->item);

        if (column && column->kind <= JOULE_KIND_FLOAT && column->count == 1)
            s->table[kept++] = s->table[i];
    }
    s->tables = kept;
}

/* The column of each table: its node, and the task where there are several. */
static int name_columns(struct item *x)
{
    const struct joule_selection *s = &x->selection;

    x->name = calloc(s->tables, sizeof(*x->name));
    x->name_of = calloc(s->tables, sizeof(*x->name_of));
    if (!x->name || !x->name_of)
        return -1;
    for (size_t i = 0; i < s->tables; i++) {
        const char *node = x->plan.node[s->table[i]->node].name;
        char *name;
        size_t at = 0;
        int n = s->has_series
                    ? asprintf(&name, "%s %s",
                               joule_selection_label(s, s->table[i]), node)
                    : asprintf(&name, "%s", node);

        if (n < 0)
            return -1;
        while (at < x->names && strcmp(x->name[at], name) != 0)
            at++;
        x->name_of[i] = at;
        if (at < x->names)
            free(name);
        else
            x->name[x->names++] = name;
    }
    return 0;
}

static int cut_steps(struct item *x)
{
    const struct joule_selection *s = &x->selection;
    const char *last = NULL;

    x->first = calloc(s->tables + 1, sizeof(*x->first));
    if (!x->first)
        return -1;
    for (size_t i = 0; i < s->tables; i++) {
        const char *step = x->plan.node[s->table[i]->node].step;

        if (!last || strcmp(last, step) != 0)
            x->first[x->tasks++] = i;
        last = step;
    }
    x->first[x->tasks] = s->tables;
    return 0;
}

static int write_head(struct item *x, struct joule_error *err)
{
    /* "ElaspedTime" is how Slurm spells it, and what scripts look for. */
    static const char *const fixed[] = {
        "Step",     "ElaspedTime", "MinNode", "MinValue", "MaxNode",
        "MaxValue", "Sum",         "Avg",     "NumNodes",
    };
    const size_t count = sizeof(fixed) / sizeof(fixed[0]);
    const char **name = calloc(count + x->names, sizeof(*name));
    int rc;

    if (!name)
        return joule_error_set(err, ENOMEM, "out of memory");
    memcpy(name, fixed, sizeof(fixed));
    memcpy(name + count, x->name, x->names * sizeof(*name));
    rc = joule_text_head(&x->text, x->request->job->text, name,
                         count + x->names, err);
    free(name);
    return rc;
}

static int prepare(struct item *x, struct joule_error *err)
{
    const struct joule_extract_request *r = x->request;

    x->text.fd = joule_text_input(r->input, err);
    if (x->text.fd < 0)
        return -1;
    if (joule_plan_read(x->text.fd, &x->plan, err) < 0)
        return joule_error_set(err, errno, "%s: %s", r->input, err->text);
    if (x->plan.notes)
        joule_text_failed(&x->text, r->input, x->plan.first_note.text);
    if (joule_select(&x->plan, r->job, r->node, r->series, &x->selection) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (x->selection.tables == 0)
        return joule_error_set(err, ENOENT, "%s: there is no series %s",
                               r->input, r->series);
    keep_tables(x);
    if (x->selection.tables == 0)
        return joule_error_set(err, ENOENT, "%s: series %s has no item %s",
                               r->input, r->series, r->item);
    if (name_columns(x) < 0 || cut_steps(x) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    return 0;
}

static int run(struct item *x, struct joule_error *err)
{
    const struct joule_extract_request *r = x->request;
    const struct joule_work work = {
        .open = open_task,
        .run = run_task,
        .take = take,
        .ended = ended,
        .arg = x,
        .cpu_s = CPU_S,
        .wall_s = WALL_S,
    };

    if (prepare(x, err) < 0 ||
        joule_outfile_open(&x->text.out, r->output, err) < 0)
        return -1;
    fprintf(stderr, "sh5util: Extracting '%s' from '%s' data from %s into %s\n",
            r->item, r->series, r->input, r->output);
    if (write_head(x, err) < 0 ||
        joule_pool_run(&work, x->tasks, r->readers, err) < 0)
        return -1;
    if (x->text.failed && !x->text.has_rows)
        return joule_error_set(err, ENODATA, "nothing could be read from %s",
                               r->input);
    if (joule_text_tail(&x->text, err) < 0)
        return -1;
    return joule_outfile_commit(&x->text.out, err);
}

int joule_extract_item(const struct joule_extract_request *request)
{
    struct item x = {.request = request};
    struct joule_error err = {""};
    int rc;

    x.text.json = request->json;
    x.text.fd = x.text.out.fd = x.text.out.dir_fd = -1;
    rc = run(&x, &err);
    if (rc < 0)
        fprintf(stderr, "sh5util: %s\n", err.text);
    joule_outfile_abandon(&x.text.out);
    for (size_t i = 0; i < x.names; i++)
        free(x.name[i]);
    free(x.name);
    free(x.name_of);
    free(x.first);
    joule_selection_free(&x.selection);
    joule_plan_free(&x.plan);
    if (x.text.fd >= 0)
        close(x.text.fd);
    if (rc < 0)
        return JOULE_EXIT_NOTHING;
    return x.text.failed ? JOULE_EXIT_PART : JOULE_EXIT_ALL;
}
