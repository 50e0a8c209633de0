/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/extract.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/profile/hdf5_driver.h"
#include "tools/sh5util/say.h"

/* A worker reads so many bytes of rows at a time. */
#define BATCH_SIZE ((size_t)128 << 10)

/* Tables are put together into tasks of about so many rows. */
#define TASK_ROWS 65536

static int no_memory(struct joule_error *err)
{
    return joule_error_set(err, ENOMEM, "out of memory");
}

/* ---- which tables ---- */

static int add_columns(struct joule_selection *s,
                       const struct joule_rowtype *type)
{
    for (uint32_t i = 0; i < type->count; i++) {
        const char *name = type->column[i].name;
        const char **more;
        size_t at = 0;

        while (at < s->columns && strcmp(s->column[at], name) != 0)
            at++;
        if (at < s->columns)
            continue;
        more = reallocarray(s->column, s->columns + 1, sizeof(*more));
        if (!more)
            return -1;
        s->column = more;
        s->column[s->columns++] = name;
    }
    return 0;
}

/* The part of a path that names the series: tasks are one. */
static int series_length(const char *path)
{
    return (int)strcspn(path, "/");
}

static bool same_series(const char *a, const char *b)
{
    int len = series_length(a);

    return len == series_length(b) && strncmp(a, b, (size_t)len) == 0;
}

static int add_table(struct joule_selection *s,
                     const struct joule_plan_table *table)
{
    /* Tables of one kind stand together: look at each kind once. */
    bool is_new =
        s->tables == 0 || s->table[s->tables - 1]->type != table->type;

    if (s->tables > 0 && !same_series(s->table[0]->series, table->series))
        s->is_mixed = true;
    if (strchr(table->series, '/'))
        s->has_series = true;
    s->table[s->tables++] = table;
    return is_new ? add_columns(s, table->type) : 0;
}

/* NULL for [node] and [series]: all.  Nothing that fits is no failure.  -1:
 * ENOMEM.  The plan must outlive the selection. */
static int select_tables(const struct joule_plan *plan,
                         const struct joule_job *job, const char *node,
                         const char *series, struct joule_selection *s)
{
    memset(s, 0, sizeof(*s));
    s->table = calloc(plan->tables + 1, sizeof(*s->table));
    if (!s->table)
        return -1;
    for (size_t i = 0; i < plan->tables; i++) {
        const struct joule_plan_table *table = &plan->table[i];
        const struct joule_plan_node *n = &plan->node[table->node];

        if (table->type->is_compound && joule_job_has_step(job, n->step) &&
            (!node || strcmp(node, n->name) == 0) &&
            joule_series_matches(series, table->series) &&
            add_table(s, table) < 0)
            return -1;
    }
    s->has_series |= s->is_mixed;
    return 0;
}

static void free_selection(struct joule_selection *s)
{
    free(s->table);
    free(s->column);
}

const char *joule_selection_label(const struct joule_selection *s,
                                  const struct joule_plan_table *table)
{
    const char *slash = strchr(table->series, '/');

    return s->is_mixed || !slash ? table->series : slash + 1;
}

/* ---- what extracts have in common ---- */

void joule_extraction_task(struct joule_extraction *x, size_t i)
{
    x->first[x->tasks++] = i;
    x->first[x->tasks] = x->selection.tables;
}

hid_t joule_extraction_file(struct joule_extraction *x, struct joule_error *err)
{
    if (x->file < 0)
        x->file = joule_hdf5_open_fd(x->input_fd, err);
    return x->file;
}

static int write_text(const struct joule_extraction *x, const char *data,
                      size_t len, struct joule_error *err)
{
    while (len > 0) {
        ssize_t n = write(x->out.fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return joule_error_set(err, errno, "cannot write %s: %m",
                                   x->out.dir_fd < 0 ? "the output"
                                                     : x->out.name);
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Rows that workers have made; see cells.h about the first comma. */
static int write_rows(struct joule_extraction *x, const char *data, size_t len,
                      struct joule_error *err)
{
    if (x->options->json && !x->has_rows && len > 0) {
        data++;
        len--;
    }
    x->has_rows = true;
    return write_text(x, data, len, err);
}

int joule_extraction_head(struct joule_extraction *x,
                          const char *const *columns, size_t count,
                          struct joule_error *err)
{
    const char *job = x->job->text;
    bool json = x->options->json;
    struct joule_cells cells;
    size_t room = 64 + strlen(job);
    char *head, *at;
    int rc;

    for (size_t i = 0; i < count; i++)
        room += joule_cells_room(1, strlen(columns[i]));
    head = malloc(room);
    if (!head)
        return no_memory(err);
    at = head;
    if (json)
        at += sprintf(at, "{\"job\": \"%s\",\n\"columns\": ", job);
    joule_cells_begin(&cells, at, json);
    if (json)
        cells.at = at + 1, *at = '[';
    for (size_t i = 0; i < count; i++)
        joule_cells_text(&cells, columns[i], strlen(columns[i]));
    joule_cells_end(&cells);
    if (json)
        cells.at += sprintf(cells.at, ",\n\"rows\": [");
    rc = write_text(x, head, (size_t)(cells.at - head), err);
    free(head);
    return rc;
}

/* What could not be read, or not all of it. */
static void say_failed(struct joule_extraction *x, const char *sentence)
{
    x->failed++;
    joule_say("%s: %s", x->input, sentence);
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    (void)task;
    return write_rows(arg, data, len, err);
}

static int ended(void *arg, size_t task, const struct joule_work_end *end,
                 struct joule_error *err)
{
    struct joule_extraction *x = arg;

    (void)task;
    (void)err;
    if (end->errnum)
        say_failed(x, end->sentence);
    else if (*end->sentence)
        joule_say_to(x->out.dir_fd < 0 ? stderr : stdout, "%s", end->sentence);
    return 0;
}

/* What the file has, and which of it is meant. */
static int open_input(struct joule_extraction *x, struct joule_error *err)
{
    const struct joule_sh5_options *o = x->options;

    x->input_fd =
        joule_plan_open(AT_FDCWD, x->input, x->input, &x->input_st, err);
    if (x->input_fd < 0)
        return -1;
    if (joule_plan_read(x->input_fd, &x->plan, err) < 0)
        return joule_error_set(err, errno, "%s: %s", x->input, err->text);
    if (select_tables(&x->plan, x->job, o->node, o->series, &x->selection) < 0)
        return no_memory(err);
    x->first = calloc(x->selection.tables + 1, sizeof(*x->first));
    return x->first ? 0 : no_memory(err);
}

static void close_input(struct joule_extraction *x)
{
    free_selection(&x->selection);
    joule_plan_free(&x->plan);
    free(x->first);
    joule_close(x->input_fd);
}

static int run(struct joule_extraction *x,
               const struct joule_extract_kind *kind, struct joule_error *err)
{
    const struct joule_work work = {
        .run = kind->run,
        .take = take,
        .ended = ended,
        .arg = x,
        .keep = &x->input_fd,
        .keeps = 1,
    };

    if (open_input(x, err) < 0)
        return -1;
    if (x->plan.notes)
        say_failed(x, x->plan.first_note.text);
    if (kind->choose(x, err) < 0 ||
        joule_outfile_open(&x->out, x->output, err) < 0)
        return -1;
    joule_outfile_limit(&x->out, &x->input_st);
    kind->say(x);
    if (kind->head(x, err) < 0 ||
        joule_work_run(&work, x->tasks, x->options->readers, err) < 0)
        return -1;
    if (x->failed && !x->has_rows)
        return joule_error_set(err, ENODATA, "nothing could be read from %s",
                               x->input);
    if (x->options->json && write_text(x, "\n]}\n", 4, err) < 0)
        return -1;
    return joule_outfile_commit(&x->out, err);
}

int joule_extraction_run(struct joule_extraction *x,
                         const struct joule_extract_kind *kind)
{
    struct joule_error err = {""};
    int rc;

    x->input_fd = x->out.fd = x->out.dir_fd = -1;
    x->file = -1;
    joule_hdf5_prepare();
    rc = run(x, kind, &err);
    if (rc < 0)
        joule_say("%s", err.text);
    joule_outfile_abandon(&x->out);
    close_input(x);
    if (rc < 0)
        return JOULE_EXIT_NOTHING;
    return x->failed ? JOULE_EXIT_PART : JOULE_EXIT_ALL;
}

/* ---- totals ---- */

static bool is_less(const struct joule_total *t, const struct joule_value *a,
                    const struct joule_value *b)
{
    return t->column->kind == JOULE_KIND_FLOAT ? a->real < b->real
                                               : a->whole < b->whole;
}

void joule_total_add(struct joule_total *t, const unsigned char *row,
                     size_t count, size_t row_size)
{
    if (!t->column)
        return;
    if (t->is_elapsed) {
        t->last = joule_value_of(t->column, row + (count - 1) * row_size);
        return;
    }
    for (; count > 0; count--, row += row_size) {
        struct joule_value v = joule_value_of(t->column, row);

        if (!v.is_there)
            continue;
        if (t->count == 0 || is_less(t, &v, &t->least))
            t->least = v;
        if (t->count == 0 || is_less(t, &t->largest, &v))
            t->largest = v;
        t->sum.whole += v.whole;
        t->sum.real += v.real;
        t->count++;
    }
}

void joule_total_put(const struct joule_total *t, struct joule_cells *c)
{
    bool is_float = t->column && t->column->kind == JOULE_KIND_FLOAT;

    if (t->is_elapsed) {
        joule_cells_value(c, &t->last, is_float);
    } else if (!t->column) {
        for (int part = 0; part < 4; part++)
            joule_cells_missing(c);
    } else if (t->count == 0) {
        for (int part = 0; part < 4; part++)
            joule_cells_double(c, NAN);
    } else {
        struct joule_value sum = t->sum;

        sum.is_there = true;
        joule_cells_value(c, &t->least, is_float);
        joule_cells_value(c, &t->largest, is_float);
        joule_cells_value(c, &sum, is_float);
        joule_cells_double(c, (is_float ? sum.real : (double)sum.whole) /
                                  (double)t->count);
    }
}

/* ---- series and their totals ---- */

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
    const struct joule_plan_node *node = &r->x->plan.node[r->table->node];
    const char *label = joule_selection_label(s, r->table);
    struct joule_cells c;

    r->prefix = malloc(joule_cells_room(
        3, strlen(node->step) + strlen(node->name) + strlen(label)));
    if (!r->prefix)
        return -1;
    joule_cells_begin(&c, r->prefix, r->x->options->json);
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
    r->type = r->rows->row;
    r->batch_rows = joule_hdf5_table_batch(r->rows, BATCH_SIZE);
    r->batch = malloc(r->batch_rows * r->type->size);
    r->column = calloc(s->columns + 1, sizeof(*r->column));
    if (!r->batch || !r->column || make_prefix(r) < 0)
        return no_memory(err);
    for (size_t i = 0; i < s->columns; i++)
        r->column[i] = joule_rowtype_find(r->type, s->column[i]);
    r->row_room =
        r->prefix_len +
        joule_cells_room(s->columns * 4 + 4, joule_cells_text_bytes(r->type));
    return 0;
}

/* Room for a row, which begins with the prefix; NULL: nobody wants it. */
static char *begin_row(const struct reading *r, struct joule_cells *c,
                       struct joule_error *err)
{
    char *at = joule_out_room(r->out, r->row_room, err);

    if (!at)
        return NULL;
    memcpy(at, r->prefix, r->prefix_len);
    *c = (struct joule_cells){.at = at + r->prefix_len,
                              .json = r->x->options->json};
    return at;
}

static void end_row(const struct reading *r, struct joule_cells *c,
                    const char *at)
{
    joule_cells_end(c);
    joule_out_commit(r->out, (size_t)(c->at - at));
}

static int put_rows(struct reading *r, const unsigned char *row, size_t count,
                    struct joule_error *err)
{
    size_t columns = r->x->selection.columns;
    struct joule_cells c;

    for (; count > 0; count--, row += r->type->size) {
        char *at = begin_row(r, &c, err);

        if (!at)
            return -1;
        for (size_t i = 0; i < columns; i++)
            if (r->column[i])
                joule_cells_column(&c, r->column[i], row);
            else
                joule_cells_missing(&c);
        end_row(r, &c, at);
    }
    return 0;
}

static int put_totals(struct reading *r, const struct joule_total *totals,
                      struct joule_error *err)
{
    struct joule_cells c;
    char *at = begin_row(r, &c, err);

    for (size_t i = 0; at && i < r->x->selection.columns; i++)
        joule_total_put(&totals[i], &c);
    if (at)
        end_row(r, &c, at);
    return at ? 0 : -1;
}

static int read_all(struct reading *r, struct joule_error *err)
{
    const struct joule_selection *s = &r->x->selection;
    struct joule_total *totals = calloc(s->columns + 1, sizeof(*totals));
    bool has_rows = false;
    size_t count;
    int rc = totals ? 0 : no_memory(err);

    for (size_t i = 0; totals && i < s->columns; i++) {
        const struct joule_column *column = r->column[i];

        totals[i].is_elapsed = strcmp(s->column[i], "ElapsedTime") == 0;
        if (column && column->kind <= JOULE_KIND_FLOAT)
            totals[i].column = column;
    }
    while (rc == 0 && (count = joule_hdf5_table_read(r->rows, r->batch,
                                                     r->batch_rows)) > 0) {
        has_rows = true;
        if (r->x->options->time_series)
            rc = put_rows(r, r->batch, count, err);
        else
            for (size_t i = 0; i < s->columns; i++)
                joule_total_add(&totals[i], r->batch, count, r->type->size);
    }
    if (rc == 0 && has_rows && !r->x->options->time_series)
        rc = put_totals(r, totals, err);
    free(totals);
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
        return no_memory(err);
    r.rows = joule_hdf5_table_open(file, path, err);
    if (r.rows && prepare(&r, err) == 0)
        rc = read_all(&r, err);
    if (r.rows)
        *lost += r.rows->lost;
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
    const struct joule_sh5_options *o = x->options;
    const struct joule_selection *s = &x->selection;
    uint64_t rows = 0;

    if (s->tables == 0)
        return joule_error_set(err, ENOENT,
                               "%s: nothing in it fits (series "
                               "%s, node %s)",
                               x->input, o->series ? o->series : "any",
                               o->node ? o->node : "any");
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
    joule_say("Extracting job data from %s into %s", x->input, x->output);
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
        return no_memory(err);
    }
    name[count++] = "Step";
    name[count++] = "Node";
    if (s->has_series)
        name[count++] = "Series";
    for (size_t i = 0; i < s->columns; i++) {
        if (x->options->time_series ||
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

int joule_extract(const struct joule_sh5_options *options,
                  const struct joule_job *job, const char *input,
                  const char *output)
{
    static const struct joule_extract_kind kind = {
        .choose = choose,
        .say = say,
        .head = write_head,
        .run = run_task,
    };
    struct joule_extraction x = {
        .options = options, .job = job, .input = input, .output = output};

    return joule_extraction_run(&x, &kind);
}

/* ---- the names of series and items ---- */

static bool is_listed(const struct joule_selection *s, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (same_series(s->table[j]->series, s->table[i]->series))
            return true;
    return false;
}

static void print_json(const char *text)
{
    char buf[JOULE_PROFILE_NAME_MAX * 6 + 32];
    struct joule_cells c = {.at = buf, .json = true, .is_first = true};

    joule_cells_text(&c, text, strnlen(text, JOULE_PROFILE_NAME_MAX));
    fwrite(buf, 1, (size_t)(c.at - buf), stdout);
}

/* The columns that tables of this series have, each once. */
static int print_series(const struct joule_extraction *x, const char *name,
                        const char *indent)
{
    const struct joule_sh5_options *o = x->options;
    struct joule_selection one;
    int rc = select_tables(&x->plan, x->job, o->node, name, &one);

    if (rc == 0 && o->json) {
        fputs("\n{\"name\": ", stdout);
        print_json(name);
        fputs(", \"items\": [", stdout);
    } else if (rc == 0 && !o->series) {
        joule_say_to(stdout, "%s%s", indent, name);
    }
    for (size_t i = 0; rc == 0 && i < one.columns; i++) {
        if (!o->json) {
            joule_say_to(stdout, "%s%s%s", indent, o->series ? "" : "  ",
                         one.column[i]);
            continue;
        }
        fputs(i ? ", " : "", stdout);
        print_json(one.column[i]);
    }
    if (rc == 0 && o->json)
        fputs("]}", stdout);
    free_selection(&one);
    return rc;
}

static int print_all(const struct joule_extraction *x, size_t *listed,
                     struct joule_error *err)
{
    const struct joule_sh5_options *o = x->options;
    const struct joule_selection *s = &x->selection;
    bool is_one = o->jobs == 1;

    if (s->tables == 0 && o->series)
        return joule_error_set(err, ENOENT, "%s: Series %s not found", x->input,
                               o->series);
    if (s->tables == 0)
        return joule_error_set(err, ENOENT, "%s: there is no series in it",
                               x->input);
    /* Of several jobs, JSON is a list and text has a line for each. */
    if (!is_one && o->json)
        fputs((*listed)++ ? ",\n" : "[", stdout);
    else if (!is_one)
        printf("Job %s\n", x->job->text);
    if (o->json)
        printf("{\"job\": \"%s\", \"series\": [", x->job->text);
    for (size_t i = 0; i < s->tables; i++) {
        const char *path = s->table[i]->series;
        char *name;
        int rc;

        if (is_listed(s, i))
            continue;
        if (o->json && i > 0)
            putchar(',');
        if (asprintf(&name, "%.*s", series_length(path), path) < 0)
            return no_memory(err);
        rc = print_series(x, name, is_one ? "" : "  ");
        free(name);
        if (rc < 0)
            return no_memory(err);
    }
    if (o->json)
        puts("\n]}");
    return 0;
}

int joule_extract_list(const struct joule_sh5_options *options,
                       const struct joule_job *job, const char *input,
                       size_t *listed)
{
    struct joule_extraction x = {
        .options = options, .job = job, .input = input};
    struct joule_error err = {""};
    int rc = open_input(&x, &err);
    size_t notes = x.plan.notes;

    if (rc == 0) {
        if (!options->json)
            joule_say("Listing items from %s", input);
        if (notes)
            joule_say("%s: %s", input, x.plan.first_note.text);
        rc = print_all(&x, listed, &err);
    }
    close_input(&x);
    if (rc == 0)
        return notes ? JOULE_EXIT_PART : JOULE_EXIT_ALL;
    joule_say("%s", err.text);
    return JOULE_EXIT_NOTHING;
}
